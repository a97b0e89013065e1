//! The latest sweep of a fabric, from which the models are built.

use std::time::{Duration, SystemTime};

use fabric_observation::Observation;
use ib_fabric::hardware::PortHardware;
use ib_fabric::{Fabric, NodeIndex, PortIndex, Snapshot};
use ib_health::{Assessment, PortAssessment};
use ib_mad::moment::Anchor;
use ib_mad::{FrontPanel, Moment};

use crate::model::PortName;

/// A fabric after its first sweep: what the models are built from.
#[derive(Clone, Copy, Debug)]
pub struct FabricView<'a> {
    /// The fabric's name.
    pub name: &'a str,
    /// The latest sweep.
    pub snapshot: &'a Snapshot,
    /// The evaluation of that sweep.
    pub assessment: &'a Assessment,
}

impl<'a> FabricView<'a> {
    /// The view of an observation; `None` before the first sweep.
    pub fn new(observation: &'a Observation) -> Option<Self> {
        let (name, assessment) = (&*observation.fabric, &observation.assessment);
        Some(FabricView { name, snapshot: observation.snapshot.as_ref()?, assessment })
    }

    /// When the latest sweep ended.
    pub fn swept_at(self) -> Option<String> {
        self.time(self.snapshot.ended)
    }

    /// The assessment of a port; `None` if nothing was evaluated.
    pub(crate) fn port(&self, port: PortIndex) -> Option<&'a PortAssessment> {
        self.assessment.ports.get(port)
    }

    /// What the device of a port reports of it.
    pub(crate) fn hardware(&self, port: PortIndex) -> Option<&'a PortHardware> {
        self.snapshot.hardware.port(self.snapshot.fabric.port_key(port))
    }

    /// The temperature of the ASIC of a node in degrees Celsius, while it is up.
    pub fn temperature(&self, node: NodeIndex) -> Option<f64> {
        let snapshot = self.snapshot;
        let hardware = snapshot.hardware.node(snapshot.fabric.node(node).identity.guid)?;
        hardware.temperature.filter(|_| snapshot.is_up(node)).map(|read| read.value)
    }

    /// The name of a port, as models have it.
    pub(crate) fn port_name(self, port: PortIndex) -> PortName {
        port_name(&self.snapshot.fabric, port)
    }

    /// A moment of the latest sweep as RFC 3339.
    pub fn time(&self, moment: Moment) -> Option<String> {
        rfc3339(&self.snapshot.anchor, moment)
    }
}

/// The name of a port, as models have it.
pub(crate) fn port_name(fabric: &Fabric, port: PortIndex) -> PortName {
    let node = fabric.node_of(port);
    PortName {
        guid: node.identity.guid.to_string(),
        node: node.name.clone(),
        host: node.host.clone(),
        node_type: node.identity.kind.label().into(),
        port: fabric.port(port).number,
        front_panel: fabric.front_panel(port).and_then(FrontPanel::label),
    }
}

/// A moment as RFC 3339; `None` if no calendar has it, by a clock that was never set.
pub fn rfc3339(anchor: &Anchor, moment: Moment) -> Option<String> {
    const MAX: Duration = Duration::from_secs(250_000_000_000);
    let wall = anchor.wall_of(moment);
    let is_known = wall.duration_since(SystemTime::UNIX_EPOCH).is_ok_and(|since| since < MAX);
    is_known.then(|| humantime::format_rfc3339_seconds(wall).to_string())
}
