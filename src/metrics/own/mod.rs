//! What the process itself counts, in a registry of the Prometheus client library: MADs, the recorder, renderings, HTTP
//! requests, and the process as procfs has it. A scrape has its text as one more part, beside the compressed metrics
//! of the fabrics.

mod collectors;
mod families;
mod process;
mod registry;
mod text;

use exposition::Family;

pub use registry::OwnMetrics;

/// The families.
pub fn families() -> impl Iterator<Item = Family> {
    families::ALL.iter().copied().cloned()
}
