//! The lines of a text after the front: without what is around the output of a tool.

/// A line with its place in the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line<'a> {
    /// From 1 on. A wrapped line has the number of its first part.
    pub number: usize,
    /// Without blanks around it; never empty.
    pub text: &'a str,
    /// It is the first or last line of the file: if it is damaged, the file is cut off there.
    pub is_edge: bool,
    /// The file ends in this line, without a line end: something may be missing.
    pub is_open: bool,
}

/// Where a line is. A text has at most 1 GiB, so 32 bits are enough, and a text of very short lines needs six times its
/// size for them.
#[derive(Clone, Copy, Debug)]
struct Place {
    number: u32,
    start: u32,
    end: u32,
}

/// A text in lines. Blank lines are left out: no format needs them.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    text: String,
    places: Vec<Place>,
    /// The text ends without a line end.
    is_open: bool,
}

impl Lines {
    /// No lines of a text that may end without a line end.
    pub fn new(is_open: bool) -> Lines {
        Lines { is_open, ..Lines::default() }
    }

    /// Whether the text ends without a line end.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Adds a line, unless it is blank.
    pub fn push(&mut self, number: usize, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        let start = self.text.len() as u32;
        self.text.push_str(line);
        let place = Place { number: number as u32, start, end: self.text.len() as u32 };
        self.places.push(place);
    }

    /// The number of lines.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// A line as it was written, with the blanks around it.
    pub fn raw(&self, index: usize) -> &str {
        self.places.get(index).map_or("", |place| self.slice(*place))
    }

    fn slice(&self, place: Place) -> &str {
        self.text.get(place.start as usize..place.end as usize).unwrap_or_default()
    }

    /// A line.
    pub fn get(&self, index: usize) -> Option<Line<'_>> {
        let place = *self.places.get(index)?;
        let is_last = index + 1 == self.places.len();
        Some(Line {
            number: place.number as usize,
            text: self.slice(place).trim(),
            is_edge: index == 0 || is_last,
            is_open: is_last && self.is_open,
        })
    }

    /// The lines of a range.
    pub fn range(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = Line<'_>> {
        range.filter_map(|index| self.get(index))
    }

    /// All lines.
    pub fn iter(&self) -> impl Iterator<Item = Line<'_>> {
        self.range(0..self.len())
    }
}
