//! Protection from pages of other sites, in a browser that can reach this server.
//!
//! Two things that a page cannot forge give it away. **The host name** of the request: a page can
//! make its own name resolve to this machine (DNS rebinding), and its requests then count as
//! same-origin; so a server without accounts answers under its own names only. **`Origin`**, which
//! browsers add to every write of a page and to every cross-site read. `User-Agent` proves nothing:
//! pages may set it.
//!
//! With accounts, a page has no credentials except a name and password that the user once typed
//! into the browser, which adds them to requests of any page: so with `Basic` the `Origin` is
//! checked, too.

use super::cors_origins::Cors;
use crate::hostname::HostList;
use crate::setup::SetupError;
use crate::wire::problem::{self, Problem};
use hyper::header::ORIGIN;
use hyper::{HeaderMap, Uri};
use std::net::IpAddr;

/// Which pages may use a server.
#[derive(Debug)]
pub(crate) struct Pages {
    cors: Option<Cors>,
    /// The server's own names apart from those that are not in public DNS.
    own_hosts: HostList,
}

/// Which pages count as a server's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// Those of this machine: a program that runs here could send requests without a browser
    /// anyway.
    ThisMachine,
    /// Its own only: requests carry a user's password.
    OwnOrigin,
}

impl Pages {
    /// The rules of a server with these names, this base of short URLs and these foreign origins.
    ///
    /// # Errors
    /// A sentence about a setting.
    pub(crate) fn of(
        own_hosts: &[String],
        own_urls: &[&str],
        cors: Option<Cors>,
    ) -> Result<Pages, SetupError> {
        let named = own_hosts.iter().filter(|entry| !entry.trim().is_empty()).cloned();
        let hosts = own_urls.iter().filter_map(|url| authority_of(url)).map(host_of);
        // An address needs no entry.
        let hosts = hosts.filter(|host| host.parse::<IpAddr>().is_err());
        let entries: Vec<String> = named.chain(hosts.map(str::to_owned)).collect();
        let own_hosts = HostList::parse(&entries).map_err(|fault| format!("own_hosts: {fault}"))?;
        Ok(Pages { cors, own_hosts })
    }

    /// The foreign origins whose pages may use this server.
    pub(super) fn cors(&self) -> Option<&Cors> {
        self.cors.as_ref()
    }

    /// Refuses requests to a server without accounts under a host name that a page of another site
    /// can have. `host` is its only Host header.
    ///
    /// # Errors
    /// 403 `foreign-host`.
    pub(super) fn check_host(&self, uri: &Uri, host: Option<&[u8]>) -> Result<(), Box<Problem>> {
        let target = uri.authority().map(|authority| authority.as_str().as_bytes());
        let foreign = [target, host].into_iter().flatten().find(|name| !self.is_own_host(name));
        let Some(name) = foreign else { return Ok(()) };
        let name = String::from_utf8_lossy(name).into_owned();
        let why = if host_of(&name).is_empty() {
            format!(
                "the request names no host ({name:?}), so it may come from a page of another site"
            )
        } else {
            format!(
                "the request is for {name:?}, and a page of another site can have such a name \
                 resolve to this server"
            )
        };
        Err(problem::FOREIGN_HOST
            .because(format!(
                "{why} while there are no accounts: use localhost or an address, add the name \
                 to --own-hosts (or WELLSPRING_OWN_HOSTS), or create an account (docs/access.md)"
            ))
            .field("Host"))
    }

    /// Whether a page of another site can never have this `Host`.
    pub(super) fn is_own_host(&self, authority: &[u8]) -> bool {
        let Ok(authority) = std::str::from_utf8(authority) else { return false };
        let host = host_of(authority);
        // An empty name reveals nothing about the sender. An address stands for itself. A name
        // without a dot is not in public DNS, such as a container's.
        !host.is_empty()
            && (is_this_machine(host)
                || host.parse::<IpAddr>().is_ok()
                || !host.contains('.')
                || self.own_hosts.matches(host))
    }

    /// Refuses connections of pages of other sites. What comes over a connection says only later
    /// who its caller is, so it is judged as a request with a stored password.
    ///
    /// # Errors
    /// 403 `foreign-page`.
    pub(crate) fn check_connection(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        is_open: bool,
    ) -> Result<(), Box<Problem>> {
        let trust = if is_open { Trust::ThisMachine } else { Trust::OwnOrigin };
        self.check_origin(uri, headers, trust)
    }

    /// Refuses requests of pages of other sites.
    ///
    /// # Errors
    /// 403 `foreign-page`.
    pub(super) fn check_origin(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        trust: Trust,
    ) -> Result<(), Box<Problem>> {
        let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
        let host = headers.get(hyper::header::HOST).and_then(|host| host.to_str().ok());
        let asked = uri.authority().map(|authority| authority.as_str()).or(host);
        let origin = origin.to_str().unwrap_or_default();
        if self.is_own_origin(origin, asked.unwrap_or_default(), trust) {
            return Ok(());
        }
        let why = match trust {
            Trust::ThisMachine => {
                "and there are no accounts to authenticate against: create one \
                 (docs/access.md), or add the page's origin to --cors-origins, or the server's \
                 own name to --own-hosts"
            }
            Trust::OwnOrigin => {
                "with a password that it may have stored: send a token or an API key, or add \
                 the page's origin to --cors-origins"
            }
        };
        Err(problem::FOREIGN_PAGE
            .because(format!("a browser sent this for a page of another site, {origin:?}, {why}"))
            .field("Origin"))
    }

    fn is_own_origin(&self, origin: &str, asked: &str, trust: Trust) -> bool {
        let Some(authority) = authority_of(origin) else { return false };
        let name = host_of(authority);
        match (&self.cors, trust) {
            (Some(cors), Trust::ThisMachine) if cors.allows(origin) => return true,
            // Allowing any origin does not extend to passwords.
            (Some(Cors::These(origins)), _) if origins.iter().any(|known| known == origin) => {
                return true;
            }
            _ => {}
        }
        let is_asked = !name.is_empty() && authority.eq_ignore_ascii_case(asked);
        let is_named = is_asked && self.own_hosts.matches(name);
        match trust {
            // A name can be made to resolve to any address; an address stands for itself.
            Trust::ThisMachine => {
                is_this_machine(name) || is_named || is_asked && name.parse::<IpAddr>().is_ok()
            }
            // A browser stores a password for the name under which it was typed.
            Trust::OwnOrigin => is_asked,
        }
    }
}

/// The part between scheme and path.
fn authority_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    Some(rest.split('/').next().unwrap_or(rest))
}

/// The host of an authority, without port and brackets.
fn host_of(authority: &str) -> &str {
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    authority.split(':').next().unwrap_or(authority)
}

/// Whether a name always means this machine: browsers never look up `localhost` (RFC 6761).
fn is_this_machine(host: &str) -> bool {
    let is_below = |host: &str| {
        host.len() > ".localhost".len()
            && host.is_char_boundary(host.len() - ".localhost".len())
            && host[host.len() - ".localhost".len()..].eq_ignore_ascii_case(".localhost")
    };
    host.eq_ignore_ascii_case("localhost")
        || is_below(host)
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{FaceTerms, HostConfig};

    /// The rules that these flags give, with what is after `url` as the URL of a face.
    fn pages(flags: &[&str]) -> Pages {
        let (flags, own_urls) = match flags {
            ["url", url, rest @ ..] => (rest, vec![(*url).to_owned()]),
            flags => (flags, Vec::new()),
        };
        let terms = FaceTerms { own_urls, ..FaceTerms::default() };
        HostConfig::for_tests(flags).pages(&terms).unwrap()
    }

    fn may(flags: &[&str], trust: Trust, origin: &str, host: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert("origin", origin.parse().unwrap());
        headers.insert("host", host.parse().unwrap());
        pages(flags).check_origin(&Uri::from_static("/e"), &headers, trust).is_ok()
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
            ("http://", "", false),
            ("http://localhost:4000", "localhost:4000", true),
            ("http://LOCALHOST:5173", "127.0.0.1:4000", true),
            ("http://app.localhost:4000", "app.localhost:4000", true),
            ("http://[::1]:4000", "[::1]:4000", true),
            ("http://10.0.0.5:4000", "10.0.0.5:4000", true),
        ] {
            assert_eq!(may(&[], Trust::ThisMachine, origin, host), is_own, "{origin} at {host}");
        }
        let evil = |flags: &[&str]| may(flags, Trust::ThisMachine, "https://evil.example", "x");
        assert!(evil(&["--cors-origins", "https://evil.example"]));
        assert!(evil(&["--cors-origins", "*"]));
        assert!(!evil(&["--cors-origins", "https://good.example"]));
        let own =
            |flags: &[&str]| may(flags, Trust::ThisMachine, "https://go.example", "go.example");
        assert!(!own(&[]));
        assert!(own(&["url", "https://go.example"]));
        assert!(own(&["--own-hosts", "go.example"]));
    }

    #[test]
    fn with_a_password_its_own_origin_counts_and_what_is_named() {
        let may = |flags: &[&str], origin, host| may(flags, Trust::OwnOrigin, origin, host);
        for (origin, host, is_own) in [
            ("https://log.example", "log.example", true),
            ("https://LOG.example", "log.example", true),
            ("http://localhost:4000", "localhost:4000", true),
            ("http://localhost:5173", "localhost:4000", false),
            ("http://127.0.0.1:4000", "localhost:4000", false),
            ("https://log.example:1", "log.example", false),
            ("https://evil.example", "log.example", false),
            ("null", "log.example", false),
            ("", "", false),
            ("http://", "", false),
        ] {
            assert_eq!(may(&[], origin, host), is_own, "{origin} at {host}");
        }
        let app = |flags: &[&str]| may(flags, "https://app.example", "log.example");
        assert!(app(&["--cors-origins", "https://app.example"]));
        assert!(!app(&["--cors-origins", "*"]));
    }

    #[test]
    fn names_that_a_page_can_have_are_not_its_own() {
        let own = |flags: &[&str], host: &str| pages(flags).is_own_host(host.as_bytes());
        for (host, is_own) in [
            ("localhost:4000", true),
            ("LocalHost", true),
            ("a.LOCALHOST:1", true),
            (".localhost", false),
            ("127.0.0.1:4000", true),
            ("127.255.0.1", true),
            ("[::1]:4000", true),
            ("10.0.0.5", true),
            ("wellspring:4000", true),
            ("", false),
            (":4000", false),
            ("[]:4000", false),
            ("evil.example:4000", false),
            ("evil.example.:4000", false),
            ("localhost.", false),
            ("wellspring.", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("notlocalhost.example", false),
            ("2130706433.example", false),
        ] {
            assert_eq!(own(&[], host), is_own, "{host}");
            assert_eq!(own(&["--listen", "0.0.0.0:4000", "--insecure"], host), is_own, "{host}");
        }
        let named = ["--own-hosts", "server.lan, *.svc.cluster.local"];
        for host in ["server.lan:4000", "SERVER.lan", "db.default.svc.cluster.local"] {
            assert!(own(&named, host) && !own(&[], host), "{host}");
        }
        assert!(!own(&["--own-hosts", "server.lan"], "a.server.lan"));
        assert!(own(&["url", "http://go.example:81"], "go.example"));
        assert!(!pages(&[]).is_own_host(b"evil\xff"));
        for wrong in ["http://a.example", "a.example:80", "*"] {
            let message = HostConfig::loaded(&["--own-hosts", wrong]).unwrap_err();
            assert!(message.to_string().contains("own_hosts"), "{wrong}: {message}");
        }
    }

    #[test]
    fn the_target_and_the_header_are_both_judged() {
        let check = |uri: &'static str, host: &'static str| {
            pages(&[]).check_host(&Uri::from_static(uri), Some(host.as_bytes())).is_ok()
        };
        assert!(check("/e", "localhost"));
        assert!(check("http://localhost/e", "localhost"));
        assert!(!check("/e", "evil.example"));
        assert!(!check("http://evil.example/e", "localhost"));
        assert!(!check("http://localhost/e", "evil.example"));
        assert!(pages(&[]).check_host(&Uri::from_static("/e"), None).is_ok());
    }
}
