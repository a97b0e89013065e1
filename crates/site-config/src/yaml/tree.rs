//! The tree of a YAML text: values with their places, aliases resolved, merge keys applied.

use std::cell::Cell;
use std::collections::HashMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span};

use super::Mistake;
use super::syntax;

/// A line and a column, from 1.
pub(super) type Place = (u64, u64);

/// The parser counts lines from 1, and columns from 0.
fn place_of(marker: Marker) -> Place {
    (marker.line().max(1) as u64, marker.col() as u64 + 1)
}

/// A value.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: Place,
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
    /// Where the value is used; an alias is at another place than its node.
    pub(super) place: Place,
    pub(super) node: usize,
    /// It was wrong, and is passed over.
    pub(super) removed: bool,
}

/// The tree of one file.
#[derive(Debug, Default)]
pub struct Document {
    pub(super) nodes: Vec<Node>,
    pub(super) root: Option<usize>,
    /// How many values a type has read, those behind aliases each time.
    pub(super) values_read: Cell<usize>,
}

impl Node {
    /// The text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } => Some(text),
            Content::List(_) | Content::Map(_) => None,
        }
    }

    /// Nothing is written there, or `null`, or `~`.
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
    /// Parses a text. The mistakes are those of the syntax, and keys that are given twice.
    pub(super) fn parse(text: &str) -> (Document, Vec<Mistake>) {
        let mut builder = Builder::default();
        // An error of the syntax ends the parser: what follows could mean anything.
        for event in Parser::new_from_str(text) {
            match event {
                Ok((event, span)) => {
                    if !builder.take(event, span) {
                        break;
                    }
                }
                Err(error) => {
                    let place = place_of(*error.marker());
                    // In a list it is not sure that an entry has begun.
                    let path = builder.path();
                    let key = path.strip_suffix(']').and_then(|path| path.rsplit_once('['));
                    let key = key.map_or(path.clone(), |(list, _)| list.to_owned());
                    builder.wrong(place, key, syntax::problem(error.kind()));
                    // Half of a file is not what somebody wrote.
                    builder.document = Document::default();
                    break;
                }
            }
        }
        (builder.document, builder.mistakes)
    }

    pub(super) fn key_of(&self, child: &Child) -> Option<&str> {
        self.nodes[child.key?].text()
    }

    /// The path of a child, below the path of its container.
    pub(super) fn step(&self, container: usize, index: usize) -> String {
        let child = self.nodes[container].children().get(index);
        child.and_then(|child| self.key_of(child)).map_or(format!("[{index}]"), str::to_owned)
    }

    pub(super) fn remove(&mut self, container: usize, index: usize) -> bool {
        let children = self.nodes.get_mut(container).and_then(Node::children_mut);
        let Some(child) = children.and_then(|children| children.get_mut(index)) else {
            return false;
        };
        !std::mem::replace(&mut child.removed, true)
    }

    /// A mistake in the value of a key that is given as `fabrics[1].interval`, where the numbers count
    /// the entries of the value that was read. `None` if the file does not have the key.
    pub fn mistake(&self, key: &str, problem: impl Into<String>) -> Option<Mistake> {
        let mut node = self.root?;
        let mut place = self.nodes[node].place;
        let mut path = String::new();
        for step in key.split(['.', '[']).filter(|step| !step.is_empty()) {
            let mut children = self.nodes[node].children().iter().enumerate();
            let (index, child) = match step.strip_suffix(']').and_then(|it| it.parse().ok()) {
                Some(nth) => children.filter(|(_, child)| !child.removed).nth(nth)?,
                None => children.find(|(_, it)| !it.removed && self.key_of(it) == Some(step))?,
            };
            path = join(&path, &self.step(node, index));
            (node, place) = (child.node, child.place);
        }
        Some(Mistake { line: place.0, column: place.1, key: path, problem: problem.into() })
    }
}

/// A path and what is below it.
pub(super) fn join(path: &str, step: &str) -> String {
    if path.is_empty() || step.starts_with('[') {
        format!("{path}{step}")
    } else {
        format!("{path}.{step}")
    }
}

/// A list or mapping that is not at its end.
#[derive(Debug)]
struct Frame {
    node: usize,
    path: String,
    /// In a mapping, the key whose value comes next, and whether the value counts.
    key: Option<(usize, bool)>,
    /// A key that is itself a list or mapping: nothing in it counts.
    is_key: bool,
}

#[derive(Debug, Default)]
struct Builder {
    document: Document,
    mistakes: Vec<Mistake>,
    stack: Vec<Frame>,
    anchors: HashMap<usize, usize>,
    documents: usize,
}

impl Builder {
    fn wrong(&mut self, place: Place, key: String, problem: impl Into<String>) {
        let (line, column) = place;
        self.mistakes.push(Mistake { line, column, key, problem: problem.into() });
    }

    /// The path of what comes next.
    fn path(&self) -> String {
        let Some(frame) = self.stack.last() else { return String::new() };
        let nodes = &self.document.nodes;
        match (&nodes[frame.node].content, frame.key) {
            (Content::List(items), _) => join(&frame.path, &format!("[{}]", items.len())),
            (_, Some((key, _))) => join(&frame.path, nodes[key].text().unwrap_or_default()),
            _ => frame.path.clone(),
        }
    }

    /// Takes an event; `false` ends the parse.
    fn take(&mut self, event: Event<'_>, span: Span) -> bool {
        let place = place_of(span.start);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    let problem = "a second document begins here (---): a file has one";
                    self.wrong(place, String::new(), problem);
                    return false;
                }
            }
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                let content = Content::Scalar { text: text.into_owned(), plain };
                let node = self.add(place, content, anchor);
                self.put(node, place);
            }
            Event::SequenceStart(_, anchor, _) => self.open(place, Content::List(vec![]), anchor),
            Event::MappingStart(_, anchor, _) => self.open(place, Content::Map(vec![]), anchor),
            Event::SequenceEnd | Event::MappingEnd => {
                let frame = self.stack.pop();
                if let Some(frame) = frame.filter(|frame| !frame.is_key) {
                    self.merge(frame.node);
                }
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(&node) if self.stack.iter().all(|frame| frame.node != node) => {
                    self.put(node, place);
                }
                _ => {
                    let path = self.path();
                    self.wrong(place, path, "the alias (*) stands in its own anchor (&)");
                    return false;
                }
            },
            _ => {}
        }
        true
    }

    fn add(&mut self, place: Place, content: Content, anchor: usize) -> usize {
        let node = self.document.nodes.len();
        self.document.nodes.push(Node { place, content });
        if anchor != 0 {
            self.anchors.insert(anchor, node);
        }
        node
    }

    fn open(&mut self, place: Place, content: Content, anchor: usize) {
        let path = self.path();
        let node = self.add(place, content, anchor);
        let is_key = self.put(node, place);
        self.stack.push(Frame { node, path, key: None, is_key });
    }

    /// Puts a value where it belongs: it is the root, an entry of a list, a key, or the value of one.
    /// Returns whether it is a key.
    fn put(&mut self, node: usize, place: Place) -> bool {
        let Some(frame) = self.stack.last_mut() else {
            self.document.root = Some(node);
            return false;
        };
        let (container, path) = (frame.node, frame.path.clone());
        let is_map = matches!(self.document.nodes[container].content, Content::Map(_));
        if is_map && frame.key.is_none() {
            let counts = self.counts_as_key(container, node, place, &path);
            if let Some(frame) = self.stack.last_mut() {
                frame.key = Some((node, counts));
            }
            return true;
        }
        let key = frame.key.take();
        let removed = key.is_some_and(|(_, counts)| !counts);
        let child = Child { key: key.map(|(key, _)| key), place, node, removed };
        if let Some(children) = self.document.nodes[container].children_mut() {
            children.push(child);
        }
        false
    }

    /// Whether a key is a text that its mapping does not have yet.
    fn counts_as_key(&mut self, map: usize, node: usize, place: Place, path: &str) -> bool {
        let nodes = &self.document.nodes;
        let Some(text) = nodes[node].text() else {
            self.wrong(
                place,
                path.to_owned(),
                "a key has to be a single value, not a list or mapping",
            );
            return false;
        };
        let same = |child: &&Child| !child.removed && self.document.key_of(child) == Some(text);
        let Some(first) = nodes[map].children().iter().find(same).and_then(|first| first.key)
        else {
            return true;
        };
        let (line, key) = (nodes[first].place.0, join(path, text));
        self.wrong(place, key, format!("the key is given twice (first in line {line})"));
        false
    }

    /// Applies merge keys (`<<: *anchor`): a mapping's own keys come before those that it takes over.
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
            let place = nodes[from].place;
            self.wrong(place, "<<".into(), "has to be a mapping, or a list of them");
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
                    place: child.place,
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
