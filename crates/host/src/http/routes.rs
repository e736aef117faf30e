//! The routes of all faces, and who may call each. The router, the access check, the figures and
//! the OpenAPI document are made from the same tables, so they cannot disagree.

use super::Answer;
use super::contract::{AnsweredBy, Changes, Contract};
use super::face::{Declaration, Discovered};
use crate::access::Needs;
use crate::audit::Concern;
use crate::identity::Role;
use crate::names::MAIN;
use crate::record::RouteName;
use crate::wire::problem::{self, Kind};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;

/// The result of a handler.
pub type AnswerFuture = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// The scope of a route.
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
    /// Its path; `{…}` stands for one segment, or for the part of one before `.qr`.
    pub path: &'static str,
    /// What it is about.
    pub scope: Scope,
    /// Who may call it.
    pub needs: Needs,
    /// Its description, a sentence.
    pub what: &'static str,
    /// Its contract.
    pub contract: Contract,
}

impl Route {
    /// Whether it changes nothing.
    pub fn only_reads(&self) -> bool {
        self.method == "GET" || self.contract.changes == Changes::Nothing
    }

    /// Whether, in a cluster, the leader of its log answers it.
    pub fn is_for_leader(&self) -> bool {
        match self.contract.answered {
            AnsweredBy::AnyNode => false,
            AnsweredBy::Leader | AnsweredBy::LeaderOfSystem => true,
            AnsweredBy::ByMethod => {
                let reads = self.method == "GET" || self.needs == Needs::Role(Role::Reader);
                !reads && self.needs != Needs::Public
            }
        }
    }
}

/// A route that was found.
pub struct FoundRoute {
    /// Its index among the routes.
    pub route: usize,
    /// Its log, not decoded; empty if it concerns none.
    pub log: String,
    /// The other variable segments in order, not decoded; empty if there are none.
    pub params: [String; 2],
}

/// The result of looking for a route.
pub enum Lookup {
    /// Here it is.
    Found(FoundRoute),
    /// The path is known, the method is not.
    WrongMethod {
        /// The allowed methods, as in `Allow`.
        allow: String,
        /// The face with this path.
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
    /// The path up to the first variable segment.
    prefix: String,
    /// Whether the route concerns the log that `{log}` names, rather than logs in general.
    is_of_log: bool,
    methods: Methods,
}

/// A route and its face.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its face.
    pub face: &'static Declaration,
    /// The route.
    pub route: &'static Route,
}

/// An operation of a protocol other than HTTP, with its name in figures, logs and traces.
#[derive(Clone, Copy)]
pub struct Operation {
    /// Its face, and its needs as those of a route; the method is the protocol's name, the path its
    /// own.
    pub entry: Entry,
    /// Its name.
    pub name: RouteName,
}

/// All routes of a server. Literal paths are found by one look-up, the others by their segments.
pub struct Routes {
    entries: Vec<Entry>,
    /// Operations of other protocols. They are counted after the routes, and found by none.
    operations: Vec<Entry>,
    literal: HashMap<String, Methods>,
    patterns: Vec<Pattern>,
    /// Whether routes start with a word, or will: then it cannot be a variable segment.
    is_reserved: fn(&str) -> bool,
    /// The problem types, general ones first.
    kinds: Vec<&'static Kind>,
    /// What the faces' clients look for at `/`.
    discovery: Vec<&'static (&'static str, Discovered)>,
}

impl Routes {
    /// The routes of these faces, in order. `dev`: whether routes that change or delete data
    /// without confirmation are found; they are listed in any case.
    pub fn new(faces: &'static [Declaration], is_reserved: fn(&str) -> bool, dev: bool) -> Routes {
        let of = |face: &'static Declaration| {
            face.routes.iter().map(move |&route| Entry { face, route })
        };
        let operation_of = |face: &'static Declaration| {
            face.operations.iter().map(move |route| Entry { face, route })
        };
        let mut routes = Routes {
            entries: faces.iter().flat_map(of).collect(),
            operations: faces.iter().flat_map(operation_of).collect(),
            literal: HashMap::new(),
            patterns: Vec::new(),
            is_reserved,
            kinds: problem::ALL
                .iter()
                .chain(faces.iter().flat_map(|face| face.problems))
                .copied()
                .collect(),
            discovery: faces.iter().flat_map(|face| face.discovery).collect(),
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

    /// Asserts what no test of a single face can find: a hidden route, and a declaration whose path
    /// and segment differ.
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
                let is_declared = self.kinds.iter().any(|known| known.is(kind));
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

    /// Whether a word is the first segment of a route, or reserved for one.
    pub fn is_reserved(&self) -> fn(&str) -> bool {
        self.is_reserved
    }

    /// Every problem type: the general ones, and those of the faces.
    pub fn kinds(&self) -> &[&'static Kind] {
        &self.kinds
    }

    /// What the faces' clients look for in the discovery document, by member.
    pub fn discovery(&self) -> impl Iterator<Item = &'static (&'static str, Discovered)> {
        self.discovery.iter().copied()
    }

    /// The routes in order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The route with an index that [`Routes::find`] returned.
    pub fn at(&self, index: usize) -> &Entry {
        &self.entries[index]
    }

    /// Finds the route of a request. `HEAD` is treated as `GET`.
    pub fn find(&self, method: &str, path: &str) -> Lookup {
        let method = if method == "HEAD" { "GET" } else { method };
        if let Some(methods) = self.literal.get(path) {
            return self.pick(methods, method, String::new(), Default::default());
        }
        let segments = 1 + path.bytes().filter(|byte| *byte == b'/').count();
        // Few match so far, so the path is not split for the others.
        let may_fit = |pattern: &&Pattern| {
            pattern.segments.len() == segments && path.starts_with(&*pattern.prefix)
        };
        for pattern in self.patterns.iter().filter(may_fit) {
            if let Some((log, params)) = pattern.captures(path) {
                // No variable segment is such a word, so this route is not served.
                let word = &path[1..];
                return match self.pick(&pattern.methods, method, log, params) {
                    Lookup::WrongMethod { .. } if (self.is_reserved)(word) => Lookup::Nothing,
                    _ if word.strip_suffix('/').is_some_and(self.is_reserved) => Lookup::Nothing,
                    lookup => lookup,
                };
            }
        }
        Lookup::Nothing
    }

    /// The face with routes that begin as this path does, which is none itself: its clients expect
    /// problems in its form, also of routes that it does not have.
    pub fn neighbour(&self, path: &str) -> Option<&'static Declaration> {
        let first = |path: &str| path.split('/').nth(1).unwrap_or_default().to_owned();
        let word = first(path);
        let begins = |entry: &&Entry| !word.is_empty() && first(entry.route.path) == word;
        self.entries.iter().find(begins).map(|entry| entry.face)
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

    /// The operations of the face with this name, in order.
    pub fn operations_of(&self, face: &str) -> Vec<Operation> {
        let named = self.operations.iter().enumerate().map(|(index, entry)| Operation {
            entry: *entry,
            name: self.name_at(self.entries.len() + index),
        });
        named.filter(|operation| operation.entry.face.name == face).collect()
    }

    /// Routes, then operations.
    fn named(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().chain(&self.operations)
    }

    fn named_count(&self) -> usize {
        self.entries.len() + self.operations.len()
    }

    /// The name of a route, by method and path as declared.
    pub fn name_of(&self, method: &str, path: &str) -> RouteName {
        let found = self.iter().position(|e| e.route.method == method && e.route.path == path);
        self.name_at(found.unwrap_or(self.named_count()))
    }

    /// The name of the route or operation with an index; any index beyond the last stands for no
    /// route.
    pub(crate) fn name_at(&self, index: usize) -> RouteName {
        let path = self.named().nth(index).map(|entry| entry.route.path);
        RouteName { index: index.min(self.named_count()), path }
    }

    /// The name of no route.
    pub(crate) fn no_name(&self) -> RouteName {
        RouteName { index: self.named_count(), path: None }
    }

    /// The audit's concern of each route and operation, in order.
    pub(crate) fn concerns(&self) -> Vec<Concern> {
        self.named().map(|entry| Concern::of(entry.route.only_reads(), entry.route.needs)).collect()
    }

    /// Names of the routes and operations for the figures, in order.
    pub fn names(&self) -> Vec<String> {
        self.named().map(|entry| format!("{} {}", entry.route.method, entry.route.path)).collect()
    }
}

impl Pattern {
    /// The variable segments of a matching path: the log's name and the others. Routes about logs
    /// in general have the log's name as their only parameter.
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
