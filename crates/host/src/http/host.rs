//! What faces may use: the whole server except the faces.

use super::Request;
use super::body_memory::BodyMemory;
use super::config::HttpConfig;
use super::routes::Routes;
use super::server::FacesOnHost;
use super::work::{Job, WorkRoom};
use crate::access::{self, Gate};
use crate::audit::Audit;
use crate::backup::Backups;
use crate::cluster::ClusterKey;
use crate::figures::{self, Sources};
use crate::ingest::{IngestConfig, IngestContext};
use crate::kept_file::KeptFile;
use crate::kept_types::KeptTypes;
use crate::limits::Limits;
use crate::node::LogReader;
use crate::node::readiness::{self, Purpose};
use crate::node::{Node, Views};
use crate::otlp::Otlp;
use crate::scrub::Scrubs;
use crate::settings::ProcessConfig;
use crate::setup::SetupError;
use crate::stats::Stats;
use crate::stats::family::Family;
use crate::subjects::SubjectConfig;
use crate::tls::Tls;
use crate::trouble::{Cause, FailedRequest};
use crate::view::ViewSlot;
use crate::view::contract::View;
use crate::wire::problem::{self, Problem};
use hyper::Version;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::{Semaphore, watch};
use wellspring_log::{Clock, CommitOn, ReadError};
use wellspring_subject_keys::SubjectKeys;

/// What faces may use.
pub struct Host {
    /// The settings of the process.
    pub process: ProcessConfig,
    /// The settings of requests and answers.
    pub config: HttpConfig,
    /// The settings of taking events in.
    pub ingest_config: Arc<IngestConfig>,
    /// The routes of all faces.
    pub routes: Routes,
    /// The logs.
    pub node: Arc<Node>,
    /// Authentication and authorization.
    pub access: Arc<Gate>,
    pub(crate) audit: Audit,
    /// Scheduled backups.
    pub(crate) backups: Arc<Backups>,
    /// Passes over every byte of all logs.
    pub(crate) scrubs: Arc<Scrubs>,
    /// Export of figures and traces.
    pub otlp: Otlp,
    /// The figures.
    pub stats: Arc<Stats>,
    /// The limits of clients.
    pub(crate) limits: Arc<Limits>,
    /// The memory for request bodies.
    pub(crate) body_memory: BodyMemory,
    /// Event types that clients may not append.
    pub kept: Arc<KeptTypes>,
    /// The key that this node shares with the others of its cluster.
    pub cluster_key: Option<Arc<ClusterKey>>,
    /// The keys of data subjects; none in a cluster.
    pub subject_keys: Option<Arc<SubjectKeys>>,
    /// Their settings.
    pub subject_config: SubjectConfig,
    /// TLS, if it is on.
    pub tls: Option<Arc<Tls>>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Becomes true at shutdown.
    pub stopping: watch::Receiver<bool>,
    /// The room for long work.
    pub(crate) work: Arc<WorkRoom>,
    /// One permit for each subscription.
    pub subscriptions: Arc<Semaphore>,
    /// The faces, for their figures and fast paths.
    pub faces: FacesOnHost,
    /// All settings as a file of settings has them; without secrets.
    pub settings: String,
    /// Source of request ids: a random start, then a counter.
    pub(crate) request_ids: AtomicU64,
}

impl Host {
    /// Reports a stream about a log that the server breaks off, after its answer has begun: in one
    /// line with answers that fail, and as rarely.
    pub fn tell_cut(&self, problem: &Problem, log: &str) {
        let Some(cause) = Cause::of(problem) else { return };
        let failed = FailedRequest { cause: &cause, route: None, log, request_id: None };
        self.stats.troubles.tell(failed, self.clock.monotonic_us());
    }

    /// What each thread's intake shares.
    pub fn ingest(&self) -> IngestContext {
        IngestContext {
            node: Arc::clone(&self.node),
            config: Arc::clone(&self.ingest_config),
            kept: Arc::clone(&self.kept),
            keys: self.subject_keys.clone(),
            clock: Arc::clone(&self.clock),
            stopping: self.stopping.clone(),
        }
    }

    /// Where an append is best committed. A single client is answered fastest by its own thread,
    /// which delays no other; with several, a waiting thread would keep their batch from gathering.
    pub fn commit_on(&self, request: &Request) -> CommitOn {
        match request.version {
            Version::HTTP_2 => CommitOn::JournalThread,
            _ => self.commit_on_http_1(),
        }
    }

    /// The same for a request over HTTP/1.
    pub fn commit_on_http_1(&self) -> CommitOn {
        let alone = self.stats.connections.load(Relaxed) <= 1;
        if alone { CommitOn::ThisThread } else { CommitOn::JournalThread }
    }

    /// Attaches a view to the log of this name, now and each time that log is recreated.
    ///
    /// # Errors
    /// A sentence: the system provides no thread, or the view's initial state could not be made.
    pub fn attach<V: View>(&self, log: &str, view: &Arc<ViewSlot<V>>) -> Result<(), SetupError> {
        self.node
            .attach(log, Arc::clone(view) as _)
            .map_err(|error| SetupError::new(error.to_string()))
    }

    /// Attaches a view to every log but the server's own: opened on first use, or with the log if
    /// that contains an event of these types. The initial state is what `context` returns for the
    /// log's name, on the caller's thread, so it must not wait for the disk.
    ///
    /// # Errors
    /// A sentence: the system provides no thread, or an initial state could not be made.
    pub fn attach_each<V: View>(
        &self,
        types: &[&str],
        context: impl Fn(&str) -> Result<V::Context, SetupError> + Send + Sync + 'static,
    ) -> Result<Views<V>, SetupError> {
        self.node.attach_each(types, context).map_err(|error| SetupError::new(error.to_string()))
    }

    /// Bounded work for a request, charged to its client. Dropping it ends the work.
    ///
    /// # Errors
    /// 429: earlier work of this client took too much time.
    pub fn job(&self, request: &Request) -> Result<Job, Box<Problem>> {
        Job::begin(self, &request.payer)
    }

    /// The server's URL as the client of a request knows it, without a slash at its end.
    pub fn base_url(&self, request: &Request) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let authority = request.uri.authority().map(|authority| authority.as_str());
        let host = authority.or_else(|| request.header("host")).unwrap_or("localhost");
        format!("{scheme}://{host}")
    }

    /// The time, in µs since 1970 UTC.
    pub fn wall_us(&self) -> u64 {
        self.clock.wall_us()
    }

    /// Whether the server is stopping.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Why the server is not ready for these requests, worst first; empty if it is.
    pub fn reasons(&self, purpose: Purpose) -> Vec<Problem> {
        readiness::reasons(&self.node, self.is_stopping(), purpose)
    }

    /// What deserves attention and is no reason against these requests.
    pub fn warnings(&self, purpose: Purpose) -> Vec<Problem> {
        let mut warnings = readiness::warnings(&self.node, purpose);
        warnings.extend(self.scrubs.warnings());
        let parts = self.subject_keys.as_ref().map_or(0, |keys| keys.unavailable_parts());
        if parts > 0 {
            let detail = format!(
                "{parts} sealed parts of events could not be opened since the start: their keys \
                 are not in the store; put the newest backup of the keys back"
            );
            warnings.push(*problem::KEY_UNAVAILABLE.because(detail));
        }
        warnings
    }

    /// The files of the data folder that belong to no log, to be checked.
    pub(crate) fn kept_files(&self) -> Vec<KeptFile> {
        let data = &self.process.data;
        let mut files = access::kept_files::kept_files(data, &self.access);
        files.extend(self.faces.kept_files());
        files
    }

    /// What reads a log and needs events of it, besides views and consumers. May read files.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log_readers(&self, log: &str) -> Result<Vec<LogReader>, ReadError> {
        self.faces.log_readers(log)
    }

    /// All current figures of the server. Reads the file system, so not for a serving thread.
    pub fn figures(&self) -> Vec<Family> {
        figures::gather(&Sources {
            stats: &self.stats,
            is_ready: self.reasons(Purpose::Both).is_empty(),
            audit: &self.audit,
            backups: &self.backups,
            scrubs: &self.scrubs,
            otlp: &self.otlp,
            node: &self.node,
            tls: self.tls.as_deref(),
            clock: &*self.clock,
            face_families: &self.faces.families(),
        })
    }
}
