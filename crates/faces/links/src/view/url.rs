//! The URL a link leads to: what is allowed, and how it stands in a `Location`.
//!
//! The text is kept as it was written. On its way into a header the scheme gets lower case, a host
//! outside ASCII the form that browsers look up, and every other byte outside visible ASCII is
//! percent-encoded. So are `"`, `<`, `>`, `\`, `^`, `` ` ``, `{`, `|` and `}`, which RFC 3986 gives
//! no place in a URL.

use std::fmt;
use wellspring_host::hostname::{self, HostFault};
use wellspring_types::url::{Authority, UrlParts, UrlSyntaxFault};

/// Most characters of a target.
pub const MAX_URL_CHARS: usize = 2048;

/// A URL that a link may lead to.
#[derive(Debug, Copy, Clone, Eq, PartialEq)]
pub struct Target<'a> {
    text: &'a str,
    host: &'a str,
    port: u16,
}

/// Why a text is no URL that a link may lead to.
#[derive(Debug, Copy, Clone, Eq, PartialEq)]
pub enum UrlFault {
    /// There is no text.
    Empty,
    /// More than [`MAX_URL_CHARS`].
    TooLong {
        /// How many characters it has.
        chars: usize,
    },
    /// White space, a control character or a backslash.
    Character {
        /// The first such character.
        found: char,
        /// Its place, counted in characters from 1.
        place: usize,
    },
    /// It does not begin with `http:` or `https:`.
    Scheme,
    /// No `//` behind the scheme.
    Slashes,
    /// A name or password before the host.
    Userinfo,
    /// The host is missing or implausible.
    Host(HostFault),
    /// The port is not a number from 1 to 65535.
    Port,
}

impl fmt::Display for UrlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UrlFault::Empty => write!(f, "is empty; write an http:// or https:// URL"),
            UrlFault::TooLong { chars } => {
                write!(f, "has {chars} characters; at most {MAX_URL_CHARS} are allowed")
            }
            UrlFault::Character { found: '\\', place } => {
                write!(f, "has a backslash as character {place}; write / or its escape %5C")
            }
            UrlFault::Character { found: ' ', place } => {
                write!(f, "has a space as character {place}; leave it out or write %20")
            }
            UrlFault::Character { found, place } => write!(
                f,
                "has U+{:04X}, white space or a control character, as character {place}; leave it out or percent-encode it",
                u32::from(*found)
            ),
            UrlFault::Scheme => write!(f, "must begin with http:// or https://"),
            UrlFault::Slashes => write!(f, "must have // behind http: or https:"),
            UrlFault::Userinfo => write!(
                f,
                "has a user name or password before its host (@), which hides where it leads; leave that out"
            ),
            UrlFault::Host(fault) => fault.fmt(f),
            UrlFault::Port => {
                write!(
                    f,
                    "has a port that is no number from 1 to 65535; mend it or leave it and its colon out"
                )
            }
        }
    }
}

impl std::error::Error for UrlFault {}

/// Judges a target as a client wrote it.
///
/// # Errors
/// [`UrlFault`]; length is judged before characters, and both before the parts of the URL.
pub fn check(text: &str) -> Result<Target<'_>, UrlFault> {
    let target = read(text)?;
    hostname::check(target.host).map_err(UrlFault::Host)?;
    target.has_port()
}

/// Reads the target of an event, which an earlier version may have taken.
///
/// # Errors
/// [`UrlFault`].
pub fn kept(text: &str) -> Result<Target<'_>, UrlFault> {
    let target = read(text)?;
    if !hostname::is_kept(target.host) {
        hostname::check(target.host).map_err(UrlFault::Host)?;
    }
    target.has_port()
}

/// All that is the same for both but the port, which is 0 if it is wrong.
fn read(text: &str) -> Result<Target<'_>, UrlFault> {
    if text.is_empty() {
        return Err(UrlFault::Empty);
    }
    let mut chars = 0;
    let mut refused = None;
    for found in text.chars() {
        chars += 1;
        if refused.is_none() && (found.is_whitespace() || found.is_control() || found == '\\') {
            refused = Some(UrlFault::Character { found, place: chars });
        }
    }
    if chars > MAX_URL_CHARS {
        return Err(UrlFault::TooLong { chars });
    }
    if let Some(fault) = refused {
        return Err(fault);
    }
    let parts = UrlParts::of(text).map_err(|fault| match fault {
        UrlSyntaxFault::Scheme => UrlFault::Scheme,
        UrlSyntaxFault::Slashes => UrlFault::Slashes,
    })?;
    let Authority { userinfo, host, .. } = parts.authority;
    if userinfo.is_some() {
        return Err(UrlFault::Userinfo);
    }
    Ok(Target { text, host, port: parts.port().unwrap_or(0) })
}

impl<'a> Target<'a> {
    fn has_port(self) -> Result<Target<'a>, UrlFault> {
        if self.port == 0 { Err(UrlFault::Port) } else { Ok(self) }
    }

    /// The URL as it was written.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The host as it was written; an IPv6 address is in brackets.
    pub fn host(&self) -> &'a str {
        self.host
    }

    /// The host in the form in which hosts are compared (see [`hostname::canonical`]).
    pub fn canonical_host(&self) -> String {
        hostname::canonical(self.host)
    }

    /// The port: the one written, else 80 for http and 443 for https.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL as the value of a `Location` header, in visible ASCII.
    pub fn location(&self) -> String {
        let mut out = Vec::with_capacity(self.text.len());
        self.push_location(&mut out);
        out.into_iter().map(char::from).collect()
    }

    /// Appends what [`Target::location`] gives.
    pub fn push_location(&self, out: &mut Vec<u8>) {
        push_location(self.text, out);
    }
}

/// Appends a text that [`check`] once accepted as the value of a `Location` header: its scheme in
/// lower case, a host outside ASCII as browsers look it up, what is not visible ASCII
/// percent-encoded. Of any text it makes visible ASCII, so no header can be injected.
pub fn push_location(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len());
    let scheme_bytes = text.find(':').unwrap_or(0);
    let (scheme, rest) = text.split_at(scheme_bytes);
    push_encoded(&scheme.to_ascii_lowercase(), out);
    let host = UrlParts::of(text).map_or("", |parts| parts.authority.host);
    let foreign = Some(host).filter(|host| !host.is_ascii());
    let looked_up = foreign.and_then(|host| hostname::ascii(host).ok());
    match (looked_up, rest.split_once(host)) {
        (Some(looked_up), Some((before, behind))) => {
            push_encoded(before, out);
            push_encoded(&looked_up, out);
            push_encoded(behind, out);
        }
        _ => push_encoded(rest, out),
    }
}

/// A `Location` with another query behind its own, before its fragment.
pub fn with_query(location: &str, query: &str) -> String {
    let (url, fragment) = match location.split_once('#') {
        Some((url, fragment)) => (url, Some(fragment)),
        None => (location, None),
    };
    let mut out = url.as_bytes().to_vec();
    match url.split_once('?') {
        None => out.push(b'?'),
        Some((_, own)) if own.is_empty() || own.ends_with('&') => {}
        Some(_) => out.push(b'&'),
    }
    push_encoded(query, &mut out);
    if let Some(fragment) = fragment {
        out.push(b'#');
        out.extend_from_slice(fragment.as_bytes());
    }
    out.into_iter().map(char::from).collect()
}

/// By hand, as every redirect that is not answered from what was kept writes one.
fn push_encoded(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text.as_bytes() {
        let unsafe_here =
            matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}');
        if byte.is_ascii_graphic() && !unsafe_here {
            out.push(byte);
        } else {
            out.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn allowed_targets() {
        for (text, host, port, location) in [
            ("http://example.com", "example.com", 80, "http://example.com"),
            ("HTTP://EXAMPLE.com", "EXAMPLE.com", 80, "http://EXAMPLE.com"),
            ("hTTps://h?q", "h", 443, "https://h?q"),
            ("http://h#f", "h", 80, "http://h#f"),
            ("http://[::1]:80/", "[::1]", 80, "http://[::1]:80/"),
            ("https://[2001:db8::1]/", "[2001:db8::1]", 443, "https://[2001:db8::1]/"),
            ("http://h:65535/", "h", 65535, "http://h:65535/"),
            ("http://h:0080/", "h", 80, "http://h:0080/"),
            ("http://h/a@b:c", "h", 80, "http://h/a@b:c"),
            ("http://h?a@b", "h", 80, "http://h?a@b"),
            ("http://h//x?y=http://z", "h", 80, "http://h//x?y=http://z"),
            ("http://h/%zz%20", "h", 80, "http://h/%zz%20"),
            ("http://h/\"<>^`{|}'[]", "h", 80, "http://h/%22%3C%3E%5E%60%7B%7C%7D'[]"),
            ("http://h/\u{202e}", "h", 80, "http://h/%E2%80%AE"),
            ("http://例え.jp/ü?q=ü#f", "例え.jp", 80, "http://xn--r8jz45g.jp/%C3%BC?q=%C3%BC#f"),
        ] {
            let target = check(text).unwrap_or_else(|fault| panic!("{text} {fault}"));
            assert_eq!((target.host(), target.port()), (host, port), "{text}");
            assert_eq!(target.location(), location);
            assert_eq!(target.text(), text);
        }
        assert_eq!(
            check("http://Bücher.de.").map(|t| t.canonical_host()).as_deref(),
            Ok("xn--bcher-kva.de")
        );
        assert_eq!(check("https://h").map(|target| target.port()), Ok(443));
    }

    #[test]
    fn refused_targets() {
        use UrlFault::*;
        let character = |found, place| Character { found, place };
        for (text, fault) in [
            ("", Empty),
            ("example.com", Scheme),
            ("example.com:80/http://", Scheme),
            ("//example.com", Scheme),
            ("javascript:alert(1)", Scheme),
            ("data:text/html,x", Scheme),
            ("ftp://example.com", Scheme),
            ("httpx://example.com", Scheme),
            ("http", Scheme),
            ("http:", Slashes),
            ("http:example.com", Slashes),
            ("http:/example.com", Slashes),
            ("http://", Host(HostFault::Empty)),
            ("http:///x", Host(HostFault::Empty)),
            ("http://?q", Host(HostFault::Empty)),
            ("http://:80/", Host(HostFault::Empty)),
            ("http://a@b", Userinfo),
            ("http://example.com:80@evil.example/", Userinfo),
            ("http://a:b@", Userinfo),
            ("http://[::1", Host(HostFault::Address)),
            ("http://[::1]x/", Host(HostFault::Address)),
            ("http://[::g]/", Host(HostFault::Address)),
            ("http://::1/", Host(HostFault::Empty)),
            ("http://h:0", Port),
            ("http://h:99999", Port),
            ("http://h:65536", Port),
            ("http://h:", Port),
            ("http://h:+80", Port),
            ("http://h:80:80", Port),
            ("http://[::1]:x", Port),
            ("http://exa mple", character(' ', 11)),
            (" http://h", character(' ', 1)),
            ("http://h/\u{a0}", character('\u{a0}', 10)),
            ("http://h/\u{7f}", character('\u{7f}', 10)),
            ("http://h/\u{85}", character('\u{85}', 10)),
            ("http://h/\u{2028}", character('\u{2028}', 10)),
            ("http://h\\@evil.example", character('\\', 9)),
            ("http://h/\r\nSet-Cookie: a=b", character('\r', 10)),
            ("http://h/\n", character('\n', 10)),
            ("http://h/\0", character('\0', 10)),
            ("http://h/\t", character('\t', 10)),
            ("http://ex%61mple.com/", Host(HostFault::Character('%'))),
            ("http://a..b/", Host(HostFault::Label)),
            ("http://2130706433/", Host(HostFault::Address)),
            ("http://exa\u{2100}ple.com/", Host(HostFault::Character('\u{2100}'))),
            ("http://aא.example/", Host(HostFault::Name)),
        ] {
            assert_eq!(check(text), Err(fault), "{text}");
            let words = fault.to_string();
            assert!(
                words.starts_with("has ") || words.starts_with("must ") || words.starts_with("is ")
            );
            assert!(words.chars().all(|letter| !letter.is_control()), "{words}");
        }
    }

    #[test]
    fn what_earlier_versions_took_is_still_a_target() {
        let old = "HTTPS://xn--a.aא.example:99/ü";
        assert_eq!(check(old), Err(UrlFault::Host(HostFault::Name)));
        let target = kept(old).expect("kept");
        assert_eq!((target.host(), target.port()), ("xn--a.aא.example", 99));
        assert_eq!(target.location(), "https://xn--a.a%D7%90.example:99/%C3%BC");
        for (text, fault) in [
            ("javascript:x", UrlFault::Scheme),
            ("http://aא.example:0/", UrlFault::Port),
            ("http://2130706433/", UrlFault::Host(HostFault::Address)),
        ] {
            assert_eq!(kept(text), Err(fault), "{text}");
        }
    }

    #[test]
    fn a_query_is_put_behind_the_own_one() {
        for (location, query, expected) in [
            ("http://h", "a=1", "http://h?a=1"),
            ("http://h/x#f", "a=1&b=2", "http://h/x?a=1&b=2#f"),
            ("http://h/?x=1", "a", "http://h/?x=1&a"),
            ("http://h/?x=1&", "a", "http://h/?x=1&a"),
            ("http://h/?#f?g", "a", "http://h/?a#f?g"),
            ("http://h/#f?g", "a<\r", "http://h/?a%3C%0D#f?g"),
        ] {
            assert_eq!(with_query(location, query), expected);
        }
    }

    #[test]
    fn length_is_counted_in_characters() {
        let of = |chars: usize| format!("http://h/{}", "ü".repeat(chars - 9));
        let longest = of(MAX_URL_CHARS);
        assert_eq!(check(&longest).map(|target| target.text()), Ok(longest.as_str()));
        assert_eq!(check(&of(2049)), Err(UrlFault::TooLong { chars: 2049 }));
        assert_eq!(check(&" ".repeat(3000)), Err(UrlFault::TooLong { chars: 3000 }));
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_a_header_value(
            text in prop_oneof![
                "\\PC{0,40}",
                "(?i:https?)://[a-z0-9.ü\\[\\]:@%-]{0,12}(:[0-9]{0,6})?[/?#]?\\PC{0,30}",
                "https?://example\\.com/(?s:.){0,12}",
            ]
        ) {
            if let Ok(target) = check(&text) {
                let location = target.location();
                prop_assert!(location.bytes().all(|byte| byte.is_ascii_graphic()));
                prop_assert!(location.starts_with("http:") || location.starts_with("https:"));
                prop_assert!(target.port() > 0);
                // An encoded text is not encoded again.
                let mut again = Vec::new();
                push_location(&location, &mut again);
                prop_assert_eq!(again, location.into_bytes());
            }
        }

        #[test]
        fn any_text_at_all_becomes_visible_ascii(text in "(?s:.){0,40}") {
            let mut out = Vec::new();
            push_location(&text, &mut out);
            prop_assert!(out.iter().all(u8::is_ascii_graphic));
        }
    }
}
