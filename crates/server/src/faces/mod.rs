//! The faces of the program, named only here, and those that an embedding program adds. Each is a
//! crate in `crates/faces` and depends on the host, never on another face.

mod embedded;

pub use embedded::EmbeddedFace;
pub(crate) use embedded::embed;
use embedded::embedded;
use std::sync::{Arc, OnceLock};
use wellspring_host::http::Host;
use wellspring_host::http::face::{BoundFace, Declaration, Face, Surroundings};
use wellspring_host::http::routes::{Route, Routes};
use wellspring_host::kept_types::KeptEvents;
use wellspring_host::setup::SetupError;

/// Lists the faces, in matching order of their routes.
macro_rules! faces {
    ($($name:ident: $face:ty,)*) => {
        /// Every face as declared, in matching order of the routes.
        pub(crate) fn declared() -> &'static [Declaration] {
            static DECLARED: OnceLock<Vec<Declaration>> = OnceLock::new();
            DECLARED.get_or_init(|| {
                let mut declared = vec![$(Declaration::of::<$face>()),*];
                declared.extend(embedded().iter().map(EmbeddedFace::declare));
                declared
            })
        }

        wellspring_host::settings::sections! {
            /// The settings of all faces.
            FaceSettings from FaceArgs:
            $($name: <$face as Face>::Settings,)*
        }

        impl FaceSettings {
            /// Checks the settings of each face.
            ///
            /// # Errors
            /// A sentence about the first invalid setting.
            pub(crate) fn check(&self, surroundings: Surroundings<'_>) -> Result<(), SetupError> {
                $(<$face as Face>::check(&self.$name, surroundings)?;)*
                Ok(())
            }

            /// The URLs by which clients know the server because of a face.
            pub(crate) fn own_urls(&self) -> Vec<&str> {
                [$(<$face as Face>::own_url(&self.$name)),*].into_iter().flatten().collect()
            }

            /// The events that clients may not append, because faces write them.
            pub(crate) fn kept_events(&self) -> impl Iterator<Item = &'static KeptEvents> {
                let ours = [$(<$face as Face>::kept_events(&self.$name)),*].into_iter().flatten();
                ours.chain(embedded().iter().filter_map(EmbeddedFace::kept_events))
            }
        }

        /// Fixed limits of all faces.
        pub(crate) fn limits() -> Vec<(&'static str, usize)> {
            [$(<$face as Face>::LIMITS),*].concat()
        }

        /// Opens every face on a host.
        ///
        /// # Errors
        /// A sentence about the first that cannot be opened.
        pub(crate) fn open(settings: FaceSettings, host: &Arc<Host>) -> Result<Vec<BoundFace>, SetupError> {
            let mut open = vec![$(BoundFace::new(<$face as Face>::open(settings.$name, host)?)),*];
            for face in embedded() {
                open.push(face.open(host)?);
            }
            Ok(open)
        }
    };
}

// Links come last, because their codes match many paths.
faces! {
    events: wellspring_face_events::EventFace,
    console: wellspring_face_console::ConsoleFace,
    accounts: wellspring_face_accounts::AccountFace,
    graph: wellspring_face_graph::GraphFace,
    catalogue: wellspring_face_catalogue::CatalogueFace,
    cluster: wellspring_face_cluster::ClusterFace,
    connectors: wellspring_face_connectors::ConnectorFace,
    operations: wellspring_face_operations::OperationFace,
    privacy: wellspring_face_privacy::PrivacyFace,
    links: wellspring_face_links::LinkFace,
}

/// The routes of every face; `dev` includes those that change or delete data without confirmation.
pub(crate) fn routes(dev: bool) -> Routes {
    Routes::new(declared(), is_reserved, dev)
}

/// Every route of every face.
pub(crate) fn every_route() -> impl Iterator<Item = &'static Route> {
    declared().iter().flat_map(|face| face.routes.iter().copied())
}

/// First segments of future routes, and words that users expect not to redirect.
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

/// Whether a word cannot be a link's code, in any case: it is the first segment of a route, with or
/// without `--dev-endpoints`, or reserved for one.
pub(crate) fn is_reserved(word: &str) -> bool {
    static WORDS: OnceLock<Vec<String>> = OnceLock::new();
    let words = WORDS.get_or_init(|| {
        let mut words: Vec<String> = reserved_words().map(str::to_ascii_lowercase).collect();
        words.sort_unstable();
        words
    });
    // Called for every redirect: it does not allocate.
    let lower = || word.bytes().map(|byte| byte.to_ascii_lowercase());
    words.binary_search_by(|known| known.bytes().cmp(lower())).is_ok()
}

/// The words for which [`is_reserved`] is true, some of them twice.
pub(crate) fn reserved_words() -> impl Iterator<Item = &'static str> {
    let of_routes = every_route().filter_map(|route| route.path.split('/').nth(1));
    let of_faces = declared().iter().flat_map(|face| face.reserved).copied();
    RESERVED.iter().copied().chain(of_faces).chain(of_routes)
}

#[cfg(test)]
mod access_tests;
#[cfg(test)]
mod cluster_tests;
#[cfg(test)]
mod contract_tests;
#[cfg(all(test, target_os = "linux"))]
mod fast_tests;
#[cfg(test)]
mod figures_tests;
#[cfg(test)]
mod openapi_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_host::audit::Concern;
    use wellspring_host::http::cors::REDIRECTS;
    use wellspring_host::http::routes::Lookup;

    fn find(method: &str, path: &str) -> Option<(String, String, String)> {
        let routes = routes(false);
        match routes.find(method, path) {
            Lookup::Found(f) => {
                let [first, _] = f.params;
                Some((routes.names()[f.route].clone(), f.log, first))
            }
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
        let router = routes(false);
        assert!(matches!(router.find("GET", "/v1/nothing"), Lookup::Nothing));
        assert!(matches!(router.find("GET", "/v1/append/"), Lookup::Nothing));
        assert!(matches!(router.find("PUT", "/v1/logs/"), Lookup::Nothing));
        assert!(matches!(router.find("POST", "/cleanup"), Lookup::Nothing));
        assert!(matches!(routes(true).find("POST", "/cleanup"), Lookup::Found(_)));
        match router.find("PATCH", "/v1/logs/a/leases/b") {
            Lookup::WrongMethod { allow, .. } => assert_eq!(allow, "POST, PUT, DELETE"),
            _ => panic!("the path is known"),
        }
        for path in ["/e", "/health", "/metrics", "/append"] {
            let found = router.find("OPTIONS", path);
            assert!(matches!(found, Lookup::WrongMethod { .. }), "{path}");
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
        assert_eq!(find("GET", "/Yci/"), found("GET /{code}/", "Yci"));
        for path in ["/a/b", "/health/", "/v1/", "//Yci", "//", "/api/urls/", "/api/urls/a/b"] {
            assert_eq!(find("GET", path), None, "{path}");
        }
    }

    #[test]
    fn a_code_has_its_methods_and_a_reserved_word_is_not_a_code() {
        let router = routes(false);
        for path in ["/Yci", "/Yci.qr"] {
            match router.find("POST", path) {
                Lookup::WrongMethod { allow, face } => {
                    assert_eq!((allow.as_str(), face.name), ("GET, HEAD", "links"));
                }
                _ => panic!("{path} is known"),
            }
        }
        match router.find("PUT", "/api/urls/Yci") {
            Lookup::WrongMethod { allow, .. } => assert_eq!(allow, "GET, PATCH, DELETE, HEAD"),
            _ => panic!("the path is known"),
        }
        for path in ["/cart", "/cleanup", "/login"] {
            assert!(matches!(router.find("POST", path), Lookup::Nothing), "{path}");
        }
    }

    #[test]
    fn redirects_are_known_by_their_path() {
        assert!(routes(false).name_of("GET", REDIRECTS).path.is_some());
    }

    #[test]
    fn no_code_shadows_a_route() {
        for route in every_route() {
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
        // A longer word could never be a code.
        assert!(
            RESERVED
                .iter()
                .all(|word| wellspring_face_links::view::Code::parse(word.as_bytes()).is_some())
        );
    }

    fn concern(method: &str, path: &str) -> Concern {
        let route = every_route().find(|route| (route.method, route.path) == (method, path));
        let route = route.unwrap_or_else(|| panic!("no {method} {path}"));
        Concern::of(route.only_reads(), route.needs)
    }

    #[test]
    fn each_route_concerns_the_audit_as_it_should() {
        for (method, path, expected) in [
            ("GET", "/{code}", Concern::Never),
            ("GET", "/health", Concern::Never),
            ("POST", "/auth/token", Concern::Login),
            ("POST", "/auth/logout", Concern::Change),
            ("GET", "/auth/me", Concern::Read),
            ("GET", "/v1/accounts", Concern::Change),
            ("PUT", "/v1/accounts/{name}/password", Concern::Change),
            ("DELETE", "/v1/accounts/{name}", Concern::Change),
            ("POST", "/v1/keys", Concern::Change),
            ("GET", "/v1/keys", Concern::Read),
            ("DELETE", "/v1/logs/{log}", Concern::Change),
            ("GET", "/metrics", Concern::Read),
            ("POST", "/e", Concern::Write),
            ("POST", "/v1/append", Concern::Write),
            ("POST", "/api/urls", Concern::Write),
            ("POST", "/v1/query", Concern::Read),
        ] {
            assert_eq!(concern(method, path), expected, "{method} {path}");
        }
        // A public route that changes something is a login.
        let logins = every_route()
            .filter(|route| Concern::of(route.only_reads(), route.needs) == Concern::Login);
        assert!(logins.map(|route| route.path).eq(["/auth/token"]));
    }
}
