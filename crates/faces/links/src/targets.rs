//! Where links may lead: the lists of hosts, and the names of this server itself. The door asks it
//! for what clients want, and the view for what is folded, a forged event too.

use super::settings::LinkConfig;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use wellspring_host::settings::ProcessConfig;
use wellspring_views::links::url::{self, Target};
use wellspring_views::links::{HostList, HostVerdict, Policy, TargetRule, TargetVerdict};

/// A host and port under which this server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// In the form in which hosts are compared.
    host: String,
    /// None written means: that of http or that of https.
    port: Option<u16>,
}

impl Origin {
    /// Reads `host` or `host:port`; `None` if it is neither.
    pub(crate) fn parse(authority: &str) -> Option<Origin> {
        if authority.contains(['/', '?', '#']) {
            return None;
        }
        // The port that is not written is the scheme's: so the two differ in it.
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

/// Reads a list of hosts, of which empty entries are passed over.
fn list(name: &str, entries: &[String]) -> Result<HostList, String> {
    let entries: Vec<String> =
        entries.iter().filter(|entry| !entry.trim().is_empty()).cloned().collect();
    HostList::parse(&entries).map_err(|fault| format!("{name}: {fault}"))
}

/// See the module.
#[derive(Debug)]
pub(crate) struct LinkTargets {
    /// Which hosts links may lead to.
    hosts: Policy,
    /// That of the short URLs, if it is set.
    base: Option<Origin>,
    /// Names that this server is asked under.
    own_hosts: HostList,
    listen: SocketAddr,
    /// The address that `listen` came to, once it is listened on: a port 0 has become another.
    bound: OnceLock<SocketAddr>,
}

impl LinkTargets {
    /// As configured, with the origin of short URLs.
    ///
    /// # Errors
    /// A sentence about the first setting that is wrong.
    pub(super) fn of(
        process: &ProcessConfig,
        config: &LinkConfig,
        base: Option<Origin>,
    ) -> Result<LinkTargets, String> {
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

    /// Tells the address that is listened on.
    pub(super) fn bound_to(&self, address: SocketAddr) {
        let _ = self.bound.set(address);
    }

    /// The address listened on.
    pub(super) fn address(&self) -> SocketAddr {
        *self.bound.get().unwrap_or(&self.listen)
    }

    /// What the lists say of a target's host.
    pub(crate) fn judge_host(&self, target: &Target<'_>) -> HostVerdict {
        self.hosts.judge(target.host())
    }

    /// Whether a URL leads back to this server, as far as it knows. `host` is the `Host` of the
    /// request that asks, if one does.
    pub(crate) fn is_own(&self, host: Option<&str>, target: &Target<'_>) -> bool {
        self.base.as_ref().is_some_and(|base| base.is_of(target))
            || host.and_then(Origin::parse).is_some_and(|origin| origin.is_of(target))
            || leads_to(self.address(), target)
            || self.is_named(target)
    }

    /// Whether a URL leads to a name that this server is asked under, at a port of its own or of a
    /// proxy before it. All below a name (`*.example.com`) may be other servers.
    fn is_named(&self, target: &Target<'_>) -> bool {
        let port = target.port();
        (matches!(port, 80 | 443) || port == self.address().port())
            && self.own_hosts.names(target.host())
    }

    /// The verdict on what a link leads to, however it was made.
    fn verdict(&self, target: &Target<'_>) -> TargetVerdict {
        if self.judge_host(target) == HostVerdict::Allowed && !self.is_own(None, target) {
            TargetVerdict::Followed
        } else {
            TargetVerdict::Refused
        }
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
    fn lists_and_own_names_are_refused_whoever_asks() {
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
