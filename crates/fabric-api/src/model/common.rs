//! What several models share: labels, counts by verdict, names of nodes.

use std::borrow::Cow;

use ib_health::Verdict;
use ib_mad::ids::port_label_with;
use ib_mad::{NodeKind, PortNumber};

/// What pages call links that only lack time of observation. It is not a verdict.
pub const LEARNING: &str = "learning";

/// The state of a node that is down by itself, and of one that is down because another one cuts it off.
pub const DOWN: &str = "down";
/// See [`DOWN`].
pub const CUT_OFF: &str = "cut_off";

/// A value of a small enumeration; constants are borrowed.
pub type Label = Cow<'static, str>;

/// A port by its node's name and its number; of a switch also by what is printed beside it. The name of an adapter's port
/// begins with its PCI address, which is not printed.
pub(super) fn label_of_port(
    node: &str,
    number: PortNumber,
    node_type: &str,
    front_panel: Option<&str>,
) -> String {
    let is_switch = node_type == NodeKind::Switch.label();
    port_label_with(node, number, front_panel.filter(|_| is_switch))
}

models! {
    /// Number of links by verdict.
    #[derive(Copy)]
    #[expect(missing_docs, reason = "the verdicts say it")]
    pub struct Verdicts {
        pub ok: usize,
        pub unknown: usize,
        pub watch: usize,
        pub bad: usize,
        /// How many of the unknown ones only lack time of observation.
        #[serde(default)]
        pub learning: usize,
    }

    /// The GUID and the name of a node.
    pub struct NodeName {
        /// NodeGUID.
        pub guid: String,
        /// The name of the node.
        pub node: String,
    }
}

impl Verdicts {
    /// Counts one more link.
    pub fn add(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Ok => &mut self.ok,
            Verdict::Unknown => &mut self.unknown,
            Verdict::Watch => &mut self.watch,
            Verdict::Bad => &mut self.bad,
        } += 1;
    }

    /// The count of each verdict, the worst first.
    pub fn worst_first(&self) -> [(Verdict, usize); 4] {
        [
            (Verdict::Bad, self.bad),
            (Verdict::Watch, self.watch),
            (Verdict::Unknown, self.unknown),
            (Verdict::Ok, self.ok),
        ]
    }

    /// The count of all links.
    pub fn count(&self) -> usize {
        self.ok + self.unknown + self.watch + self.bad
    }

    /// Those of some verdicts; all if there are none.
    #[must_use]
    pub fn only(self, verdicts: &[Verdict]) -> Verdicts {
        let of = |verdict, count| {
            if verdicts.is_empty() || verdicts.contains(&verdict) { count } else { 0 }
        };
        Verdicts {
            ok: of(Verdict::Ok, self.ok),
            unknown: of(Verdict::Unknown, self.unknown),
            watch: of(Verdict::Watch, self.watch),
            bad: of(Verdict::Bad, self.bad),
            learning: of(Verdict::Unknown, self.learning),
        }
    }

    /// The worst verdict; unknown without links.
    pub fn worst(&self) -> Verdict {
        let mut worst_first = self.worst_first().into_iter();
        let worst = worst_first.find(|(_, count)| *count > 0);
        worst.map_or(Verdict::Unknown, |(verdict, _)| verdict)
    }

    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Verdicts) -> Verdicts {
        Verdicts {
            ok: self.ok + other.ok,
            unknown: self.unknown + other.unknown,
            watch: self.watch + other.watch,
            bad: self.bad + other.bad,
            learning: self.learning + other.learning,
        }
    }

    /// The counts as pages show them, the worst first: those that only lack time are not called unknown.
    pub fn shown(&self) -> [(&'static str, usize); 5] {
        [
            (Verdict::Bad.label(), self.bad),
            (Verdict::Watch.label(), self.watch),
            (Verdict::Unknown.label(), self.unknown.saturating_sub(self.learning)),
            (LEARNING, self.learning),
            (Verdict::Ok.label(), self.ok),
        ]
    }

    /// The first of these that occurs; unknown without links.
    pub fn worst_shown(&self) -> &'static str {
        let worst = self.shown().into_iter().find(|(_, count)| *count > 0);
        worst.map_or(Verdict::Unknown.label(), |(label, _)| label)
    }
}
