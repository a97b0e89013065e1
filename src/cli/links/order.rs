//! Which links come first.

use std::cmp::Ordering;

use crate::api::model::{Link, Links};

/// All links, the worst first: by verdict, then by what was measured and counted, then by name.
pub fn worst_first(told: &Links) -> Vec<&Link> {
    let links = told.fabrics.iter().flat_map(|fabric| &fabric.links);
    let mut links: Vec<_> = links.map(|link| (link.rank(), link)).collect();
    links.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| by_name(a.1, b.1)));
    links.into_iter().map(|(_, link)| link).collect()
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
    use crate::api::model::{End, FabricLinks, InWindow};

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
