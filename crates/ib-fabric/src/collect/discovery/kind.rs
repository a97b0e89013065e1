//! Whether the fabric is one of NVLink, if it is [asked for](Discovery::with_kind).
//!
//! All switches of an NVLink fabric announce its management (see [`SmpCapabilities::is_nvlink`]). So a few are asked.
//! The links of an NVLink fabric are not judged: so one is recognized only if no switch contradicts, and it is asked
//! again in each discovery, while an InfiniBand fabric stays one. Ports of NVLink switches have front-panel names
//! (`acp21`, `sw1p2s3` in NVOS), so that they announce HierarchyInfo, too.

use ib_mad::port_info::PortInfo;
use ib_mad::vendor_smp::SmpCapabilities;
use ib_mad::{DirectedRoute, device};
use ib_umad::RequestError;

use super::draft::DiscoveryRequest;
use super::kind_survey::KindSurvey;
use super::state::Discovery;
use crate::backoff::Backoff;
use crate::collect::is_unsupported;
use crate::fabric_kind::FabricKind;
use crate::topology::Fabric;

/// Switches that a discovery asks at most: some may not respond.
const MAX_ASKED: usize = 8;

impl Discovery {
    /// The same discovery, which asks switches for the kind of the fabric, unless it is known to be InfiniBand.
    #[must_use]
    pub fn with_kind(mut self, previous: Option<&Fabric>) -> Self {
        let is_infiniband = previous.is_some_and(|it| it.kind == Some(FabricKind::InfiniBand));
        let backoff = previous.map_or_else(Backoff::default, |it| it.kind_backoff).at_discovery();
        self.survey = KindSurvey {
            is_wanted: true,
            allowed: if backoff.is_due() && !is_infiniband { MAX_ASKED } else { 0 },
            backoff,
            is_infiniband,
            ..KindSurvey::default()
        };
        self
    }

    /// Port 0 of a switch has responded. One that does not announce HierarchyInfo is too old for the attribute, and may
    /// drop the request.
    pub(super) fn ask_kind(&mut self, route: DirectedRoute, node: usize, info: &PortInfo) {
        let of_switch = self.nodes[node].info;
        let survey = &mut self.survey;
        if device::is_infiniband_switch(of_switch.vendor_id, of_switch.device_id) {
            survey.is_infiniband |= survey.is_wanted;
        } else if survey.asked < survey.allowed
            && device::is_mellanox(of_switch.vendor_id)
            && info.has_hierarchy_info()
        {
            survey.asked += 1;
            self.query(route, DiscoveryRequest::Capabilities { node });
        }
    }

    /// A switch has told what it supports.
    pub(super) fn handle_capabilities(&mut self, capabilities: SmpCapabilities) {
        if let Some(is_nvlink) = capabilities.is_nvlink() {
            self.survey.on_capabilities(is_nvlink);
        }
    }

    /// A switch that does not know the attribute is none of NVLink. Nothing is known of one that does not respond, or is
    /// busy.
    pub(super) fn handle_no_capabilities(&mut self, failure: RequestError) {
        if is_unsupported(failure) {
            self.survey.on_capabilities(false);
        }
    }
}
