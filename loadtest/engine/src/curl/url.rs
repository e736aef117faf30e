//! URLs taken apart.

use crate::engine::Target;
use crate::invalid::Invalid;

/// A URL taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Url {
    /// Scheme, host and port, e.g. `https://shop.example:8443`.
    pub(super) origin: String,
    /// `user:password`, if it is there.
    pub(super) user: Option<String>,
    /// Path and query, without the fragment; safe to send.
    pub(super) path: String,
}

/// Takes a URL apart; one without a scheme is `http`, as `curl` has it.
pub(super) fn parse(text: &str) -> Result<Url, Invalid> {
    let text = text.trim();
    let authority = text.find("://").map_or(0, |at| at + 3);
    let length = text[authority..].find(['/', '?', '#']).unwrap_or(text.len() - authority);
    let (front, path) = text.split_at(authority + length);
    let mut target = Target::parse(front).map_err(|error| error.0)?;
    target.host.make_ascii_lowercase();
    let user = target.credentials.as_deref().map(decode);
    Ok(Url { origin: target.origin(), user, path: safe_path(path) })
}

/// Path and query with everything encoded that cannot be sent, and no fragment.
pub(super) fn safe_path(path: &str) -> String {
    let path = path.split('#').next().unwrap_or_default();
    let mut safe = String::new();
    if !path.starts_with('/') {
        safe.push('/');
    }
    for c in path.chars() {
        if c.is_ascii_graphic() && !"\"<>\\^`{|}".contains(c) {
            safe.push(c);
        } else {
            let mut bytes = [0; 4];
            crate::scenario::template::percent(c.encode_utf8(&mut bytes), &mut safe, false);
        }
    }
    safe
}

/// Percent-decodes; what is not UTF-8 then is left as it was.
pub(super) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let value = digits
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        decoded.push(value.unwrap_or(bytes[at]));
        at += if value.is_some() { 3 } else { 1 };
    }
    String::from_utf8(decoded).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_parts_are_found_and_made_safe() {
        let url = parse("HTTPS://me:p%40ss@Shop.example:8443/a b/{id}?q=ü#top").unwrap();
        assert_eq!(url.origin, "https://shop.example:8443");
        assert_eq!(url.user.as_deref(), Some("me:p@ss"));
        assert_eq!(url.path, "/a%20b/%7Bid%7D?q=%C3%BC");
        assert_eq!(parse("localhost:4000").unwrap().path, "/");
        assert_eq!(parse("http://h?x=1").unwrap().path, "/?x=1");
        assert_eq!(parse("http://[::1]:81/").unwrap().origin, "http://[::1]:81");
        for bad in ["", "ftp://h/", "http://", "/path", "http://a b/"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in ".*") {
            if let Ok(url) = parse(&text) {
                prop_assert!(crate::scenario::parts::path(&url.path).is_ok(), "{}", url.path);
            }
            decode(&text);
        }
    }
}
