//! The settings of links, parsed and checked.

use super::targets::{LinkTargets, Origin};
use crate::view::event::TYPES;
use crate::view::url::{self, Target};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use wellspring_host::kept_types::KeptEvents;
use wellspring_host::limits::{Limiter, Rate};
use wellspring_host::names::MAIN;
use wellspring_host::settings::{ProcessConfig, section};
use wellspring_host::setup::SetupError;
use wellspring_host::wire::authority::is_authority;

/// Default number of links that a client may create per minute where other machines can reach the
/// server.
const DEFAULT_CREATES_PER_MINUTE: u32 = 600;

/// What a browser tells a link's target about the referring page (W3C Referrer Policy).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReferrerPolicy {
    /// Nothing.
    NoReferrer,
    /// The whole URL, except from https to http.
    NoReferrerWhenDowngrade,
    /// Scheme and host.
    Origin,
    /// Scheme and host; to the same origin the whole URL.
    OriginWhenCrossOrigin,
    /// The whole URL to the same origin, otherwise nothing.
    SameOrigin,
    /// Scheme and host, except from https to http.
    StrictOrigin,
    /// The default of browsers: scheme and host, except from https to http; to the same origin the
    /// whole URL.
    StrictOriginWhenCrossOrigin,
    /// The whole URL.
    UnsafeUrl,
}

impl ReferrerPolicy {
    /// The value of the header.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ReferrerPolicy::NoReferrer => "no-referrer",
            ReferrerPolicy::NoReferrerWhenDowngrade => "no-referrer-when-downgrade",
            ReferrerPolicy::Origin => "origin",
            ReferrerPolicy::OriginWhenCrossOrigin => "origin-when-cross-origin",
            ReferrerPolicy::SameOrigin => "same-origin",
            ReferrerPolicy::StrictOrigin => "strict-origin",
            ReferrerPolicy::StrictOriginWhenCrossOrigin => "strict-origin-when-cross-origin",
            ReferrerPolicy::UnsafeUrl => "unsafe-url",
        }
    }
}

section! {
    /// Settings of links.
    LinkConfig from LinkConfigArgs under "Links":
    /// Referrer-Policy of redirects.
    link_referrer_policy: ReferrerPolicy = "WELLSPRING_LINK_REFERRER_POLICY", ReferrerPolicy::StrictOriginWhenCrossOrigin;
    /// Hosts that links may lead to; comma separated. example.com is that host, *.example.com every
    /// host below it; none = any host.
    [value_delimiter = ',']
    link_allow_hosts: Vec<String> = "WELLSPRING_LINK_ALLOW_HOSTS", Vec::new();
    /// Hosts that links must not lead to, even if allowed; comma separated, as in
    /// --link-allow-hosts.
    [value_delimiter = ',']
    link_deny_hosts: Vec<String> = "WELLSPRING_LINK_DENY_HOSTS", Vec::new();
    /// Let clients append link events (LinkCreated and so on) to the log main, as restoring an
    /// export requires. Such links are followed only where --link-allow-hosts, --link-deny-hosts
    /// and the server's own names allow it.
    [num_args = 0..=1, default_missing_value = "true"]
    link_accept_events: bool = "WELLSPRING_LINK_ACCEPT_EVENTS", false;
    /// Append the query of a request for a link to the query of its target.
    [num_args = 0..=1, default_missing_value = "true"]
    link_pass_query: bool = "WELLSPRING_LINK_PASS_QUERY", false;
    optional
    /// Scheme and host of short URLs, e.g. https://go.example.com. Default: http (with TLS https)
    /// and the Host of each request.
    link_base_url: String = "WELLSPRING_LINK_BASE_URL";
    optional
    /// Maximum number of links a client address may create per minute; 0 = any number. Not set: any
    /// number while --listen is a loopback address, else 600.
    link_creates_per_minute: u32 = "WELLSPRING_LINK_CREATES_PER_MINUTE";
}

/// The events of links. Appended by a client they would make links that bypassed all checks, and
/// clicks that never happened.
static KEPT: KeptEvents = KeptEvents {
    log: Some(MAIN),
    types: &TYPES,
    prefix: "Link",
    advice: "only the link shortener writes: create, change and delete links at \
             /api/urls. To restore an export, start the server with --link-accept-events",
};

impl LinkConfig {
    /// The events that clients may not append.
    pub(crate) fn kept_events(&self) -> Option<&'static KeptEvents> {
        (!self.link_accept_events).then_some(&KEPT)
    }
}

/// Scheme and host of short URLs.
#[derive(Debug, Clone)]
struct BaseUrl {
    /// Without a trailing slash.
    text: String,
    origin: Origin,
}

/// The settings of links.
#[derive(Debug)]
pub(crate) struct LinkSettings {
    base_url: Option<BaseUrl>,
    /// Scheme of this server's URLs.
    scheme: &'static str,
    /// The allowed targets.
    pub(crate) targets: Arc<LinkTargets>,
    /// The value of `Referrer-Policy` on redirects.
    pub(crate) referrer_policy: ReferrerPolicy,
    /// Whether the query of a request is passed on.
    pub(crate) passes_query: bool,
    /// How many links a client may create; `None`: unlimited.
    pub(crate) creates: Option<Limiter>,
}

impl LinkSettings {
    /// Parses them. `has_tls`: the server's own URLs are https.
    ///
    /// # Errors
    /// A sentence about the first invalid setting.
    pub(crate) fn of(
        process: &ProcessConfig,
        config: &LinkConfig,
        has_tls: bool,
    ) -> Result<LinkSettings, SetupError> {
        let listen = process.address()?;
        let everyone = listen.ip().is_loopback() && config.link_creates_per_minute.is_none();
        let per_minute = config.link_creates_per_minute.unwrap_or(DEFAULT_CREATES_PER_MINUTE);
        let base_url = config.link_base_url.as_deref().map(base_url).transpose()?;
        let origin = base_url.as_ref().map(|base| base.origin.clone());
        Ok(LinkSettings {
            base_url,
            scheme: if has_tls { "https" } else { "http" },
            targets: Arc::new(LinkTargets::of(process, config, origin)?),
            referrer_policy: config.link_referrer_policy,
            passes_query: config.link_pass_query,
            creates: NonZeroU32::new(per_minute)
                .filter(|_| !everyone)
                .map(|links| Limiter::new(Rate::per_minute(links))),
        })
    }

    /// Sets the listening address.
    pub(crate) fn bound_to(&self, address: SocketAddr) {
        self.targets.bound_to(address);
    }

    fn address(&self) -> SocketAddr {
        self.targets.address()
    }

    /// Whether the base of short URLs is fixed, independent of the request.
    pub(crate) fn has_base_url(&self) -> bool {
        self.base_url.is_some()
    }

    /// The part before `/CODE` in a short URL. `host` is the `Host` of the request; an invalid one
    /// is ignored.
    pub(crate) fn base(&self, host: Option<&str>) -> String {
        match (&self.base_url, host.filter(|host| is_authority(host))) {
            (Some(base), _) => base.text.clone(),
            (None, Some(host)) => format!("{}://{host}", self.scheme),
            (None, None) => format!("{}://{}", self.scheme, self.address()),
        }
    }

    /// Whether a URL is known to lead back to this server. `host` as in [`LinkSettings::base`].
    pub(crate) fn is_own(&self, host: Option<&str>, target: &Target<'_>) -> bool {
        self.targets.is_own(host, target)
    }
}

fn base_url(text: &str) -> Result<BaseUrl, SetupError> {
    let wrong = |why: &str| format!("link_base_url {why}, not {text:?}");
    let target = url::check(text).map_err(|fault| format!("link_base_url {text:?} {fault}"))?;
    let bare = text.strip_suffix('/').unwrap_or(text);
    let authority = bare.split_once("//").map_or("", |(_, authority)| authority);
    let origin = Origin::parse(authority)
        .ok_or_else(|| wrong("must be a scheme and a host, e.g. https://go.example.com"))?;
    if !target.host().is_ascii() {
        return Err(wrong("must have its host in ASCII (xn-- form)").into());
    }
    Ok(BaseUrl { text: bare.to_owned(), origin })
}

#[cfg(test)]
use {super::LinkFace, wellspring_host::testing::settings_of};

/// The settings of links that these flags give.
#[cfg(test)]
pub(super) fn of_flags(flags: &[&str]) -> LinkSettings {
    let (host, links) = settings_of::<LinkFace>(flags).expect("right settings");
    LinkSettings::of(&host.process, &links, host.tls.is_on()).expect("right settings")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::HostVerdict;

    fn settings(flags: &[&str]) -> LinkSettings {
        of_flags(flags)
    }

    fn is_own(flags: &[&str], host: Option<&str>, target: &str) -> bool {
        settings(flags).is_own(host, &url::check(target).expect("a URL"))
    }

    #[test]
    fn policies_are_spelled_as_in_the_header() {
        for policy in ReferrerPolicy::value_variants() {
            let name = policy.to_possible_value().expect("a name");
            assert_eq!(name.get_name(), policy.as_str());
            assert_eq!(toml::Value::try_from(policy).unwrap().as_str(), Some(policy.as_str()));
        }
    }

    #[test]
    fn the_events_of_links_are_kept_unless_a_setting_says_otherwise() {
        use wellspring_host::kept_types::KeptTypes;
        let kept = |flags: &[&str]| {
            let (_, links) = settings_of::<LinkFace>(flags).expect("right settings");
            KeptTypes::new(links.kept_events()).in_log(MAIN)
        };
        for event_type in TYPES {
            let problem = kept(&[]).check(event_type).expect_err("refused");
            assert!(problem.detail.contains("--link-accept-events"), "{}", problem.detail);
            assert_eq!(kept(&["--link-accept-events"]).fault(event_type), None);
        }
        for other in ["Link", "LinkCreatedBy", "linkCreated", "Linked", "T"] {
            assert_eq!(kept(&[]).fault(other), None, "{other}");
        }
    }

    #[test]
    fn limits_depend_on_whether_others_can_reach_the_server() {
        let limited = |flags: &[&str]| settings(flags).creates.is_some();
        let public = ["--listen", "0.0.0.0:4000", "--insecure"];
        assert!(!limited(&[]));
        assert!(limited(&public));
        assert!(limited(&["--link-creates-per-minute", "5"]));
        assert!(!limited(&["--link-creates-per-minute", "0"]));
        assert!(!limited(&[&public[..], &["--link-creates-per-minute", "0"]].concat()));
    }

    #[test]
    fn short_urls_begin_with_what_is_set_or_asked_for() {
        assert_eq!(settings(&[]).base(Some("a.example:81")), "http://a.example:81");
        assert_eq!(settings(&[]).base(None), "http://127.0.0.1:4000");
        let set = settings(&["--link-base-url", "https://go.example.com/"]);
        assert_eq!(set.base(Some("a.example")), "https://go.example.com");
        let pair = ["--tls-cert", "c", "--tls-key", "k"];
        assert_eq!(settings(&pair).base(Some("a.example:81")), "https://a.example:81");
        assert_eq!(settings(&pair).base(None), "https://127.0.0.1:4000");
        let before = [&pair[..], &["--link-base-url", "http://go.example.com"]].concat();
        assert_eq!(settings(&before).base(None), "http://go.example.com");
    }

    #[test]
    fn a_host_that_can_be_none_is_not_believed() {
        for host in [
            "a.example",
            "A.example:65535",
            "localhost",
            "[::1]",
            "[2001:db8::1]:80",
            "127.0.0.1:4000",
        ] {
            assert_eq!(settings(&[]).base(Some(host)), format!("http://{host}"));
        }
        for host in [
            "",
            "a b",
            "user@host",
            "user:pw@host",
            "evil/x",
            "evil?x",
            "evil#x",
            "a:",
            "a:0",
            "a:65536",
            "a:+80",
            "a:80:80",
            ":80",
            "a..b",
            "[::1",
            "::1",
            "[::1]x",
            "a]b",
            "1.2.3",
            "a\"b",
            "a\\b",
            "a%2fb",
            "<a>",
            "hôte.example",
        ] {
            assert_eq!(settings(&[]).base(Some(host)), "http://127.0.0.1:4000", "{host}");
        }
    }

    #[test]
    fn a_url_back_here_is_told() {
        let set = ["--link-base-url", "https://go.example.com"];
        for target in
            ["https://GO.example.com/x", "http://go.example.com", "http://go.example.com.:443"]
        {
            assert!(is_own(&set, None, target), "{target}");
        }
        for target in ["http://go.example.com:81", "http://example.com", "http://x.go.example.com"]
        {
            assert!(!is_own(&set, None, target), "{target}");
        }
        assert!(is_own(&[], Some("a.example:81"), "http://a.example:81/x"));
        assert!(!is_own(&[], Some("a.example:81"), "http://a.example/x"));
        assert!(is_own(&[], Some("a.example"), "https://a.example/x"));
        assert!(!is_own(&[], Some("no host"), "http://example.com"));
        for target in [
            "http://127.0.0.1:4000",
            "http://localhost:4000/x",
            "http://[::1]:4000",
            "http://0.0.0.0:4000",
        ] {
            assert!(is_own(&[], None, target), "{target}");
        }
        for target in ["http://127.0.0.1:4001", "http://localhost", "http://10.0.0.1:4000"] {
            assert!(!is_own(&[], None, target), "{target}");
        }
        let public = ["--insecure", "--listen", "10.0.0.1:4000"];
        assert!(is_own(&public, None, "http://10.0.0.1:4000"));
        assert!(!is_own(&public, None, "http://localhost:4000"));
    }

    #[test]
    fn a_port_that_the_system_chose_is_known_once_it_is() {
        let settings = settings(&["--listen", "127.0.0.1:0"]);
        let target = url::check("http://localhost:4711/x").expect("a URL");
        assert!(!settings.is_own(None, &target));
        settings.bound_to(([127, 0, 0, 1], 4711).into());
        assert!(settings.is_own(None, &target));
        assert_eq!(settings.base(None), "http://127.0.0.1:4711");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let message = |flags: &[&str]| settings_of::<LinkFace>(flags).expect_err("wrong settings");
        assert!(message(&["--trusted-proxies", "10.0.0.0/8,x"]).to_string().contains("\"x\""));
        assert!(
            message(&["--link-allow-hosts", "a.example,http://b"])
                .to_string()
                .contains("link_allow_hosts")
        );
        assert!(message(&["--link-deny-hosts", "a..b"]).to_string().contains("link_deny_hosts"));
        for bad in ["go.example.com", "ftp://a", "https://a/b", "https://a?b", "https://a//", ""] {
            assert!(
                message(&["--link-base-url", bad]).to_string().contains("link_base_url"),
                "{bad}"
            );
        }
        assert!(
            message(&["--link-referrer-policy", "sometimes"]).to_string().contains("no-referrer")
        );
    }

    #[test]
    fn lists_come_with_commas() {
        let targets = of_flags(&["--link-deny-hosts", "a.example, *.b.example"]).targets;
        for url in ["http://x.b.example/", "http://a.example/"] {
            let verdict = targets.judge_host(&url::check(url).unwrap());
            assert_eq!(verdict, HostVerdict::Denied, "{url}");
        }
    }
}
