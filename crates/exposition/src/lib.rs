#![doc = include_str!("../README.md")]

mod bits;
mod chunks;
pub mod csv;
mod document;
mod family;
mod fingerprint;
mod huffman;
mod labeled;
mod likeness;
mod line_deflate;
mod part;
mod parts;
mod samples;
pub mod unseen;

pub use chunks::{Chunk, ChunkRenderer, Rendered};
pub use document::{Block, BlockWriter, Document, DocumentBody};
pub use family::{Family, Labels, MetricType};
pub use labeled::Labeled;
pub use line_deflate::deflate_lines;
pub use part::{Families, Part};
pub use parts::{FamilyWriter, Parts, join};
pub use samples::{Samples, WriteSamples};

/// The two formats that a scraper may request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// The entries of an Accept header or the like in lower case, with their weights; malformed ones are left out.
fn weighted(header: &str) -> impl Iterator<Item = (String, f32)> {
    header.split(',').filter_map(|entry| {
        let entry = entry.split_whitespace().collect::<String>().to_ascii_lowercase();
        let (what, weight) = entry.split_once(";q=").unwrap_or((&entry, "1"));
        let weight = weight.split(';').next()?.parse().ok()?;
        (!what.is_empty()).then(|| (what.to_owned(), weight))
    })
}

/// The format with the highest weight in the header Accept; text where none is known.
pub fn format(accept: Option<&str>) -> Format {
    let (mut best, mut best_weight) = (Format::Text, 0.0);
    for (what, weight) in weighted(accept.unwrap_or_default()) {
        let mut parts = what.split(';');
        let media = parts.next().unwrap_or_default();
        let version = parts.find_map(|part| part.strip_prefix("version="));
        let format = match (media, version.map(|version| version.trim_matches('"'))) {
            ("application/openmetrics-text", None | Some("1.0.0" | "0.0.1")) => Format::OpenMetrics,
            ("text/plain" | "text/*", None | Some("0.0.4")) | ("*/*", _) => Format::Text,
            _ => continue,
        };
        if weight > best_weight {
            (best, best_weight) = (format, weight);
        }
    }
    best
}

/// Whether the header Accept-Encoding allows gzip.
pub fn accepts_gzip(accept_encoding: Option<&str>) -> bool {
    let weight_of = |name: &str| {
        weighted(accept_encoding.unwrap_or_default())
            .find(|(what, _)| what == name)
            .map(|(_, weight)| weight)
    };
    weight_of("gzip").or_else(|| weight_of("*")).is_some_and(|weight| weight > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highest_weight_wins_and_unknown_formats_are_ignored() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let newer = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=1.0.0;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        for (accept, format_) in [
            (None, Format::Text),
            (Some(""), Format::Text),
            (Some(prometheus), Format::OpenMetrics),
            (Some(newer), Format::OpenMetrics),
            (Some(browser), Format::Text),
            (Some("application/json"), Format::Text),
            (Some("text/plain;q=0.9, application/openmetrics-text;q=0.5"), Format::Text),
            (Some("text/plain; q=0.2, application/openmetrics-text; q=0.5"), Format::OpenMetrics),
            (Some("application/openmetrics-text;version=9.0.0"), Format::Text),
            (Some("application/openmetrics-text;q=0"), Format::Text),
            (Some("application/openmetrics-text;q=much"), Format::Text),
            (Some(";;;,\u{1f980},/"), Format::Text),
        ] {
            assert_eq!(format(accept), format_, "{accept:?}");
        }
    }

    #[test]
    fn gzip_is_accepted_by_its_weight() {
        for (header, accepts) in [
            (None, false),
            (Some("gzip"), true),
            (Some("deflate, GZIP;q=0.5"), true),
            (Some("gzip;q=0"), false),
            (Some("*"), true),
            (Some("*;q=1, gzip;q=0"), false),
            (Some("identity"), false),
            (Some("gzip; q=1.0"), true),
            (Some("gzip ;q=0, *;q=1"), false),
        ] {
            assert_eq!(accepts_gzip(header), accepts, "{header:?}");
        }
    }
}
