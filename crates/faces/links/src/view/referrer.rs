//! The source of a click: only the host of its `Referer`.

use std::fmt;
use std::ops::Deref;

/// Maximum length of a referring host in bytes; a longer one is ignored.
pub const MAX_REFERRER_BYTES: usize = 100;

/// A referring host in lower case, stored inline.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct ReferrerHost {
    /// The host, then padding.
    bytes: [u8; MAX_REFERRER_BYTES],
    len: u8,
}

/// The host of a `Referer` header's value, without its port and trailing dot; `www.` stays. `None`
/// if the value is not an http(s) URL, contains user information, or has an implausible or overlong
/// host. Examines a bounded part of the value.
pub fn host(referer: &[u8]) -> Option<ReferrerHost> {
    let rest = strip(referer, b"http")?;
    let rest = strip(rest, b"s").unwrap_or(rest);
    let rest = strip(rest, b"://")?;
    // Enough for the host, a dot, a colon, a port of five digits, and the delimiter after it.
    let near = &rest[..rest.len().min(MAX_REFERRER_BYTES + 8)];
    let end = near.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    let authority = match end {
        Some(end) => &near[..end],
        None if near.len() == rest.len() => near,
        None => return None,
    };
    let host = without_port(authority)?;
    let host = host.strip_suffix(b".").unwrap_or(host);
    if host.len() > MAX_REFERRER_BYTES || !is_plausible(host) {
        return None;
    }
    let mut bytes = [0; MAX_REFERRER_BYTES];
    bytes[..host.len()].copy_from_slice(host);
    bytes.make_ascii_lowercase();
    Some(ReferrerHost { bytes, len: host.len() as u8 })
}

/// The text after `prefix`, ignoring case.
fn strip<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// The host of `host` or `host:port`; `None` if the port is not a number.
fn without_port(authority: &[u8]) -> Option<&[u8]> {
    let from = if authority.first() == Some(&b'[') {
        authority.iter().position(|&byte| byte == b']')?
    } else {
        0
    };
    match authority[from..].iter().position(|&byte| byte == b':') {
        Some(colon) => {
            let port = &authority[from + colon + 1..];
            (port.len() <= 5 && port.iter().all(u8::is_ascii_digit))
                .then_some(&authority[..from + colon])
        }
        None => Some(authority),
    }
}

/// A name without empty parts, or a bracketed text that could be an IPv6 address. Browsers send
/// names outside ASCII in their xn-- form.
fn is_plausible(host: &[u8]) -> bool {
    if let Some(address) = host.strip_prefix(b"[") {
        let text = address.strip_suffix(b"]").and_then(|text| str::from_utf8(text).ok());
        return text.is_some_and(|text| text.parse::<core::net::Ipv6Addr>().is_ok());
    }
    let mut before = b'.';
    for &byte in host {
        let fits = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if !fits && (byte != b'.' || before == b'.') {
            return false;
        }
        before = byte;
    }
    before != b'.'
}

impl Deref for ReferrerHost {
    type Target = str;

    fn deref(&self) -> &str {
        // `bytes` holds only ASCII, so the fallback is never used.
        str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl fmt::Display for ReferrerHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for ReferrerHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(referer: &str) -> Option<String> {
        host(referer.as_bytes()).map(|host| host.to_string())
    }

    #[test]
    fn the_host_is_kept_and_nothing_else() {
        for (referer, host) in [
            ("https://www.Example.com/path?secret=1#f", "www.example.com"),
            ("http://example.com", "example.com"),
            ("HTTPS://EXAMPLE.COM.:8443/", "example.com"),
            ("http://localhost:8080/", "localhost"),
            ("http://h:/", "h"),
            ("http://h?q", "h"),
            ("http://h#f", "h"),
            ("http://[::1]:80/", "[::1]"),
            ("http://[2001:DB8::1]", "[2001:db8::1]"),
            ("https://xn--bcher-kva.de/", "xn--bcher-kva.de"),
        ] {
            assert_eq!(found(referer).as_deref(), Some(host), "{referer}");
        }
    }

    #[test]
    fn what_is_no_web_address_has_no_host() {
        for referer in [
            "",
            "http",
            "http:",
            "http://",
            "http:///x",
            "https",
            "httpss://h/",
            "about:blank",
            "example.com",
            "android-app://com.google.android.gm/",
            "http://user@h/",
            "http://a b/",
            "http://a..b/",
            "http://.a/",
            "http://h../",
            "http://h:port/",
            "http://h:123456/",
            "http://[::1",
            "http://[x]/",
            "http://b\u{fc}cher.de/",
            "http://%61/",
            "http://\"quoted\"/",
        ] {
            assert_eq!(found(referer), None, "{referer}");
        }
        assert_eq!(host(b"http://h\xff/"), None);
    }

    #[test]
    fn a_host_of_101_bytes_is_too_long() {
        let of = |bytes: usize| "a".repeat(bytes);
        assert_eq!(found(&format!("http://{}", of(100))), Some(of(100)));
        assert_eq!(found(&format!("http://{}.:65535/x", of(100))), Some(of(100)));
        assert_eq!(found(&format!("http://{}/", of(101))), None);
        assert_eq!(found(&format!("http://{}", of(1 << 20))), None);
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_host_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..160)) {
            let mut referer = b"http://".to_vec();
            referer.extend(&bytes);
            for value in [&referer[..], &bytes[..]] {
                if let Some(host) = host(value) {
                    prop_assert!(!host.is_empty() && host.len() <= MAX_REFERRER_BYTES);
                    prop_assert!(host.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase()));
                }
            }
        }
    }
}
