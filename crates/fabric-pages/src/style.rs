//! The style sheet.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;
use fabric_api::address;

const CSS: &str = concat!(
    include_str!("palette.css"),
    include_str!("style.css"),
    include_str!("detail.css"),
    include_str!("topology.css"),
    include_str!("picture.css"),
);

/// What a picture needs that is a file of its own.
pub(super) const PICTURE_CSS: &str =
    concat!(include_str!("palette.css"), include_str!("picture.css"));

pub(super) async fn get() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css"), (header::CACHE_CONTROL, "max-age=3600")], CSS)
}

/// The address of the style sheet with its checksum: after an update browsers do not use a cached one.
pub(super) static STYLE_ADDRESS: LazyLock<String> =
    LazyLock::new(|| format!("{}?{:08x}", address::STYLE, crc32fast::hash(CSS.as_bytes())));
