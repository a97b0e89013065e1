//! Reads the RDMA devices of a Linux host: InfiniBand, RoCE, iWARP, Omni-Path and the adapters of clouds.
//!
//! - [`reader::HostReader`] reads devices, ports, counters and network interfaces from sysfs and ethtool. A
//!   device that hangs, or a file that cannot be read, does not delay the others.
//! - [`reader::events`] receives the events of devices from libibverbs (feature `verbs`) and the uevents of
//!   the kernel.
//! - [`model`] has the values that were read, and two tables of drivers' own counters: `hw_counters.tsv` and
//!   `ethernet.tsv`.
//!
//! It needs no MADs, and no privileges but to read sysfs.
//!
//! ```
//! use std::time::Duration;
//!
//! use ib_mad::{Counter, clock::Clock};
//! use rdma_host::reader::{DeviceFilter, HostReader, ReadOptions};
//!
//! // A sysfs with one device; on a host it is /sys.
//! let sysfs = tempfile::tempdir()?;
//! let port = sysfs.path().join("class/infiniband/mlx5_0/ports/1");
//! std::fs::create_dir_all(port.join("counters"))?;
//! std::fs::write(port.join("state"), "4: ACTIVE\n")?;
//! std::fs::write(port.join("counters/symbol_error"), "7\n")?;
//!
//! let options =
//!     ReadOptions { error_backoff: Duration::from_secs(300), ethtool: true, cm: false };
//! let filter = DeviceFilter::new(Some("mlx5_.*"), None).expect("a regular expression");
//! let mut reader = HostReader::new(sysfs.path().to_owned(), filter, options, Clock::start());
//!
//! let snapshot = reader.read();
//! let device = &snapshot.devices[0];
//! assert_eq!(&*device.name, "mlx5_0");
//! assert_eq!(device.ports[0].state, Some(4));
//! assert_eq!(device.ports[0].reading.get(Counter::SymbolErrors), Some(7));
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod model;
pub mod reader;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
