//! The families that come from several sources, put together: each stands once, with all of its samples.

use super::Format;
use super::deflated::Block;
use super::family::Head;

/// Where a family stands among the others. What a family is told of by the fabric and by the host has
/// one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Of nodes, and who is who.
    Node(usize),
    /// Of [`PORT_STATES`](super::fabrics::PORT_STATES).
    State(usize),
    /// Of the table of counters.
    Counter(usize),
    /// How counters fared.
    Counting(usize),
    /// What a fabric was found to come to, in the order in which that is told.
    Finding(usize),
    /// Of the subnet's managers.
    Subnet(usize),
    /// What the host alone knows, in the order in which it tells it.
    Host(usize),
}

/// A family with a source's samples.
#[derive(Clone, Debug)]
pub struct Part<S> {
    /// Where it stands.
    pub place: Place,
    /// What stands before the samples.
    pub head: Head,
    /// The samples: lines that both formats share.
    pub samples: S,
}

/// What is worth compressing by itself: below it, starting anew costs more than it saves.
const WORTH_PACKING: usize = 4096;

/// Puts the fabrics' part and the host's together, each in the order of places. Neighbouring texts
/// are compressed as one.
pub fn join(fabrics: &[Part<Block>], host: &[Part<String>], format: Format) -> Vec<Block> {
    let (mut fabrics, mut host) = (fabrics.iter().peekable(), host.iter().peekable());
    let mut blocks = Vec::new();
    let mut text = String::new();
    loop {
        let next = [fabrics.peek().map(|part| part.place), host.peek().map(|part| part.place)];
        let Some(place) = next.into_iter().flatten().min() else { break };
        let of_fabrics = fabrics.next_if(|part| part.place == place);
        let of_host = host.next_if(|part| part.place == place);
        if let Some(head) = of_fabrics.map(|part| &part.head).or(of_host.map(|part| &part.head)) {
            head.write(&mut text, format);
        }
        if let Some(part) = of_fabrics {
            blocks.push(pack(text.as_bytes()));
            text.clear();
            blocks.push(part.samples.clone());
        }
        if let Some(part) = of_host {
            text.push_str(&part.samples);
        }
    }
    if !text.is_empty() {
        blocks.push(pack(text.as_bytes()));
    }
    blocks
}

/// A text as it is, if it is short.
pub(super) fn pack(text: &[u8]) -> Block {
    if text.len() < WORTH_PACKING { Block::stored(text) } else { Block::deflate(text) }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::metrics::family::Kind;

    fn part<S>(place: Place, name: &'static str, samples: S) -> Part<S> {
        let head = Head { name: name.into(), kind: Kind::Gauge, help: "Told.".into() };
        Part { place, head, samples }
    }

    fn text(blocks: &[Block]) -> String {
        let mut stream: Vec<u8> = blocks.iter().flat_map(|block| block.bytes.to_vec()).collect();
        stream.extend([3, 0]);
        let mut text = String::new();
        flate2::read::DeflateDecoder::new(&stream[..]).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_family_of_both_stands_once_with_all_of_its_samples() {
        let fabrics = [
            part(Place::Node(0), "n", Block::stored(b"n 1\n")),
            part(Place::State(0), "s", Block::stored(b"s 1\n")),
        ];
        let long = format!("h{} 3\n", "x".repeat(2 * WORTH_PACKING));
        let host = [
            part(Place::State(0), "s", "s 2\n".to_owned()),
            part(Place::Host(1), "h", long.clone()),
        ];
        let head = |name| format!("# HELP {name} Told.\n# TYPE {name} gauge\n");
        let (n, s, h) = (head("n"), head("s"), head("h"));
        for (fabrics, host, wanted) in [
            (&fabrics[..], &host[..], format!("{n}n 1\n{s}s 1\ns 2\n{h}{long}")),
            (&fabrics[..], &[], format!("{n}n 1\n{s}s 1\n")),
            (&[], &host[..], format!("{s}s 2\n{h}{long}")),
            (&[], &[], String::new()),
        ] {
            assert_eq!(text(&join(fabrics, host, Format::Text)), wanted);
        }
    }
}
