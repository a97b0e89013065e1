//! Which cable is where at which time: cables move in the course of a timeline.

use std::collections::HashMap;
use std::time::Duration;

use crate::net::{Net, PortId};

/// When something happens: at that time, and of what happens then, in the order of the file.
pub(super) type When = (Duration, usize);

/// The cables of a net, and how they move.
#[derive(Debug)]
pub(super) struct Wiring<'a> {
    net: &'a Net,
    /// Of each port that a cable left or came to: since when it has which other end.
    moved: HashMap<PortId, Vec<(When, Option<PortId>)>>,
}

impl<'a> Wiring<'a> {
    pub(super) fn new(net: &'a Net) -> Wiring<'a> {
        Wiring { net, moved: HashMap::new() }
    }

    /// The other end of the cable at a port just before something happens.
    pub(super) fn peer(&self, port: PortId, when: When) -> Option<PortId> {
        let moves = self.moved.get(&port).map_or(&[][..], Vec::as_slice);
        let before = moves.partition_point(|(moved, _)| *moved < when);
        match before.checked_sub(1).and_then(|last| moves.get(last)) {
            Some((_, peer)) => *peer,
            None => self.net.port(port).cable,
        }
    }

    /// Plugs the cable at one port into another; moves are told in the order of time.
    pub(super) fn plug(&mut self, from: PortId, to: PortId, when: When) -> Result<(), String> {
        let label = |port| self.net.label(port);
        let Some(far) = self.peer(from, when) else {
            return Err(format!("{} has no cable", label(from)));
        };
        if from == to {
            return Err(format!("the cable is at {} already", label(to)));
        }
        if far == to {
            return Err(format!("{} is the other end of the same cable", label(to)));
        }
        if self.net.port(to).number == 0 {
            return Err(format!("no cable goes into {}", label(to)));
        }
        let other = self.peer(to, when);
        self.set(to, Some(far), when);
        self.set(far, Some(to), when);
        self.set(from, other, when);
        if let Some(other) = other {
            self.set(other, Some(from), when);
        }
        Ok(())
    }

    fn set(&mut self, port: PortId, peer: Option<PortId>, when: When) {
        self.moved.entry(port).or_default().push((when, peer));
    }
}

#[cfg(test)]
mod tests {
    use super::super::places::Places;
    use super::super::tests::net;
    use super::*;

    #[test]
    fn cables_are_where_they_were_plugged_last() {
        let net = net("{fat-tree: {hosts: 6}}");
        let places = Places::new(&net);
        let port = |text| places.port(text).unwrap();
        let mut wiring = Wiring::new(&net);
        let at = |secs, order| (Duration::from_secs(secs), order);
        let peer =
            |wiring: &Wiring, text, when| wiring.peer(port(text), when).map(|port| net.label(port));
        let is = |text: &str| Some(text.to_owned());
        // Into a free port, and then with one that has a cable.
        wiring.plug(port("leaf-0-0[1]"), port("leaf-0-0[8]"), at(10, 0)).unwrap();
        wiring.plug(port("leaf-0-0[8]"), port("leaf-0-0[2]"), at(20, 1)).unwrap();
        for (text, when, expected) in [
            ("leaf-0-0[1]", at(10, 0), is("host-0[1]")),
            ("leaf-0-0[1]", at(10, 1), None),
            ("leaf-0-0[8]", at(11, 0), is("host-0[1]")),
            ("host-0", at(11, 0), is("leaf-0-0[8]")),
            ("host-0", at(21, 0), is("leaf-0-0[2]")),
            ("host-1", at(21, 0), is("leaf-0-0[8]")),
            ("leaf-0-0[2]", at(21, 0), is("host-0[1]")),
            ("leaf-0-0[3]", at(21, 0), is("host-2[1]")),
        ] {
            assert_eq!(peer(&wiring, text, when), expected, "{text} at {when:?}");
        }
        for (from, to, says) in [
            ("leaf-0-0[1]", "leaf-0-0[3]", "leaf-0-0[1] has no cable"),
            ("leaf-0-0[3]", "leaf-0-0[3]", "already"),
            ("leaf-0-0[3]", "host-2", "the other end of the same cable"),
            ("leaf-0-0[3]", "leaf-0-0[0]", "no cable goes into leaf-0-0[0]"),
        ] {
            let error = wiring.plug(port(from), port(to), at(30, 2)).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
