//! Where the server is: `http://host:port` or `https://host:port`, and percent-encoding for what
//! goes into a path.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt;
use std::net::IpAddr;
pub use wellspring_types::url::Scheme;
use wellspring_types::url::UrlParts;

/// A server's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Whether it speaks TLS.
    pub scheme: Scheme,
    /// Name or address, without the brackets of IPv6.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// What stands before every path, for a server behind a proxy; no slash at its end.
    pub prefix: String,
}

/// Why a URL is no server's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointError {
    /// It has another scheme, or none.
    Scheme,
    /// It has more than scheme, host and port.
    TooMuch,
    /// It has a character that no URL has.
    Character,
    /// Its port is none.
    Port,
    /// It has no host.
    Host,
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "must begin with http:// or https://, e.g. http://127.0.0.1:4000",
            Self::TooMuch => "must be scheme, host and port alone, e.g. http://127.0.0.1:4000",
            Self::Character => "holds a space, a control character or a letter that is not ASCII",
            Self::Port => "the port must be a number from 1 to 65535",
            Self::Host => "has no host",
        })
    }
}

impl std::error::Error for EndpointError {}

impl Endpoint {
    /// Reads an address.
    ///
    /// # Errors
    /// [`EndpointError`]; the caller names the setting.
    pub fn parse(url: &str) -> Result<Endpoint, EndpointError> {
        let Ok(parts) = UrlParts::of(url) else {
            return Err(EndpointError::Scheme);
        };
        let UrlParts { scheme, authority, rest: prefix } = parts;
        if prefix.contains(['?', '#']) || authority.userinfo.is_some() {
            return Err(EndpointError::TooMuch);
        }
        if url.bytes().any(|b| b <= b' ' || b >= 0x7f) {
            return Err(EndpointError::Character);
        }
        let port = parts.port().ok_or(EndpointError::Port)?;
        let host = authority.bare_host().ok_or(EndpointError::Host)?;
        let prefix = prefix.trim_end_matches('/').to_owned();
        Ok(Endpoint { scheme, host: host.to_owned(), port, prefix })
    }

    /// Which server it is, in one spelling: scheme, host, port and prefix.
    pub fn origin(&self) -> String {
        let scheme = self.scheme.as_str();
        format!("{scheme}://{}{}", self.authority().to_ascii_lowercase(), self.prefix)
    }

    /// Whether what is sent there does not leave this machine.
    pub fn is_this_machine(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Value of the `Host` header.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// What is not left as it is in a path segment or a query value: all but RFC 3986's unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Writes a text so that it may stand in a path segment or a query value.
pub fn percent_encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let read = |url| Endpoint::parse(url).map(|e| (e.authority(), e.prefix));
        let ok = |authority: &str, prefix: &str| Ok((authority.to_owned(), prefix.to_owned()));
        assert_eq!(read("http://127.0.0.1:4000"), ok("127.0.0.1:4000", ""));
        assert_eq!(read("http://host/"), ok("host:80", ""));
        assert_eq!(read("https://host"), ok("host:443", ""));
        assert_eq!(Endpoint::parse("https://host:4000").unwrap().scheme, Scheme::Https);
        assert_eq!(read("http://[::1]:4000/a/b/"), ok("[::1]:4000", "/a/b"));
        assert_eq!(read("HTTP://host"), ok("host:80", ""));
        for (bad, word) in [
            ("ftp://x", "https://"),
            ("localhost:4000", "http://"),
            ("https://", "host"),
            ("http://:1", "host"),
            ("http://h:0", "port"),
            ("http://h:99999", "port"),
            ("http://u:p@h:1", "host and port"),
            ("http://h\r\nX: y:1", "control"),
            ("http://[::1]x:1", "host"),
            ("http://[::1:1", "port"),
        ] {
            assert!(read(bad).unwrap_err().to_string().contains(word), "{bad}");
        }
    }

    #[test]
    fn a_server_has_one_name_and_another_server_another() {
        let origin = |url| Endpoint::parse(url).unwrap().origin();
        assert_eq!(origin("http://x"), "http://x:80");
        assert_eq!(origin("http://Host:4000/"), origin("http://hOST:4000"));
        let others =
            ["http://a", "https://a", "http://a:81", "http://b", "http://a/p", "http://[::1]"];
        let names: std::collections::BTreeSet<String> =
            others.iter().map(|url| origin(url)).collect();
        assert_eq!(names.len(), others.len());
    }

    #[test]
    fn values_are_encoded() {
        assert_eq!(percent_encode("a:b/ü &"), "a%3Ab%2F%C3%BC%20%26");
    }
}
