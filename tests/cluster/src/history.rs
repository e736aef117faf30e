//! The clients' requests and answers, in memory for the checks and as JSON lines for the checker of
//! registers.

use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A linearizable read of a register.
    Read,
    /// A read of a register with `consistency=local` or `cached`.
    Local,
    /// A conditional append to a register that had the value `old`.
    Cas,
    /// An append of a unique number.
    Append,
    /// `POST /e` of a connection's next number.
    Ingest,
    /// An order of the catalogue.
    Order,
    /// A body of `old` lines of events, links or items, as `key` says.
    Bulk,
    /// `CREATE` of a node of a graph with a unique number.
    Statement,
    /// A grant of a lease; `new` is its token.
    Lease,
}

/// The outcome of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// Done, according to the answer.
    Done,
    /// Judged and refused: the register has another value, the item is sold out.
    Conflict,
    /// Not done, according to the answer: it will never take effect.
    Refused,
    /// No definite answer.
    Unknown,
}

/// One operation of one client.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Operation {
    pub(crate) kind: Kind,
    /// The sequential client. After an unknown outcome it continues under a new number.
    pub(crate) client: u64,
    /// The last node that was asked, and its process.
    pub(crate) node: String,
    pub(crate) life: u64,
    /// The log.
    pub(crate) log: String,
    /// The register or item; for ingest, the connection.
    pub(crate) key: String,
    /// For a register: its previous value.
    pub(crate) old: u64,
    /// The value read or written, the unique number, or the amount ordered.
    pub(crate) new: u64,
    pub(crate) outcome: Outcome,
    /// Since the start of the trial.
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// The reported position of an append; of a bulk, how many of its lines are stored according
    /// to the answer.
    pub(crate) position: Option<u64>,
    /// The reported head of a read.
    pub(crate) head: Option<u64>,
    /// The answer, if the outcome is not `Done`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) told: String,
}

/// Collects the operations of all clients.
#[derive(Debug)]
pub(crate) struct History {
    begun: Instant,
    file: Mutex<BufWriter<File>>,
    operations: Mutex<Vec<Operation>>,
    numbers: AtomicU64,
}

impl History {
    pub(crate) fn new(path: &Path) -> io::Result<History> {
        Ok(History {
            begun: Instant::now(),
            file: Mutex::new(BufWriter::new(File::create(path)?)),
            operations: Mutex::default(),
            numbers: AtomicU64::new(1),
        })
    }

    /// Nanoseconds since the start, by a clock shared by all clients.
    pub(crate) fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// A unique number, for a client or a value.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn add(&self, operation: Operation) {
        let line = serde_json::to_string(&operation).expect("an operation is JSON");
        let mut file = self.file.lock().expect("the file");
        writeln!(file, "{line}").expect("the history is written");
        drop(file);
        self.operations.lock().expect("operations").push(operation);
    }

    /// All operations so far, by start time.
    pub(crate) fn all(&self) -> Vec<Operation> {
        self.file.lock().expect("the file").flush().expect("the history is written");
        let mut all = self.operations.lock().expect("operations").clone();
        all.sort_by_key(|operation| operation.start_ns);
        all
    }
}
