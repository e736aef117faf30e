//! The authority of a URL and the header `Host`.

use crate::hostname;
use wellspring_types::url::{self, Authority};

/// Whether a text is a plausible ASCII host, with or without a port.
pub fn is_authority(text: &str) -> bool {
    let Authority { userinfo, host, port } = Authority::of(text);
    text.is_ascii()
        && userinfo.is_none()
        && port.is_none_or(|digits| url::port(digits).is_some())
        && hostname::check(host).is_ok()
}
