//! How ports, links and nodes are, as numbers: a fixed table of the file's format. A number that is
//! nought says that it is not known; what a later version knows besides is not known here.

use ib_health::Verdict;
use ib_mad::rate::{Speed, Width};

use super::frame::{Entry, Frame};

/// The fields of a port, and of the link at it; a node has the first alone.
const UP: u8 = 0;
const WIDTH: u8 = 1;
const SPEED: u8 = 2;
const VERDICT: u8 = 3;

/// How many there are.
const FIELDS: usize = 4;

/// How a port and its link are; of a node, whether it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State([u8; FIELDS]);

impl State {
    /// Of a node.
    pub fn of_node(up: bool) -> Self {
        State([1 + u8::from(up), 0, 0, 0])
    }

    /// Of a port.
    pub fn of_port(
        up: Option<bool>,
        runs: Option<(Width, Speed)>,
        verdict: Option<Verdict>,
    ) -> Self {
        let (width, speed) = runs.unzip();
        // Speeds stand in the order in which they came, the newest last.
        State([
            up.map_or(0, |up| 1 + u8::from(up)),
            width.map_or(0, Width::lanes),
            speed.map_or(0, |speed| 1 + speed as u8),
            verdict.map_or(0, |verdict| 1 + verdict as u8),
        ])
    }

    /// Whether the link carries traffic, or the node answers.
    pub fn up(self) -> Option<bool> {
        match self.0[usize::from(UP)] {
            1 => Some(false),
            2 => Some(true),
            _ => None,
        }
    }

    /// The width and the speed that it runs at.
    pub fn runs(self) -> Option<(Width, Speed)> {
        let width = Width::from_lanes(self.0[usize::from(WIDTH)])?;
        let speed = usize::from(self.0[usize::from(SPEED)]).checked_sub(1)?;
        Some((width, *Speed::ALL.get(speed)?))
    }

    /// The same as people write it: `4x NDR`.
    pub fn rate(self) -> Option<String> {
        self.runs().map(|(width, speed)| format!("{} {}", width.label(), speed.label()))
    }

    /// What it comes to.
    pub fn verdict(self) -> Verdict {
        let known = usize::from(self.0[usize::from(VERDICT)]).checked_sub(1);
        known.and_then(|nth| Verdict::ALL.get(nth).copied()).unwrap_or(Verdict::Unknown)
    }

    /// What is not as it was.
    pub fn since(self, before: State) -> impl Iterator<Item = (u8, u64)> {
        let fields = (0..).zip(self.0).zip(before.0);
        fields.filter(|((_, now), was)| now != was).map(|((field, now), _)| (field, now.into()))
    }

    /// Takes in what an entry says.
    pub fn follow(&mut self, frame: &Frame, entry: &Entry) {
        for (field, value) in frame.values(entry) {
            if let Some(known) = self.0.get_mut(usize::from(field)) {
                *known = u8::try_from(value).unwrap_or(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_mean_what_they_always_meant() {
        let state = State::of_port(Some(true), Some((Width::X2, Speed::Ndr)), Some(Verdict::Bad));
        assert_eq!(state.0, [2, 2, 8, 4]);
        assert_eq!((state.up(), state.verdict()), (Some(true), Verdict::Bad));
        assert_eq!(state.rate().as_deref(), Some("2x NDR"));
        assert_eq!(State::of_node(false).up(), Some(false));
    }

    #[test]
    fn what_is_not_known_is_told_as_that() {
        let blank = State::default();
        assert_eq!((blank.up(), blank.rate(), blank.verdict()), (None, None, Verdict::Unknown));
        // What a later version may write.
        let later = State([3, 5, 77, 9]);
        assert_eq!((later.up(), later.rate(), later.verdict()), (None, None, Verdict::Unknown));
    }

    #[test]
    fn what_changed_is_followed() {
        let was = State::of_port(Some(true), Some((Width::X4, Speed::Ndr)), Some(Verdict::Ok));
        let is = State::of_port(None, None, Some(Verdict::Ok));
        let mut frame = Frame::default();
        frame.push_after(7, 0, is.since(was));
        let mut told = was;
        told.follow(&frame, &frame.entries()[0]);
        assert_eq!(told, is);
        assert_eq!(is.since(is).count(), 0);
    }
}
