//! Two hosts with a cable.

use serde::Deserialize;

use super::builder::{ShapeBuilder, ShapeError};
use crate::net::topology::Net;

/// Two hosts, `host-0` and `host-1`, with a cable.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BackToBack {
    /// The model of the adapters.
    pub hca: String,
}

impl Default for BackToBack {
    fn default() -> Self {
        BackToBack { hca: "connectx-7".into() }
    }
}

impl BackToBack {
    /// Builds it.
    pub fn build(&self) -> Result<Net, ShapeError> {
        let mut builder = ShapeBuilder::new("any-switch", &self.hca)?;
        let (a, b) = (builder.host(0, 0, 1, 1)?, builder.host(1, 0, 1, 1)?);
        builder.connect(a, b)?;
        Ok(builder.net.net)
    }
}
