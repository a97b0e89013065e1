//! Deflate for lines each of which is like the one before: the samples of a family.
//!
//! A general compressor searches all of the text before for what repeats. Here that is nearly always at the same place
//! of the previous line, which takes no search: a label's value or a number is different, what is before and behind it
//! the same. With codes made for each chunk, the result is smaller than that of zlib's level 1, in a third of the time.

use std::io::BufRead;
use std::ops::Range;

use super::bits::{BitWriter, Bits};
use super::document::Block;
use super::huffman::{self, Code, Symbol, of_distance, of_length};
use super::likeness::{Likeness, Step};

/// Symbols of literals, the end of a block and lengths.
const LITERALS: usize = 286;
const END: usize = 256;
const DISTANCES: usize = 30;
/// The window of deflate.
const MAX_DISTANCE: usize = 32 * 1024;
const MIN_LENGTH: usize = 3;
const MAX_LENGTH: usize = 258;

/// The length of what precedes the codes: lengths of 316 codes, of 5 bits each and 7 for a run, and of their codes.
const MAX_HEADER: usize = 512;

/// After so many pieces a block ends, and another with its own codes begins.
const PIECES: usize = 8 * 1024;

/// Bytes as they are, and a copy of bytes behind them.
#[derive(Clone, Copy, Debug)]
struct Piece {
    literals: u32,
    /// 0 at the end of a block, where no copy follows.
    length: u16,
    /// Less 1.
    distance: u16,
}

/// A line of a text: a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Where it begins.
    pub start: usize,
    /// Where its value begins, which has nothing in common with the one before but the first digits.
    pub value: usize,
    /// The thing whose labels are behind the name of its family.
    pub thing: Option<usize>,
}

/// Compresses texts.
#[derive(Debug, Default)]
pub(super) struct LineDeflate {
    pieces: Vec<Piece>,
    /// The number of bytes behind the last piece, which are as they are.
    literals: usize,
    /// Where the text begins that is not yet written.
    begin: usize,
    out: BitWriter,
}

/// Compresses a text of lines.
pub fn deflate_lines(text: &[u8]) -> Block {
    LineDeflate::default().block(text)
}

impl LineDeflate {
    /// Compresses a text.
    pub fn block(&mut self, text: &[u8]) -> Block {
        let (mut previous, mut start, mut rest) = (0, 0, text);
        // Reading from memory does not fail. A loop over the bytes would take as long as all else.
        while let Ok(length @ 1..) = rest.skip_until(b'\n') {
            let end = start + length;
            self.line(text, previous, start..end, end);
            (previous, start) = (start, end);
        }
        self.end(text)
    }

    /// Compresses samples, each of which begins with a name of this length. Labels that were compared once are not compared
    /// again.
    pub fn samples(
        &mut self,
        text: &[u8],
        name: usize,
        lines: &[Line],
        labels: &Likeness,
    ) -> Block {
        let mut previous = Line { start: 0, value: 0, thing: None };
        let ends = lines.iter().skip(1).map(|next| next.start).chain([text.len()]);
        for (line, end) in lines.iter().zip(ends) {
            let (mut at, mut like) = (line.start, previous.start);
            if let (Some(before), Some(thing)) = (previous.thing, line.thing)
                && before + 1 == thing
            {
                let mut name = name;
                for step in labels.steps(thing) {
                    let step = Step { same: name + step.same, ..*step };
                    (at, like) = self.step(step, at, like);
                    name = 0;
                }
            }
            self.line(text, like, at..end, line.value);
            previous = *line;
        }
        self.end(text)
    }

    /// Adds a line, or the rest of one, that is like what begins at `like`, and its value.
    fn line(&mut self, text: &[u8], mut like: usize, range: Range<usize>, value: usize) {
        let mut at = range.start;
        while at < range.end {
            let before = text.get(like..range.start).unwrap_or_default();
            let step = Step::new(&text[at..range.end], before, value.saturating_sub(at));
            (at, like) = self.step(step, at, like);
        }
        if self.pieces.len() >= PIECES {
            self.flush(&text[self.begin..at]);
            self.begin = at;
        }
    }

    /// Adds what is the same and what differs between two places; the places behind them.
    #[inline]
    fn step(&mut self, step: Step, at: usize, like: usize) -> (usize, usize) {
        let Step { same, word, other } = step;
        if same >= MIN_LENGTH && at - like <= MAX_DISTANCE {
            self.copy(same, at - like);
            self.literals += word;
        } else {
            self.literals += same + word;
        }
        (at + same + word, like + same + other)
    }

    /// Adds a copy; lines of the same length continue that of the line before.
    #[inline]
    fn copy(&mut self, mut length: usize, distance: usize) {
        let distance = (distance - 1) as u16;
        if self.literals == 0
            && let Some(last) = self.pieces.last_mut()
            && last.distance == distance
        {
            let more = length.min(MAX_LENGTH - usize::from(last.length));
            last.length += more as u16;
            length -= more;
        }
        while length > 0 {
            // What is left must not be too short for a copy.
            let part = match length {
                ..=MAX_LENGTH => length,
                _ => MAX_LENGTH.min(length - MIN_LENGTH),
            };
            let literals = std::mem::take(&mut self.literals) as u32;
            self.pieces.push(Piece { literals, length: part as u16, distance });
            length -= part;
        }
    }

    /// Ends the stream of a text on a byte boundary, by a stored block without content.
    fn end(&mut self, text: &[u8]) -> Block {
        self.flush(&text[self.begin..]);
        self.begin = 0;
        self.out.put(Bits { bits: 0, count: 3 });
        self.out.align();
        self.out.put(Bits { bits: 0xffff_0000, count: 32 });
        Block::new(self.out.take(), text)
    }

    /// Writes the pieces, which make up a text, as a block with codes of its own.
    fn flush(&mut self, text: &[u8]) {
        let literals = std::mem::take(&mut self.literals) as u32;
        self.pieces.push(Piece { literals, length: 0, distance: 0 });
        let (mut symbols, mut distances) = ([0; LITERALS], [0; DISTANCES]);
        let mut lengths = [0; MAX_LENGTH + 1];
        let mut rest = text;
        for piece in &self.pieces {
            let (literals, behind) = rest.split_at(piece.literals as usize);
            for byte in literals {
                symbols[usize::from(*byte)] += 1;
            }
            if piece.length > 0 {
                lengths[usize::from(piece.length)] += 1;
                distances[of_distance(piece.distance).number] += 1;
            }
            rest = &behind[piece.length.into()..];
        }
        symbols[END] = 1;
        let lengths = (0..).zip(lengths).filter(|(_, count)| *count > 0);
        for (length, count) in lengths.clone() {
            symbols[of_length(length).number] += count;
        }
        let (symbols, distances) = (huffman::codes(&symbols), huffman::codes(&distances));
        let mut of_lengths = [Bits::default(); MAX_LENGTH + 1];
        for (length, _) in lengths {
            let Symbol { number, extra, value } = of_length(length);
            of_lengths[usize::from(length)] = Bits::new(symbols[number], value, extra);
        }
        let bits_of_distance = |distance| {
            let Symbol { number, extra, value } = of_distance(distance);
            Bits::new(distances[number], value, extra)
        };
        // A byte takes 15 bits at most, a copy 48 for three bytes or more.
        self.out.reserve(2 * text.len() + MAX_HEADER);
        header(&mut self.out, &symbols, &distances);
        // Not behind a reference: it is kept in registers.
        let mut out = self.out.cursor();
        let bits = |byte: u8| Bits::from(symbols[usize::from(byte)]);
        let mut rest = text;
        // Most copies of a line have the same distance.
        let mut last = (0, bits_of_distance(0));
        for piece in self.pieces.drain(..) {
            let (literals, behind) = rest.split_at(piece.literals as usize);
            let (threes, others) = literals.as_chunks::<3>();
            for &[one, two, three] in threes {
                out.put(bits(one).and(bits(two)).and(bits(three)));
            }
            match *others {
                [one, two] => out.put(bits(one).and(bits(two))),
                [one] => out.put(bits(one)),
                _ => (),
            }
            if piece.length > 0 {
                if piece.distance != last.0 {
                    last = (piece.distance, bits_of_distance(piece.distance));
                }
                out.put(of_lengths[usize::from(piece.length)].and(last.1));
            }
            rest = &behind[piece.length.into()..];
        }
        out.put(symbols[END].into());
        let end = out.end();
        self.out.continue_at(end);
    }
}

/// Writes the lengths of the codes (RFC 1951, section 3.2.7).
fn header(out: &mut BitWriter, literals: &[Code; LITERALS], distances: &[Code; DISTANCES]) {
    // Not the last block, with codes of its own.
    for (value, count) in [(0b100, 3), (LITERALS - 257, 5), (DISTANCES - 1, 5), (19 - 4, 4)] {
        out.put(Bits { bits: value as u64, count });
    }
    let lengths = length_codes();
    for symbol in [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15] {
        out.put(Bits { bits: lengths[symbol].length.into(), count: 3 });
    }
    let all: Vec<u8> = literals.iter().chain(distances).map(|code| code.length).collect();
    for run in all.chunk_by(|a, b| a == b) {
        let mut rest = run.len();
        while rest > 0 {
            let zeros = if run[0] == 0 { rest } else { 0 };
            let (symbol, extra, least, count) = match zeros {
                0..3 => (usize::from(run[0]), 0, 0, 1),
                3..=10 => (17, 3, 3, zeros),
                _ => (18, 7, 11, zeros.min(138)),
            };
            let value = count.saturating_sub(least) as u32 & ((1 << extra) - 1);
            out.put(Bits::new(lengths[symbol], value, extra));
            rest -= count;
        }
    }
}

/// The codes of the lengths of codes: of 4 bits, and of 5 where a length is rare. Lengths do not repeat much.
fn length_codes() -> [Code; 19] {
    let mut codes = [Code::default(); 19];
    for symbol in (0..=15).chain([17, 18]) {
        codes[symbol].length = if [1, 13, 14, 15].contains(&symbol) { 5 } else { 4 };
    }
    huffman::assign(&mut codes);
    codes
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::Document;

    /// A text compressed and unpacked.
    fn again(deflate: &mut LineDeflate, text: &str) -> usize {
        let mut document = Document::default();
        let block = deflate.block(text.as_bytes());
        document.push(&block);
        document.push(&block);
        assert!(document.to_text().unwrap() == text.repeat(2), "{text:.300}");
        block.bytes.len()
    }

    fn lines(count: usize, line: impl Fn(u64) -> String) -> String {
        (0..count as u64).map(line).collect()
    }

    #[test]
    fn samples_unpack_and_are_smaller_than_those_of_zlib() {
        let noise = |of: u64| of.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24;
        let name = "infiniband_port_transmit_data_bytes_total{fabric=\"\",guid=\"0x0002c903000";
        let deflate = &mut LineDeflate::default();
        for text in [
            lines(512, |it| format!("{name}{:05x}\",port=\"{}\"}} 0\n", it / 36, it % 36 + 1)),
            lines(512, |it| {
                format!("{name}{:05x}\",port=\"{}\"}} {}\n", it / 36, it % 36, noise(it))
            }),
            lines(512, |it| {
                format!("{name}{:05x}\",lane=\"{}\"}} {}.{}\n", it, it % 4, it % 7, it)
            }),
        ] {
            let (ours, zlib) = (again(deflate, &text), Block::deflate(text.as_bytes()).bytes.len());
            assert!(ours < zlib, "{ours} of {zlib} bytes");
        }
    }

    #[test]
    fn any_text_unpacks() {
        let deflate = &mut LineDeflate::default();
        let noise = |of: u64| (of.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        for text in
            ["", "a", "\n", "\n\n\n", "no newline", "a\na", "ab,c\nab}c\n", "1,2\n1000,2\n,\n"]
        {
            again(deflate, text);
        }
        // Lines longer than a copy, and than the window; many tokens; bytes of each kind.
        again(deflate, &lines(20, |it| format!("{}{it}\n", "long".repeat(100))));
        for length in 250..530 {
            again(deflate, &format!("{0}\n{0}\n{0}", "x".repeat(length)));
        }
        again(deflate, &lines(4, |it| format!("{}{it}\n", "longer".repeat(7_000))));
        again(deflate, &lines(9_000, |it| format!("{:x} {}\n", noise(it), noise(it + 1))));
        let all = lines(0x800, |it| char::from_u32(it as u32).unwrap().to_string());
        again(deflate, &all);
        // Marks and words at any places.
        for seed in 0..300 {
            let byte = |it| b"ab01,\"} \n\n"[noise(seed << 32 | it) % 10] as char;
            again(deflate, &lines(300, |it| byte(it).to_string()));
        }
    }

    #[test]
    fn samples_of_things_unpack_and_are_as_small_as_any_text() {
        let deflate = &mut LineDeflate::default();
        let (mut ours, mut general) = (0, 0);
        for seed in 0..200_u64 {
            let noise =
                |of: u64| (((seed << 32 | of).wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 32) as usize;
            let word =
                |of| ["", "a", "1", "12", "0x0002c9", "leaf-1", "\\\"", "x,y"][noise(of) % 8];
            let of_thing = |it| match noise(it) % 9 {
                0 => String::new(),
                _ => format!("{{guid=\"0x0002{}\",port=\"{}\"", word(it + 1), word(it + 2)),
            };
            let labels: Vec<String> = (0..40).map(|it| of_thing(10 * it)).collect();
            let (mut text, mut lines) = (String::new(), Vec::new());
            for (thing, labels) in labels.iter().enumerate() {
                for sample in 0..noise(thing as u64) % 4 {
                    let of = (1_000 * thing + sample) as u64;
                    let start = text.len();
                    let suffix = ["", "", "", "_sum"][noise(of) % 4];
                    write!(text, "name{suffix}{labels},lane=\"{sample}\"}} ").unwrap();
                    let thing = suffix.is_empty().then_some(thing);
                    lines.push(Line { start, value: text.len(), thing });
                    writeln!(text, "{}", noise(of + 1) >> (noise(of + 2) % 32)).unwrap();
                }
            }
            let labels = Likeness::new(labels.iter().map(String::as_bytes));
            let block = deflate.samples(text.as_bytes(), "name".len(), &lines, &labels);
            let mut document = Document::default();
            document.push(&block);
            assert_eq!(document.to_text().unwrap(), text);
            ours += block.bytes.len();
            general += deflate.block(text.as_bytes()).bytes.len();
        }
        assert!(ours <= general, "{ours} of {general} bytes");
    }
}
