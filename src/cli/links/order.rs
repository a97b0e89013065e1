//! Which links come first.

use std::cmp::Ordering;

use crate::health::Verdict;
use crate::web::api::model::{Link, Links};

/// All links, the worst first: by verdict, then by what was measured and counted, then by name.
pub fn worst_first(told: &Links) -> Vec<&Link> {
    let mut links: Vec<(u8, f64, u64, &Link)> = told
        .fabrics
        .iter()
        .flat_map(|fabric| &fabric.links)
        .map(|link| (rank(link), link.worst_ratio(), link.local_errors(), link))
        .collect();
    links.sort_by(|a, b| {
        (a.0.cmp(&b.0))
            .then(b.1.total_cmp(&a.1))
            .then(b.2.cmp(&a.2))
            .then_with(|| by_name(a.3, b.3))
    });
    links.into_iter().map(|(.., link)| link).collect()
}

/// Unknown links that have counted errors stand between those to be watched and the other unknown ones.
fn rank(link: &Link) -> u8 {
    match link.verdict() {
        Verdict::Bad => 0,
        Verdict::Watch => 1,
        Verdict::Unknown if link.is_suspect() => 2,
        Verdict::Unknown => 3,
        Verdict::Ok => 4,
    }
}

fn by_name(a: &Link, b: &Link) -> Ordering {
    let name = |link: &Link| {
        let ends = [0, 1].map(|end: usize| (link.ends[end].node.clone(), link.ends[end].port));
        (link.fabric.clone(), ends)
    };
    name(a).cmp(&name(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::api::model::{End, FabricLinks, InWindow};

    fn link(verdict: &'static str, errors: u64, ratio: Option<f64>, node: &str, port: u8) -> Link {
        let mut end = End { node: node.into(), port, ..End::default() };
        if errors > 0 {
            end.counters.insert("symbol_errors".into(), errors);
        }
        end.bit_errors.windows =
            vec![InWindow { window: "12m".into(), errors: 0, seconds: 1.0, ratio }];
        Link { verdict: verdict.into(), ends: [end, End::default()], ..Link::default() }
    }

    #[test]
    fn the_worst_comes_first() {
        let wanted = [
            link("bad", 0, Some(1e-9), "z", 1),
            link("bad", 7, Some(1e-12), "a", 1),
            link("bad", 9, None, "b", 1),
            link("bad", 8, None, "a", 1),
            link("watch", 0, None, "a", 1),
            link("unknown", 5, None, "a", 1),
            link("unknown", 1, None, "a", 1),
            link("unknown", 0, None, "a", 2),
            link("unknown", 0, None, "a", 10),
            link("unknown", 0, None, "b", 1),
            link("ok", 1_000, None, "a", 1),
            link("ok", 0, None, "a", 1),
        ];
        let mut links = wanted.to_vec();
        links.reverse();
        links.swap(2, 7);
        let told = Links { fabrics: vec![FabricLinks { links, ..FabricLinks::default() }] };
        let sorted: Vec<Link> = worst_first(&told).into_iter().cloned().collect();
        assert_eq!(sorted, wanted);
    }
}
