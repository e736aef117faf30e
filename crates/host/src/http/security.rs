//! Security headers of answers that browsers would show as a page, so that content written by
//! others never runs as a script.

use super::Response;

/// For a page: nothing is loaded beyond what it contains, and no other page may embed it.
const PAGE: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; \
                    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// For a picture opened as a page.
const PICTURE: &str =
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox";
/// A year, as is usual. Not for subdomains, which may belong to others.
const TRANSPORT: &str = "max-age=31536000";

/// How a client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    /// As it comes.
    Plain,
    /// With TLS.
    Tls,
}

/// Adds the headers that its content type requires. Those set by the handler stay.
///
/// JSON needs none: browsers show it as text, and nearly every answer is JSON.
pub(super) fn put_on(response: &mut Response, transport: Transport) {
    let media = response.content_type.split(';').next().unwrap_or_default();
    let policy = match media {
        "" | super::JSON | "application/problem+json" => return,
        "text/html" => Some(PAGE),
        "image/svg+xml" => Some(PICTURE),
        _ => None,
    };
    put(response, "x-content-type-options", "nosniff");
    let Some(policy) = policy else { return };
    put(response, "content-security-policy", policy);
    put(response, "referrer-policy", "no-referrer");
    put(response, "x-frame-options", "DENY");
    // Pictures are often embedded in other sites' pages; only our own pages speak for the host.
    if transport == Transport::Tls && media == "text/html" {
        put(response, "strict-transport-security", TRANSPORT);
    }
}

fn put(response: &mut Response, name: &'static str, value: &str) {
    if response.header(name).is_none() {
        response.headers.push((name, value.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(content_type: &'static str, transport: Transport) -> Response {
        let mut response = Response::text(content_type, "x");
        put_on(&mut response, transport);
        response
    }

    #[test]
    fn pages_and_pictures_are_shut_in() {
        for content_type in ["text/html", "text/html; charset=utf-8", "image/svg+xml"] {
            let answer = with(content_type, Transport::Plain);
            let policy = answer.header("content-security-policy").unwrap();
            assert!(policy.starts_with("default-src 'none'"), "{policy}");
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
            assert_eq!(answer.header("x-frame-options"), Some("DENY"));
            assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
            assert_eq!(answer.header("strict-transport-security"), None);
        }
        let over_tls = |media| {
            let answer = with(media, Transport::Tls);
            answer.header("strict-transport-security").map(str::to_owned)
        };
        assert_eq!(over_tls("text/html").as_deref(), Some(TRANSPORT));
        assert_eq!(over_tls("image/svg+xml"), None);
        assert_eq!(over_tls(super::super::JSON), None);
    }

    #[test]
    fn other_answers_are_what_they_say() {
        for media in ["text/plain; version=0.0.4", super::super::NDJSON, super::super::SSE] {
            let answer = with(media, Transport::Tls);
            assert_eq!(answer.headers.len(), 1, "{media}");
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        }
        for media in ["", super::super::JSON, "application/problem+json"] {
            assert!(with(media, Transport::Tls).headers.is_empty(), "{media}");
        }
    }

    #[test]
    fn what_a_handler_says_stays() {
        let own = "default-src 'self'".to_owned();
        let mut answer = Response::text("text/html", "x").with("content-security-policy", own);
        put_on(&mut answer, Transport::Plain);
        let policies = answer.headers.iter().filter(|(name, _)| *name == "content-security-policy");
        assert_eq!(policies.count(), 1);
        assert_eq!(answer.header("content-security-policy"), Some("default-src 'self'"));
    }
}
