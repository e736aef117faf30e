//! A face: one family of clients, in its own words. The rooms below know faces as values and none
//! by name; `faces` lists them.
//!
//! ```text
//! Settings ─► check ─► open(settings, host) ─► handlers of ROUTES, figures, tick
//!               before anything is opened          │
//!                                     Host: logs, limits, work, gate, clock, …
//! ```

use super::routes::{Answering, Route};
use super::{Host, Request, Response};
use crate::fast::Factory;
use crate::kept_types::KeptEvents;
use crate::settings::{ProcessConfig, Section};
use crate::stats::family::Family;
use crate::wire::problem::{Kind, Problem};
use std::net::SocketAddr;
use std::sync::Arc;

/// The settings of the server around a face, before anything is opened.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The settings of the process.
    pub process: &'a ProcessConfig,
    /// Whether the server speaks TLS.
    pub has_tls: bool,
}

/// One family of clients: settings, routes, error words, views, figures and state of its own.
pub trait Face: Sized + Send + Sync + 'static {
    /// Its name, under which the OpenAPI document lists its operations.
    const NAME: &'static str;
    /// The settings, [`NoSettings`](crate::settings::NoSettings) for none.
    type Settings: Section + Clone;
    /// The routes, in the order in which they are looked through.
    const ROUTES: &'static [Served<Self>];
    /// First segments of paths to be kept besides those of the routes.
    const RESERVED: &'static [&'static str] = &[];
    /// Names of logs in paths of [`Scope::Named`](super::routes::Scope::Named), and the logs that
    /// they stand for while no log has the name itself.
    const LOG_ALIASES: &'static [(&'static str, &'static str)] = &[];
    /// The kinds of problems that it declares, for `/problems` and the OpenAPI document.
    const PROBLEMS: &'static [&'static Kind] = &[];
    /// Limits that cannot be set, for `--print-config`.
    const LIMITS: &'static [(&'static str, usize)] = &[];

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence for the operator about the first setting that is wrong.
    fn check(_settings: &Self::Settings, _around: Surroundings<'_>) -> Result<(), String> {
        Ok(())
    }

    /// A URL under which clients know the server because of this face; its host counts as the
    /// server's own.
    fn own_url(_settings: &Self::Settings) -> Option<&str> {
        None
    }

    /// The events that the face alone may write, if any.
    fn kept_events(_settings: &Self::Settings) -> Option<&'static KeptEvents> {
        None
    }

    /// Opens the face on a server that does not serve yet. Views are attached here.
    ///
    /// # Errors
    /// A sentence for the operator: the server cannot start.
    fn open(settings: Self::Settings, host: &Arc<Host>) -> Result<Self, String>;

    /// Writes an error as the face's clients expect it: `application/problem+json`, perhaps with a
    /// member more, or an envelope of their own. The status stays.
    fn render(problem: Box<Problem>) -> Response {
        problem.into()
    }

    /// The figures of the face now. May read files.
    fn figures(&self) -> Vec<Family> {
        Vec::new()
    }

    /// Called once, with the address that is listened on.
    fn bound_to(&self, _address: SocketAddr) {}

    /// Called about once a second with the time, µs since 1970 UTC, on a thread that may wait for
    /// the disk.
    fn tick(&self, _wall_us: u64) {}

    /// Called once, when no requests come any more and before the logs are closed: ends what the
    /// face has running. May wait, for a few seconds at most.
    fn close(&self) {}

    /// What makes those of the face's routes that the lean loop serves too, for each serving
    /// thread.
    fn fast_paths(&self) -> Vec<Factory> {
        Vec::new()
    }
}

/// A route and its handler.
pub struct Served<F: 'static> {
    /// The route.
    pub route: Route,
    /// The handler of its requests.
    pub handler: fn(Arc<F>, Box<Request>) -> Answering,
}

/// The part of a face that is known before it is opened.
pub struct Declaration {
    /// See [`Face::NAME`].
    pub name: &'static str,
    /// The routes of [`Face::ROUTES`].
    pub routes: Vec<&'static Route>,
    /// See [`Face::RESERVED`].
    pub reserved: &'static [&'static str],
    /// See [`Face::LOG_ALIASES`].
    pub(crate) log_aliases: &'static [(&'static str, &'static str)],
    /// See [`Face::PROBLEMS`].
    pub(crate) problems: &'static [&'static Kind],
    /// See [`Face::render`].
    pub render: fn(Box<Problem>) -> Response,
}

impl Declaration {
    /// That of a face.
    pub fn of<F: Face>() -> Declaration {
        Declaration {
            name: F::NAME,
            routes: F::ROUTES.iter().map(|served| &served.route).collect(),
            reserved: F::RESERVED,
            problems: F::PROBLEMS,
            log_aliases: F::LOG_ALIASES,
            render: F::render,
        }
    }
}

/// An open face, whichever it is.
pub(crate) trait OpenFace: Send + Sync {
    /// See [`Face::figures`].
    fn figures(&self) -> Vec<Family>;
    /// See [`Face::bound_to`].
    fn bound_to(&self, address: SocketAddr);
    /// See [`Face::tick`].
    fn tick(&self, wall_us: u64);
    /// See [`Face::close`].
    fn close(&self);
    /// See [`Face::fast_paths`].
    fn fast_paths(&self) -> Vec<Factory>;
}

impl<F: Face> OpenFace for F {
    fn figures(&self) -> Vec<Family> {
        Face::figures(self)
    }

    fn bound_to(&self, address: SocketAddr) {
        Face::bound_to(self, address);
    }

    fn tick(&self, wall_us: u64) {
        Face::tick(self, wall_us);
    }

    fn close(&self) {
        Face::close(self);
    }

    fn fast_paths(&self) -> Vec<Factory> {
        Face::fast_paths(self)
    }
}

/// A handler bound to its open face.
pub(crate) type Handler = Box<dyn Fn(Box<Request>) -> Answering + Send + Sync>;

/// An open face with the handlers of its routes, in their order.
pub struct Bound {
    pub(super) face: Arc<dyn OpenFace>,
    pub(super) handlers: Vec<Handler>,
}

impl Bound {
    /// Binds the handlers of a face to it.
    pub fn new<F: Face>(face: F) -> Bound {
        let face = Arc::new(face);
        let bind = |served: &Served<F>| -> Handler {
            let (face, handler) = (Arc::clone(&face), served.handler);
            Box::new(move |request| handler(Arc::clone(&face), request))
        };
        Bound { handlers: F::ROUTES.iter().map(bind).collect(), face }
    }
}
