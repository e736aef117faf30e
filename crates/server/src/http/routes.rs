//! Every route there is, and who may call it. The router, the check of access and the OpenAPI
//! document are all made from this table, so none can know what another does not.

use super::{Answer, Request, Shell};
use super::{
    access, admin, append, dialects, import, ingest, leases, links, logs, openapi, project, read,
    views,
};
use crate::access::Needs;
use crate::node::MAIN;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use wellspring_views::access::Role;

/// What a handler gives back.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;
/// A handler.
pub(crate) type Handler = fn(Arc<Shell>, Request) -> Answering;

/// What a route is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The whole process.
    Node,
    /// One log: `/v1/x` is also served as `/v1/logs/{log}/x`.
    Log,
    /// The log `main`, at this path only.
    Main,
    /// As [`Scope::Main`], and only with `--dev-endpoints`.
    Dev,
    /// The links in the log `main`, at this path only. Problems have a member `error` besides.
    Links,
}

/// One route.
pub(crate) struct Route {
    /// Its method.
    pub(crate) method: &'static str,
    /// Its path; `{…}` stands for one segment, or for what comes before `.qr` of one.
    pub(crate) path: &'static str,
    /// What it is about.
    pub(crate) scope: Scope,
    /// Who may call it.
    pub(crate) needs: Needs,
    /// Who answers.
    pub(crate) handler: Handler,
    /// What it does, in a sentence.
    pub(crate) what: &'static str,
    /// Its query parameters.
    pub(crate) params: &'static [&'static str],
    /// Schema of its body, or empty.
    pub(crate) takes: &'static str,
    /// Schema of its answer, or empty.
    pub(crate) gives: &'static str,
}

macro_rules! needs {
    (Public) => {
        Needs::Public
    };
    (Account) => {
        Needs::Account
    };
    ($role:ident) => {
        Needs::Role(Role::$role)
    };
}

macro_rules! table {
    ($($method:ident $path:literal $scope:ident $needs:ident $handler:path: $what:literal
        ? [$($param:literal),*] $takes:literal => $gives:literal;)*) => {
        /// The table.
        pub(crate) static TABLE: &[Route] = &[$(Route {
            method: stringify!($method),
            path: $path,
            scope: Scope::$scope,
            needs: needs!($needs),
            handler: |shell, request| Box::pin($handler(shell, request)),
            what: $what,
            params: &[$($param),*],
            takes: $takes,
            gives: $gives,
        },)*];
    };
}

table! {
    POST "/v1/append" Log Writer append::append:
        "Appends events, all or none, if the condition holds. With application/x-ndjson: bulk, one event a line, streamed, atomic per batch of at most 1000 lines."
        ? [] "Append" => "Appended";
    POST "/v1/import" Log Writer import::import:
        "Appends the lines of a body that no earlier import has appended: the events themselves are the key. Streamed, atomic per batch."
        ? ["label", "batch", "invalid", "more", "continues"] "EventToAppend" => "Imported";
    POST "/e" Main Writer ingest::post:
        "Takes an event in: the body is its data, one JSON value or any bytes; with application/x-ndjson the data of an event a line, all or none. Answers 202 when it is in memory; with ack=durable when it is on disk."
        ? ["type", "tag", "ack"] "Anything" => "Taken";
    GET "/e" Main Public ingest::up: "Whether events are taken in." ? [] "" => "Up";
    POST "/v1/e" Log Writer ingest::post: "As POST /e." ? ["type", "tag", "ack"] "Anything" => "Taken";
    GET "/v1/ingest" Log Reader ingest::account:
        "What was accepted before it was durable, and what became of it."
        ? ["consistency", "wait_ms"] "" => "IngestAccount";
    GET "/v1/events" Log Reader read::get_events:
        "Reads events in order: a JSON page, an NDJSON stream without limit, or a subscription as server-sent events."
        ? ["type", "tag", "query", "after", "limit", "order", "consistency", "wait_ms"] "" => "Events";
    POST "/v1/query" Log Reader read::post_query: "As GET events, with the query in the body."
        ? ["consistency", "wait_ms"] "Read" => "Events";
    GET "/v1/events/{position}" Log Reader read::get_event: "One event by position."
        ? ["consistency", "wait_ms"] "" => "Event";
    GET "/v1/events/by-id/{uuid}" Log Reader read::get_event_by_id: "One event by its id."
        ? ["consistency", "wait_ms"] "" => "Event";
    GET "/v1/head" Log Reader admin::head: "The last position." ? ["consistency", "wait_ms"] "" => "Head";
    GET "/v1/types" Log Reader admin::types: "Types with their counts, in byte order."
        ? ["after", "limit", "consistency", "wait_ms"] "" => "Types";
    GET "/v1/tags" Log Reader admin::tags: "Tags with their counts, in byte order."
        ? ["prefix", "after", "limit", "consistency", "wait_ms"] "" => "Tags";
    POST "/v1/project" Log Reader project::project:
        "Folds events into states in one read and gives the append condition that protects the decision."
        ? ["consistency", "wait_ms"] "Project" => "Projected";
    POST "/v1/leases/{name}" Log Writer leases::acquire: "Takes an exclusive lease with a fencing token."
        ? [] "Acquire" => "Lease";
    PUT "/v1/leases/{name}" Log Writer leases::renew: "Renews a lease." ? [] "Renew" => "Lease";
    DELETE "/v1/leases/{name}" Log Writer leases::release: "Ends a lease; token in the body or the URL."
        ? ["token"] "Release" => "";
    GET "/v1/logs" Node Account logs::list: "All logs with size, head and term counts." ? [] "" => "Logs";
    PUT "/v1/logs/{log}" Node Admin logs::create: "Makes a log." ? [] "" => "Log";
    GET "/v1/logs/{log}" Node Reader logs::get: "One log with size, head and term counts." ? [] "" => "Log";
    DELETE "/v1/logs/{log}" Node Admin logs::delete: "Drops a log with everything in it."
        ? ["confirm"] "" => "";
    GET "/v1/views" Node Account views::list: "How far each view is: state, position, lag." ? [] "" => "Views";
    POST "/auth/token" Node Public access::token:
        "Gives a token for a name and a password. With application/x-www-form-urlencoded: OAuth 2.0's password grant."
        ? [] "Login" => "AccessToken";
    GET "/auth/me" Node Account access::me: "Who asks, and what he may." ? [] "" => "Me";
    POST "/auth/logout" Node Account access::logout: "Ends the token of the request, or all of its account's."
        ? [] "Logout" => "LoggedOut";
    POST "/auth/rotate" Node Admin access::rotate:
        "Draws a new secret that signs tokens; the one before still verifies. With retire: drops that one."
        ? [] "RotateSecret" => "SecretRotated";
    GET "/v1/accounts" Node Admin access::list: "Accounts, by name, page by page."
        ? ["limit", "after"] "" => "Accounts";
    POST "/v1/accounts" Node Admin access::add:
        "Makes an account. The first has to be an admin of everything; from then on everything needs credentials."
        ? [] "NewAccount" => "Account";
    GET "/v1/accounts/{name}" Node Admin access::get: "An account." ? [] "" => "Account";
    PATCH "/v1/accounts/{name}" Node Admin access::change: "Changes an account's roles, disables or enables it."
        ? [] "AccountChange" => "Account";
    PUT "/v1/accounts/{name}/password" Node Account access::set_password:
        "Sets one's own password, which takes the one there is; an admin sets that of others. All tokens of the account end."
        ? [] "NewPassword" => "";
    GET "/v1/keys" Node Account access::list_keys: "One's own API keys; for an admin all, or those of an account."
        ? ["account", "revoked", "limit", "after"] "" => "Keys";
    POST "/v1/keys" Node Account access::add_key: "Makes an API key. Its secret is shown in this answer and never again."
        ? [] "NewKey" => "KeyWithSecret";
    GET "/v1/keys/{id}" Node Account access::get_key: "An API key." ? [] "" => "Key";
    DELETE "/v1/keys/{id}" Node Account access::revoke_key: "Ends an API key for ever." ? [] "" => "";
    POST "/v1/keys/{id}/rotate" Node Account access::rotate_key:
        "Makes an API key for the same, which takes the place of this one; this one ends at once, or after a while in which both count."
        ? [] "KeyRotation" => "KeyWithSecret";
    GET "/health" Node Public admin::health: "Whether the process is healthy." ? [] "" => "Health";
    GET "/health/live" Node Public admin::health: "Whether the process lives." ? [] "" => "Health";
    GET "/health/ready" Node Public admin::ready: "Whether the process takes requests." ? [] "" => "Health";
    GET "/metrics" Node Operator admin::metrics: "Figures in the Prometheus text format." ? [] "" => "";
    GET "/openapi.json" Node Public openapi::document: "This document." ? [] "" => "";
    GET "/problems/{slug}" Node Public admin::problem: "What a problem type means." ? [] "" => "";
    POST "/append" Main Writer dialects::append: "Append, DCB dialect: always 200."
        ? [] "DialectAppend" => "DialectAppended";
    GET "/read" Main Reader dialects::get_read: "Read, DCB dialect." ? ["query", "options"] "" => "DialectEvents";
    POST "/read" Main Reader dialects::post_read: "Count and last position, go-crablet dialect."
        ? [] "DialectRead" => "DialectCount";
    POST "/project" Main Reader dialects::project: "Counts per projector, go-crablet dialect."
        ? [] "DialectProject" => "DialectProjected";
    POST "/cleanup" Dev Admin dialects::cleanup: "Empties the log main." ? [] "" => "";
    POST "/load-test-data" Dev Admin dialects::load_test_data: "Appends example events."
        ? ["size"] "" => "";
    POST "/api/urls" Links Writer links::create:
        "Makes a link. With application/x-ndjson: bulk, one link a line, streamed, atomic per batch of at most 250 lines."
        ? [] "LinkToCreate" => "Link";
    GET "/api/urls" Links Reader links::list: "Links, newest first, page by page."
        ? ["limit", "after", "order", "tag", "search", "consistency", "wait_ms"] "" => "Links";
    GET "/api/urls/{code}" Links Reader links::details: "A link and its clicks so far."
        ? ["consistency", "wait_ms"] "" => "LinkDetails";
    PATCH "/api/urls/{code}" Links Writer links::change: "Changes a link."
        ? [] "LinkChange" => "LinkDetails";
    DELETE "/api/urls/{code}" Links Writer links::delete: "Deletes a link. Its code is never given again."
        ? [] "" => "";
    GET "/api/urls/{code}/stats" Links Reader links::stats: "Clicks over time, referrers and user agents."
        ? ["bucket", "from", "to", "consistency", "wait_ms"] "" => "LinkStats";
    // Last, as they look like much else.
    GET "/{code}.qr" Links Public links::qr: "The short URL as a QR code, an SVG." ? ["size"] "" => "";
    GET "/{code}" Links Public links::redirect: "Leads to a link's target and counts the click." ? [] "" => "";
}

/// First segments of routes to come, and words that people expect not to lead away.
const RESERVED: &[&str] = &[
    "about",
    "admin",
    "api",
    "apple",
    "assets",
    "auth",
    "cache",
    "cart",
    "config",
    "console",
    "css",
    "db",
    "debug",
    "docs",
    "favicon",
    "grpc",
    "help",
    "img",
    "index",
    "js",
    "kv",
    "links",
    "login",
    "logout",
    "lookup",
    "main",
    "nornicdb",
    "null",
    "order",
    "qr",
    "query",
    "queue",
    "robots",
    "search",
    "security",
    "signup",
    "sitemap",
    "sql",
    "static",
    "stats",
    "status",
    "stream",
    "streams",
    "subscribe",
    "swagger",
    "tx",
    "ui",
    "umadb",
    "undefined",
    "update",
    "v1",
    "v2",
    "v3",
    "well",
    "wellspring",
    "ws",
];

/// Whether a word may not be a link's code, in any mix of cases: it is the first segment of a
/// route, with `--dev-endpoints` or without, or is kept for one.
pub(crate) fn is_reserved(word: &str) -> bool {
    static WORDS: OnceLock<Vec<String>> = OnceLock::new();
    let words = WORDS.get_or_init(|| {
        let mut words: Vec<String> = reserved_words().map(str::to_ascii_lowercase).collect();
        words.sort_unstable();
        words
    });
    // Every redirect asks: nothing is allocated.
    let lower = || word.bytes().map(|byte| byte.to_ascii_lowercase());
    words.binary_search_by(|known| known.bytes().cmp(lower())).is_ok()
}

/// The words for which [`is_reserved`] says yes, some of them twice.
pub(crate) fn reserved_words() -> impl Iterator<Item = &'static str> {
    let of_routes = TABLE.iter().filter_map(|route| route.path.split('/').nth(1));
    RESERVED.iter().copied().chain(of_routes)
}

/// A route that was found.
pub(crate) struct Found {
    /// Its index in [`TABLE`].
    pub(crate) route: usize,
    /// The log it is about; empty if about none. Not decoded.
    pub(crate) log: String,
    /// The other variable segment. Not decoded.
    pub(crate) param: String,
}

/// What looking for a route comes to.
pub(crate) enum Lookup {
    /// Here it is.
    Found(Found),
    /// The path is known, the method is not.
    WrongMethod {
        /// The methods that are, as `Allow` names them.
        allow: String,
        /// What the path is about.
        scope: Scope,
    },
    /// The path is not known.
    Nothing,
}

/// Methods and routes of one path.
type Methods = Vec<(&'static str, usize)>;

/// Finds routes: literal paths by one look-up, the others by their segments.
pub(crate) struct Router {
    literal: HashMap<String, Methods>,
    patterns: Vec<(Vec<String>, Methods)>,
    dev: bool,
}

impl Router {
    /// The router of [`TABLE`].
    pub(crate) fn get(dev: bool) -> &'static Router {
        static ROUTERS: [OnceLock<Router>; 2] = [OnceLock::new(), OnceLock::new()];
        ROUTERS[usize::from(dev)].get_or_init(|| Router::new(dev))
    }

    fn new(dev: bool) -> Router {
        let mut router = Router { literal: HashMap::new(), patterns: Vec::new(), dev };
        for (i, route) in TABLE.iter().enumerate() {
            router.add(route.path, route.method, i);
            if route.scope == Scope::Log {
                let long = route.path.replacen("/v1/", "/v1/logs/{log}/", 1);
                router.add(&long, route.method, i);
            }
        }
        router
    }

    fn add(&mut self, path: &str, method: &'static str, route: usize) {
        if TABLE[route].scope == Scope::Dev && !self.dev {
            return;
        }
        if !path.contains('{') {
            self.literal.entry(path.to_owned()).or_default().push((method, route));
            return;
        }
        let segments: Vec<String> = path.split('/').map(str::to_owned).collect();
        match self.patterns.iter_mut().find(|(known, _)| *known == segments) {
            Some((_, methods)) => methods.push((method, route)),
            None => self.patterns.push((segments, vec![(method, route)])),
        }
    }

    /// Finds the route of a request. `HEAD` is asked of `GET`.
    pub(crate) fn find(&self, method: &str, path: &str) -> Lookup {
        let method = if method == "HEAD" { "GET" } else { method };
        if let Some(methods) = self.literal.get(path) {
            return pick(methods, method, String::new(), String::new());
        }
        for (pattern, methods) in &self.patterns {
            if let Some((log, param)) = captures(pattern, path) {
                return match pick(methods, method, log, param) {
                    // No link has such a code, so this is a route that is not served.
                    Lookup::WrongMethod { .. } if is_reserved(&path[1..]) => Lookup::Nothing,
                    lookup => lookup,
                };
            }
        }
        Lookup::Nothing
    }
}

fn pick(methods: &Methods, method: &str, log: String, param: String) -> Lookup {
    let Some(&(_, route)) = methods.iter().find(|(m, _)| *m == method) else {
        let mut allow: Vec<&str> = methods.iter().map(|(m, _)| *m).collect();
        if allow.contains(&"GET") {
            allow.push("HEAD");
        }
        let scope = methods.first().map_or(Scope::Node, |&(_, route)| TABLE[route].scope);
        return Lookup::WrongMethod { allow: allow.join(", "), scope };
    };
    let log = match TABLE[route].scope {
        Scope::Node => String::new(),
        _ if log.is_empty() => MAIN.to_owned(),
        _ => log,
    };
    Lookup::Found(Found { route, log, param })
}

/// The variable segments of a path that fits a pattern: the log's name and the other one.
/// Routes about logs themselves have the log's name as their only parameter.
fn captures(pattern: &[String], path: &str) -> Option<(String, String)> {
    let (mut log, mut param) = (String::new(), String::new());
    let mut segments = path.split('/');
    for expected in pattern {
        let segment = segments.next()?;
        let Some((name, suffix)) = expected.strip_prefix('{').and_then(|e| e.split_once('}'))
        else {
            if expected != segment {
                return None;
            }
            continue;
        };
        let segment = segment.strip_suffix(suffix)?;
        if segment.is_empty() {
            return None;
        }
        if name == "log" && pattern.len() > 4 {
            segment.clone_into(&mut log);
        } else {
            segment.clone_into(&mut param);
        }
    }
    segments.next().is_none().then_some((log, param))
}

/// The index of a route in [`TABLE`], by method and path as they stand there; the
/// length of the table, which counts as "other", if there is none.
pub(crate) fn index(method: &str, path: &str) -> usize {
    let found = TABLE.iter().position(|route| route.method == method && route.path == path);
    found.unwrap_or(TABLE.len())
}

/// Names of the routes for the figures, in the order of [`TABLE`].
pub(crate) fn names() -> Vec<String> {
    TABLE.iter().map(|route| format!("{} {}", route.method, route.path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(method: &str, path: &str) -> Option<(String, String, String)> {
        match Router::get(false).find(method, path) {
            Lookup::Found(f) => Some((names()[f.route].clone(), f.log, f.param)),
            _ => None,
        }
    }

    #[test]
    fn short_and_long_paths_are_the_same_route() {
        let found = |name: &str, log: &str, param: &str| {
            Some((name.to_owned(), log.to_owned(), param.to_owned()))
        };
        assert_eq!(find("POST", "/v1/append"), found("POST /v1/append", "main", ""));
        assert_eq!(find("POST", "/v1/logs/x/append"), found("POST /v1/append", "x", ""));
        assert_eq!(
            find("GET", "/v1/logs/x/events/7"),
            found("GET /v1/events/{position}", "x", "7")
        );
        assert_eq!(
            find("HEAD", "/v1/events/by-id/u"),
            found("GET /v1/events/by-id/{uuid}", "main", "u")
        );
        assert_eq!(find("PUT", "/v1/logs/x"), found("PUT /v1/logs/{log}", "", "x"));
        assert_eq!(find("GET", "/read"), found("GET /read", "main", ""));
    }

    #[test]
    fn unknown_paths_and_methods_are_told_apart() {
        let router = Router::get(false);
        assert!(matches!(router.find("GET", "/v1/nothing"), Lookup::Nothing));
        assert!(matches!(router.find("GET", "/v1/append/"), Lookup::Nothing));
        assert!(matches!(router.find("PUT", "/v1/logs/"), Lookup::Nothing));
        assert!(matches!(router.find("POST", "/cleanup"), Lookup::Nothing));
        assert!(matches!(Router::get(true).find("POST", "/cleanup"), Lookup::Found(_)));
        match router.find("PATCH", "/v1/logs/a/leases/b") {
            Lookup::WrongMethod { allow, .. } => assert_eq!(allow, "POST, PUT, DELETE"),
            _ => panic!("the path is known"),
        }
    }

    #[test]
    fn codes_come_after_everything_else() {
        let found = |name: &str, param: &str| {
            let log = if name.ends_with("health") { "" } else { "main" };
            Some((name.to_owned(), log.to_owned(), param.to_owned()))
        };
        assert_eq!(find("GET", "/Yci"), found("GET /{code}", "Yci"));
        assert_eq!(find("HEAD", "/Yci"), found("GET /{code}", "Yci"));
        assert_eq!(find("GET", "/Yci.qr"), found("GET /{code}.qr", "Yci"));
        assert_eq!(find("GET", "/.qr"), found("GET /{code}", ".qr"));
        assert_eq!(find("GET", "/Yci.png"), found("GET /{code}", "Yci.png"));
        assert_eq!(find("GET", "/e"), found("GET /e", ""));
        assert_eq!(find("GET", "/health"), found("GET /health", ""));
        assert_eq!(find("GET", "/api/urls/Yci"), found("GET /api/urls/{code}", "Yci"));
        assert_eq!(find("GET", "/api/urls/Yci/stats"), found("GET /api/urls/{code}/stats", "Yci"));
        for path in ["/", "/a/b", "/Yci/", "//Yci", "/api/urls/", "/api/urls/a/b"] {
            assert_eq!(find("GET", path), None, "{path}");
        }
    }

    #[test]
    fn a_code_knows_its_methods_and_a_reserved_word_is_none() {
        let router = Router::get(false);
        for path in ["/Yci", "/Yci.qr"] {
            match router.find("POST", path) {
                Lookup::WrongMethod { allow, scope } => {
                    assert_eq!((allow.as_str(), scope), ("GET, HEAD", Scope::Links));
                }
                _ => panic!("{path} is known"),
            }
        }
        match router.find("PUT", "/api/urls/Yci") {
            Lookup::WrongMethod { allow, .. } => assert_eq!(allow, "GET, PATCH, DELETE, HEAD"),
            _ => panic!("the path is known"),
        }
        for path in ["/lookup", "/cleanup", "/login"] {
            assert!(matches!(router.find("POST", path), Lookup::Nothing), "{path}");
        }
    }

    #[test]
    fn no_code_shadows_a_route() {
        for route in TABLE {
            let first = route.path.split('/').nth(1).unwrap();
            let as_pattern = first.starts_with('{');
            assert_eq!(as_pattern, first.contains('}'), "{first}");
            for word in [first.to_owned(), first.to_uppercase(), first.to_lowercase()] {
                assert!(as_pattern || is_reserved(&word), "{word}");
            }
        }
        for word in ["api", "API", "Lookup", "db", "V1", "health", "e", "E", "cleanup", "favicon"] {
            assert!(is_reserved(word), "{word}");
        }
        for word in ["Yci", "ee", "healthy", "abc"] {
            assert!(!is_reserved(word), "{word}");
        }
        // A longer word could not be a code in any case.
        assert!(
            RESERVED
                .iter()
                .all(|word| wellspring_views::links::Code::parse(word.as_bytes()).is_some())
        );
    }
}
