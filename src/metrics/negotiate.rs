//! What a client says that it takes, and which of what we have is the best for it.

use mime::Mime;

use crate::metrics::Format;

/// One entry of an Accept header or the like, with its weight; entries that cannot be read are
/// left out.
fn weighted(header: &str) -> impl Iterator<Item = (String, f32)> {
    header.split(',').filter_map(|entry| {
        let entry: String = entry.split_whitespace().collect();
        let (what, weight) = entry.split_once(";q=").unwrap_or((&entry, "1"));
        let weight = weight.split(';').next()?.parse().ok()?;
        (!what.is_empty()).then(|| (what.to_owned(), weight))
    })
}

/// The format that the client likes best; 0.0.4 where it says nothing that we know.
pub fn format(accept: Option<&str>) -> Format {
    let mut best = (Format::Text, 0.0);
    for (what, weight) in weighted(accept.unwrap_or_default()) {
        let Ok(media) = what.parse::<Mime>() else { continue };
        let version = media.get_param("version").map(|version| version.as_str());
        let format = match (media.type_().as_str(), media.subtype().as_str(), version) {
            ("application", "openmetrics-text", None | Some("1.0.0" | "0.0.1")) => {
                Format::OpenMetrics
            }
            ("text", "plain" | "*", None | Some("0.0.4")) | ("*", "*", _) => Format::Text,
            _ => continue,
        };
        if weight > best.1 {
            best = (format, weight);
        }
    }
    best.0
}

/// Whether the client takes gzip.
pub fn takes_gzip(accept_encoding: Option<&str>) -> bool {
    let weight_of = |name: &str| {
        weighted(accept_encoding.unwrap_or_default())
            .find(|(what, _)| what.eq_ignore_ascii_case(name))
            .map(|(_, weight)| weight)
    };
    weight_of("gzip").or_else(|| weight_of("*")).is_some_and(|weight| weight > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_weight_wins_and_what_is_not_known_is_text() {
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
    fn gzip_is_taken_where_it_is_said() {
        for (header, takes) in [
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
            assert_eq!(takes_gzip(header), takes, "{header:?}");
        }
    }
}
