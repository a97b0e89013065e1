//! Which ports were roots and victims of congestion in a past sweep.

use ib_fabric::Snapshot;
use ib_health::Assessment;
use ib_health::congestion::Congestion;

/// Finds them from the waits of that sweep alone: since when they waited is not known.
pub(super) fn find(snapshot: &Snapshot, assessment: &mut Assessment) {
    let ports = &assessment.ports;
    let report = Congestion::default().update(
        &snapshot.fabric,
        |port| ports[port].wait.map(|wait| wait.share),
        |port| ports[port].tx.map(|tx| tx.used),
        snapshot.ended,
    );
    assessment.regions = report.regions;
    for (port, role) in report.roles {
        assessment.ports[port].role = Some(role);
    }
}
