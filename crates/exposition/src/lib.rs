//! The text formats of Prometheus and OpenMetrics, for expositions of millions of samples.
//!
//! A [`Family`] is a constant of a table; [`Parts`] renders families with the [`Samples`] of
//! [`Labelled`] things, whose labels are escaped once and copied for each family. The lines of samples are
//! the same in both formats, so they are rendered once, and may be kept compressed: [`Block`]s are put
//! together to a [`Document`], which is served as gzip without compressing anything again.
//!
//! ```
//! use exposition::{Block, Document, Family, Format, Labelled, Parts, Samples, counter, gauge};
//!
//! struct Disk {
//!     name: &'static str,
//!     used: u64,
//!     reads: Option<u64>,
//! }
//!
//! const FAMILIES: &[(Family, fn(&Disk, &mut Samples<'_>))] = &[
//!     gauge("disk_used_bytes", &["disk"], "Bytes in use.", |disk, samples| {
//!         samples.value(disk.used);
//!     }),
//!     counter("disk_reads", &["disk"], "Reads.", |disk, samples| {
//!         samples.value_if_known(disk.reads);
//!     }),
//! ];
//!
//! let mut disks = Labelled::default();
//! for disk in [
//!     Disk { name: "sda", used: 5, reads: Some(7) },
//!     Disk { name: "s\"b", used: 6, reads: None },
//! ] {
//!     let name = disk.name;
//!     disks.push(disk, |labels| {
//!         labels.push("disk", name);
//!     });
//! }
//! let mut parts = Parts::<Vec<u8>>::default();
//! parts.each(FAMILIES, &disks);
//!
//! let mut text = Vec::new();
//! for part in parts.finish() {
//!     part.write(&mut text, Format::OpenMetrics);
//! }
//! text.extend_from_slice(b"# EOF\n");
//! assert_eq!(
//!     String::from_utf8_lossy(&text),
//!     r##"# HELP disk_used_bytes Bytes in use.
//! ## TYPE disk_used_bytes gauge
//! ## UNIT disk_used_bytes bytes
//! disk_used_bytes{disk="sda"} 5
//! disk_used_bytes{disk="s\"b"} 6
//! ## HELP disk_reads Reads.
//! ## TYPE disk_reads counter
//! disk_reads_total{disk="sda"} 7
//! ## EOF
//! "##
//! );
//!
//! let mut document = Document::default();
//! document.push(&Block::deflate(&text));
//! assert_eq!(document.plain_len(), text.len() as u64);
//! ```

mod deflated;
mod document;
mod family;
mod negotiate;
mod parts;
mod samples;

pub use deflated::{Block, BlockWriter};
pub use document::{Document, Packed, Unpacked};
pub use family::{Family, Header, Labels, MetricType, counter, gauge};
pub use negotiate::{accepts_gzip, format};
pub use parts::{FamilyWriter, Output, Part, Parts, join};
pub use samples::{Labelled, Samples, Value, WriteSamples};

/// The two formats that a scraper may request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus's text format 0.0.4.
    Text,
}

impl Format {
    /// The header Content-Type.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}
