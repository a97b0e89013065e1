//! A fabric that is not there: nodes, cables, counters and their troubles, behind
//! [`transport`](ib_umad)'s trait.
//!
//! A [`net::Net`] is what was built, a [`scenario`] what happens to it, a [`world`] how it is at a
//! moment, and the [`load`] what its traffic does to its ports. Its [`agents`] answer MADs, which
//! the [`wire`] carries.

pub mod agents;
pub mod chance;
pub mod device;
pub mod load;
pub mod net;
pub mod scenario;
pub mod wire;
pub mod world;
