//! Which pages may use this server from a browser (CORS, WHATWG Fetch). Off unless origins are
//! configured.
//!
//! The answer to a preflight comes before anybody asks who it is from: browsers send no credentials
//! with it. We know no cookies, so credentials in the sense of CORS are never allowed; a page that has
//! a token sends it itself. Redirects of links are left as they are: the lean loop answers them too.

use super::routes::TABLE;
use super::{Request, Response};
use crate::config::Config;
use crate::links::settings::is_authority;
use hyper::Method;
use hyper::header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};

/// Headers of requests that mean something here and that browsers ask about.
const ASKED: &str = "authorization, content-type, idempotency-key, last-event-id, \
                     wellspring-min-position, x-api-key, x-request-id";
/// Headers of answers that pages are shown besides those they always are.
const SHOWN: &str =
    "allow, location, retry-after, wellspring-position, www-authenticate, x-request-id";
/// How long a browser may remember the answer to a preflight, in seconds. Some keep to less.
const MAX_AGE_S: &str = "7200";
/// The path of redirects.
const REDIRECTS: &str = "/{code}";

/// The origins whose pages may use this server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cors {
    /// Any.
    Any,
    /// These, written as browsers write them.
    These(Vec<String>),
}

/// What a request says of the page that it comes from.
pub(super) struct Asked {
    origin: Option<String>,
    /// Whether a browser asks if it may ask.
    is_preflight: bool,
}

impl Asked {
    /// What a request says.
    pub(super) fn of(request: &Request) -> Asked {
        Asked {
            origin: request.header(ORIGIN.as_str()).map(str::to_owned),
            is_preflight: request.method == Method::OPTIONS
                && request.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD),
        }
    }
}

impl Cors {
    /// Reads the setting; `None`: it is off.
    ///
    /// # Errors
    /// A sentence about the first entry that is wrong.
    pub(crate) fn of(config: &Config) -> Result<Option<Cors>, String> {
        let origins = config.cors_origins.iter().map(|origin| origin.trim());
        let origins: Vec<&str> = origins.filter(|origin| !origin.is_empty()).collect();
        match origins[..] {
            [] => Ok(None),
            ["*"] => Ok(Some(Cors::Any)),
            _ => {
                if let Some(wrong) = origins.iter().find(|origin| !is_origin(origin)) {
                    return Err(format!(
                        "cors_origins must be * alone, or scheme and host as a browser sends them, \
                         e.g. https://app.example.com or http://localhost:5173, not {wrong:?}"
                    ));
                }
                Ok(Some(Cors::These(origins.into_iter().map(str::to_owned).collect())))
            }
        }
    }

    /// Whether pages of an origin may use this server.
    pub(crate) fn allows(&self, origin: &str) -> bool {
        match self {
            Cors::Any => true,
            Cors::These(origins) => origins.iter().any(|known| known == origin),
        }
    }

    /// Puts on the answer what tells the browser whether its page may have it.
    pub(super) fn put_on(&self, response: &mut Response, asked: &Asked, route: usize) {
        if TABLE.get(route).is_some_and(|route| route.path == REDIRECTS) {
            return;
        }
        let allowed = match self {
            Cors::Any => "*",
            Cors::These(_) => {
                // An answer kept for one page is not for the next.
                response.vary("Origin");
                match asked.origin.as_deref().filter(|origin| self.allows(origin)) {
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
}

/// Whether a text is an origin as browsers write it (RFC 6454, 6.2): in small letters, without a
/// path, and without the port that its scheme means anyway. `null` is none: every page in a sandbox
/// and every file has it.
fn is_origin(text: &str) -> bool {
    let Some((scheme, authority)) = text.split_once("://") else { return false };
    let is_scheme = scheme.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
        && scheme.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte)
        });
    let default_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => "/",
    };
    let is_small = !authority.bytes().any(|byte| byte.is_ascii_uppercase());
    is_scheme && is_small && is_authority(authority) && !authority.ends_with(default_port)
}

#[cfg(test)]
mod tests {
    use super::super::{problem, routes};
    use super::*;

    fn cors(origins: &str) -> Cors {
        Cors::of(&Config::for_tests(&["--cors-origins", origins])).unwrap().unwrap()
    }

    fn put(cors: &Cors, origin: Option<&str>, is_preflight: bool, answer: Response) -> Response {
        let mut answer = answer;
        let asked = Asked { origin: origin.map(str::to_owned), is_preflight };
        cors.put_on(&mut answer, &asked, TABLE.len());
        answer
    }

    fn allowed(answer: &Response) -> Option<&str> {
        answer.header("access-control-allow-origin")
    }

    #[test]
    fn it_is_off_unless_origins_are_given() {
        assert_eq!(Cors::of(&Config::for_tests(&[])), Ok(None));
        assert_eq!(Cors::of(&Config::for_tests(&["--cors-origins", ""])), Ok(None));
        assert_eq!(cors("*"), Cors::Any);
        let two = ["https://a.example", "http://localhost:5173"].map(str::to_owned).to_vec();
        assert_eq!(cors("https://a.example, http://localhost:5173"), Cors::These(two));
    }

    #[test]
    fn origins_are_written_as_browsers_write_them() {
        for origin in [
            "https://a.example",
            "https://a.example:8443",
            "http://127.0.0.1:8080",
            "http://[::1]:3000",
            "http://a.example:443",
            "tauri://localhost",
            "chrome-extension://abcdefgh",
        ] {
            assert!(Config::loaded(&["--cors-origins", origin]).is_ok(), "{origin}");
        }
        for wrong in [
            "a.example",
            "https://",
            "https://a.example/",
            "https://a.example/x",
            "https://A.example",
            "HTTPS://a.example",
            "https://a.example:443",
            "http://a.example:80",
            "https://a.example:0",
            "https://u@a.example",
            "https://*.example",
            "null",
            "*,https://a.example",
            "https://a.example,*",
            "https://a b",
        ] {
            let message = Config::loaded(&["--cors-origins", wrong]).unwrap_err();
            assert!(message.contains("cors_origins"), "{wrong}: {message}");
        }
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
        for name in ["authorization", "x-api-key", "idempotency-key"] {
            assert!(headers.split(", ").any(|known| known == name), "{name}");
        }
        let other = put(&cors("https://a.example"), Some("https://b.example"), true, known());
        assert_eq!(other.header("access-control-allow-methods"), None);
    }

    #[test]
    fn redirects_are_left_alone() {
        let mut answer = Response::json(302, "");
        let asked = Asked { origin: Some("https://a.example".to_owned()), is_preflight: false };
        cors("https://a.example").put_on(&mut answer, &asked, routes::index("GET", REDIRECTS));
        assert!(answer.headers.is_empty());
        assert!(routes::index("GET", REDIRECTS) < TABLE.len(), "there is such a route");
    }
}
