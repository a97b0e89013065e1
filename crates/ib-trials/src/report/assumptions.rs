//! The part of the report on what was simulated, and what counts as false.

use std::fmt::Write as _;

use super::percent;
use crate::rates::{Event, MARGINAL, Per, RATES};

pub(super) fn definitions(page: &mut String) {
    page.push_str(
        "## What is false\n\n\
         A verdict is right while its reason holds, and as long after it as [documented](verdicts-and-alerts.md): \
         windows of 125 minutes (150 at most) and the 5 minutes in which a verdict is held for bit errors, one hour \
         after a flap, 12 hours after the third. In particular:\n\n\
         - `bad` for bit errors is right from the limit on, `watch` from half of the limit on. A link at 0.9 of its limit \
         that is called bad is a false alarm.\n\
         - A loss counts as a flap if no node was reset and the maintenance file does not announce it: also a re-seated \
         cable and a driver reload. `watch` is right then.\n\
         - `watch` is right while a link carries no traffic although both nodes are on, `bad` after 5 minutes without \
         trained lanes.\n\
         - All other `watch` and `bad` are false: after reboots, clears, bursts, lost MADs, congestion. Each time that a \
         verdict gets worse counts once.\n\n\
         What is simulated and what not:\n\n\
         - A fabric is a cell of 4 switches, 28 hosts and 36 cables, from QDR to NDR, with counters as wide as the \
         devices have them. XDR is missing.\n\
         - A discovery follows one sweep after a change. Port events of the exporter's host are not simulated.\n\
         - After a restart the evaluator is new; the fabric is known as before.\n\
         - Errors are independent of each other, but for bursts.\n\n",
    );
}

pub(super) fn rates(page: &mut String) {
    page.push_str(
        "## What happens\n\n| event | per day | of each | what | source |\n|---|---|---|---|---|\n",
    );
    for rate in RATES {
        let unit = match rate.per {
            Per::Fabric => "fabric of 36 cables",
            other => other.unit().trim_end_matches("-day"),
        };
        let _ = writeln!(
            page,
            "| {} | {} | {unit} | {} | {} |",
            rate.event.label(),
            plain(rate.per_day),
            Event::help(rate.event),
            rate.source
        );
    }
    let marginal: Vec<String> =
        MARGINAL.iter().map(|(times, share)| format!("{} at {times}", percent(*share))).collect();
    let _ = writeln!(
        page,
        "\nOf each direction {} times the limit; all others have 1e-4 to 0.03 of it. One reading in 10,000 is lost. Tools \
         clear all counters each minute in 1% of the fabrics, each hour in 2%, each day in 5%. In a tenth of the HDR and NDR \
         fabrics hosts run at two lanes by design. All these are assumptions.",
        marginal.join(", ")
    );
}

/// A rate with as many digits as it needs.
fn plain(value: f64) -> String {
    if value < 0.001 {
        format!("{value:.1e}")
    } else {
        format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}
