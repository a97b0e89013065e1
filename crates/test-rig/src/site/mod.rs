//! A site as real ones are: mixed generations, hundreds of small imperfections that are no faults, a day in which hosts
//! reboot and tools clear counters; and two bad cables.
//!
//! The size and the counts by kind of node are those of a public report of ibdiagnet on a site with NDR: 6,003 nodes, of
//! these 480 switches with an aggregation node each and 5,043 HCAs, and 15,735 links, with 111,874 warnings and 32
//! errors (`tested.md` in wuchanghui5220/pot, 2025). Everything is drawn from a seed.

mod builder;
mod day;
mod findings;
mod imperfections;
mod net;
mod size;
mod story;
mod watched;

pub use findings::{Finding, Findings};
pub use size::{Planted, Size};
pub use story::Site;
pub use watched::{MOST_FINDINGS, Watched, watch};
