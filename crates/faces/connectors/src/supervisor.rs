//! Runs the connectors: a thread that compares the fold with what runs, and starts and stops.
//!
//! A connector runs on the node that leads `system` and its log, if it is not paused and, if the
//! configuration defines it, is still in there. So the logs of connectors are placed with `system`.
//! One that has ended because its log was closed is restarted when there is a log to lead; one that
//! has stopped waits for a command, which gives it another revision.

use crate::runner::{Definition, Runner, RunnerContext};
use crate::secrets::SecretFolder;
use crate::settings::ConfiguredConnector;
use crate::start::{draw_id, start_position};
use crate::view::{
    Action, Command, Connector, ConnectorKey, ConnectorKind, ConnectorView, Folded, Origin,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use wellspring_connectors::{ConnectorState, Status};
use wellspring_host::http::Host;
use wellspring_host::setup::SetupError;
use wellspring_host::view::{Live, ViewSlot};
use wellspring_host::wire::effects::Effects;
use wellspring_log::{CommitOn, Log};

/// Time between two checks if the thread is not woken earlier.
const LOOK: Duration = Duration::from_millis(200);

/// How long connectors may take to end at shutdown, in µs.
const CLOSE_PATIENCE_US: u64 = 5_000_000;
/// Time between two checks whether they have.
const CLOSE_LOOK: Duration = Duration::from_millis(10);

/// State shared by the thread and its owner.
pub(crate) struct Supervisor {
    host: Arc<Host>,
    view: Arc<ViewSlot<ConnectorView>>,
    secrets: SecretFolder,
    configured: Vec<ConfiguredConnector>,
    running: Mutex<BTreeMap<ConnectorKey, Runner>>,
    /// Connectors start once this is folded: it includes what earlier runs have saved.
    settled: AtomicU64,
    closing: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Supervisor {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system provides none.
    pub(crate) fn start(
        host: &Arc<Host>,
        view: &Arc<ViewSlot<ConnectorView>>,
        secrets: SecretFolder,
        configured: Vec<ConfiguredConnector>,
    ) -> Result<Arc<Supervisor>, SetupError> {
        let supervisor = Arc::new(Supervisor {
            host: Arc::clone(host),
            view: Arc::clone(view),
            secrets,
            configured,
            running: Mutex::default(),
            settled: AtomicU64::new(0),
            closing: AtomicBool::new(false),
            thread: Mutex::default(),
        });
        let supervising = Arc::clone(&supervisor);
        let thread =
            wellspring_host::threads::spawn("connectors".to_owned(), move || supervising.run())?;
        *lock(&supervisor.thread) = Some(thread);
        Ok(supervisor)
    }

    /// Has the thread check now.
    pub(crate) fn wake(&self) {
        if let Some(thread) = &*lock(&self.thread) {
            Thread::unpark(thread.thread());
        }
    }

    /// Stops every connector and the thread, and waits until they have ended.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.wake();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    /// The status of a connector, if its last revision runs here.
    pub(crate) fn status(&self, key: &ConnectorKey, connector: &Connector) -> Option<Arc<Status>> {
        let running = lock(&self.running);
        let runner = running.get(key).filter(|runner| runner.revision == connector.revision);
        runner.map(|runner| Arc::clone(&runner.status))
    }

    /// The warning of a connector that runs here, if any.
    pub(crate) fn warnings(&self, key: &ConnectorKey) -> Vec<String> {
        let running = lock(&self.running);
        let warnings = running.get(key).and_then(|runner| runner.warnings.as_ref());
        warnings.map(|warnings| warnings.texts()).unwrap_or_default()
    }

    /// Whether the configuration defines a connector.
    pub(crate) fn is_configured(&self, key: &ConnectorKey) -> bool {
        self.configured.iter().any(|configured| configured.key == *key)
    }

    fn run(&self) {
        let runtime = match Builder::new_current_thread().enable_time().build() {
            Ok(runtime) => runtime,
            Err(error) => return tracing::error!(%error, "cannot run sinks and sources"),
        };
        while !self.closing.load(Ordering::Acquire) && !self.host.is_stopping() {
            if let Some(live) = self.view.live() {
                self.look(&live, &runtime);
            }
            std::thread::park_timeout(LOOK);
        }
        let mut running = lock(&self.running);
        running.values().for_each(Runner::stop);
        let begun_us = self.host.clock.monotonic_us();
        let is_patient = || self.host.clock.monotonic_us() - begun_us < CLOSE_PATIENCE_US;
        while running.values().any(|runner| !runner.has_ended()) && is_patient() {
            std::thread::sleep(CLOSE_LOOK);
        }
        for (key, runner) in running.iter_mut() {
            if runner.has_ended() {
                runner.join();
            } else {
                // It waits for a broker that does not answer. Anything it still delivers is fenced
                // or repeated later, as after a crash.
                tracing::warn!(connector = %key, "no longer waiting for it");
            }
        }
    }

    /// Starts and stops what is due.
    fn look(&self, live: &Arc<Live<ConnectorView>>, runtime: &Runtime) {
        let leads = live.log().role().leads();
        let Some(folded) = live.folded() else { return };
        if leads {
            self.define_configured(live, folded, runtime);
            self.place_sinks(live, folded, runtime);
        }
        let connectors: Vec<(ConnectorKey, Connector)> = folded.read(|connectors| {
            connectors.all().map(|(key, connector)| (key, connector.clone())).collect()
        });
        let definitions =
            connectors.iter().filter_map(|(key, is)| Definition::of(key.kind, is).ok());
        let logs = definitions.flat_map(|is| {
            let logs = [Some(is.log()), is.second_log()].map(|log| log.map(str::to_owned));
            logs.into_iter().flatten()
        });
        self.host.node.lead_with_system(logs.collect());
        let wanted = |(key, connector): &&(ConnectorKey, Connector)| {
            leads
                && !connector.is_paused
                && (connector.origin == Origin::Api || self.is_configured(key))
                && self.leads_log_of(key, connector)
        };
        let wanted: BTreeMap<&ConnectorKey, &Connector> =
            connectors.iter().filter(wanted).map(|(key, connector)| (key, connector)).collect();
        let mut running = lock(&self.running);
        running.retain(|key, runner| {
            runner.tell(key);
            let is_wanted =
                wanted.get(key).is_some_and(|connector| connector.revision == runner.revision);
            let has_ended = runner.status.state() == ConnectorState::Ended;
            let has_to_go = !is_wanted || has_ended || runner.has_lost_a_log();
            if has_to_go {
                runner.stop();
            }
            if has_to_go && runner.has_ended() {
                runner.join();
                self.settled.store(live.log().head(), Ordering::Relaxed);
                return false;
            }
            true
        });
        if live.position() < self.settled.load(Ordering::Relaxed) {
            return;
        }
        let context = RunnerContext {
            host: Arc::clone(&self.host),
            live: Arc::clone(live),
            secrets: self.secrets.clone(),
        };
        for (key, connector) in wanted {
            if !running.contains_key(key) {
                running.insert(key.clone(), Runner::start(key, connector, &context));
            }
        }
    }

    /// Copies the configuration into the view. Refused definitions are retried at the next check.
    fn define_configured(
        &self,
        live: &Arc<Live<ConnectorView>>,
        folded: &Folded,
        runtime: &Runtime,
    ) {
        for configured in &self.configured {
            let is_so = folded.read(|connectors| {
                connectors.get(&configured.key).is_some_and(|known| {
                    known.origin == Origin::Configuration
                        && known.definition == configured.definition
                })
            });
            if is_so {
                continue;
            }
            let command = match define(&self.host, configured) {
                Ok(command) => [command],
                Err(why) => {
                    tracing::warn!(connector = %configured.key, "cannot be defined yet: {why}");
                    continue;
                }
            };
            if execute(live, runtime, &command) {
                tracing::info!(connector = %configured.key, "defined by the configuration");
            }
        }
    }

    /// Notes the history of each sink that an earlier version defined, which noted none, also of
    /// those that do not run: a restore from a later backup is then told by it. A sink whose place
    /// does not fit its log stays without, and stops.
    fn place_sinks(&self, live: &Arc<Live<ConnectorView>>, folded: &Folded, runtime: &Runtime) {
        let unplaced: Vec<(ConnectorKey, Connector)> = folded.read(|connectors| {
            let is_unplaced = |(key, connector): &(ConnectorKey, &Connector)| {
                key.kind == ConnectorKind::Sink && connector.history.is_none()
            };
            let unplaced = connectors.all().filter(is_unplaced);
            unplaced.map(|(key, connector)| (key, connector.clone())).collect()
        });
        for (key, connector) in unplaced {
            let history = Definition::of(key.kind, &connector)
                .ok()
                .and_then(|definition| self.host.node.get(definition.log()))
                .filter(|log| log.role().leads() && is_placed_in(&connector, log))
                .and_then(|log| log.history());
            let Some(history) = history else { continue };
            let command = [Command { key, action: Action::Place { history } }];
            execute(live, runtime, &command);
        }
    }

    /// Whether this node leads the log of a connector. One without a log is started, to report
    /// that.
    fn leads_log_of(&self, key: &ConnectorKey, connector: &Connector) -> bool {
        let Ok(definition) = Definition::of(key.kind, connector) else { return true };
        self.host.node.get(definition.log()).is_none_or(|log| log.role().leads())
    }
}

/// Executes a command; returns whether it took effect. If not, the next check repeats it.
fn execute(live: &Arc<Live<ConnectorView>>, runtime: &Runtime, command: &[Command; 1]) -> bool {
    let connector = &command[0].key;
    match runtime.block_on(live.execute(
        &Effects::default(),
        command,
        None,
        CommitOn::JournalThread,
    )) {
        Ok(executed) if executed.refused.is_none() => return true,
        Ok(executed) => tracing::warn!(%connector, "refused: {:?}", executed.refused),
        Err(error) => tracing::warn!(%connector, "cannot be noted yet: {error:?}"),
    }
    false
}

/// Whether a log has what a sink has delivered, as far as that is known without a history.
fn is_placed_in(connector: &Connector, log: &Log) -> bool {
    match connector.cursor() {
        Some(cursor) => cursor.mismatch(log) == Ok(None),
        None => connector.start <= log.head(),
    }
}

/// The command that defines a connector of the configuration.
fn define(host: &Host, configured: &ConfiguredConnector) -> Result<Command, SetupError> {
    let (key, definition) = (configured.key.clone(), configured.definition.clone());
    let start =
        start_position(host, key.kind, &definition).map_err(|refused| refused.sentence())?;
    let id = draw_id().map_err(|error| error.to_string())?;
    let origin = Origin::Configuration;
    Ok(Command { key, action: Action::Define { definition, origin, id, start } })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
