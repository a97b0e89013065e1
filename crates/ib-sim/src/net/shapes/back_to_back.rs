//! Two hosts without a switch.

use super::{Maker, Model, Net, ShapeError};
use ib_mad::node::NodeKind;

/// Two hosts, `host-0` and `host-1`, joined by a cable.
#[derive(Clone, Debug, PartialEq)]
pub struct BackToBack {
    /// Their adapters.
    pub hca: &'static Model,
}

impl BackToBack {
    pub(super) const HOSTS: u32 = 2;

    /// Builds it.
    pub fn build(&self) -> Result<Net, ShapeError> {
        let no_switch = Model::of_device(NodeKind::Switch, 0);
        let mut maker = Maker::new(no_switch, self.hca)?;
        let (a, b) = (maker.host(0, 0, 1, 1)?, maker.host(1, 0, 1, 1)?);
        maker.link(a, b)?;
        Ok(maker.builder.finish())
    }
}
