//! The output of a tool as its parser reads it, line by line: one reading after the other.

use std::collections::HashSet;
use std::hash::Hash;

use display_text::plural;

use crate::contents::Contents;
use crate::lines::Line;
use crate::problem::Problem;
use crate::remark::{Remark, shown};
use crate::text;

/// The readings so far, and the one that is being read.
#[derive(Debug, Default)]
pub struct ToolOutput {
    /// The reading of the next line.
    pub found: Contents,
    is_topology: bool,
    done: Vec<Contents>,
    skipped: usize,
}

impl ToolOutput {
    /// Of a tool that lists nodes and cables, or only counters.
    pub fn new(is_topology: bool) -> ToolOutput {
        let found = Contents { is_topology, ..Contents::default() };
        ToolOutput { found, is_topology, ..ToolOutput::default() }
    }

    /// Another reading begins: the tool ran again.
    pub fn next_reading(&mut self) {
        let next = Contents { is_topology: self.is_topology, ..Contents::default() };
        self.done.push(std::mem::replace(&mut self.found, next));
    }

    /// A run of the tool lists this once: if it was listed before, another reading begins.
    pub fn list_once<T: Copy + Eq + Hash>(&mut self, listed: &mut HashSet<T>, item: T) {
        if !listed.insert(item) {
            self.next_reading();
            *listed = HashSet::from([item]);
        }
    }

    /// A line of something else: a prompt, a message, prose. Comments and rules are no loss; one has the time.
    pub fn skip(&mut self, line: Line<'_>) {
        let taken_at = text::running_timestamp(line.text);
        self.found.taken_at = self.found.taken_at.or(taken_at);
        let has_words = line.text.contains(|it: char| it.is_alphanumeric());
        // `...` stands for lines that were left out.
        let is_loss = line.text.contains("..") || has_words && !line.text.starts_with('#');
        if !is_loss {
            return;
        }
        if self.skipped == 0 {
            let what = format!("skipped: {}", shown(line.text));
            self.found.remark(Remark::unused(line.number, what));
        }
        self.skipped += 1;
    }

    /// A line that is damaged: the end of what was cut off at the edge of the file, else an error.
    pub fn damaged(&mut self, line: Line<'_>, expected: &str) -> Result<(), Problem> {
        if !line.is_edge {
            return Err(Problem::unreadable(line, expected));
        }
        self.cut_off(line);
        Ok(())
    }

    /// A line that is not complete because the file ends or begins in it.
    pub fn cut_off(&mut self, line: Line<'_>) {
        let what = format!("cut off: {} was not used", shown(line.text));
        self.found.remark(Remark::unused(line.number, what));
    }

    /// All readings that say something. Remarks on an empty one go to the one before.
    pub fn finish(mut self) -> Vec<Contents> {
        if self.skipped > 1 {
            let what = format!("{} skipped in all", plural(self.skipped, "line"));
            self.found.remark(Remark::unused(0, what));
        }
        self.next_reading();
        let mut readings: Vec<Contents> = Vec::new();
        for contents in self.done {
            match readings.last_mut() {
                Some(last) if contents.is_empty() => last.remarks.extend(contents.remarks),
                _ => readings.push(contents),
            }
        }
        readings
    }
}
