//! The tree of a YAML text: values with their positions, aliases resolved, merge keys applied.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Marker, Parser, ScalarStyle, StrInput};

use super::diagnostic::{Diagnostic, DiagnosticList, Position};
use super::syntax;

/// The most values that merge keys take over in a file: a thousand entries that take over a hundred each are fewer.
const MAX_MERGED: usize = 1 << 18;

/// The parser counts lines from 1, and columns from 0.
fn position_of(marker: Marker) -> Position {
    Position { line: marker.line().max(1) as u64, column: marker.col() as u64 + 1 }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A scalar without quotes: it may be null.
    Plain,
    Quoted,
    List,
    Map,
}

/// A value.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) position: Position,
    pub(super) kind: Kind,
    /// The text of a scalar.
    pub(super) text: String,
    /// The entries of a list or mapping.
    pub(super) children: Vec<Child>,
}

/// A value in a list or a mapping.
#[derive(Clone, Debug)]
pub(super) struct Child {
    /// The node of its key; `None` in a list.
    pub(super) key: Option<usize>,
    /// Where the value is used; the position of an alias is not that of its node.
    pub(super) position: Position,
    pub(super) node: usize,
    /// It was refused, and is skipped.
    pub(super) removed: bool,
}

/// The place of a child: the node that it is in, and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryIndex {
    pub container: usize,
    pub index: usize,
}

/// The tree of one file.
#[derive(Debug, Default)]
pub struct Document {
    pub(super) nodes: Vec<Node>,
    pub(super) root: Option<usize>,
    /// How many values have been read, those behind aliases each time.
    pub(super) values_read: Cell<usize>,
}

impl Node {
    /// The text, if it is a scalar.
    fn scalar(&self) -> Option<&str> {
        matches!(self.kind, Kind::Plain | Kind::Quoted).then_some(&self.text)
    }

    /// Whether it is empty, `null` or `~`.
    pub(super) fn is_null(&self) -> bool {
        self.kind == Kind::Plain
            && (matches!(&*self.text, "" | "~") || self.text.eq_ignore_ascii_case("null"))
    }
}

impl Document {
    /// Parses a text. The diagnostics are errors of the syntax, and keys that are given twice.
    pub(super) fn parse(text: &str) -> (Document, DiagnosticList) {
        let mut builder = Builder {
            events: Parser::new_from_str(text),
            document: Document::default(),
            diagnostics: DiagnosticList::default(),
            merged: 0,
            anchors: HashMap::new(),
            ended: false,
            is_broken: false,
        };
        let mut documents = 0;
        while let Some((event, position)) = builder.next("") {
            if matches!(event, Event::DocumentStart(..)) {
                documents += 1;
            }
            if documents > 1 {
                let problem = "a second document begins here (---): only one per file";
                builder.report(position, "", problem);
                break;
            }
            if let Some(root) = builder.value(event, position, "") {
                builder.document.root = Some(root);
            }
        }
        // A part of a file may mean something else than the whole.
        let document = if builder.is_broken { Document::default() } else { builder.document };
        (document, builder.diagnostics)
    }

    pub(super) fn key_of(&self, child: &Child) -> Option<&str> {
        self.nodes[child.key?].scalar()
    }

    pub(super) fn child(&self, EntryIndex { container, index }: EntryIndex) -> Option<&Child> {
        self.nodes[container].children.get(index)
    }

    /// The path of an entry of the node with this path.
    pub(super) fn path_of(&self, path: &str, entry: EntryIndex) -> String {
        match self.child(entry).and_then(|child| self.key_of(child)) {
            Some(key) => join(path, key),
            None => format!("{path}[{}]", entry.index),
        }
    }

    /// Removes a child; `false` if there is none, or it is removed already.
    pub(super) fn remove(&mut self, EntryIndex { container, index }: EntryIndex) -> bool {
        let child = self.nodes[container].children.get_mut(index);
        child.is_some_and(|child| !std::mem::replace(&mut child.removed, true))
    }

    /// A diagnostic at the value of a key such as `fabrics[1].interval`, where the numbers count the entries
    /// of the value that was read, and a name may contain dots. `None` if the file does not have the key.
    pub fn diagnostic(&self, key: &str, problem: impl Into<String>) -> Option<Diagnostic> {
        let mut node = self.root?;
        let mut position = self.nodes[node].position;
        let (mut path, mut rest) = (String::new(), key);
        while !rest.is_empty() {
            let children = self.nodes[node].children.iter().enumerate();
            let mut children = children.filter(|(_, child)| !child.removed);
            let (index, child);
            let nth = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            // In a mapping it is a name.
            if let Some((nth, after)) = nth.filter(|_| self.nodes[node].kind == Kind::List) {
                ((index, child), rest) = (children.nth(nth.parse().ok()?)?, after);
            } else {
                let named = children.filter_map(|(index, child)| {
                    let after = rest.strip_prefix(self.key_of(child)?)?;
                    let is_whole = after.is_empty() || after.starts_with(['.', '[']);
                    is_whole.then_some((index, child, after))
                });
                (index, child, rest) = named.min_by_key(|(.., after)| after.len())?;
            }
            rest = rest.strip_prefix('.').unwrap_or(rest);
            path = self.path_of(&path, EntryIndex { container: node, index });
            (node, position) = (child.node, child.position);
        }
        Some(Diagnostic::new(position, path, problem))
    }
}

/// The path of a key in the mapping with this path.
fn join(path: &str, key: &str) -> String {
    let dot = if path.is_empty() || key.starts_with('[') { "" } else { "." };
    format!("{path}{dot}{key}")
}

/// Builds the tree from the parser's events by recursion. The parser limits the nesting of block and of flow
/// collections to 255 each; an implicit mapping `[a: ` adds one per flow level, so the depth is below 770.
struct Builder<'t> {
    events: Parser<'t, StrInput<'t>>,
    document: Document,
    diagnostics: DiagnosticList,
    /// How many values merge keys have taken over.
    merged: usize,
    anchors: HashMap<usize, usize>,
    /// After an error no event is read: what follows could mean anything.
    ended: bool,
    /// It was an error of the syntax.
    is_broken: bool,
}

impl<'t> Builder<'t> {
    fn report(&mut self, position: Position, path: &str, problem: impl Into<String>) {
        self.diagnostics.add(|| Diagnostic::new(position, path, problem));
    }

    /// The next event, which is about the value with this path; `None` at the end, and after an error.
    fn next(&mut self, path: &str) -> Option<(Event<'t>, Position)> {
        match self.events.next().filter(|_| !self.ended)? {
            Ok((event, span)) => Some((event, position_of(span.start))),
            Err(error) => {
                // In a list it is not known whether an entry has begun.
                let list = path.strip_suffix(']').and_then(|path| path.rsplit_once('['));
                let path = list.map_or(path, |(list, _)| list);
                self.report(position_of(*error.marker()), path, syntax::problem(error.kind()));
                (self.ended, self.is_broken) = (true, true);
                None
            }
        }
    }

    /// Reads the value that begins with this event, if one does.
    fn value(&mut self, event: Event<'t>, position: Position, path: &str) -> Option<usize> {
        let (kind, text, anchor) = match event {
            Event::Scalar(text, ScalarStyle::Plain, anchor, _) => (Kind::Plain, text, anchor),
            Event::Scalar(text, _, anchor, _) => (Kind::Quoted, text, anchor),
            Event::SequenceStart(_, anchor, _) => (Kind::List, "".into(), anchor),
            Event::MappingStart(_, anchor, _) => (Kind::Map, "".into(), anchor),
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).copied();
                if node.is_none() {
                    self.report(position, path, "the alias (*) is inside its own anchor (&)");
                    self.ended = true;
                }
                return node;
            }
            _ => return None,
        };
        let node = self.document.nodes.len();
        let text = text.into_owned();
        self.document.nodes.push(Node { position, kind, text, children: Vec::new() });
        match kind {
            Kind::Plain | Kind::Quoted => {}
            Kind::List => self.list(node, path),
            Kind::Map => self.map(node, path),
        }
        // Only now: an alias in the value would be one of itself.
        if anchor != 0 {
            self.anchors.insert(anchor, node);
        }
        Some(node)
    }

    /// Reads the next value, and adds it to a list or mapping; `false` at the end.
    fn child(&mut self, container: usize, path: &str, key: Option<(usize, bool)>) -> bool {
        let Some((event, position)) = self.next(path) else { return false };
        let is_end = event == Event::SequenceEnd;
        if let Some(node) = self.value(event, position, path) {
            let removed = key.is_some_and(|(_, is_valid)| !is_valid);
            let child = Child { key: key.map(|(key, _)| key), position, node, removed };
            self.document.nodes[container].children.push(child);
        }
        !is_end
    }

    fn list(&mut self, list: usize, path: &str) {
        let next = |builder: &Self| builder.document.nodes[list].children.len();
        while self.child(list, &format!("{path}[{}]", next(self)), None) {}
    }

    fn map(&mut self, map: usize, path: &str) {
        let mut keys = HashMap::new();
        while let Some((event, position)) = self.next(path)
            && event != Event::MappingEnd
        {
            let Some(key) = self.value(event, position, path) else { continue };
            let is_valid = self.is_valid_key(&mut keys, key, position, path);
            let path = join(path, &self.document.nodes[key].text);
            self.child(map, &path, Some((key, is_valid)));
        }
        // After an error a merge key may have half of its value, and the error says enough.
        if !self.ended {
            self.merge(map);
        }
    }

    /// Whether a key is a scalar that its mapping does not have yet; reports it if not. `keys` are the nodes of the
    /// keys that it has.
    fn is_valid_key(
        &mut self,
        keys: &mut HashMap<String, usize>,
        node: usize,
        position: Position,
        path: &str,
    ) -> bool {
        let nodes = &self.document.nodes;
        let Some(text) = nodes[node].scalar() else {
            self.report(position, path, "a key must be a single value, not a list or mapping");
            return false;
        };
        let Some(&first) = keys.get(text) else {
            keys.insert(text.to_owned(), node);
            return true;
        };
        let (line, key) = (nodes[first].position.line, join(path, text));
        self.report(position, &key, format!("the key is given twice (first in line {line})"));
        false
    }

    /// Applies merge keys (`<<: *anchor`): a mapping's own keys win over those that it takes over.
    fn merge(&mut self, map: usize) {
        let nodes = &self.document.nodes;
        let is_merge = |child: &Child| {
            let key = child.key.map(|key| &nodes[key]);
            key.is_some_and(|key| key.kind == Kind::Plain && key.text == "<<")
        };
        let Some(index) = nodes[map].children.iter().position(is_merge) else { return };
        let from = nodes[map].children[index].node;
        let sources: Vec<usize> = match nodes[from].kind {
            Kind::List => nodes[from].children.iter().map(|item| item.node).collect(),
            _ => vec![from],
        };
        if !sources.iter().all(|&source| nodes[source].kind == Kind::Map) {
            let position = nodes[from].position;
            self.report(position, "<<", "must be a mapping, or a list of mappings");
            self.document.remove(EntryIndex { container: map, index });
            return;
        }
        let mut merged: Vec<Child> = nodes[map].children.clone();
        let mut known: HashSet<_> =
            merged.iter().map(|child| self.document.key_of(child)).collect();
        for child in sources.iter().flat_map(|&source| &nodes[source].children) {
            if self.merged >= MAX_MERGED {
                let position = nodes[from].position;
                self.report(position, "<<", "its merge keys take over too many values");
                self.ended = true;
                return;
            }
            // Also those that the mapping has already: each costs time.
            self.merged += 1;
            if !child.removed && known.insert(self.document.key_of(child)) {
                merged.push(child.clone());
            }
        }
        merged.remove(index);
        self.document.nodes[map].children = merged;
    }
}
