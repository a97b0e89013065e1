//! How a line is like the one before: where the two are the same, and which words differ.

/// Bytes that two lines have in common, and what each has behind them before they are compared again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// The number of bytes that are the same.
    pub same: usize,
    /// The length of the word that only this line has.
    pub word: usize,
    /// The length of the word of the line before that is in its place.
    pub other: usize,
}

impl Step {
    /// From the beginnings of a text and of one before it. Behind the words that differ the two continue alike; or both
    /// have another mark there. Behind this many bytes of the text, nothing more is compared once something differs.
    #[inline]
    pub fn new(text: &[u8], before: &[u8], compared: usize) -> Step {
        let same = same(text, before);
        let (text, before) = (&text[same..], &before[same..]);
        if same >= compared {
            return Step { same, word: text.len(), other: 0 };
        }
        let (word, other) = (word(text), word(before));
        if word + other == 0 {
            return Step { same, word: text.len().min(1), other: before.len().min(1) };
        }
        Step { same, word, other }
    }
}

/// How labels are like those of the thing before.
#[derive(Debug, Default)]
pub(super) struct Likeness {
    steps: Vec<Step>,
    /// The end of each thing's steps.
    ends: Vec<usize>,
}

impl Likeness {
    /// Of the labels of things.
    pub fn new<'a>(labels: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut all = Likeness::default();
        let mut before: &[u8] = &[];
        for labels in labels {
            let (mut rest, mut like) = (labels, before);
            while !rest.is_empty() {
                let step = Step::new(rest, like, usize::MAX);
                rest = &rest[step.same + step.word..];
                like = &like[step.same + step.other..];
                // What is the same at the end continues behind the labels.
                if !rest.is_empty() || step.word > 0 {
                    all.steps.push(step);
                }
            }
            all.ends.push(all.steps.len());
            before = labels;
        }
        all
    }

    /// The steps from the labels of the thing before to those of a thing.
    #[inline]
    pub fn steps(&self, thing: usize) -> &[Step] {
        let start = thing.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let end = self.ends.get(thing).copied();
        self.steps.get(start.unwrap_or(0)..end.unwrap_or(0)).unwrap_or_default()
    }
}

/// Bytes that are part of a word: a name, a number or a part of one.
const WORD: [bool; 256] = {
    let mut word = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        word[byte] =
            (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'.' || byte as u8 == b'_';
        byte += 1;
    }
    word
};

/// The length of the word at the beginning of a text.
fn word(text: &[u8]) -> usize {
    text.iter().take_while(|byte| WORD[usize::from(**byte)]).count()
}

/// The number of bytes at the beginning of two texts that are the same.
#[inline]
fn same(one: &[u8], other: &[u8]) -> usize {
    let mut count = 0;
    while let (Some(a), Some(b)) = (one[count..].first_chunk(), other[count..].first_chunk()) {
        let difference = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if difference != 0 {
            return count + difference.trailing_zeros() as usize / 8;
        }
        count += 8;
    }
    count + one[count..].iter().zip(&other[count..]).take_while(|(a, b)| a == b).count()
}
