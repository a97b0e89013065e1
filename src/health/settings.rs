//! What a site may want otherwise: limits, and what it works on.

/// How links are judged.
#[derive(Clone, Debug, Default)]
pub struct HealthSettings {}
