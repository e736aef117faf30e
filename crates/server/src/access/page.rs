//! Pages of other sites, as long as nobody has to say who he is.
//!
//! A browser on this machine reaches a server that listens on loopback, and runs whatever page its user
//! opens. What a page sends to another site carries an `Origin`; so does everything it writes to what
//! it takes for its own. But a page can have its own name mean this machine (DNS rebinding), and what
//! it reads then carries no `Origin`: that is told by the name it was asked under, and by a
//! `User-Agent` that all browsers have and programs have not.

use crate::config::Config;
use crate::http::cors::Cors;
use crate::http::problem::{self, Problem};
use hyper::HeaderMap;
use hyper::header::{HOST, ORIGIN, USER_AGENT};
use std::net::IpAddr;

/// Which pages may use a server without accounts.
#[derive(Debug)]
pub(super) struct Pages {
    cors: Option<Cors>,
    /// Under which name it is asked besides those of this machine, in small letters.
    own_host: Option<String>,
    /// Whether nobody but this machine reaches it.
    is_local: bool,
}

impl Pages {
    /// As configured.
    ///
    /// # Errors
    /// A sentence about a setting.
    pub(super) fn of(config: &Config) -> Result<Pages, String> {
        let base_url = config.link_base_url.as_deref();
        let own_host = base_url.and_then(authority_of).map(|own| host_of(own).to_ascii_lowercase());
        let is_local = config.address()?.ip().is_loopback();
        Ok(Pages { cors: Cors::of(config)?, own_host, is_local })
    }

    /// Refuses what a page of another site sends.
    ///
    /// # Errors
    /// 403.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Box<Problem>> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let host = text(HOST).unwrap_or_default();
        let own = match text(ORIGIN) {
            Some(origin) => self.is_own_origin(origin, host),
            None => {
                let by_browser =
                    text(USER_AGENT).is_some_and(|agent| agent.starts_with("Mozilla/"));
                !(by_browser && self.is_local) || self.is_own_host(host_of(host))
            }
        };
        if own {
            return Ok(());
        }
        Err(problem::FOREIGN_PAGE.because(
            "a browser asks for a page of another site, and there are no accounts to tell who it is: \
             make one (docs/access.md), or name the page's origin with --cors-origins, or the server's \
             own name with --link-base-url",
        ))
    }

    fn is_own_origin(&self, origin: &str, host: &str) -> bool {
        if self.cors.as_ref().is_some_and(|cors| cors.allows(origin)) {
            return true;
        }
        let Some(authority) = authority_of(origin) else { return false };
        let name = host_of(authority);
        // A name can be made to mean any address, an address means itself.
        let is_asked = authority.eq_ignore_ascii_case(host);
        is_this_machine(name) || is_asked && (name.parse::<IpAddr>().is_ok() || self.is_named(name))
    }

    fn is_own_host(&self, host: &str) -> bool {
        is_this_machine(host) || host.parse::<IpAddr>().is_ok() || self.is_named(host)
    }

    fn is_named(&self, host: &str) -> bool {
        self.own_host.as_ref().is_some_and(|own| host.eq_ignore_ascii_case(own))
    }
}

/// What stands between scheme and path.
fn authority_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    Some(rest.split('/').next().unwrap_or(rest))
}

/// An authority's host, without its port and without brackets.
fn host_of(authority: &str) -> &str {
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    authority.split(':').next().unwrap_or(authority)
}

/// Whether a name means this machine, whatever anybody says: browsers ask no one for `localhost` (RFC 6761).
fn is_this_machine(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(flags: &[&str], headers: &[(&'static str, &str)]) -> bool {
        let pages = Pages::of(&Config::for_tests(flags)).unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        pages.check(&map).is_ok()
    }

    #[test]
    fn what_another_site_sends_is_refused_also_under_a_name_that_means_this_machine() {
        for (origin, host, is_own) in [
            ("https://evil.example", "127.0.0.1:4000", false),
            ("http://evil.example:4000", "evil.example:4000", false),
            ("http://localhost.evil.example", "localhost:4000", false),
            ("http://127.0.0.1.evil.example:4000", "127.0.0.1.evil.example:4000", false),
            ("http://10.0.0.9:4000", "10.0.0.5:4000", false),
            ("null", "localhost:4000", false),
            ("", "localhost:4000", false),
            ("http://localhost:4000", "localhost:4000", true),
            ("http://LOCALHOST:5173", "127.0.0.1:4000", true),
            ("http://app.localhost:4000", "app.localhost:4000", true),
            ("http://[::1]:4000", "[::1]:4000", true),
            ("http://10.0.0.5:4000", "10.0.0.5:4000", true),
        ] {
            let headers = [("origin", origin), ("host", host)];
            assert_eq!(allowed(&[], &headers), is_own, "{origin} at {host}");
        }
        let evil = [("origin", "https://evil.example"), ("host", "x")];
        assert!(allowed(&["--cors-origins", "https://evil.example"], &evil));
        assert!(!allowed(&["--cors-origins", "https://good.example"], &evil));
        let own = [("origin", "https://go.example"), ("host", "go.example")];
        assert!(!allowed(&[], &own));
        assert!(allowed(&["--link-base-url", "https://go.example"], &own));
    }

    #[test]
    fn what_a_browser_reads_under_a_strange_name_is_refused_and_programs_are_not() {
        let browser = ("user-agent", "Mozilla/5.0 (X11) Firefox/144.0");
        for (host, is_own) in
            [("evil.example:4000", false), ("localhost:4000", true), ("127.0.0.1:4000", true)]
        {
            assert_eq!(allowed(&[], &[browser, ("host", host)]), is_own, "{host}");
            assert!(allowed(&[], &[("user-agent", "curl/8.0"), ("host", host)]));
            assert!(allowed(&[], &[("host", host)]));
        }
        // In a network that is meant, names are what people type.
        let named = [browser, ("host", "server.lan:4000")];
        assert!(allowed(&["--listen", "0.0.0.0:4000", "--insecure"], &named));
        assert!(allowed(&["--link-base-url", "http://server.lan"], &named));
    }
}
