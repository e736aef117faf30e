//! An open server: the host and its faces.

use super::face::{BoundFace, Handler, OpenFace};
use super::{Answer, Host, Request, header_names};
use crate::fast::Factory;
use crate::kept_file::KeptFile;
use crate::node::LogReader;
use crate::protocol::Protocol;
use crate::stats::family::Family;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, Weak};
use wellspring_log::ReadError;

/// The host, its faces, and the handlers of all their routes.
pub struct Server {
    /// What all faces use.
    pub host: Arc<Host>,
    faces: Vec<Arc<dyn OpenFace>>,
    /// By the place of their route in [`Routes`](super::routes::Routes).
    handlers: Vec<Handler>,
    /// The protocols beside HTTP.
    protocols: Vec<Arc<dyn Protocol>>,
}

impl Server {
    /// The server of a host and of the faces whose routes it has, in their order.
    pub(crate) fn new(host: Arc<Host>, bound: Vec<BoundFace>) -> Arc<Server> {
        let (mut faces, mut handlers, mut protocols) = (Vec::new(), Vec::new(), Vec::new());
        for BoundFace { face, handlers: its, protocols: spoken } in bound {
            faces.push(face);
            handlers.extend(its);
            protocols.extend(spoken);
        }
        assert_eq!(handlers.len(), host.routes.iter().count(), "each route has one handler");
        host.faces.set(&faces);
        Arc::new(Server { host, faces, handlers, protocols })
    }

    /// The protocols beside HTTP.
    pub(crate) fn protocols(&self) -> &[Arc<dyn Protocol>] {
        &self.protocols
    }

    /// The first bytes of each of them.
    pub(crate) fn magics(&self) -> Vec<&'static [u8]> {
        self.protocols.iter().map(|protocol| protocol.magic()).collect()
    }

    /// Has the handler of a route answer a request.
    pub(super) async fn handle(&self, route: usize, request: Box<Request>) -> Answer {
        let (effects, repeat) = (request.effects.clone(), request.repeat());
        let has_key = request.headers.contains_key(&header_names::IDEMPOTENCY_KEY);
        let is_led = self.host.routes.at(route).route.is_for_leader();
        let answer = (self.handlers[route])(request).await;
        // The node that forwards a request repeats it if it has a key.
        debug_assert!(!(has_key && is_led && effects.passed_over_key()), "the key was not read");
        answer.map_err(|problem| effects.refusal(problem, repeat))
    }

    /// Tells the faces the listening address.
    pub(crate) fn bound_to(&self, address: SocketAddr) {
        self.faces.iter().for_each(|face| face.bound_to(address));
    }

    /// Tells the faces the time, in µs since 1970 UTC. May wait for the disk.
    pub(crate) fn tick(&self, wall_us: u64) {
        self.faces.iter().for_each(|face| Arc::clone(face).tick(wall_us));
    }

    /// Has the faces stop their background work, before the logs are closed.
    pub fn close(&self) {
        self.faces.iter().for_each(|face| face.close());
    }
}

/// The faces of a host, for their figures and fast paths. They hold the host, so it must not hold
/// them.
#[derive(Default)]
pub struct FacesOnHost {
    faces: OnceLock<Vec<Weak<dyn OpenFace>>>,
    fast: OnceLock<Arc<[Factory]>>,
}

impl FacesOnHost {
    fn set(&self, faces: &[Arc<dyn OpenFace>]) {
        let _ = self.faces.set(faces.iter().map(Arc::downgrade).collect());
        let _ = self.fast.set(faces.iter().flat_map(|face| face.fast_paths()).collect());
    }

    /// The factories of the fast paths, for each serving thread. A request goes to the first that
    /// claims it.
    pub fn fast_paths(&self) -> &Arc<[Factory]> {
        self.fast.get_or_init(|| Arc::new([]))
    }

    /// The figures of all faces now.
    pub(super) fn families(&self) -> Vec<Family> {
        self.open().flat_map(|face| face.figures()).collect()
    }

    /// The files of all faces.
    pub(super) fn kept_files(&self) -> Vec<KeptFile> {
        self.open().flat_map(|face| face.kept_files()).collect()
    }

    /// What reads a log by any face.
    pub(super) fn log_readers(&self, log: &str) -> Result<Vec<LogReader>, ReadError> {
        let readers = self.open().map(|face| face.log_readers(log));
        Ok(readers.collect::<Result<Vec<_>, _>>()?.concat())
    }

    fn open(&self) -> impl Iterator<Item = Arc<dyn OpenFace>> {
        self.faces.get().into_iter().flatten().filter_map(Weak::upgrade)
    }
}
