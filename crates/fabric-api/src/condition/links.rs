//! The findings on links.

use display_text::plural;
use ib_health::{Reason, Verdict};

use super::down::DownNodes;
use super::finding::{FindingKind, Found};
use crate::link_row::LinkRow;
use crate::model::Verdicts;
use crate::view::FabricView;

/// The links of a fabric, without those that a node explains that is down.
#[derive(Debug, Default)]
pub(crate) struct LinkCounts {
    pub verdicts: Verdicts,
    maintenance: usize,
    /// On purpose.
    pub not_judged: usize,
    /// All links, whatever their verdicts.
    all: usize,
}

impl LinkCounts {
    pub fn of(view: FabricView<'_>, down: &DownNodes) -> Self {
        let mut links = LinkCounts::default();
        for row in view.links() {
            links.all += 1;
            match Standing::of(&row, down) {
                Standing::Judged => drop(links.verdicts.add_link(&row)),
                Standing::Maintenance => links.maintenance += 1,
                Standing::NotJudged => links.not_judged += 1,
                Standing::Explained => {}
            }
        }
        links
    }

    pub fn findings(&self) -> Vec<Found> {
        let Verdicts { bad, watch, unknown, learning, .. } = self.verdicts;
        let unknown = unknown - learning;
        let links = |verdict: Verdict, count: usize, text: String| {
            Found::new(FindingKind::Links, verdict, count, text)
        };
        let found = [
            links(Verdict::Bad, bad, plural(bad, "bad link")),
            links(Verdict::Watch, watch, plural(watch, "degraded link")),
            links(Verdict::Unknown, unknown, format!("unknown for {}", plural(unknown, "link"))),
            Found::new(
                FindingKind::Learning,
                Verdict::Unknown,
                learning,
                format!("learning for {}", plural(learning, "link")),
            ),
            Found::new(
                FindingKind::Maintenance,
                Verdict::Unknown,
                self.maintenance,
                format!("in maintenance: {}", plural(self.maintenance, "link")),
            ),
            links(Verdict::Unknown, usize::from(self.all == 0), "no links found".into()),
        ];
        found.into_iter().filter(|it| it.count > 0).collect()
    }
}

/// How a link counts.
enum Standing {
    Judged,
    Maintenance,
    NotJudged,
    /// It is unknown because a node is down, which is said already, or was rebooted: then it learns again.
    Explained,
}

impl Standing {
    fn of(row: &LinkRow<'_>, down: &DownNodes) -> Self {
        let has = |reason| row.assessment.is_some_and(|it| it.reasons.weight(reason).is_some());
        let fabric = &row.view.snapshot.fabric;
        let is_down = || row.all_ports().any(|port| down.get(fabric.port(port).node).is_some());
        match row.verdict() {
            Verdict::Unknown if is_down() => Standing::Explained,
            // On a site of 5,000 hosts some links do so at most times.
            Verdict::Unknown if was_rebooted(row) && row.learning().is_some() => {
                Standing::Explained
            }
            Verdict::Unknown if has(Reason::Maintenance) => Standing::Maintenance,
            Verdict::Unknown
                if [Reason::Internal, Reason::NvLink, Reason::Disabled].into_iter().any(has) =>
            {
                Standing::NotJudged
            }
            _ => Standing::Judged,
        }
    }
}

/// Whether its latest loss was expected.
fn was_rebooted(row: &LinkRow<'_>) -> bool {
    let losses = row.assessment.and_then(|link| link.losses.as_deref());
    losses.and_then(<[_]>::last).is_some_and(|loss| loss.expected.is_some())
}
