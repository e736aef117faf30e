//! Which pages may use this server from a browser (CORS, WHATWG Fetch). Off unless origins are
//! configured.
//!
//! A preflight is answered before authentication: browsers send it without credentials. There are
//! no cookies, so credentials in the sense of CORS are never allowed; a page that has a token sends
//! it itself. Redirects of links are left alone: the lean loop answers them, too.

use super::{Request, Response};
use crate::access::cors_origins::Cors;
use hyper::Method;
use hyper::header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};

/// Request headers that matter here and that browsers ask about.
const ASKED: &str = "authorization, content-type, idempotency-key, if-match, if-none-match, \
                     last-event-id, wellspring-history, wellspring-min-position, \
                     wellspring-min-system-position, x-api-key, x-request-id";
/// Answer headers that pages may read apart from the standard ones.
const SHOWN: &str = "allow, etag, location, retry-after, wellspring-history, \
                     wellspring-position, www-authenticate, x-request-id";
/// How long a browser may cache a preflight, in seconds. Some use less.
const MAX_AGE_S: &str = "7200";
/// The path of redirects.
pub const REDIRECTS: &str = "/{code}";

/// The page that sent a request, as its headers say.
pub(super) struct RequestOrigin {
    origin: Option<String>,
    /// Whether it is a preflight.
    is_preflight: bool,
}

impl RequestOrigin {
    /// The origin of a request.
    pub(super) fn of(request: &Request) -> RequestOrigin {
        RequestOrigin {
            origin: request.header(ORIGIN.as_str()).map(str::to_owned),
            is_preflight: request.method == Method::OPTIONS
                && request.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD),
        }
    }
}

/// Adds the headers that tell the browser whether its page may read the answer.
pub(super) fn put_on(
    cors: &Cors,
    response: &mut Response,
    asked: &RequestOrigin,
    route: Option<&str>,
) {
    if route == Some(REDIRECTS) {
        return;
    }
    let allowed = match cors {
        Cors::Any => "*",
        Cors::These(_) => {
            // An answer cached for one page must not be used for another.
            response.vary("Origin");
            match asked.origin.as_deref().filter(|origin| cors.allows(origin)) {
                Some(origin) => origin,
                None => return,
            }
        }
    };
    let mut put = |name, value: &str| response.headers.push((name, value.to_owned()));
    put("access-control-allow-origin", allowed);
    if !asked.is_preflight {
        put("access-control-expose-headers", SHOWN);
    } else if let Some(methods) = response.header("allow").map(str::to_owned) {
        let mut put = |name, value: &str| response.headers.push((name, value.to_owned()));
        put("access-control-allow-methods", &methods);
        put("access-control-allow-headers", ASKED);
        put("access-control-max-age", MAX_AGE_S);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::problem;

    fn cors(origins: &str) -> Cors {
        Cors::of(&origins.split(',').map(str::to_owned).collect::<Vec<_>>()).unwrap().unwrap()
    }

    fn put(cors: &Cors, origin: Option<&str>, is_preflight: bool, answer: Response) -> Response {
        let mut answer = answer;
        let asked = RequestOrigin { origin: origin.map(str::to_owned), is_preflight };
        put_on(cors, &mut answer, &asked, None);
        answer
    }

    fn allowed(answer: &Response) -> Option<&str> {
        answer.header("access-control-allow-origin")
    }

    #[test]
    fn a_page_that_may_is_told_so() {
        let these = cors("https://a.example,https://b.example");
        for origin in ["https://a.example", "https://b.example"] {
            let answer = put(&these, Some(origin), false, Response::json(200, "{}"));
            assert_eq!(allowed(&answer), Some(origin));
            assert_eq!(answer.header("vary"), Some("Origin"));
            assert!(answer.header("access-control-expose-headers").is_some());
            assert_eq!(answer.header("access-control-allow-methods"), None);
        }
        for origin in [None, Some("https://c.example"), Some("https://a.example."), Some("null")] {
            let answer = put(&these, origin, false, Response::json(200, "{}"));
            assert_eq!(allowed(&answer), None);
            assert_eq!(answer.header("vary"), Some("Origin"), "kept for nobody else");
        }
        let any = put(&Cors::Any, Some("https://c.example"), false, Response::json(200, "{}"));
        assert_eq!((allowed(&any), any.header("vary")), (Some("*"), None));
        assert_eq!(any.header("access-control-allow-credentials"), None);
        let refused = problem::UNAUTHENTICATED.because("").into();
        assert_eq!(allowed(&put(&Cors::Any, Some("https://c.example"), false, refused)), Some("*"));
    }

    #[test]
    fn a_preflight_says_what_may_be_asked() {
        let known = || Response::json(204, "").with("allow", "GET, HEAD, POST".to_owned());
        let answer = put(&Cors::Any, Some("https://a.example"), true, known());
        assert_eq!(answer.header("access-control-allow-methods"), Some("GET, HEAD, POST"));
        assert_eq!(answer.header("access-control-max-age"), Some("7200"));
        let headers = answer.header("access-control-allow-headers").unwrap();
        for name in ["authorization", "x-api-key", "idempotency-key", "if-match", "if-none-match"] {
            assert!(headers.split(", ").any(|known| known == name), "{name}");
        }
        let other = put(&cors("https://a.example"), Some("https://b.example"), true, known());
        assert_eq!(other.header("access-control-allow-methods"), None);
    }

    #[test]
    fn redirects_are_left_alone() {
        let mut answer = Response::json(302, "");
        let asked =
            RequestOrigin { origin: Some("https://a.example".to_owned()), is_preflight: false };
        put_on(&cors("https://a.example"), &mut answer, &asked, Some(REDIRECTS));
        assert!(answer.headers.is_empty());
    }
}
