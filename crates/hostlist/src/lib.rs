//! Lists of hosts as Slurm writes them: `gpu[001-512,600],login1`.
//!
//! The grammar is that of Slurm's `hostlist.c` (22.05 to 25.11). Hosts are separated by commas, blanks and line ends. A
//! bracket holds numbers and ranges; the text of the first number of a range gives the width of all, so `[001-10]` is
//! 001 to 010. With several brackets the leftmost changes slowest. Text may follow the last one. Order and duplicates
//! are kept. Without brackets nothing is a range: `n1-5` is a name.
//!
//! What Slurm accepts and hardly anyone means is an [error](HostlistError) that says so: a blank inside brackets, which
//! counts into the width there (`[1, 2]` is 1 and 02), and brackets without a partner. Only `slurmctld` knows what
//! `feature{x}` and names of NodeSets stand for. Slurm limits each range, and not their product; here hosts are counted
//! before one of them takes memory.

mod fold;
mod parse;

pub use fold::fold;
pub use parse::{HostlistError, MAX_HOSTS, parse};
