//! Capacities of leaves, on random fabrics.

use drain_plan::{Share, assess};

use crate::oracle::{LeafFlow, Matrix, flows};
use crate::random::{Case, Random};

#[test]
fn leaves_lose_exactly_what_the_smallest_of_all_cuts_loses() {
    let mut random = Random::new(2);
    let (mut reduced, mut winding) = (0, 0);
    for number in 0..20_000 {
        let repairs = random.between(1, 4);
        let case = Case::any(&mut random, 8, 3, 16, repairs);
        let assessment = assess(&case.net, &case.repairs, &case.drained).unwrap();

        let mut expected = flows(&case.net, &case.repairs, &case.groups, &case.drained);
        let share = |flow: &LeafFlow| flow.after as f64 / flow.before as f64;
        expected.retain(|flow| flow.after < flow.before);
        expected.sort_by(|a, b| share(a).total_cmp(&share(b)));
        let found = assessment.reduced_leaves.iter().map(|leaf| LeafFlow {
            node: leaf.leaf.index(),
            before: leaf.before_gbps,
            after: leaf.after_gbps,
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{number}: {case:#?}");
        let remaining = expected.first().map_or(1.0, share);
        assert_eq!(assessment.remaining_capacity(), Share::new(remaining).unwrap());

        let matrix = Matrix::during(&case.net, &case.repairs, &case.groups);
        let leaves = Matrix::during(&case.net, &[], &case.groups).leaves(&case.drained);
        reduced += usize::from(!expected.is_empty());
        winding +=
            usize::from(leaves.iter().any(|&leaf| {
                matrix.straight_flow(leaf, &leaves) < matrix.smallest_cut(leaf, &leaves)
            }));
    }
    // Otherwise the random fabrics would prove little.
    assert!(reduced > 2_000, "{reduced}");
    assert!(winding > 500, "flows over several switches that are no leaves: {winding}");
}
