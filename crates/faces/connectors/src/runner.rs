//! One running connector: its thread, how it is stopped, and its state.

use crate::cursors::SystemCursor;
use crate::document::{FieldFault, SinkDocument, SourceDocument, read_value};
use crate::secrets::SecretFolder;
use crate::view::{Connector, ConnectorKey, ConnectorKind, ConnectorView};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::JoinHandle;
use wellspring_connectors::kafka::{
    Connect, KafkaDestination, KafkaDestinationSettings, KafkaWarnings,
};
use wellspring_connectors::sink::{
    CursorKeeper, DeliveryMode, Destination, Pump, PumpSettings, SinkDefinition, Target,
};
use wellspring_connectors::source::{SourceDefinition, SourcePump, SourcePumpSettings};
use wellspring_connectors::webhook::{DeadLetters, WebhookDestination, WebhookDestinationSettings};
use wellspring_connectors::{ConnectorState, Control, Fault, KafkaConnection, Status, StopCode};
use wellspring_host::http::Host;
use wellspring_host::threads;
use wellspring_host::view::Live;
use wellspring_log::Log;
use wellspring_types::Position;

/// The parsed definition of a connector.
#[derive(Debug, Clone)]
pub(crate) enum Definition {
    Sink(SinkDefinition),
    Source(SourceDefinition),
}

impl Definition {
    /// The content of a connector's document.
    pub(crate) fn of(kind: ConnectorKind, connector: &Connector) -> Result<Definition, FieldFault> {
        let document = connector.definition.clone();
        Ok(match kind {
            ConnectorKind::Sink => {
                Definition::Sink(read_value::<SinkDocument>(document)?.definition()?)
            }
            ConnectorKind::Source => {
                Definition::Source(read_value::<SourceDocument>(document)?.definition()?)
            }
        })
    }

    /// The log it reads or appends to.
    pub(crate) fn log(&self) -> &str {
        match self {
            Definition::Sink(sink) => &sink.log,
            Definition::Source(source) => &source.log,
        }
    }

    /// The log for what cannot be delivered or appended, if any.
    pub(crate) fn second_log(&self) -> Option<&str> {
        match self {
            Definition::Sink(sink) => match &sink.target {
                Target::Webhook(webhook) => webhook.dead_letter_log.as_deref(),
                Target::Kafka(_) => None,
            },
            Definition::Source(source) => source.reject_log.as_deref(),
        }
    }
}

/// A started connector.
pub(crate) struct Runner {
    /// The revision of its definition.
    pub(crate) revision: Position,
    pub(crate) status: Arc<Status>,
    /// A source of warnings, if it has any.
    pub(crate) warnings: Option<Arc<KafkaWarnings>>,
    /// The last logged state.
    told: ConnectorState,
    control: Arc<Control>,
    thread: Option<JoinHandle<()>>,
    /// The log for what cannot be delivered or appended.
    second_log: Option<Log>,
}

/// What a runner needs of its surroundings.
#[derive(Clone)]
pub(crate) struct RunnerContext {
    pub(crate) host: Arc<Host>,
    pub(crate) live: Arc<Live<ConnectorView>>,
    pub(crate) secrets: SecretFolder,
}

impl Runner {
    /// Starts a connector on a dedicated thread. Faults are in its status.
    pub(crate) fn start(
        key: &ConnectorKey,
        connector: &Connector,
        context: &RunnerContext,
    ) -> Runner {
        let (status, control) = (Arc::new(Status::default()), Arc::new(Control::default()));
        let mut runner = Runner {
            revision: connector.revision,
            status: Arc::clone(&status),
            warnings: None,
            told: ConnectorState::Starting,
            control: Arc::clone(&control),
            thread: None,
            second_log: None,
        };
        let work = match prepare(key, connector, context, &status, &control) {
            Ok(Prepared { work, warnings, second_log }) => {
                (runner.warnings, runner.second_log) = (warnings, second_log);
                work
            }
            Err(fault) => {
                status.set_fault(&fault);
                return runner;
            }
        };
        match threads::spawn_yielding(format!("{}-{}", key.kind.word(), key.name), work) {
            Ok(thread) => runner.thread = Some(thread),
            Err(why) => status.set_fault(&Fault::transient(why.to_string())),
        }
        runner
    }

    /// Asks it to stop.
    pub(crate) fn stop(&self) {
        self.control.stop();
    }

    /// Logs a new state.
    pub(crate) fn tell(&mut self, key: &ConnectorKey) {
        let state = self.status.state();
        if state == self.told {
            return;
        }
        match &state {
            ConnectorState::Running => tracing::info!(connector = %key, "running"),
            ConnectorState::Retrying { reason } => {
                tracing::warn!(connector = %key, "retrying: {reason}");
            }
            ConnectorState::Stopped { code, reason, .. } => {
                tracing::error!(connector = %key, code = code.name(), "stopped, and needs an operator: {reason}");
            }
            ConnectorState::Starting | ConnectorState::Ended => {}
        }
        self.told = state;
    }

    /// Whether its thread has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Whether its dead-letter or reject log was closed: a restart finds the current one of that
    /// name, or reports that there is none.
    pub(crate) fn has_lost_a_log(&self) -> bool {
        self.second_log.as_ref().is_some_and(|log| log.feed().is_closed())
    }

    /// Waits until its thread has ended.
    pub(crate) fn join(&mut self) {
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a connector's thread panicked");
        }
    }
}

/// The main function of a connector's thread.
type Work = Box<dyn FnOnce() + Send>;
/// The current warning.
type Warnings = Option<Arc<KafkaWarnings>>;

/// A connector ready to start.
struct Prepared {
    work: Work,
    warnings: Warnings,
    second_log: Option<Log>,
}

fn prepare(
    key: &ConnectorKey,
    connector: &Connector,
    context: &RunnerContext,
    status: &Arc<Status>,
    control: &Arc<Control>,
) -> Result<Prepared, Fault> {
    let unreadable = |refused: FieldFault| {
        let why = format!("the definition cannot be used: {}", refused.sentence());
        Fault::stop(StopCode::Unusable, why)
    };
    let definition = Definition::of(key.kind, connector).map_err(unreadable)?;
    let log = log_of(context, definition.log())?;
    let second = definition.second_log().map(|name| log_of(context, name)).transpose()?;
    let second_log = second.clone();
    let (status, control) = (Arc::clone(status), Arc::clone(control));
    match definition {
        Definition::Sink(sink) => {
            let settings = PumpSettings {
                log: log.clone(),
                query: sink.query.clone(),
                generation: connector.generation,
                history: connector.history,
                start: connector.start,
                skip: connector.skip.iter().copied().collect::<BTreeSet<_>>(),
                clock: Arc::clone(&context.host.clock),
            };
            let (destination, keeper, warnings) =
                destination(key, connector, sink, context, &log, second, &status);
            let pump = Pump::new(settings, destination, keeper, status, control);
            Ok(Prepared { work: Box::new(move || pump.run()), warnings, second_log })
        }
        Definition::Source(source) => {
            let connect = connect(&source.connection, &key.name, &context.secrets);
            let settings = SourcePumpSettings {
                name: key.name.clone(),
                generation: connector.generation,
                definition: source,
                log,
                reject_log: second,
                clock: Arc::clone(&context.host.clock),
            };
            let pump = SourcePump::new(settings, connect, status, control);
            Ok(Prepared { work: Box::new(move || pump.run()), warnings: None, second_log })
        }
    }
}

fn log_of(context: &RunnerContext, name: &str) -> Result<Log, Fault> {
    context.host.node.get(name).ok_or_else(|| {
        Fault::stop(
            StopCode::Unusable,
            format!(
                "there is no log {name}: it was dropped or not yet created (PUT /v1/logs/{name})"
            ),
        )
    })
}

/// The destination of a sink, and who stores its cursor.
fn destination(
    key: &ConnectorKey,
    connector: &Connector,
    sink: SinkDefinition,
    context: &RunnerContext,
    log: &Log,
    dead_letter_log: Option<Log>,
    status: &Arc<Status>,
) -> (Box<dyn Destination>, CursorKeeper, Warnings) {
    let history = log.history();
    let identity = format!("{}-{}-{}", sink.log, key.name, connector.id);
    let cursor = || Box::new(SystemCursor::new(Arc::clone(&context.live), key.clone())) as Box<_>;
    match sink.target {
        Target::Kafka(target) => {
            let keeper = match target.mode {
                DeliveryMode::ExactlyOnce => CursorKeeper::Destination(cursor()),
                DeliveryMode::AtLeastOnce => CursorKeeper::Store(cursor()),
            };
            let connect = connect(&target.connection, &key.name, &context.secrets);
            let settings = KafkaDestinationSettings {
                sink_name: key.name.clone(),
                identity,
                log_name: sink.log,
                history,
                generation: connector.generation,
                target,
                format: sink.format,
                partition_by: sink.partition_by,
                clock: Arc::clone(&context.host.clock),
            };
            let destination = KafkaDestination::new(settings, connect);
            let warnings = destination.warnings();
            (Box::new(destination), keeper, Some(warnings))
        }
        Target::Webhook(target) => {
            let secrets = context.secrets.clone();
            let settings = WebhookDestinationSettings {
                dead_letters: dead_letter_log.map(DeadLetters::new),
                sink_name: key.name.clone(),
                identity: connector.receiver_identity(&identity),
                log_name: sink.log,
                history,
                target,
                format: sink.format,
                partition_by: sink.partition_by,
                clock: Arc::clone(&context.host.clock),
                status: Arc::clone(status),
            };
            let secret = Box::new(move |name: &str| secrets.read(name));
            (
                Box::new(WebhookDestination::new(settings, secret)),
                CursorKeeper::Store(cursor()),
                None,
            )
        }
    }
}

/// The connection to a cluster.
#[cfg(feature = "kafka")]
fn connect(connection: &KafkaConnection, name: &str, secrets: &SecretFolder) -> Connect {
    let (connection, secrets) = (connection.clone(), secrets.clone());
    let client_id = format!("wellspring-{name}");
    wellspring_connectors::kafka::connector(move || {
        connection.settings(&client_id, |secret| secrets.read(secret))
    })
}

/// The fault of a program without a client.
#[cfg(not(feature = "kafka"))]
fn connect(_: &KafkaConnection, _: &str, _: &SecretFolder) -> Connect {
    Box::new(|| {
        let why = "this program was built without the feature kafka";
        Err(Fault::stop(StopCode::Unusable, why))
    })
}
