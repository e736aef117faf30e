//! URLs of the web taken apart, as RFC 3986 has them. Nothing is decoded, completed or corrected,
//! so that a text means here what is written; what a caller allows is the caller's own policy.

/// The schemes of the web.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Through TLS.
    Https,
}

impl Scheme {
    /// As URLs write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// The port of a URL that names none.
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// Why a text cannot be taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlSyntaxFault {
    /// It does not begin with `http:` or `https:`.
    Scheme,
    /// No `//` behind the scheme.
    Slashes,
}

/// A URL in its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UrlParts<'a> {
    /// Its scheme, in any case.
    pub scheme: Scheme,
    /// What stands between `//` and the path.
    pub authority: Authority<'a>,
    /// Path, query and fragment; empty, or from the first `/`, `?` or `#` on.
    pub rest: &'a str,
}

impl<'a> UrlParts<'a> {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// [`UrlSyntaxFault`].
    pub fn of(url: &'a str) -> Result<UrlParts<'a>, UrlSyntaxFault> {
        let (scheme, rest) = url.split_once(':').ok_or(UrlSyntaxFault::Scheme)?;
        let scheme = match scheme {
            _ if scheme.eq_ignore_ascii_case("http") => Scheme::Http,
            _ if scheme.eq_ignore_ascii_case("https") => Scheme::Https,
            _ => return Err(UrlSyntaxFault::Scheme),
        };
        let rest = rest.strip_prefix("//").ok_or(UrlSyntaxFault::Slashes)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        Ok(UrlParts { scheme, authority: Authority::of(authority), rest })
    }

    /// The port: the one written, else that of the scheme. `None` if what is written is no number
    /// from 1 to 65535.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match self.authority.port {
            None => Some(self.scheme.default_port()),
            Some(digits) => port(digits),
        }
    }
}

/// The part of a URL that says where the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Authority<'a> {
    /// What stands before an `@`: a name, perhaps a password.
    pub userinfo: Option<&'a str>,
    /// The host as written, an IPv6 address in its brackets; may be empty.
    pub host: &'a str,
    /// What stands behind the colon after the host, whatever it is.
    pub port: Option<&'a str>,
}

impl<'a> Authority<'a> {
    /// Takes an authority apart.
    #[must_use]
    pub fn of(text: &'a str) -> Authority<'a> {
        let (userinfo, place) = match text.rsplit_once('@') {
            Some((userinfo, place)) => (Some(userinfo), place),
            None => (None, text),
        };
        // The colons between brackets are an address' own.
        let from = if place.starts_with('[') { place.find(']').unwrap_or(0) } else { 0 };
        let (host, port) = match place[from..].find(':') {
            Some(colon) => (&place[..from + colon], Some(&place[from + colon + 1..])),
            None => (place, None),
        };
        Authority { userinfo, host, port }
    }

    /// The host without the brackets of an IPv6 address; `None` if it is empty or has half of them.
    #[must_use]
    pub fn bare_host(&self) -> Option<&'a str> {
        let bare = match self.host.strip_prefix('[') {
            Some(address) => address.strip_suffix(']')?,
            None => self.host,
        };
        (!bare.is_empty() && !bare.contains(['[', ']'])).then_some(bare)
    }
}

/// A port as digits: a number from 1 to 65535.
#[must_use]
pub fn port(digits: &str) -> Option<u16> {
    // A sign would be taken for part of a number.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|&port| port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_are_what_is_written() {
        let parts = UrlParts::of("hTTps://a:b@c@Host:0080/p@q?r#s").unwrap();
        assert_eq!((parts.scheme, parts.rest, parts.port()), (Scheme::Https, "/p@q?r#s", Some(80)));
        let authority = parts.authority;
        assert_eq!((authority.userinfo, authority.host), (Some("a:b@c"), "Host"));
        let parts = UrlParts::of("http://[::1]?q").unwrap();
        assert_eq!((parts.authority.bare_host(), parts.port()), (Some("::1"), Some(80)));
        assert_eq!((parts.authority.host, parts.rest), ("[::1]", "?q"));
        assert_eq!(UrlParts::of("https://h").unwrap().port(), Some(443));
    }

    #[test]
    fn what_is_no_url_of_the_web_is_told_apart() {
        for (text, fault) in [
            ("", UrlSyntaxFault::Scheme),
            ("host", UrlSyntaxFault::Scheme),
            ("//host", UrlSyntaxFault::Scheme),
            ("ftp://host", UrlSyntaxFault::Scheme),
            ("http:/host", UrlSyntaxFault::Slashes),
            ("http:", UrlSyntaxFault::Slashes),
        ] {
            assert_eq!(UrlParts::of(text), Err(fault), "{text}");
        }
        for port in ["http://h:", "http://h:0", "http://h:65536", "http://h:+1", "http://[::1]:x"] {
            assert_eq!(UrlParts::of(port).unwrap().port(), None, "{port}");
        }
        for host in ["", "[::1", "[::1]x", "a]", "[]"] {
            assert_eq!(Authority::of(host).bare_host(), None, "{host}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost(text in "[hH][tT][tT][pP][sS]?://[a-z@:\\[\\].0-9]{0,12}[/?#]?\\PC{0,12}") {
            let parts = UrlParts::of(&text).unwrap();
            let Authority { userinfo, host, port } = parts.authority;
            let mut again = text[..text.find("//").unwrap() + 2].to_owned();
            again.extend(userinfo.map(|userinfo| format!("{userinfo}@")));
            again.push_str(host);
            again.extend(port.map(|port| format!(":{port}")));
            again.push_str(parts.rest);
            prop_assert_eq!(again, text);
        }
    }
}
