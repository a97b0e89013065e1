//! The RDMA devices of a host, from sysfs, ethtool and the events of the kernel.

pub mod model;
pub mod reader;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
