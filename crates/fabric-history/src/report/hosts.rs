//! The hosts that a report is limited to, and the answer to "is it the fabric?".

use serde::Serialize;

use crate::host_scope::{HostScope, Relation};
use crate::incidents::Incidents;
use crate::model::{Coverage, ErrorDelta};
use display_text::{grouped, plural};

use super::finding::Finding;

/// The hosts of a report.
#[derive(Clone, Debug, Serialize)]
pub struct ReportedHosts {
    /// Their names in the history.
    pub hosts: Vec<String>,
    /// Names that are not in the history.
    pub unknown: Vec<String>,
    /// Whether the fabric shows nothing for them: no incident, no link error and no discard at their cables, or at
    /// cables that the traffic between them may have crossed.
    pub is_clean: bool,
    /// What was looked at, and what it shows, in sentences.
    pub sentences: Vec<String>,
}

impl ReportedHosts {
    /// What a report says of the hosts of a scope. All that it is given is limited to them already.
    pub(super) fn new(
        scope: HostScope,
        findings: &[Finding],
        others: &Incidents,
        moved: &[ErrorDelta],
        cover: &Coverage,
    ) -> Self {
        let incidents = findings.iter().map(|finding| &finding.incident).chain(&others.incidents);
        let relations = incidents.filter_map(|incident| scope.relation(incident));
        let sweeps: usize = (scope.fabrics())
            .filter_map(|fabric| cover.fabrics.get(fabric))
            .map(|cover| cover.sweeps)
            .sum();
        let is_clean = sweeps > 0
            && others.more == 0
            && !relations.into_iter().any(|relation| relation != Relation::Fabric)
            && !moved.iter().any(|moved| moved.unexplained() > 0);
        let mut sentences = scope.sentences();
        if is_clean {
            sentences.push(
                "The fabric shows nothing for these hosts in this period: no incident, no link error \
                 and no discard at their cables, or between them."
                    .to_owned(),
            );
        }
        sentences.extend(scope.fabrics().filter_map(|fabric| measured(fabric, cover)));
        let hosts = scope.hosts.into_iter().collect();
        ReportedHosts { hosts, unknown: scope.unknown, is_clean, sentences }
    }
}

/// How often a fabric was measured.
fn measured(fabric: &str, cover: &Coverage) -> Option<String> {
    let cover = cover.fabrics.get(fabric)?;
    let gaps = match cover.gaps.len() {
        0 => "without a gap".to_owned(),
        count => format!("with {} (see Missing data)", plural(count, "gap")),
    };
    let (sweeps, noun) =
        (grouped(cover.sweeps), if cover.sweeps == 1 { "sweep" } else { "sweeps" });
    Some(format!(
        "Measured: {sweeps} {noun} of fabric {fabric}, one every {} s, {gaps}.",
        cover.interval
    ))
}
