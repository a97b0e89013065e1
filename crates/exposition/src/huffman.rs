//! The symbols of deflate and their Huffman codes: canonical, of at most 15 bits (RFC 1951, section 3.2.2).

/// Of a code in deflate.
const MAX_BITS: u8 = 15;

/// The code of a symbol, its first bit lowest, and its length; 0 if the symbol does not occur.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Code {
    pub bits: u16,
    pub length: u8,
}

/// The codes of symbols that occur this often. At least two symbols have one, as zlib requires.
pub(super) fn codes<const N: usize>(counts: &[u32; N]) -> [Code; N] {
    let mut counts = *counts;
    let mut missing = 2_usize.saturating_sub(counts.iter().filter(|count| **count > 0).count());
    for count in counts.iter_mut().filter(|count| **count == 0) {
        if missing == 0 {
            break;
        }
        *count = 1;
        missing -= 1;
    }
    let mut codes = [Code::default(); N];
    while !lengths(&counts, &mut codes) {
        // Flatter counts have shorter longest codes; hardly any text needs it.
        for count in counts.iter_mut().filter(|count| **count > 0) {
            *count = *count / 2 + 1;
        }
    }
    assign(&mut codes);
    codes
}

/// A node of the tree: its count, and its parent once it has one.
#[derive(Clone, Copy, Default)]
struct Node {
    count: u32,
    parent: usize,
}

/// Sets the lengths of the codes; false if one is too long.
fn lengths<const N: usize>(counts: &[u32; N], codes: &mut [Code; N]) -> bool {
    let mut symbols: Vec<usize> = (0..N).filter(|symbol| counts[*symbol] > 0).collect();
    symbols.sort_unstable_by_key(|symbol| counts[*symbol]);
    let leaves = symbols.len();
    let mut nodes: Vec<Node> = Vec::with_capacity(2 * leaves);
    nodes.extend(symbols.iter().map(|symbol| Node { count: counts[*symbol], parent: 0 }));
    // The least of the leaves and the least of the inner nodes that have no parent: both are in order.
    let (mut leaf, mut inner) = (0, leaves);
    while nodes.len() < 2 * leaves - 1 {
        let mut sum = 0;
        for _ in 0..2 {
            let is_leaf = leaf < leaves
                && nodes.get(inner).is_none_or(|node| nodes[leaf].count <= node.count);
            let least = if is_leaf { &mut leaf } else { &mut inner };
            let parent = nodes.len();
            nodes[*least].parent = parent;
            sum += nodes[*least].count;
            *least += 1;
        }
        nodes.push(Node { count: sum, parent: 0 });
    }
    // From the root downwards; a node's parent is behind it. The counts are no longer needed.
    let root = nodes.len() - 1;
    nodes[root].count = 0;
    for node in (0..root).rev() {
        nodes[node].count = nodes[nodes[node].parent].count + 1;
    }
    for (symbol, node) in symbols.iter().zip(&nodes) {
        if node.count > MAX_BITS.into() {
            return false;
        }
        codes[*symbol].length = node.count as u8;
    }
    true
}

/// Sets the bits of codes by their lengths.
pub(super) fn assign(codes: &mut [Code]) {
    let mut of_length = [0_u16; MAX_BITS as usize + 1];
    for code in codes.iter().filter(|code| code.length > 0) {
        of_length[usize::from(code.length)] += 1;
    }
    let mut next = [0_u16; MAX_BITS as usize + 1];
    for length in 1..next.len() {
        next[length] = (next[length - 1] + of_length[length - 1]) << 1;
    }
    for code in codes.iter_mut().filter(|code| code.length > 0) {
        let value = &mut next[usize::from(code.length)];
        code.bits = value.reverse_bits() >> (16 - code.length);
        *value += 1;
    }
}

/// The symbol of a length or distance, with the number and the value of the bits that follow its code.
#[derive(Clone, Copy)]
pub(super) struct Symbol {
    pub number: usize,
    pub extra: u32,
    pub value: u32,
}

/// Of a length from 3 to 258 (RFC 1951, section 3.2.5).
#[inline]
pub(super) fn of_length(length: u16) -> Symbol {
    match u32::from(length) - 3 {
        255 => Symbol { number: 285, extra: 0, value: 0 },
        rest => stepped(rest, 2, 257),
    }
}

/// Of a distance from 1 to 32,768, less 1.
#[inline]
pub(super) fn of_distance(less_one: u16) -> Symbol {
    stepped(less_one.into(), 1, 0)
}

/// Symbols in groups of 2^`bits`, each for twice as many values as those of the group before.
#[inline]
fn stepped(value: u32, bits: u32, first: usize) -> Symbol {
    let extra = (value >> bits).checked_ilog2().unwrap_or(0);
    let group = (extra << bits) + (value >> extra);
    Symbol { number: first + group as usize, extra, value: value & ((1 << extra) - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_all_lengths_and_distances() {
        for (length, symbol, extra) in
            [(3, 257, 0), (10, 264, 0), (11, 265, 1), (12, 265, 1), (257, 284, 5), (258, 285, 0)]
        {
            let of = of_length(length);
            assert_eq!((of.number, of.extra), (symbol, extra), "{length}");
        }
        for (distance, symbol, extra, value) in [
            (1, 0, 0, 0),
            (4, 3, 0, 0),
            (5, 4, 1, 0),
            (6, 4, 1, 1),
            (7, 5, 1, 0),
            (32_768, 29, 13, 8191),
        ] {
            let of = of_distance((distance - 1_u32) as u16);
            assert_eq!((of.number, of.extra, of.value), (symbol, extra, value), "{distance}");
        }
    }
}
