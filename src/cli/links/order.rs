//! Which links come first.

use crate::api::model::{Link, Links};

/// All links, the worst first: by verdict, then by what was measured and counted, then by name.
pub fn worst_first(told: &Links) -> Vec<&Link> {
    let mut links: Vec<&Link> = told.fabrics.iter().flat_map(|fabric| &fabric.links).collect();
    links.sort_by_cached_key(|link| link.rank());
    links
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::model::{End, FabricLinks, WindowErrors};

    fn link(verdict: &'static str, errors: u64, ratio: Option<f64>, node: &str, port: u8) -> Link {
        let mut end = End { node: node.into(), port, ..End::default() };
        if errors > 0 {
            end.counters.insert("symbol_errors".into(), errors);
        }
        end.bit_errors.windows =
            vec![WindowErrors { window: "12m".into(), errors: 0, seconds: 1.0, ratio }];
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
