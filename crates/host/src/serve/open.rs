//! Opening everything that a configuration names: logs, accounts, settings; and the reasons why
//! that fails.

use super::waiting::Waiting;
use crate::access::jwks_source::{ForeignSettings, Source};
use crate::access::{self, Gate};
use crate::audit::Audit;
use crate::backup::Backups;
use crate::cluster::{Cluster, ClusterKey, Engine};
use crate::config::{FaceTerms, HostConfig};
use crate::http::Host;
use crate::http::body_memory::BodyMemory;
use crate::http::face::BoundFace;
use crate::http::routes::Routes;
use crate::http::server::{FacesOnHost, Server};
use crate::http::work::WorkRoom;
use crate::limits::Limits;
use crate::node::Node;
use crate::otlp::Otlp;
use crate::scrub::Scrubs;
use crate::settings::ProcessConfig;
use crate::setup::SetupError;
use crate::stats::Stats;
use crate::tls::Tls;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::sync::{Semaphore, watch};
use wellspring_backup::restore::UNFINISHED;
use wellspring_log::storage::create_folder;

/// Descriptors reserved for files and the rest, out of the process's limit, apart from those of
/// segments.
const RESERVED_FDS: u64 = 512;
/// Descriptors reserved for each existing segment: its file, its index, and half as many again for
/// new segments until the next start.
const SEGMENT_FDS: u64 = 3;

/// A host that is open and has no faces yet.
pub struct OpenHost {
    /// The host.
    pub host: Arc<Host>,
    ending: Ending,
}

/// What ends a server, and what must be kept current until then.
pub(crate) struct Ending {
    /// Ends serving.
    stop: watch::Sender<bool>,
    /// The source of the external issuer's keys, if configured.
    foreign_keys: Option<Source>,
    /// What answers on the server's address until it does.
    waiting: Option<Waiting>,
}

/// An open server that is not serving yet.
pub struct OpenServer {
    /// The server.
    pub server: Arc<Server>,
    /// Ends serving.
    pub stop: watch::Sender<bool>,
    /// The source of the external issuer's keys, if configured.
    pub(super) foreign_keys: Option<Source>,
    /// What answers on the server's address until it does.
    pub(super) waiting: Option<Waiting>,
}

impl OpenHost {
    /// The host, and what must not be dropped while it runs.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn apart(self) -> (Arc<Host>, Ending) {
        (self.host, self.ending)
    }

    /// The server of this host and of the faces whose routes it has, in their order.
    pub fn with(self, faces: Vec<BoundFace>) -> OpenServer {
        let Ending { stop, foreign_keys, waiting } = self.ending;
        OpenServer { server: Server::new(self.host, faces), stop, foreign_keys, waiting }
    }
}

/// Opens everything that a configuration names. `engine` is that of its journal, if it names one;
/// `routes` are those of all faces.
///
/// # Errors
/// A sentence about what cannot be opened.
pub fn open(
    config: HostConfig,
    engine: Option<Arc<dyn Engine>>,
    faces: FaceTerms,
    routes: Routes,
) -> Result<OpenHost, SetupError> {
    open_with_key(config, engine, faces, routes, None)
}

/// The same with a shared key, for tests of its uses: with an engine there is one anyway.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_with_key(
    mut config: HostConfig,
    engine: Option<Arc<dyn Engine>>,
    faces: FaceTerms,
    routes: Routes,
    key: Option<Arc<ClusterKey>>,
) -> Result<OpenHost, SetupError> {
    if config.process.threads == 0 {
        config.process.threads = std::thread::available_parallelism().map_or(1, usize::from);
    }
    let descriptors = raise_descriptor_limit();
    let clock = crate::clock::system();
    let pages = config.pages(&faces)?;
    let HostConfig {
        process,
        storage,
        cluster,
        http,
        tls,
        access,
        audit,
        mut limits,
        ingest,
        otlp,
        backup,
        subjects,
    } = config;
    let data = &process.data;
    let tls = Tls::open(&tls)?;
    if engine.is_none() {
        // In a cluster the log is fetched again from the shared log.
        access::accounts_marker::check_log(data)?;
    }
    refuse_unfinished_restore(data)?;
    keep_private(data)?;
    let cluster = match engine {
        Some(engine) => {
            let identity = cluster.identity(&process, tls.is_some())?;
            Some(Arc::new(Cluster::open(&cluster, identity, engine)?))
        }
        None => None,
    };
    // Nodes of a cluster would have to share keys, and to forget them together.
    let subject_keys = match &cluster {
        None => Some(Arc::new(subjects.open(data)?)),
        Some(_) => None,
    };
    let cluster_key = cluster.as_ref().map(|cluster| Arc::clone(&cluster.key)).or(key);
    // Each core may have two serving threads.
    let stats = Arc::new(Stats::new(2 * process.threads, routes.names(), clock.monotonic_us()));
    let waiting = match &cluster {
        Some(cluster) => Waiting::start(&process, tls.as_ref(), &stats, cluster)?,
        None => None,
    };
    waiting.iter().for_each(Waiting::until_ordered);
    let node = Node::open(data, &storage, ingest.batcher(), Arc::clone(&clock), cluster)
        .map_err(|e| e.to_string())?;
    let node = Arc::new(node);
    let scrubs = Arc::new(Scrubs::new(&backup));
    let backups = Arc::new(Backups::open(backup)?);
    backups.refuse_lost_ends(&node, storage.sync()?)?;
    node.look_after_shared()?;
    limits.max_connections =
        connections_that_fit(limits.max_connections, descriptors, node.segments());
    let accounts = access::attach(&node)?;
    let gate =
        Gate::open(&process, &access, pages, Arc::clone(&clock), accounts, cluster_key.clone())?;
    let gate = Arc::new(gate);
    access::joining_node::await_accounts(&gate)?;
    // Where nodes order their logs themselves, the one that orders leads.
    let take_over = || {
        if let Some(group) = node.group()
            && let Err(error) = group.take_over()
        {
            tracing::warn!(%error, "this node cannot lead to create the first account");
        }
    };
    access::first_admin::ensure_admin(&gate, &take_over)?;
    access::accounts_marker::check(data, &gate)?;
    check_exposure(&process, &gate, host_kind(&node))?;
    let (stop, stopping) = watch::channel(false);
    let audit = Audit::new(audit.audit, routes.concerns());
    let host = Arc::new(Host {
        node,
        access: gate,
        limits: Arc::new(Limits::of(&process, &limits, &stats, &clock)?),
        kept: Arc::new(faces.kept),
        cluster_key,
        tls,
        body_memory: BodyMemory::new(&stats, limits.body_memory_bytes),
        audit,
        otlp: Otlp::open(&otlp)?,
        scrubs,
        backups,
        work: Arc::new(WorkRoom::new(&http, process.threads, &stats, &clock)),
        stats,
        routes,
        settings: faces.settings,
        request_ids: AtomicU64::new(first_request_id(clock.wall_us())),
        faces: FacesOnHost::default(),
        clock,
        stopping,
        subscriptions: Arc::new(Semaphore::new(http.max_subscribers)),
        process,
        config: http,
        ingest_config: Arc::new(ingest),
        subject_keys,
        subject_config: subjects,
    });
    let foreign_keys = ForeignSettings::of(&access)?.map(|settings| settings.source);
    Ok(OpenHost { host, ending: Ending { stop, foreign_keys, waiting } })
}

/// Refuses a data folder whose restore was interrupted: it would start empty, and without accounts.
fn refuse_unfinished_restore(data: &Path) -> Result<(), SetupError> {
    let left = [UNFINISHED.to_owned(), format!("{UNFINISHED}.tar")];
    match left.iter().map(|name| data.join(name)).find(|path| path.exists()) {
        None => Ok(()),
        Some(path) => Err(format!(
            "{} is what an interrupted restore has left: run `wellspring restore` again, or remove it",
            path.display()
        ).into()),
    }
}

/// Creates a missing data folder, durably and readable by its owner only. Access that others have
/// to an existing one is not removed; a warning reports it.
fn keep_private(data: &Path) -> Result<(), SetupError> {
    use std::os::unix::fs::PermissionsExt;
    let failed = |e: io::Error| format!("data folder {}: {e}", data.display());
    if !data.try_exists().map_err(failed)? {
        return Ok(create_folder(data).map_err(failed)?);
    }
    let mode = std::fs::metadata(data).map_err(failed)?.permissions().mode();
    if mode & 0o007 != 0 {
        tracing::warn!(
            data = %data.display(),
            "other users of this machine can read the data folder: chmod 700 it"
        );
    }
    Ok(())
}

/// Refuses an address that other machines can reach while there are no accounts, unless that is
/// intended.
fn check_exposure(config: &ProcessConfig, access: &Gate, kind: HostKind) -> Result<(), SetupError> {
    let address = config.address()?;
    if !access.is_open() {
        return Ok(());
    }
    if address.ip().is_loopback() {
        tracing::info!(
            "there are no accounts: every client that reaches {address} has full access"
        );
        return Ok(());
    }
    if config.insecure {
        tracing::warn!(
            "there are no accounts and {address} is not a loopback address: every client that \
             reaches it has full access"
        );
        return Ok(());
    }
    let how = match kind {
        HostKind::Alone => {
            let data = config.data.display();
            format!("create one with `wellspring user add NAME --role admin --data {data}`")
        }
        HostKind::Node => {
            "create one by starting a node with WELLSPRING_ADMIN_PASSWORD set (the account is \
             admin, or WELLSPRING_ADMIN_USER)"
                .to_owned()
        }
    };
    Err(format!(
        "--listen {address} can be reached from other machines and there are no accounts; \
         {how}, listen on 127.0.0.1, or set --insecure if the network is private"
    )
    .into())
}

/// Whether a host is part of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HostKind {
    /// Its logs are its own files.
    Alone,
    /// It is a node of a cluster.
    Node,
}

fn host_kind(node: &Node) -> HostKind {
    if node.cluster().is_some() { HostKind::Node } else { HostKind::Alone }
}

/// Request ids start at a random number; they need not be secret.
fn first_request_id(wall_us: u64) -> u64 {
    wall_us.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(std::process::id()) << 32
}

/// Raises the limit of descriptors as far as allowed; returns the limit.
fn raise_descriptor_limit() -> u64 {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The connections that fit next to what `segments` segments need, at most `wanted`: connections
/// must not take the descriptors for the next segment.
fn connections_that_fit(wanted: usize, descriptors: u64, segments: u64) -> usize {
    let reserved = RESERVED_FDS.saturating_add(segments.saturating_mul(SEGMENT_FDS));
    let fit = wanted
        .min(usize::try_from(descriptors.saturating_sub(reserved)).unwrap_or(usize::MAX))
        .max(16);
    if fit < wanted {
        eprintln!(
            "wellspring: the system allows {descriptors} open files, of which {segments} \
             segments need some, so at most {fit} connections are accepted"
        );
    }
    fit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_to_segments() {
        assert_eq!(connections_that_fit(16_384, 524_288, 10_000), 16_384);
        assert_eq!(connections_that_fit(16_384, 20_000, 1_000), 16_384);
        assert_eq!(connections_that_fit(16_384, 20_000, 4_000), 20_000 - 512 - 12_000);
        assert_eq!(connections_that_fit(16_384, 1_024, 4_000), 16);
    }
}
