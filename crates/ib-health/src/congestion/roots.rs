//! Where chains of waiting ports end.

use super::crowd::{Crowd, Walk};

/// Whom each member's waiting goes back to.
pub(super) struct Heads {
    /// By member: the root, itself if it is one. `None` only for one that is full and that nobody
    /// waits for.
    pub(super) of: Vec<Option<u32>>,
}

/// Gives each member that waits a root.
pub(super) fn find(crowd: &Crowd) -> Heads {
    let members = 0..crowd.members.len() as u32;
    let mut roots: Vec<u32> = members.clone().filter(|&member| !crowd.leads_on(member)).collect();
    let in_knots = |of: &[Option<u32>]| members.clone().any(|member| of[member as usize].is_none());
    heaviest_first(crowd, &mut roots);
    let mut traced = trace(crowd, roots.iter().copied());
    if in_knots(&traced.of) {
        roots.extend(of_knots(crowd, &traced.of));
        heaviest_first(crowd, &mut roots);
        traced = trace(crowd, roots.into_iter());
    }
    // That a link is full is no news where nobody waits for it.
    let mut blamed = vec![false; crowd.members.len()];
    for (member, head) in traced.of.iter().enumerate() {
        if let Some(head) = head.filter(|_| crowd.members[member].waits()) {
            blamed[head as usize] = true;
        }
    }
    let mut of = traced.of;
    for ((of, blamed), member) in of.iter_mut().zip(blamed).zip(&crowd.members) {
        *of = of.filter(|_| blamed || member.waits());
    }
    Heads { of }
}

/// Among equals the lower (GUID, port) comes first, which is the order of members.
fn heaviest_first(crowd: &Crowd, members: &mut [u32]) {
    members.sort_by_cached_key(|&member| {
        // No share is below zero, so its bits are in its order.
        (std::cmp::Reverse(crowd.weight(member).to_bits()), member)
    });
}

struct Traced {
    of: Vec<Option<u32>>,
    /// Those that did not lead to one before them.
    heads: Vec<u32>,
}

/// Goes back from one after the other: each member belongs to the first that it leads to.
fn trace(crowd: &Crowd, from: impl Iterator<Item = u32>) -> Traced {
    let mut traced = Traced { of: vec![None; crowd.members.len()], heads: Vec::new() };
    let mut walk = Walk::new(crowd);
    let mut queue = Vec::new();
    for head in from {
        if traced.of[head as usize].is_some() {
            continue;
        }
        traced.of[head as usize] = Some(head);
        traced.heads.push(head);
        queue.push(head);
        while let Some(member) = queue.pop() {
            walk.back(member, |before| {
                let of = &mut traced.of[before as usize];
                if of.is_none() {
                    *of = Some(head);
                    queue.push(before);
                }
            });
        }
    }
    traced
}

/// The roots of knots: of members that wait for one another in a circle, and for nobody else, the one
/// that weighs most. `of` has those that lead to a root.
///
/// Going back from the heaviest first, the first of a knot that is met is its heaviest. But so are
/// some in circles that lead on into another knot. They have no way back from it, so that they come
/// to light when the same is done from the last to the first.
fn of_knots(crowd: &Crowd, of: &[Option<u32>]) -> Vec<u32> {
    let mut lost: Vec<u32> = (0..of.len() as u32).filter(|&m| of[m as usize].is_none()).collect();
    heaviest_first(crowd, &mut lost);
    let first = trace(crowd, lost.into_iter());
    trace(crowd, first.heads.into_iter().rev()).heads
}
