//! A face: the API for one family of clients. The rooms below handle faces as values and know none
//! by name; `faces` lists them.
//!
//! ```text
//! Settings ─► check ─► open(settings, host) ─► handlers of ROUTES, figures, tick
//!               before anything is opened          │
//!                                     Host: logs, limits, work, gate, clock, …
//! ```

use super::routes::{AnswerFuture, Route};
use super::{Host, Request, Response};
use crate::fast::Factory;
use crate::kept_file::KeptFile;
use crate::kept_types::KeptEvents;
use crate::node::LogReader;
use crate::protocol::Protocol;
use crate::settings::{ProcessConfig, Section};
use crate::setup::SetupError;
use crate::stats::family::Family;
use crate::wire::problem::{Kind, Problem};
use std::net::SocketAddr;
use std::sync::Arc;
use wellspring_log::ReadError;

/// A member of the discovery document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discovered {
    /// A text.
    Text(&'static str),
    /// A path, told as a URL under the name by which the client knows the server.
    Path(&'static str),
}

/// The server's settings around a face, before anything is opened.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The settings of the process.
    pub process: &'a ProcessConfig,
    /// Whether the server speaks TLS.
    pub has_tls: bool,
}

/// The API for one family of clients: settings, routes, error format, views, figures and state.
pub trait Face: Sized + Send + Sync + 'static {
    /// Its name, under which the OpenAPI document lists its operations.
    const NAME: &'static str;
    /// The settings, [`NoSettings`](crate::settings::NoSettings) for none.
    type Settings: Section + Clone;
    /// The routes, in matching order.
    const ROUTES: &'static [ServedRoute<Self>];
    /// Operations of a protocol other than HTTP: what they need, under the protocol's name in place
    /// of a method. They are in the figures, the audit and the access log as routes are.
    const OPERATIONS: &'static [Route] = &[];
    /// Reserved first path segments, apart from those of the routes.
    const RESERVED: &'static [&'static str] = &[];
    /// Log aliases in paths of [`Scope::Named`](super::routes::Scope::Named), each used while no
    /// log has the name itself.
    const LOG_ALIASES: &'static [(&'static str, &'static str)] = &[];
    /// What its clients look for in the discovery document at `/`, by member.
    const DISCOVERY: &'static [(&'static str, Discovered)] = &[];
    /// Its problem types, for `/problems` and the OpenAPI document.
    const PROBLEMS: &'static [&'static Kind] = &[];
    /// Fixed limits, for `--print-config`.
    const LIMITS: &'static [(&'static str, usize)] = &[];

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence for the operator about the first setting that is wrong.
    fn check(
        _settings: &Self::Settings,
        _surroundings: Surroundings<'_>,
    ) -> Result<(), SetupError> {
        Ok(())
    }

    /// A URL by which clients know the server because of this face; its host counts as the server's
    /// own.
    fn own_url(_settings: &Self::Settings) -> Option<&str> {
        None
    }

    /// The event types that only the face may write, if any.
    fn kept_events(_settings: &Self::Settings) -> Option<&'static KeptEvents> {
        None
    }

    /// Opens the face on a server that is not serving yet. Views are attached here.
    ///
    /// # Errors
    /// A sentence for the operator: the server cannot start.
    fn open(settings: Self::Settings, host: &Arc<Host>) -> Result<Self, SetupError>;

    /// Renders an error as the face's clients expect it: `application/problem+json`, perhaps with
    /// an additional member, or an envelope of their own. The status stays.
    fn render(problem: Box<Problem>) -> Response {
        problem.into()
    }

    /// The face's current figures. May read files.
    fn figures(&self) -> Vec<Family> {
        Vec::new()
    }

    /// The files that the face keeps in the data folder, to be checked.
    fn kept_files(&self) -> Vec<KeptFile> {
        Vec::new()
    }

    /// What reads a log by this face and needs events of it, besides views. May read files.
    ///
    /// # Errors
    /// The log cannot be read.
    fn log_readers(&self, _log: &str) -> Result<Vec<LogReader>, ReadError> {
        Ok(Vec::new())
    }

    /// Called once, with the listening address.
    fn bound_to(&self, _address: SocketAddr) {}

    /// Called about once a second with the time, in µs since 1970 UTC, on a thread that may block
    /// on the disk.
    fn tick(self: &Arc<Self>, _wall_us: u64) {}

    /// Called once, after the last request and before the logs are closed: stops the face's
    /// background work. May wait, for a few seconds at most.
    fn close(&self) {}

    /// Makes the fast paths of the face's routes for each serving thread.
    fn fast_paths(&self) -> Vec<Factory> {
        Vec::new()
    }

    /// The protocols beside HTTP that the face speaks.
    fn protocols(self: &Arc<Self>) -> Vec<Arc<dyn Protocol>> {
        Vec::new()
    }
}

/// A route and its handler.
pub struct ServedRoute<F: 'static> {
    /// The route.
    pub route: Route,
    /// The handler of its requests.
    pub handler: fn(Arc<F>, Box<Request>) -> AnswerFuture,
}

/// The declaration of a face, known before it is opened.
pub struct Declaration {
    /// See [`Face::NAME`].
    pub name: &'static str,
    /// The routes of [`Face::ROUTES`].
    pub routes: Vec<&'static Route>,
    /// See [`Face::OPERATIONS`].
    pub operations: &'static [Route],
    /// See [`Face::RESERVED`].
    pub reserved: &'static [&'static str],
    /// See [`Face::LOG_ALIASES`].
    pub(crate) log_aliases: &'static [(&'static str, &'static str)],
    /// See [`Face::DISCOVERY`].
    pub(crate) discovery: &'static [(&'static str, Discovered)],
    /// See [`Face::PROBLEMS`].
    pub(crate) problems: &'static [&'static Kind],
    /// See [`Face::render`].
    pub render: fn(Box<Problem>) -> Response,
}

impl Declaration {
    /// The declaration of a face.
    pub fn of<F: Face>() -> Declaration {
        Declaration {
            name: F::NAME,
            routes: F::ROUTES.iter().map(|served| &served.route).collect(),
            operations: F::OPERATIONS,
            reserved: F::RESERVED,
            discovery: F::DISCOVERY,
            problems: F::PROBLEMS,
            log_aliases: F::LOG_ALIASES,
            render: F::render,
        }
    }
}

/// An open face of any type.
pub(crate) trait OpenFace: Send + Sync {
    /// See [`Face::figures`].
    fn figures(&self) -> Vec<Family>;
    /// See [`Face::kept_files`].
    fn kept_files(&self) -> Vec<KeptFile>;
    /// See [`Face::log_readers`].
    fn log_readers(&self, log: &str) -> Result<Vec<LogReader>, ReadError>;
    /// See [`Face::bound_to`].
    fn bound_to(&self, address: SocketAddr);
    /// See [`Face::tick`].
    fn tick(self: Arc<Self>, wall_us: u64);
    /// See [`Face::close`].
    fn close(&self);
    /// See [`Face::fast_paths`].
    fn fast_paths(&self) -> Vec<Factory>;
}

impl<F: Face> OpenFace for F {
    fn figures(&self) -> Vec<Family> {
        Face::figures(self)
    }

    fn kept_files(&self) -> Vec<KeptFile> {
        Face::kept_files(self)
    }

    fn log_readers(&self, log: &str) -> Result<Vec<LogReader>, ReadError> {
        Face::log_readers(self, log)
    }

    fn bound_to(&self, address: SocketAddr) {
        Face::bound_to(self, address);
    }

    fn tick(self: Arc<Self>, wall_us: u64) {
        Face::tick(&self, wall_us);
    }

    fn close(&self) {
        Face::close(self);
    }

    fn fast_paths(&self) -> Vec<Factory> {
        Face::fast_paths(self)
    }
}

/// A handler bound to its open face.
pub(crate) type Handler = Box<dyn Fn(Box<Request>) -> AnswerFuture + Send + Sync>;

/// An open face with the handlers of its routes, in their order.
pub struct BoundFace {
    pub(super) face: Arc<dyn OpenFace>,
    pub(super) handlers: Vec<Handler>,
    pub(super) protocols: Vec<Arc<dyn Protocol>>,
}

impl BoundFace {
    /// Binds the handlers of a face to it.
    pub fn new<F: Face>(face: F) -> BoundFace {
        let face = Arc::new(face);
        let bind = |served: &ServedRoute<F>| -> Handler {
            let (face, handler) = (Arc::clone(&face), served.handler);
            Box::new(move |request| handler(Arc::clone(&face), request))
        };
        let protocols = face.protocols();
        BoundFace { handlers: F::ROUTES.iter().map(bind).collect(), protocols, face }
    }
}
