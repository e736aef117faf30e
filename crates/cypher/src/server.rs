//! What statements can ask of the server around the graph.

use crate::error::{Detail, Error, ErrorKind, Result};
use crate::value::Value;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Steps that a statement takes before it reads a disk: more than it may on a serving thread or in
/// the room for work of some ms.
pub const STEPS_BEFORE_READING: u64 = 1 << 17;

/// What statements can ask of the server around the graph. It answers from memory, except for
/// events.
pub trait Server: Sync {
    /// The databases that the account may read, by name.
    fn databases(&self) -> Vec<Database> {
        Vec::new()
    }

    /// The account for which the statement runs; `None` where accounts are not used.
    fn account(&self) -> Option<Account> {
        None
    }

    /// What the client has attached to the transaction, by name.
    fn transaction_metadata(&self) -> Vec<(Arc<str>, Value)> {
        Vec::new()
    }

    /// Passes the wanted events of a log to the sink, in order, as they are on the disk now. Reads
    /// the disk, which the statement has charged for.
    ///
    /// # Errors
    /// Those of the sink; events that cannot be read.
    fn events(&self, wanted: &EventsWanted, sink: &mut dyn EventSink) -> Result<()> {
        let _ = (wanted, sink);
        Ok(())
    }

    /// Passes the records of a file of comma-separated values to `each`, until it stops. Reads the
    /// disk, which the statement has charged for.
    ///
    /// # Errors
    /// Those of `each`; a file that is not there or must not be read.
    fn csv(&self, source: &str, terminator: u8, each: &mut EachRecord<'_>) -> Result<()> {
        let _ = (source, terminator, each);
        let message = "LOAD CSV reads no files here";
        Err(Error::runtime(ErrorKind::SemanticError, Detail::ExternalResource, message))
    }
}

/// Takes the fields of a record, and says whether there is more to read.
pub type EachRecord<'e> = dyn FnMut(Vec<Arc<str>>) -> Result<ControlFlow<()>> + 'e;

/// Which events of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventsWanted {
    /// The database, which is the log's name.
    pub database: Arc<str>,
    /// They have one of these types; any if empty.
    pub types: Vec<Arc<str>>,
    /// They have all of these tags.
    pub tags: Vec<Arc<str>>,
    /// They come after this position.
    pub after: u64,
    /// They are not beyond this position.
    pub until: Option<u64>,
    /// The most of them.
    pub limit: u64,
}

/// An event of a log.
#[derive(Debug, Clone)]
pub struct LogEvent {
    /// Its position.
    pub position: u64,
    /// Its type.
    pub kind: Arc<str>,
    /// Its tags.
    pub tags: Vec<Arc<str>>,
    /// Its data: JSON as values, or bytes.
    pub data: Value,
    /// When it was recorded, in µs since 1970 UTC.
    pub recorded_us: u64,
}

/// Takes events, and what it costs to find them.
pub trait EventSink {
    /// Charges for a search.
    ///
    /// # Errors
    /// The statement must end.
    fn searched(&mut self, steps: u64) -> Result<()>;

    /// Charges for memory that the parsing of an event takes for a moment.
    ///
    /// # Errors
    /// There is not enough of it.
    fn parsing(&mut self, bytes: u64) -> Result<()>;

    /// Takes an event.
    ///
    /// # Errors
    /// There is no room for it.
    fn event(&mut self, event: LogEvent) -> Result<()>;
}

/// A database, as far as lists of databases show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// Its name.
    pub name: Arc<str>,
    /// Its other names.
    pub aliases: Vec<Arc<str>>,
    /// Whether this server is where it is written.
    pub is_writer: bool,
    /// Whether it may be written at all.
    pub is_writable: bool,
    /// Whether it is used where a client names none.
    pub is_default: bool,
    /// Whether it is the server's own, without a graph.
    pub is_system: bool,
    /// The address at which drivers find it, with its port.
    pub address: Arc<str>,
    /// Why it cannot be used now, if it cannot.
    pub unavailable: Option<Arc<str>>,
}

/// An account, as far as it is shown to itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: Arc<str>,
    /// Its roles in Neo4j's words, such as `reader`.
    pub roles: Vec<Arc<str>>,
}

/// No server: a graph alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoServer;

impl Server for NoServer {}
