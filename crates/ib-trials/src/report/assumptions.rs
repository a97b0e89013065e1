//! The part of the report on what was simulated, and what counts as false.

use std::fmt::Write as _;

use super::percent;
use crate::rates::{MARGINAL, RATES};

pub(super) fn definitions(page: &mut String) {
    page.push_str(
        "## What counts as a false verdict\n\n\
         A verdict is right while its reason holds, and for the [documented](verdicts-and-alerts.md) time after it: for \
         bit errors the window of 125 minutes (at most 150) and 5 minutes of hold time, for a flap one hour, for the \
         third flap 12 hours. In particular:\n\n\
         - `bad` for bit errors is right from the limit on, `watch` from half of the limit on. A link at 0.9 of its limit \
         that is called bad is a false alarm.\n\
         - A link down counts as a flap, and `watch` is right, if no node was reset and the maintenance file does not \
         announce it. This includes re-seated cables and driver reloads.\n\
         - `watch` is right while a link cannot carry traffic although both nodes are on, `bad` after 5 minutes without \
         trained lanes.\n\
         - All other `watch` and `bad` are false: after reboots, clears, bursts, lost MADs, congestion. Each time that a \
         verdict gets worse counts once.\n\n\
         What is simulated, and what is not:\n\n\
         - A fabric is a cell of 4 switches, 28 hosts and 36 cables, from QDR to NDR, with counters as wide as the \
         devices have them. XDR is missing.\n\
         - The discovery after a change is one sweep later. Port events of the exporter's host are not simulated.\n\
         - A restart of the exporter loses the state of the evaluator, as without a history, but not the topology.\n\
         - Except in bursts, errors are independent of each other.\n\n",
    );
}

pub(super) fn rates(page: &mut String) {
    page.push_str(
        "## Simulated events\n\n| event | events per day | per | what | source |\n|---|---|---|---|---|\n",
    );
    for rate in RATES {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} |",
            rate.event.label(),
            plain(rate.per_day),
            rate.per.label(),
            rate.event.help(),
            rate.source
        );
    }
    let marginal: Vec<String> =
        MARGINAL.iter().map(|(times, share)| format!("{times} in {}", percent(*share))).collect();
    let _ = writeln!(
        page,
        "\nEach direction of a cable has a constant bit error ratio. As a multiple of the limit it is {} of the \
         directions, and between 1e-4 and 0.03 in all others. One reading in 10,000 is lost. Tools \
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
