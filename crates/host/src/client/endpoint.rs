//! Where the server is: `http://host:port` or `https://host:port`, read without a URL library
//! because this is all the tools need, and percent-encoding for what goes into a path.

use std::net::IpAddr;

/// Whether a server is spoken to in the clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Through TLS.
    Https,
}

/// A server's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Whether it speaks TLS.
    pub scheme: Scheme,
    /// Name or address, without the brackets of IPv6.
    pub(crate) host: String,
    /// TCP port.
    pub(crate) port: u16,
    /// What stands before every path, for a server behind a proxy; no slash at its end.
    pub(crate) prefix: String,
}

impl Endpoint {
    /// Reads an address.
    ///
    /// # Errors
    /// A sentence that says what to change.
    pub fn parse(url: &str) -> Result<Endpoint, String> {
        let wrong = |what: &str| Err(format!("--url {url}: {what}"));
        let (scheme, rest) = match url.split_once("://") {
            Some(("http", rest)) => (Scheme::Http, rest),
            Some(("https", rest)) => (Scheme::Https, rest),
            _ => return wrong("must begin with http:// or https://, e.g. http://127.0.0.1:4000"),
        };
        let (authority, prefix) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if prefix.contains(['?', '#']) || authority.contains(['?', '#', '@']) {
            return wrong("must be scheme, host and port alone, e.g. http://127.0.0.1:4000");
        }
        if url.bytes().any(|b| b <= b' ' || b >= 0x7f) {
            return wrong("holds a space, a control character or a letter that is not ASCII");
        }
        let (host, port) = match authority.strip_prefix('[').and_then(|a| a.split_once(']')) {
            Some((host, after)) => (host, after.strip_prefix(':')),
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let port = match port.map(str::parse::<u16>) {
            None if scheme == Scheme::Https => 443,
            None => 80,
            Some(Ok(port)) if port > 0 => port,
            Some(_) => return wrong("the port must be a number from 1 to 65535"),
        };
        if host.is_empty() {
            return wrong("has no host");
        }
        let prefix = prefix.trim_end_matches('/').to_owned();
        Ok(Endpoint { scheme, host: host.to_owned(), port, prefix })
    }

    /// Which server it is, in one spelling: scheme, host, port and prefix.
    pub fn origin(&self) -> String {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        format!("{scheme}://{}{}", self.authority().to_ascii_lowercase(), self.prefix)
    }

    /// Whether what is sent there does not leave this machine.
    pub fn is_this_machine(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Value of the `Host` header.
    pub(crate) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// Writes a text so that it may stand in a path segment or a query value.
pub fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
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
        for (bad, word) in [
            ("ftp://x", "https://"),
            ("localhost:4000", "http://"),
            ("https://", "host"),
            ("http://:1", "host"),
            ("http://h:0", "port"),
            ("http://h:99999", "port"),
            ("http://u:p@h:1", "host and port"),
            ("http://h\r\nX: y:1", "control"),
        ] {
            assert!(read(bad).unwrap_err().contains(word), "{bad}");
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
