//! What is known of fabrics and of the host at a moment: what monitors publish.

pub mod families;
pub mod host;
mod mastership;
mod observation;
mod recording;
mod site_file;

pub use mastership::Mastership;
pub use observation::{Board, Collector, Observation, Tally};
pub use recording::{Recording, Trouble};
pub use site_file::SiteFileKind;
