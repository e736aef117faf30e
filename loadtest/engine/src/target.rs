//! Where requests go: a URL taken apart and its addresses.
//!
//! Path and query are kept as they are written, because they may hold placeholders and because
//! what is measured is what was asked for: dot segments and braces stay.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// Where requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Whether to speak TLS.
    pub tls: bool,
    /// Host as in the URL, IPv6 without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// User and password of the URL, if any: `user:password`.
    pub credentials: Option<String>,
    /// Connect to this Unix socket instead of the host; the host still names it to the server.
    pub unix_socket: Option<PathBuf>,
    /// The addresses of the host, at least one unless `unix_socket` is set. Filled by
    /// [`Target::resolve`].
    pub addresses: Vec<SocketAddr>,
}

/// Why a URL cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError(pub String);

impl std::fmt::Display for UrlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UrlError {}

impl Target {
    /// Takes a URL apart. Without a scheme `http://` is assumed, as curl does.
    ///
    /// # Errors
    /// [`UrlError`], saying what is wrong with it.
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        let wrong = |why: &str| UrlError(format!("{url:?} is not a URL to send to: {why}"));
        let (tls, rest) = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some((scheme, _)) => {
                return Err(wrong(&format!("the scheme must be http or https, not {scheme:?}")));
            }
            None => (false, url),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        let tail = tail.split('#').next().unwrap_or_default();
        let path = if tail.starts_with('/') { tail.to_owned() } else { format!("/{tail}") };
        if let Some(bad) = path.chars().find(|c| c.is_control() || *c == ' ') {
            return Err(wrong(&format!("{bad:?} in the path must be percent-encoded")));
        }
        let path = encode_non_ascii(&path);
        let (credentials, host_port) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user.to_owned()), host),
            None => (None, authority),
        };
        let (host, port) =
            split_port(host_port).ok_or_else(|| wrong("the port is not a number"))?;
        if !is_host(host) {
            return Err(wrong("the host is missing or malformed"));
        }
        let port = match port {
            None if tls => 443,
            None => 80,
            Some(digits) => digits
                .parse()
                .ok()
                .filter(|port| *port > 0)
                .ok_or_else(|| wrong("the port must be a number from 1 to 65535"))?,
        };
        Ok(Target {
            tls,
            host: host.to_owned(),
            port,
            path,
            credentials,
            unix_socket: None,
            addresses: Vec::new(),
        })
    }

    /// Looks the host up, unless a Unix socket is used.
    ///
    /// # Errors
    /// [`UrlError`] if it has no address; trying again may help if name service was down.
    pub fn resolve(&mut self) -> Result<(), UrlError> {
        if self.unix_socket.is_some() {
            return Ok(());
        }
        let found = (self.host.as_str(), self.port).to_socket_addrs().map_err(|error| {
            UrlError(format!("the host {:?} could not be looked up: {error}", self.host))
        })?;
        self.addresses = found.collect();
        // A server on "localhost" more often listens on 127.0.0.1 than on ::1.
        self.addresses.sort_by_key(SocketAddr::is_ipv6);
        if self.addresses.is_empty() {
            return Err(UrlError(format!("the host {:?} has no address", self.host)));
        }
        Ok(())
    }

    /// The host as URLs have it: IPv6 in brackets.
    #[must_use]
    pub(crate) fn bracketed_host(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }

    /// Scheme, host and port, e.g. `https://shop.example:8443`.
    #[must_use]
    pub fn origin(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }

    /// What `Host` or `:authority` says: the port is left out where it is the scheme's own.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = self.bracketed_host();
        if self.port == if self.tls { 443 } else { 80 } {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }

    /// The URL without credentials.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}{}", self.origin(), self.path)
    }

    /// Whether it is this machine, as far as the address tells; `None` before [`Target::resolve`].
    #[must_use]
    pub fn is_local(&self) -> Option<bool> {
        if self.unix_socket.is_some() {
            return Some(true);
        }
        let loopback = |address: &SocketAddr| match address.ip() {
            IpAddr::V4(ip) => ip.is_loopback() || ip.is_unspecified(),
            IpAddr::V6(ip) => ip.is_loopback() || ip.is_unspecified(),
        };
        (!self.addresses.is_empty()).then(|| self.addresses.iter().any(loopback))
    }
}

/// Whether `host` is a name or an address, which of IPv6 may have a zone behind `%`.
fn is_host(host: &str) -> bool {
    let punctuation = if host.contains(':') { "-._:%" } else { "-._" };
    let letter = |c: char| {
        if c.is_ascii() {
            c.is_ascii_alphanumeric() || punctuation.contains(c)
        } else {
            !c.is_whitespace() && !c.is_control()
        }
    };
    !host.is_empty() && host.chars().all(letter)
}

/// Host and port of an authority without credentials; `None` if brackets do not match.
fn split_port(authority: &str) -> Option<(&str, Option<&str>)> {
    if let Some(inner) = authority.strip_prefix('[') {
        let (host, rest) = inner.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port))),
            None => rest.is_empty().then_some((host, None)),
        };
    }
    match authority.split_once(':') {
        Some((host, port)) => Some((host, Some(port))),
        None => Some((authority, None)),
    }
}

fn encode_non_ascii(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii() {
            encoded.push(char::from(byte));
        } else {
            use std::fmt::Write as _;
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        for (url, host, port, path, authority) in [
            ("http://h:4000/a?b=1#f", "h", 4000, "/a?b=1", "h:4000"),
            ("https://h", "h", 443, "/", "h"),
            ("h:81", "h", 81, "/", "h:81"),
            ("http://h?x", "h", 80, "/?x", "h"),
            ("http://[::1]:8080/", "::1", 8080, "/", "[::1]:8080"),
            ("http://me:p@w@[::1]/p", "::1", 80, "/p", "[::1]"),
            ("HTTP://h/ü", "h", 80, "/%C3%BC", "h"),
        ] {
            let target = Target::parse(url).unwrap();
            assert_eq!((target.host.as_str(), target.port), (host, port), "{url}");
            assert_eq!((target.path.as_str(), target.authority().as_str()), (path, authority));
        }
        let target = Target::parse("http://me:pw@h/").unwrap();
        assert_eq!(target.credentials.as_deref(), Some("me:pw"));
        assert!(!target.url().contains("pw"));
    }

    #[test]
    fn what_is_not_a_url_is_refused_with_the_reason() {
        for (url, why) in [
            ("ftp://h", "scheme"),
            ("http://", "host"),
            ("http://h:x/", "port"),
            ("http://h:0/", "port"),
            ("http://h:70000/", "port"),
            ("http://h/a b", "percent-encoded"),
            ("http://a b/", "host"),
            ("http://a{b/", "host"),
            ("http://a%20b/", "host"),
            ("http://[::1/", "port"),
        ] {
            let error = Target::parse(url).unwrap_err().to_string();
            assert!(error.contains(why), "{url}: {error}");
        }
    }

    #[test]
    fn loopback_is_known_to_be_here() {
        let mut target = Target::parse("http://127.0.0.1:9/").unwrap();
        assert_eq!(target.is_local(), None);
        target.resolve().unwrap();
        assert_eq!(target.is_local(), Some(true));
    }
}
