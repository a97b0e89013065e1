//! Hosts and HCAs that lose their last path, on random fabrics.

use drain_plan::{Node, assess};

use crate::oracle::{Matrix, Named, cuts, named, paths_of_hcas, paths_of_hosts};
use crate::random::{Case, Random};

/// How many fabrics are of interest.
#[derive(Default)]
struct Counts {
    /// A host loses its last path.
    hosts: usize,
    /// An HCA does, and its host does not.
    hcas: usize,
    /// No host does, and there were paths.
    nothing: usize,
}

#[test]
fn hosts_and_hcas_are_cut_exactly_where_maximum_flows_end() {
    let mut random = Random::new(1);
    let mut counts = Counts::default();
    for number in 0..100_000 {
        let repairs = random.between(1, 3);
        let case = Case::any(&mut random, 4, 4, 6, repairs);
        let assessment = assess(&case.net, &case.repairs, &case.drained).unwrap();

        let during = |repairs| Matrix::during(&case.net, repairs, &case.groups);
        let paths = |repairs| paths_of_hcas(&during(repairs), &case.drained);
        let [before, after] = [paths(&[]), paths(&case.repairs)];
        let hosts = [&before, &after].map(|it| paths_of_hosts(&case.net, it));
        let is_cut = cuts(&hosts[0], &hosts[1]);
        assert_eq!(!assessment.cut_hosts.is_empty(), is_cut, "{number}: {case:#?}");
        let cut_hosts = assessment.cut_hosts.iter().map(|cut| Named {
            member: cut.host.index(),
            lost: cut.lost,
            kept: cut.kept,
        });
        let expected = named(&hosts[0], &hosts[1]);
        assert_eq!(cut_hosts.collect::<Vec<_>>(), expected, "{number}: {case:#?}");

        let cut_hcas = assessment.cut_hcas.iter().map(|cut| Named {
            member: cut.hca.index(),
            lost: cut.lost,
            kept: cut.kept,
        });
        let mut expected = named(&before, &after);
        expected.retain(|it| {
            let host = case.net.nodes()[it.member];
            let others = case.net.nodes().iter().enumerate();
            let mut others = others.filter(|&(index, node)| index != it.member && *node == host);
            others.any(|(other, _)| after[other].contains(&true))
        });
        assert_eq!(cut_hcas.collect::<Vec<_>>(), expected, "{number}: {case:#?}");
        for cut in &assessment.cut_hcas {
            assert_eq!(case.net.nodes()[cut.hca.index()], Node::Hca(cut.host));
        }

        counts.hosts += usize::from(is_cut);
        counts.hcas += usize::from(!assessment.cut_hcas.is_empty());
        counts.nothing += usize::from(!is_cut && before.iter().flatten().any(|&path| path));
    }
    // Otherwise the random fabrics would prove little.
    assert!(counts.hosts > 10_000, "{}", counts.hosts);
    assert!(counts.hcas > 2_000, "{}", counts.hcas);
    assert!(counts.nothing > 10_000, "{}", counts.nothing);
}
