//! Appends and reads over the lean loop: what is small and quickly done. Each path sends everything
//! else to the general stack, untouched, where [`append`](super::append) and
//! [`read`](super::read) are the same operations and word every refusal that comes before the log.

mod append;
mod read;

use std::io::Write as _;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use wellspring_host::fast::{Factory, Head, ServingThread, Stack, Varying, erase};
use wellspring_host::http::Host;
use wellspring_host::http::history::HEADER;
use wellspring_host::names::{is_name, log_in_path};
use wellspring_host::wire::json::push_u64;
use wellspring_host::wire::problem::{self, Problem};
use wellspring_log::Log;
use wellspring_types::{HistoryId, Position};

/// The varying headers of answers about a log.
const ABOUT_A_LOG: &[&str] = &["wellspring-position", HEADER];

/// Headers of requests that only the general stack serves.
const NOT_HERE: [&str; 5] =
    ["content-encoding", "last-event-id", "origin", "prefer", "x-request-id"];

/// Makes the paths for a serving thread.
pub(crate) fn paths(host: &Arc<Host>) -> Vec<Factory> {
    // The host keeps the factories.
    let path = |make: fn(Option<Arc<Host>>, &ServingThread) -> _| -> Factory {
        let host = Arc::downgrade(host);
        Arc::new(move |thread| make(served(&host, thread), thread))
    };
    vec![
        path(|host, thread| erase(append::AppendPath::new(host, thread))),
        path(|host, _| erase(read::ReadPath::new(host, read::ReadRoute::Get))),
        path(|host, _| erase(read::ReadPath::new(host, read::ReadRoute::Post))),
    ]
}

/// The host, if its logs are served by this thread's loop. The general stack records traces, and it
/// forwards what another node leads.
fn served(host: &Weak<Host>, thread: &ServingThread) -> Option<Arc<Host>> {
    let is_served = |host: &Arc<Host>| {
        thread.stack() == Stack::Lean && !host.otlp.is_on() && host.node.cluster().is_none()
    };
    host.upgrade().filter(is_served)
}

/// The log of a path that ends with `route`; none if it is another path, or a name that has to be
/// decoded.
fn log_of<'a>(path: &'a str, route: &str) -> Option<&'a str> {
    log_in_path(path, route).filter(|log| is_name(log))
}

/// What a head says of the log that it is about.
struct LogHead {
    name: Rc<str>,
    /// The history that the client knows.
    history: Option<HistoryId>,
    /// The position that the client has seen.
    least: Position,
}

impl LogHead {
    /// `None`: the general stack has to look at it.
    fn of(log: Option<&str>, head: &Head<'_>) -> Option<LogHead> {
        if NOT_HERE.iter().any(|name| head.headers.get(name).is_some()) {
            return None;
        }
        let history = match head.headers.get(HEADER) {
            Some(value) => Some(std::str::from_utf8(value).ok()?.parse().ok()?),
            None => None,
        };
        Some(LogHead { name: log?.into(), history, least: head.least_position() })
    }

    /// The log, if it exists and is as new as asked.
    fn log(&self, host: &Host) -> Option<Log> {
        let log = host.node.get(&self.name)?;
        let history = log.history()?;
        let is_known = self.history.is_none_or(|known| known == history);
        (is_known && self.least <= log.head()).then_some(log)
    }
}

/// Writes [`ABOUT_A_LOG`].
fn push_about(varying: &mut Varying, log: &Log, position: Position) {
    varying.header(|out| push_u64(out, position));
    let history = log.history().expect("a log of files has a history");
    let _ = varying.header(|out| write!(out, "{history}"));
}

/// A refusal with the same.
fn about(log: &Log, mut problem: Box<Problem>) -> Box<Problem> {
    problem.position = problem.position.or_else(|| Some(log.head()));
    problem.history = log.history();
    problem
}

/// The problem beside [`Elsewhere`](wellspring_host::fast::FastAnswer::Elsewhere). No client gets
/// it: a request that is read as a whole can always be handed over.
fn elsewhere() -> Box<Problem> {
    problem::INTERNAL.because("the general stack serves this request")
}
