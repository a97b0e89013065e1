//! Responses for tests.

use crate::mad::{DATA, LEN, Mad};

/// A response with these bytes at these offsets of its data.
pub(crate) fn response(fields: &[(usize, &[u8])]) -> Mad {
    let mut mad = Mad([0; LEN]);
    for (offset, bytes) in fields {
        mad.0[DATA + offset..DATA + offset + bytes.len()].copy_from_slice(bytes);
    }
    mad
}
