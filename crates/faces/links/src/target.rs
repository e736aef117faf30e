//! Checks the target of a link.

use super::settings::LinkSettings;
use super::targets::leads_to_node;
use crate::problems;
use crate::view::{HostVerdict, UrlFault, url};
use wellspring_host::node::Node;
use wellspring_host::wire::problem::Problem;

/// Checks a URL. `host` is the `Host` of the request.
///
/// # Errors
/// A problem that names the field `url`.
pub(super) fn check(
    settings: &LinkSettings,
    host: Option<&str>,
    url: &str,
) -> Result<(), Box<Problem>> {
    let target = url::check(url).map_err(of_fault)?;
    let refused = match settings.targets.judge_host(&target) {
        HostVerdict::Allowed => None,
        HostVerdict::Denied => Some("is on the list of hosts that links may not lead to"),
        HostVerdict::NotAllowed => Some("is not on the list of hosts that links may lead to"),
    };
    if let Some(why) = refused {
        let detail = format!("the host {} {why}", target.host());
        return Err(problems::HOST_REFUSED.because(detail).field("url"));
    }
    if settings.is_own(host, &target) {
        let detail = format!(
            "url leads back to this server, {}; links to links may go in circles",
            target.host()
        );
        return Err(problems::OWN_HOST.because(detail).field("url"));
    }
    Ok(())
}

/// Refuses a URL that leads to a node of this service, and so back here.
///
/// # Errors
/// A problem that names the field `url`; the nodes cannot be read.
pub(super) fn check_nodes(node: &Node, url: &str) -> Result<(), Box<Problem>> {
    if node.cluster().is_none() {
        return Ok(());
    }
    let target = url::check(url).map_err(of_fault)?;
    let nodes = node.members().map_err(Box::<Problem>::from)?;
    match nodes.iter().find(|node| leads_to_node(&node.url, &target)) {
        None => Ok(()),
        Some(node) => {
            let detail = format!(
                "url leads back to this service, to its node {}; links to links may go in circles",
                node.node
            );
            Err(problems::OWN_HOST.because(detail).field("url"))
        }
    }
}

/// The answer to a URL that cannot be a target.
pub(super) fn of_fault(fault: UrlFault) -> Box<Problem> {
    let problem = match fault {
        UrlFault::Empty => return url_required(),
        UrlFault::TooLong { .. } => {
            problems::BAD_URL.because(format!("url {fault}")).limit(url::MAX_URL_CHARS as u64)
        }
        _ => problems::BAD_URL.because(format!("url {fault}")),
    };
    problem.field("url")
}

/// The answer to a link without a URL.
pub(super) fn url_required() -> Box<Problem> {
    problems::URL_REQUIRED
        .because("url is missing or empty; give an http:// or https:// URL")
        .field("url")
}

#[cfg(test)]
mod tests {
    use super::super::settings::of_flags;
    use super::*;

    fn slug(flags: &[&str], host: Option<&str>, url: &str) -> &'static str {
        let settings = of_flags(flags);
        check(&settings, host, url).map_or_else(
            |problem| {
                assert_eq!((problem.kind.status, problem.field.as_deref()), (400, Some("url")));
                problem.kind.slug
            },
            |()| "fine",
        )
    }

    #[test]
    fn each_refusal_has_its_name() {
        let long = format!("http://a.example/{}", "x".repeat(2048));
        for (url, expected) in [
            ("http://example.com/test", "fine"),
            ("", "url-required"),
            ("ftp://example.com", "bad-url"),
            ("http://", "bad-url"),
            ("http://u:p@example.com", "bad-url"),
            (long.as_str(), "bad-url"),
            ("http://127.0.0.1:4000/x", "own-host"),
            ("http://here.example/x", "own-host"),
        ] {
            assert_eq!(slug(&[], Some("here.example"), url), expected, "{url}");
        }
        let deny = ["--link-deny-hosts", "*.bad.example"];
        assert_eq!(slug(&deny, None, "http://x.bad.example"), "host-refused");
        assert_eq!(slug(&deny, None, "http://good.example"), "fine");
        let allow = ["--link-allow-hosts", "good.example"];
        assert_eq!(slug(&allow, None, "http://x.bad.example"), "host-refused");
        assert_eq!(slug(&allow, None, "https://good.example/"), "fine");
    }
}
