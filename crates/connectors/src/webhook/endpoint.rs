//! Where requests go: what a URL says, read once.

use crate::definition_error::DefinitionError;
use hyper::Uri;
use hyper::header::HeaderValue;
use wellspring_types::url::{Scheme, UrlParts};

/// The receiver that a URL names.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    /// Whether connections are encrypted.
    pub(super) scheme: Scheme,
    /// Name or address, without the brackets of an IPv6 address.
    pub(super) host: String,
    /// TCP port.
    pub(super) port: u16,
    /// Content of the header `Host`.
    pub(super) authority: HeaderValue,
    /// Path and query.
    pub(super) path: Uri,
}

impl Endpoint {
    /// Reads a URL.
    ///
    /// # Errors
    /// A sentence that does not repeat the URL: it may hold a password.
    pub(super) fn parse(text: &str) -> Result<Endpoint, DefinitionError> {
        let refuse = |why: &str| Err(DefinitionError::new(format!("the URL {why}")));
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return refuse("holds characters that must be percent-encoded");
        }
        if text.contains('#') {
            return refuse("has a fragment (`#…`), which is never sent");
        }
        let Ok(uri) = text.parse::<Uri>() else {
            return refuse("is malformed: write `https://HOST/PATH`");
        };
        let Ok(parts) = UrlParts::of(text) else {
            return refuse("must begin with `http://` or `https://`");
        };
        let authority = parts.authority;
        if authority.userinfo.is_some() {
            return refuse("holds a user or password: send credentials in a header from a secret");
        }
        let Some(host) = authority.bare_host() else { return refuse("names no host") };
        let Some(port) = parts.port() else { return refuse("has a port outside of 1–65535") };
        let path = match uri.query() {
            Some(query) => format!("{}?{query}", uri.path()),
            None => uri.path().to_owned(),
        };
        let written = uri.authority().map_or("", |authority| authority.as_str());
        let (Ok(path), Ok(authority)) = (path.parse(), HeaderValue::from_str(written)) else {
            return refuse("is malformed: write `https://HOST/PATH`");
        };
        Ok(Endpoint { scheme: parts.scheme, host: host.to_owned(), port, authority, path })
    }

    /// Scheme, host and port, for messages: paths and queries of webhooks often hold a credential.
    pub(super) fn origin(&self) -> String {
        let scheme = self.scheme.as_str();
        if self.host.contains(':') {
            format!("{scheme}://[{}]:{}", self.host, self.port)
        } else {
            format!("{scheme}://{}:{}", self.host, self.port)
        }
    }
}

/// Checks the URL of a webhook: `http://` or `https://`, a host, no user or password, no fragment.
///
/// # Errors
/// A sentence without its full stop that says what is wrong and does not repeat the URL.
pub fn check_url(text: &str) -> Result<(), DefinitionError> {
    Endpoint::parse(text).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let endpoint = Endpoint::parse("https://hooks.example:8443/a/b?c=d%20e").unwrap();
        assert_eq!(endpoint.scheme, Scheme::Https);
        assert_eq!((endpoint.host.as_str(), endpoint.port), ("hooks.example", 8443));
        assert_eq!(endpoint.authority, "hooks.example:8443");
        assert_eq!(endpoint.path.to_string(), "/a/b?c=d%20e");
        let endpoint = Endpoint::parse("http://[::1]?q").unwrap();
        assert_eq!((endpoint.host.as_str(), endpoint.port), ("::1", 80));
        assert_eq!(endpoint.authority, "[::1]");
        assert_eq!(endpoint.path.to_string(), "/?q");
        assert_eq!(endpoint.origin(), "http://[::1]:80");
        assert_eq!(Endpoint::parse("https://a").unwrap().port, 443);
    }

    #[test]
    fn what_is_no_url_of_a_webhook_is_refused_and_not_repeated() {
        for bad in [
            "",
            "hooks.example",
            "/hooks-path",
            "ftp://hooks.example/",
            "file:///etc/passwd",
            "https://user:hunter2@hooks.example/",
            "https://hunter2@hooks.example/",
            "https://hooks.example/#hunter2",
            "https://hooks.example/hunter 2",
            "https://hooks.example/\r\nhunter2: 1",
            "https://hooks.example/hünter2",
            "https://hooks.example:0/",
            "https://hooks.example:/",
            "https://hooks.example:99999/",
            "https:///hunter2",
            "https://:80/",
        ] {
            let refusal = check_url(bad).expect_err(bad).to_string();
            assert!(!refusal.contains("hunter") && refusal.starts_with("the URL "), "{refusal}");
        }
    }
}
