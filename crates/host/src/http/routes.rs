//! The routes of all faces, and who may call each. The router, the check of access, the figures and
//! the OpenAPI document are made from the same tables, so none can know what another does not.

use super::Answer;
use super::contract::{AnsweredBy, Contract};
use super::face::Declaration;
use crate::access::Needs;
use crate::audit::Concern;
use crate::names::MAIN;
use crate::record::RouteName;
use crate::wire::problem::{self, Kind};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use wellspring_views::access::Role;

/// What a handler gives back.
pub type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// What a route is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The whole process.
    Node,
    /// One log: `/v1/x` is also served as `/v1/logs/{log}/x`.
    Log,
    /// The log that `{log}` in the path names, at this path only.
    Named,
    /// The log `main`, at this path only.
    Main,
    /// As [`Scope::Main`], and only with `--dev-endpoints`.
    Dev,
}

/// One route.
pub struct Route {
    /// Its method.
    pub method: &'static str,
    /// Its path; `{…}` stands for one segment, or for what comes before `.qr` of one.
    pub path: &'static str,
    /// What it is about.
    pub scope: Scope,
    /// Who may call it.
    pub needs: Needs,
    /// What it does, in a sentence.
    pub what: &'static str,
    /// What it takes and gives.
    pub contract: Contract,
}

impl Route {
    /// Whether, of several nodes, the leader of its log answers it.
    pub fn is_for_leader(&self) -> bool {
        match self.contract.answered {
            AnsweredBy::AnyNode => false,
            AnsweredBy::Leader => true,
            AnsweredBy::ByMethod => {
                let reads = self.method == "GET" || self.needs == Needs::Role(Role::Reader);
                !reads && self.needs != Needs::Public
            }
        }
    }
}

/// A route that was found.
pub struct FoundRoute {
    /// Its place among the routes.
    pub route: usize,
    /// The log it is about; empty if about none. Not decoded.
    pub log: String,
    /// The other variable segments in their order; empty if there is none. Not decoded.
    pub params: [String; 2],
}

/// What looking for a route comes to.
pub enum Lookup {
    /// Here it is.
    Found(FoundRoute),
    /// The path is known, the method is not.
    WrongMethod {
        /// The methods that are, as `Allow` names them.
        allow: String,
        /// Whose path it is.
        face: &'static Declaration,
    },
    /// The path is not known.
    Nothing,
}

/// Methods and routes of one path.
type Methods = Vec<(&'static str, usize)>;

/// A path with variable segments.
struct Pattern {
    segments: Vec<String>,
    /// What a path begins with, up to the first variable part.
    prefix: String,
    /// Whether the route is about the log that `{log}` names, instead of about logs as such.
    is_of_log: bool,
    methods: Methods,
}

/// One route, and whose it is.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its face.
    pub face: &'static Declaration,
    /// The route.
    pub route: &'static Route,
}

/// All routes of a server. They are found by one look-up if the path is literal, the others by
/// their segments.
pub struct Routes {
    entries: Vec<Entry>,
    literal: HashMap<String, Methods>,
    patterns: Vec<Pattern>,
    /// Whether routes begin with a word, or will: then it is no variable part of a path.
    is_reserved: fn(&str) -> bool,
    /// The kinds of problems, those of any request first.
    kinds: Vec<&'static Kind>,
}

impl Routes {
    /// Those of these faces, in their order. `dev`: routes that change or remove data without
    /// asking are found, too; they are listed in any case.
    pub fn new(faces: &'static [Declaration], is_reserved: fn(&str) -> bool, dev: bool) -> Routes {
        let of = |face: &'static Declaration| {
            face.routes.iter().map(move |&route| Entry { face, route })
        };
        let mut routes = Routes {
            entries: faces.iter().flat_map(of).collect(),
            literal: HashMap::new(),
            patterns: Vec::new(),
            is_reserved,
            kinds: problem::ALL
                .iter()
                .chain(faces.iter().flat_map(|face| face.problems))
                .copied()
                .collect(),
        };
        routes.check();
        for index in 0..routes.entries.len() {
            let route = routes.entries[index].route;
            if route.scope == Scope::Dev && !dev {
                continue;
            }
            routes.add(route.path, route.method, index);
            if route.scope == Scope::Log {
                let long = route.path.replacen("/v1/", "/v1/logs/{log}/", 1);
                routes.add(&long, route.method, index);
            }
        }
        routes
    }

    /// Asserts what no test of a face alone can find: a route that another hides, and a row whose
    /// path and segment differ.
    fn check(&self) {
        for (at, Entry { face, route }) in self.entries.iter().enumerate() {
            let (method, path) = (route.method, route.path);
            let is_same = |other: &&Entry| other.route.method == method && other.route.path == path;
            if let Some(other) = self.entries[..at].iter().find(is_same) {
                panic!(
                    "{method} {path} of {} is a route of {} already",
                    face.name, other.face.name
                );
            }
            for segment in route.contract.segments.into_iter().flatten() {
                let name = format!("{{{}}}", segment.name());
                assert!(path.contains(&name), "{method} {path} has no {name}");
            }
            for kind in route.contract.problems.iter().copied().flatten() {
                let is_declared = self.kinds.iter().any(|known| std::ptr::eq(*known, *kind));
                assert!(
                    is_declared,
                    "{method} {path}: PROBLEMS of {} lacks {}",
                    face.name, kind.slug
                );
            }
        }
        for (at, kind) in self.kinds.iter().enumerate() {
            let is_other = self.kinds[..at].iter().all(|other| other.slug != kind.slug);
            assert!(is_other, "two kinds of problems are called {}", kind.slug);
        }
    }

    fn add(&mut self, path: &str, method: &'static str, route: usize) {
        if !path.contains('{') {
            self.literal.entry(path.to_owned()).or_default().push((method, route));
            return;
        }
        let segments: Vec<String> = path.split('/').map(str::to_owned).collect();
        let is_of_log = self.entries[route].route.scope != Scope::Node;
        match self.patterns.iter_mut().find(|known| known.segments == segments) {
            Some(known) => {
                assert_eq!(known.is_of_log, is_of_log, "{path}: one scope for all methods");
                known.methods.push((method, route));
            }
            None => {
                let prefix = path[..path.find('{').unwrap_or(path.len())].to_owned();
                let methods = vec![(method, route)];
                self.patterns.push(Pattern { segments, prefix, is_of_log, methods });
            }
        }
    }

    /// Whether a word is the first segment of a route, or kept for one to come.
    pub fn is_reserved(&self) -> fn(&str) -> bool {
        self.is_reserved
    }

    /// Every kind of problem: those of any request, and those of the faces.
    pub fn kinds(&self) -> &[&'static Kind] {
        &self.kinds
    }

    /// The routes in order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The route at a place that [`Routes::find`] gave.
    pub fn at(&self, index: usize) -> &Entry {
        &self.entries[index]
    }

    /// Finds the route of a request. `HEAD` is asked of `GET`.
    pub fn find(&self, method: &str, path: &str) -> Lookup {
        let method = if method == "HEAD" { "GET" } else { method };
        if let Some(methods) = self.literal.get(path) {
            return self.pick(methods, method, String::new(), Default::default());
        }
        let segments = 1 + path.bytes().filter(|byte| *byte == b'/').count();
        // Few fit so far: nothing is cut into pieces for the others.
        let may_fit = |pattern: &&Pattern| {
            pattern.segments.len() == segments && path.starts_with(&*pattern.prefix)
        };
        for pattern in self.patterns.iter().filter(may_fit) {
            if let Some((log, params)) = pattern.captures(path) {
                return match self.pick(&pattern.methods, method, log, params) {
                    // No variable part is such a word, so this is a route that is not served.
                    Lookup::WrongMethod { .. } if (self.is_reserved)(&path[1..]) => Lookup::Nothing,
                    lookup => lookup,
                };
            }
        }
        Lookup::Nothing
    }

    fn pick(&self, methods: &Methods, method: &str, log: String, params: [String; 2]) -> Lookup {
        let Some(&(_, route)) = methods.iter().find(|(m, _)| *m == method) else {
            let mut allow: Vec<&str> = methods.iter().map(|(m, _)| *m).collect();
            if allow.contains(&"GET") {
                allow.push("HEAD");
            }
            let face = self.entries[methods[0].1].face;
            return Lookup::WrongMethod { allow: allow.join(", "), face };
        };
        let log = match self.entries[route].route.scope {
            Scope::Node => String::new(),
            _ if log.is_empty() => MAIN.to_owned(),
            _ => log,
        };
        Lookup::Found(FoundRoute { route, log, params })
    }

    /// The name of a route, by method and path as its face declares them.
    pub fn name_of(&self, method: &str, path: &str) -> RouteName {
        let found = self.iter().position(|e| e.route.method == method && e.route.path == path);
        self.name_at(found.unwrap_or(self.entries.len()))
    }

    /// The name of the route at a place; any place beyond the last stands for no route.
    pub(crate) fn name_at(&self, index: usize) -> RouteName {
        let path = self.entries.get(index).map(|entry| entry.route.path);
        RouteName { index: index.min(self.entries.len()), path }
    }

    /// The name of no route.
    pub(crate) fn no_name(&self) -> RouteName {
        self.name_at(self.entries.len())
    }

    /// What each route is to the audit, in order.
    pub(crate) fn concerns(&self) -> Vec<Concern> {
        self.iter().map(|entry| Concern::of(entry.route.method, entry.route.needs)).collect()
    }

    /// Names of the routes for the figures, in order.
    pub fn names(&self) -> Vec<String> {
        self.iter().map(|entry| format!("{} {}", entry.route.method, entry.route.path)).collect()
    }
}

impl Pattern {
    /// The variable segments of a path that fits: the log's name and the others. Routes about logs
    /// as such have the log's name as their only parameter.
    fn captures(&self, path: &str) -> Option<(String, [String; 2])> {
        let (mut log, mut params) = (String::new(), [String::new(), String::new()]);
        let mut free = params.iter_mut();
        let mut segments = path.split('/');
        for expected in &self.segments {
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
            if name == "log" && self.is_of_log {
                segment.clone_into(&mut log);
            } else {
                segment.clone_into(free.next()?);
            }
        }
        segments.next().is_none().then_some((log, params))
    }
}
