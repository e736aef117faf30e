//! The authority of a URL and the header `Host`.

use wellspring_views::links::hostname;

/// Whether a text is a plausible ASCII host, with or without a port.
pub fn is_authority(text: &str) -> bool {
    // The colons between brackets belong to an address.
    let end = match text.find(']') {
        Some(bracket) => bracket + 1,
        None => text.find(':').unwrap_or(text.len()),
    };
    let (host, rest) = text.split_at(end);
    let is_port = |port: &str| {
        port.bytes().all(|byte| byte.is_ascii_digit())
            && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    let port_fits = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
    text.is_ascii() && port_fits && hostname::check(host).is_ok()
}
