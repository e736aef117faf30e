//! Bolt: the protocol of Neo4j's drivers, on the ports of HTTP.
//!
//! ```text
//! bytes ─► Handshake ─► Session ─► asks ─► Executor ─► gate ─► transactions, as over HTTP
//!                          ▲                  │
//!                          └── replies, rows ─┘
//! ```
//!
//! An ask is performed while the connection is still read, so that a `RESET` behind it can give it
//! up (decision 0047).

mod connection;
mod executor;
mod failure;
mod parameters;
mod preparation;
mod results;
mod routing;
mod summary;
mod values;

use crate::GraphFace;
use crate::fresh::FRESHNESS;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wellspring_bolt::MAGIC;
use wellspring_host::declare::{Contract, Needs, Role, Route, Scope};
use wellspring_host::http::Host;
use wellspring_host::http::contract::Changes;
use wellspring_host::http::routes::Operation;
use wellspring_host::protocol::{Protocol, ProtocolConnection};
use wellspring_host::stats::family::Family;

/// The operations that clients perform, in the order of [`OPERATIONS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoltOperation {
    Logon,
    Route,
    Begin,
    Run,
    Commit,
    /// Any of them on the database `system`.
    System,
}

impl BoltOperation {
    const fn name(self) -> &'static str {
        match self {
            BoltOperation::Logon => "LOGON",
            BoltOperation::Route => "ROUTE",
            BoltOperation::Begin => "BEGIN",
            BoltOperation::Run => "RUN",
            BoltOperation::Commit => "COMMIT",
            BoltOperation::System => "SYSTEM",
        }
    }
}

const fn operation(of: BoltOperation, what: &'static str) -> Route {
    let (scope, needs) = match of {
        BoltOperation::Logon | BoltOperation::System => (Scope::Node, Needs::Account),
        _ => (Scope::Named, Needs::Role(Role::Reader)),
    };
    // As over HTTP, a statement that writes asks for the role writer.
    let contract = Contract::new(&[]).fresh(FRESHNESS).changes(Changes::Nothing);
    Route { method: "BOLT", path: of.name(), scope, needs, what, contract }
}

/// What clients do, as the figures, the audit and the access log know it.
pub(crate) const OPERATIONS: &[Route] = &[
    operation(BoltOperation::Logon, "Proves who the client is."),
    operation(BoltOperation::Route, "Tells which servers a driver talks to."),
    operation(BoltOperation::Begin, "Opens a transaction."),
    operation(BoltOperation::Run, "Executes a Cypher statement."),
    operation(BoltOperation::Commit, "Commits a transaction."),
    operation(BoltOperation::System, "Executes a statement about the server."),
];

/// What the connections of a face share.
pub(crate) struct BoltService {
    operations: Vec<Operation>,
    open_connections: AtomicU64,
    connections: AtomicU64,
    messages: AtomicU64,
    failures: AtomicU64,
}

impl BoltService {
    pub(crate) fn new(host: &Host, face: &str) -> BoltService {
        BoltService {
            operations: host.routes.operations_of(face),
            open_connections: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    fn operation(&self, operation: BoltOperation) -> &Operation {
        &self.operations[operation as usize]
    }

    /// The figures.
    pub(crate) fn families(&self) -> Vec<Family> {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        vec![
            Family::gauge(
                "wellspring_bolt_connections",
                "Open connections of Bolt clients.",
                read(&self.open_connections),
            ),
            Family::counter(
                "wellspring_bolt_connections_total",
                "Connections of Bolt clients that agreed on a version.",
                read(&self.connections),
            ),
            Family::counter(
                "wellspring_bolt_messages_total",
                "Messages of Bolt clients that were acted on.",
                read(&self.messages),
            ),
            Family::counter(
                "wellspring_bolt_failures_total",
                "Failures that Bolt clients were told.",
                read(&self.failures),
            ),
        ]
    }
}

/// Counts an open connection while it lives.
struct CountedConnection(Arc<GraphFace>);

impl CountedConnection {
    fn begin(face: &Arc<GraphFace>) -> CountedConnection {
        face.bolt.open_connections.fetch_add(1, Relaxed);
        face.bolt.connections.fetch_add(1, Relaxed);
        CountedConnection(Arc::clone(face))
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.bolt.open_connections.fetch_sub(1, Relaxed);
    }
}

/// Bolt on the ports of the server.
pub(crate) struct Bolt(pub(crate) Arc<GraphFace>);

impl Protocol for Bolt {
    fn magic(&self) -> &'static [u8] {
        &MAGIC
    }

    fn serve(&self, connection: ProtocolConnection) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(connection::serve(Arc::clone(&self.0), connection))
    }
}
