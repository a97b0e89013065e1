//! What is known less well of a moment than it was then, as text.

use super::{Past, PastFabric, TrafficDetail};
use crate::local_clock::LocalClock;
use ib_health::outage::duration;

impl Past {
    /// A sentence for each gap in the recording, and for traffic that is not known sweep by sweep.
    pub fn limits(&self, clock: &LocalClock) -> Vec<String> {
        let of_fabric = |fabric: &PastFabric| {
            let name = &fabric.observation.fabric;
            let gap = fabric.is_gap.then(|| {
                let before = self.at.duration_since(fabric.swept).unwrap_or_default();
                format!(
                    "Fabric {name}: nothing was recorded for {} before this time. Its last sweep ended at {}.",
                    duration(before),
                    clock.format(fabric.swept)
                )
            });
            let traffic = match fabric.traffic {
                TrafficDetail::Sweep => None,
                TrafficDetail::Mean(window) => Some(format!(
                    "Fabric {name}: traffic and waits are the means from {} to {}.",
                    clock.format(window.from),
                    clock.format_time(window.to)
                )),
                TrafficDetail::Unknown => {
                    Some(format!("Fabric {name}: traffic and waits are not recorded."))
                }
            };
            [gap, traffic]
        };
        self.fabrics.iter().flat_map(of_fabric).flatten().collect()
    }
}
