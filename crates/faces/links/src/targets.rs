//! Allowed targets: the lists of hosts, and the names of this server itself. Used for clients'
//! requests, and by the view for what is folded, including forged events.

use super::settings::LinkConfig;
use crate::view::url::{self, Target};
use crate::view::{HostVerdict, Policy, TargetRule, TargetVerdict};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use wellspring_host::hostname::HostList;
use wellspring_host::settings::ProcessConfig;
use wellspring_host::setup::SetupError;

/// A host and port of this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// In the normal form of hosts.
    host: String,
    /// `None`: the default port of http or https.
    port: Option<u16>,
}

impl Origin {
    /// Parses `host` or `host:port`; `None` if it is neither.
    pub(crate) fn parse(authority: &str) -> Option<Origin> {
        if authority.contains(['/', '?', '#']) {
            return None;
        }
        // A missing port is the scheme's: that is where the two schemes differ.
        let (plain, secure) = (format!("http://{authority}"), format!("https://{authority}"));
        let (plain, secure) = (url::check(&plain).ok()?, url::check(&secure).ok()?);
        let port = (plain.port() == secure.port()).then_some(plain.port());
        Some(Origin { host: plain.canonical_host(), port })
    }

    /// Whether a URL leads here.
    pub(crate) fn is_of(&self, target: &Target<'_>) -> bool {
        let port = target.port();
        self.port.map_or(matches!(port, 80 | 443), |own| own == port)
            && self.host == target.canonical_host()
    }
}

/// Whether a URL leads to the address listened on.
fn leads_to(listen: SocketAddr, target: &Target<'_>) -> bool {
    if listen.port() != target.port() {
        return false;
    }
    let host = target.canonical_host();
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&host);
    let this_machine = match bare.parse::<IpAddr>() {
        Ok(address) if address == listen.ip() => return true,
        Ok(address) => address.is_loopback() || address.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    };
    this_machine && (listen.ip().is_loopback() || listen.ip().is_unspecified())
}

/// Whether a URL leads to the node with this one.
pub(crate) fn leads_to_node(node: &str, target: &Target<'_>) -> bool {
    let authority = node.split_once("://").map_or(node, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or(authority);
    match authority.parse() {
        Ok(address) => leads_to(address, target),
        Err(_) => Origin::parse(authority).is_some_and(|origin| origin.is_of(target)),
    }
}

/// Parses a list of hosts, ignoring empty entries.
fn list(name: &str, entries: &[String]) -> Result<HostList, SetupError> {
    let entries: Vec<String> =
        entries.iter().filter(|entry| !entry.trim().is_empty()).cloned().collect();
    HostList::parse(&entries).map_err(|fault| SetupError::new(format!("{name}: {fault}")))
}

/// See the module.
#[derive(Debug)]
pub(crate) struct LinkTargets {
    /// Hosts that links may lead to.
    hosts: Policy,
    /// The origin of short URLs, if set.
    base: Option<Origin>,
    /// Names of this server.
    own_hosts: HostList,
    listen: SocketAddr,
    /// The address that `listen` resolved to, once bound: port 0 has become another.
    bound: OnceLock<SocketAddr>,
}

impl LinkTargets {
    /// As configured, with the origin of short URLs.
    ///
    /// # Errors
    /// A sentence about the first invalid setting.
    pub(super) fn of(
        process: &ProcessConfig,
        config: &LinkConfig,
        base: Option<Origin>,
    ) -> Result<LinkTargets, SetupError> {
        Ok(LinkTargets {
            hosts: Policy {
                allow: list("link_allow_hosts", &config.link_allow_hosts)?,
                deny: list("link_deny_hosts", &config.link_deny_hosts)?,
            },
            base,
            own_hosts: list("own_hosts", &process.own_hosts)?,
            listen: process.address()?,
            bound: OnceLock::new(),
        })
    }

    /// Sets the listening address.
    pub(super) fn bound_to(&self, address: SocketAddr) {
        let _ = self.bound.set(address);
    }

    /// The listening address.
    pub(super) fn address(&self) -> SocketAddr {
        *self.bound.get().unwrap_or(&self.listen)
    }

    /// The verdict of the lists on a target's host.
    pub(crate) fn judge_host(&self, target: &Target<'_>) -> HostVerdict {
        self.hosts.judge(target.host())
    }

    /// Whether a URL is known to lead back to this server. `host` is the `Host` of the request, if
    /// there is one.
    pub(crate) fn is_own(&self, host: Option<&str>, target: &Target<'_>) -> bool {
        self.base.as_ref().is_some_and(|base| base.is_of(target))
            || host.and_then(Origin::parse).is_some_and(|origin| origin.is_of(target))
            || leads_to(self.address(), target)
            || self.is_named(target)
    }

    /// Whether a URL leads to a name of this server, at one of its ports or at a proxy's in front
    /// of it. Names below a wildcard (`*.example.com`) may be other servers.
    fn is_named(&self, target: &Target<'_>) -> bool {
        let port = target.port();
        (matches!(port, 80 | 443) || port == self.address().port())
            && self.own_hosts.names(target.host())
    }

    /// The verdict on a link's target, however the link was made.
    fn verdict(&self, target: &Target<'_>) -> TargetVerdict {
        if self.judge_host(target) == HostVerdict::Allowed && !self.is_own(None, target) {
            TargetVerdict::Followed
        } else {
            TargetVerdict::Refused
        }
    }

    /// The same on a target that was sealed, which no one has judged yet.
    pub(crate) fn verdict_of(&self, url: &str) -> TargetVerdict {
        url::kept(url).map_or(TargetVerdict::Refused, |target| self.verdict(&target))
    }

    /// The rule that the view folds by.
    pub(crate) fn rule(self: &Arc<Self>) -> TargetRule {
        let targets = Arc::clone(self);
        TargetRule::of(move |target| targets.verdict(target))
    }
}

#[cfg(test)]
mod tests {
    use super::super::LinkFace;
    use super::*;
    use wellspring_host::testing::settings_of;

    fn verdict(flags: &[&str], url: &str) -> TargetVerdict {
        let (host, links) = settings_of::<LinkFace>(flags).expect("right settings");
        let targets = LinkTargets::of(&host.process, &links, None).expect("right settings");
        targets.verdict(&url::check(url).expect("a URL"))
    }

    #[test]
    fn a_node_is_known_by_its_url_and_by_any_name_of_its_machine() {
        for (node, target, leads) in [
            ("http://127.0.0.1:4001", "http://localhost:4001/x", true),
            ("http://127.0.0.1:4001", "http://[::1]:4001/x", true),
            ("http://127.0.0.1:4001", "http://127.0.0.1:4002/x", false),
            ("https://b.example:4000", "http://B.example:4000/", true),
            ("https://b.example/under", "https://b.example/x", true),
            ("https://b.example", "https://c.example/x", false),
        ] {
            let target = url::check(target).expect("a URL");
            assert_eq!(leads_to_node(node, &target), leads, "{node}");
        }
    }

    #[test]
    fn lists_and_own_names_are_refused_to_every_client() {
        let flags =
            ["--link-deny-hosts", "*.bad.example", "--own-hosts", "go.example,*.wild.example"];
        for url in [
            "http://x.bad.example/",
            "http://127.0.0.1:4000/x",
            "http://localhost:4000/x",
            "https://GO.example/x",
            "http://go.example:4000/",
        ] {
            assert_eq!(verdict(&flags, url), TargetVerdict::Refused, "{url}");
        }
        for url in [
            "http://good.example/",
            "http://127.0.0.1:4001/x",
            "http://go.example:81/",
            "http://wiki.wild.example/",
        ] {
            assert_eq!(verdict(&flags, url), TargetVerdict::Followed, "{url}");
        }
        let allow = ["--link-allow-hosts", "good.example"];
        assert_eq!(verdict(&allow, "http://good.example/"), TargetVerdict::Followed);
        assert_eq!(verdict(&allow, "http://other.example/"), TargetVerdict::Refused);
    }
}
