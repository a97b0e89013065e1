//! Texts that are built for one request, and may be large: the links of 60,000 ports are 43 MB as JSON. They are
//! compressed while they are written, and unpacked while they are sent. So many clients that read slowly occupy little
//! memory, and the state that the text is made from is not kept until they have read it.

use std::io;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use exposition::{BlockWriter, Document, DocumentBody};

use super::request_permits::Held;

/// Shorter texts are kept as they are: a compressor takes 300 KB.
const PLAIN: usize = 64 << 10;
/// What unpacking takes, besides the compressed text.
const UNPACKING: usize = 192 << 10;

/// A text to which more can be written.
#[derive(Debug, Default)]
pub struct PackedText {
    plain: Vec<u8>,
    packed: Option<BlockWriter>,
}

impl PackedText {
    /// Adds a piece.
    pub fn push(&mut self, piece: &[u8]) {
        if self.packed.is_none() && self.plain.len() + piece.len() <= PLAIN {
            self.plain.extend_from_slice(piece);
            return;
        }
        let packed = self.packed.get_or_insert_default();
        packed.buffer().append(&mut self.plain);
        packed.buffer().extend_from_slice(piece);
        packed.settle();
    }

    /// The response with this text.
    pub fn respond(self, content_type: &'static str) -> Response {
        let mut response = match self.packed {
            None => self.plain.into_response(),
            Some(mut packed) => {
                let mut document = Document::default();
                let held = packed.finish().map_or(0, |block| {
                    document.push(&block);
                    block.bytes.len()
                });
                let mut response = Body::new(DocumentBody::plain(document)).into_response();
                response.extensions_mut().insert(Held(held + UNPACKING));
                response
            }
        };
        let content_type = HeaderValue::from_static(content_type);
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
        response
    }
}

impl io::Write for PackedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;

    use super::*;

    #[tokio::test]
    async fn text_is_sent_as_it_was_written() {
        for lines in [0, 10, 5_000, 100_000] {
            let mut text = PackedText::default();
            let mut expected = String::new();
            for line in 0..lines {
                let line = format!("{{\"line\": {line}}}\n");
                text.push(line.as_bytes());
                expected += &line;
            }
            let response = text.respond("text/plain");
            // Clients can tell a response that was cut.
            assert_eq!(response.body().size_hint().exact(), Some(expected.len() as u64));
            let held = response.extensions().get().map_or(expected.len(), |Held(bytes)| *bytes);
            assert!(held <= expected.len().max(PLAIN) / 2 + UNPACKING, "{lines}: {held}");
            let sent = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
            assert!(sent == expected, "{lines} lines");
        }
    }
}
