//! The tree of a YAML text: values with their positions, aliases resolved, merge keys applied.

use std::cell::Cell;
use std::collections::HashMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span};

use super::Diagnostic;
use super::syntax;

/// A line and a column, from 1.
pub(super) type Position = (u64, u64);

/// The parser counts lines from 1, and columns from 0.
fn position_of(marker: Marker) -> Position {
    (marker.line().max(1) as u64, marker.col() as u64 + 1)
}

/// A value.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) position: Position,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    /// `plain` is written without quotes: it may be null.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Child>),
    Map(Vec<Child>),
}

/// A value in a list or a mapping.
#[derive(Debug)]
pub(super) struct Child {
    /// The node of its key; `None` in a list.
    pub(super) key: Option<usize>,
    /// Where the value is used; the position of an alias is not that of its node.
    pub(super) position: Position,
    pub(super) node: usize,
    /// It was refused, and is skipped.
    pub(super) removed: bool,
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
    pub(super) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } => Some(text),
            Content::List(_) | Content::Map(_) => None,
        }
    }

    /// Whether it is empty, `null` or `~`.
    pub(super) fn is_null(&self) -> bool {
        let Content::Scalar { text, plain: true } = &self.content else { return false };
        text.is_empty() || text == "~" || text.eq_ignore_ascii_case("null")
    }

    pub(super) fn children(&self) -> &[Child] {
        match &self.content {
            Content::Scalar { .. } => &[],
            Content::List(children) | Content::Map(children) => children,
        }
    }

    fn children_mut(&mut self) -> Option<&mut Vec<Child>> {
        match &mut self.content {
            Content::Scalar { .. } => None,
            Content::List(children) | Content::Map(children) => Some(children),
        }
    }
}

impl Document {
    /// Parses a text. The diagnostics are errors of the syntax, and keys that are given twice.
    pub(super) fn parse(text: &str) -> (Document, Vec<Diagnostic>) {
        let mut builder = Builder::default();
        // A syntax error ends the parser: what follows could mean anything.
        for event in Parser::new_from_str(text) {
            match event {
                Ok((event, span)) => {
                    if !builder.handle(event, span) {
                        break;
                    }
                }
                Err(error) => {
                    let position = position_of(*error.marker());
                    // In a list it is not known whether an entry has begun.
                    let path = builder.path();
                    let key = path.strip_suffix(']').and_then(|path| path.rsplit_once('['));
                    let key = key.map_or(path.clone(), |(list, _)| list.to_owned());
                    builder.report(position, key, syntax::problem(error.kind()));
                    // A part of a file may mean something else than the whole.
                    builder.document = Document::default();
                    break;
                }
            }
        }
        (builder.document, builder.diagnostics)
    }

    pub(super) fn key_of(&self, child: &Child) -> Option<&str> {
        self.nodes[child.key?].text()
    }

    /// The last segment of the path of a child.
    pub(super) fn segment(&self, container: usize, index: usize) -> String {
        let child = self.nodes[container].children().get(index);
        child.and_then(|child| self.key_of(child)).map_or(format!("[{index}]"), str::to_owned)
    }

    /// Removes a child; `false` if there is none, or it is removed already.
    pub(super) fn remove(&mut self, container: usize, index: usize) -> bool {
        let children = self.nodes.get_mut(container).and_then(Node::children_mut);
        let Some(child) = children.and_then(|children| children.get_mut(index)) else {
            return false;
        };
        !std::mem::replace(&mut child.removed, true)
    }

    /// A diagnostic at the value of a key such as `fabrics[1].interval`, where the numbers count the entries
    /// of the value that was read. `None` if the file does not have the key.
    pub fn diagnostic(&self, key: &str, problem: impl Into<String>) -> Option<Diagnostic> {
        let mut node = self.root?;
        let mut position = self.nodes[node].position;
        let mut path = String::new();
        for segment in key.split(['.', '[']).filter(|segment| !segment.is_empty()) {
            let mut children = self.nodes[node].children().iter().enumerate();
            let (index, child) = match segment.strip_suffix(']').and_then(|it| it.parse().ok()) {
                Some(nth) => children.filter(|(_, child)| !child.removed).nth(nth)?,
                None => children.find(|(_, it)| !it.removed && self.key_of(it) == Some(segment))?,
            };
            path = join(&path, &self.segment(node, index));
            (node, position) = (child.node, child.position);
        }
        let (line, column) = position;
        Some(Diagnostic { line, column, key: path, problem: problem.into() })
    }
}

/// A path with one more segment.
pub(super) fn join(path: &str, segment: &str) -> String {
    if path.is_empty() || segment.starts_with('[') {
        format!("{path}{segment}")
    } else {
        format!("{path}.{segment}")
    }
}

/// A list or mapping that has not ended.
#[derive(Debug)]
struct Frame {
    node: usize,
    path: String,
    /// In a mapping, the key whose value comes next, and whether the key is valid.
    key: Option<(usize, bool)>,
    /// It is a key, which is an error: its content is ignored.
    is_key: bool,
}

#[derive(Debug, Default)]
struct Builder {
    document: Document,
    diagnostics: Vec<Diagnostic>,
    stack: Vec<Frame>,
    anchors: HashMap<usize, usize>,
    documents: usize,
}

impl Builder {
    fn report(&mut self, position: Position, key: String, problem: impl Into<String>) {
        let (line, column) = position;
        self.diagnostics.push(Diagnostic { line, column, key, problem: problem.into() });
    }

    /// The path of the next value.
    fn path(&self) -> String {
        let Some(frame) = self.stack.last() else { return String::new() };
        let nodes = &self.document.nodes;
        match (&nodes[frame.node].content, frame.key) {
            (Content::List(items), _) => join(&frame.path, &format!("[{}]", items.len())),
            (_, Some((key, _))) => join(&frame.path, nodes[key].text().unwrap_or_default()),
            _ => frame.path.clone(),
        }
    }

    /// Handles an event of the parser; `false` ends the parse.
    fn handle(&mut self, event: Event<'_>, span: Span) -> bool {
        let position = position_of(span.start);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    let problem = "a second document begins here (---): a file has one";
                    self.report(position, String::new(), problem);
                    return false;
                }
            }
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                let content = Content::Scalar { text: text.into_owned(), plain };
                let node = self.add(position, content, anchor);
                self.insert(node, position);
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open(position, Content::List(vec![]), anchor);
            }
            Event::MappingStart(_, anchor, _) => self.open(position, Content::Map(vec![]), anchor),
            Event::SequenceEnd | Event::MappingEnd => {
                let frame = self.stack.pop();
                if let Some(frame) = frame.filter(|frame| !frame.is_key) {
                    self.merge(frame.node);
                }
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(&node) if self.stack.iter().all(|frame| frame.node != node) => {
                    self.insert(node, position);
                }
                _ => {
                    let path = self.path();
                    self.report(position, path, "the alias (*) stands in its own anchor (&)");
                    return false;
                }
            },
            _ => {}
        }
        true
    }

    fn add(&mut self, position: Position, content: Content, anchor: usize) -> usize {
        let node = self.document.nodes.len();
        self.document.nodes.push(Node { position, content });
        if anchor != 0 {
            self.anchors.insert(anchor, node);
        }
        node
    }

    fn open(&mut self, position: Position, content: Content, anchor: usize) {
        let path = self.path();
        let node = self.add(position, content, anchor);
        let is_key = self.insert(node, position);
        self.stack.push(Frame { node, path, key: None, is_key });
    }

    /// Inserts a value as the root, an entry of a list, a key, or the value of a key. Returns whether it is a
    /// key.
    fn insert(&mut self, node: usize, position: Position) -> bool {
        let Some(frame) = self.stack.last_mut() else {
            self.document.root = Some(node);
            return false;
        };
        let (container, path) = (frame.node, frame.path.clone());
        let is_map = matches!(self.document.nodes[container].content, Content::Map(_));
        if is_map && frame.key.is_none() {
            let is_valid = self.is_valid_key(container, node, position, &path);
            if let Some(frame) = self.stack.last_mut() {
                frame.key = Some((node, is_valid));
            }
            return true;
        }
        let key = frame.key.take();
        let removed = key.is_some_and(|(_, is_valid)| !is_valid);
        let child = Child { key: key.map(|(key, _)| key), position, node, removed };
        if let Some(children) = self.document.nodes[container].children_mut() {
            children.push(child);
        }
        false
    }

    /// Whether a key is a scalar that its mapping does not have yet; reports it if not.
    fn is_valid_key(&mut self, map: usize, node: usize, position: Position, path: &str) -> bool {
        let nodes = &self.document.nodes;
        let Some(text) = nodes[node].text() else {
            let problem = "a key has to be a single value, not a list or mapping";
            self.report(position, path.to_owned(), problem);
            return false;
        };
        let same = |child: &&Child| !child.removed && self.document.key_of(child) == Some(text);
        let Some(first) = nodes[map].children().iter().find(same).and_then(|first| first.key)
        else {
            return true;
        };
        let (line, key) = (nodes[first].position.0, join(path, text));
        self.report(position, key, format!("the key is given twice (first in line {line})"));
        false
    }

    /// Applies merge keys (`<<: *anchor`): a mapping's own keys win over those that it takes over.
    fn merge(&mut self, map: usize) {
        let nodes = &self.document.nodes;
        if !matches!(nodes[map].content, Content::Map(_)) {
            return;
        }
        let is_merge = |child: &Child| {
            let key = child.key.map(|key| &nodes[key].content);
            matches!(key, Some(Content::Scalar { text, plain: true }) if text == "<<")
        };
        let Some(index) = nodes[map].children().iter().position(is_merge) else { return };
        let from = nodes[map].children()[index].node;
        let sources: Vec<usize> = match &nodes[from].content {
            Content::List(items) => items.iter().map(|item| item.node).collect(),
            _ => vec![from],
        };
        if !sources.iter().all(|&source| matches!(nodes[source].content, Content::Map(_))) {
            let position = nodes[from].position;
            self.report(position, "<<".into(), "has to be a mapping, or a list of them");
            self.document.remove(map, index);
            return;
        }
        let mut merged: Vec<Child> = Vec::new();
        for child in sources.iter().flat_map(|&source| nodes[source].children()) {
            let key = self.document.key_of(child);
            let known = |it: &Child| self.document.key_of(it) == key;
            if !child.removed
                && !nodes[map].children().iter().any(known)
                && !merged.iter().any(known)
            {
                merged.push(Child {
                    key: child.key,
                    position: child.position,
                    node: child.node,
                    removed: false,
                });
            }
        }
        if let Some(children) = self.document.nodes[map].children_mut() {
            children.remove(index);
            children.extend(merged);
        }
    }
}
