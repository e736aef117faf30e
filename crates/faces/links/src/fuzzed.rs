//! The parts that fuzz targets reach: the parsers of requests' bodies.

use crate::body::{read_change, read_create};
use crate::view::{Code, MAX_TAGS};

/// Parses a body as a link to create, now and at the end of time, and as a change; tells which it
/// is.
///
/// # Panics
/// If a link that was read breaks a rule of its own.
#[must_use]
pub fn body(body: &[u8]) -> [bool; 2] {
    let create = read_create(body);
    if let Ok(request) = &create {
        for now_us in [0, u64::MAX / 2] {
            if let Ok(link) = request.at(now_us) {
                assert!(link.tags.len() <= MAX_TAGS);
                assert!(link.expires_at_us.is_none_or(|moment_us| moment_us > now_us));
            }
        }
    }
    let change = Code::parse(b"a").map(|code| read_change(body, code));
    [create.is_ok(), change.is_some_and(|change| change.is_ok())]
}
