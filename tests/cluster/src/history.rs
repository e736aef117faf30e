//! What clients asked and were told, in memory for the checks and as JSON lines for the judge.

use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A linearizable read of a register.
    Read,
    /// A read of a register with `consistency=local` or `cached`.
    Local,
    /// A conditional append to a register that was seen with the value `old`.
    Cas,
    /// An append of a unique number.
    Append,
    /// `POST /e` of a connection's next number.
    Ingest,
    /// An order of the catalogue.
    Order,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// Done, as was told.
    Done,
    /// Judged and refused: the register has another value, the item is sold out.
    Conflict,
    /// Not done, as was told: it will never take effect.
    Refused,
    /// Nobody said.
    Unknown,
}

/// One operation of one client.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Operation {
    pub(crate) kind: Kind,
    /// Whoever does one thing after another. After an unknown outcome a client goes on as somebody
    /// else.
    pub(crate) client: u64,
    /// The node that was asked last, and which of its lives.
    pub(crate) node: String,
    pub(crate) life: u64,
    /// Of a register or an item; of an ingest the connection.
    pub(crate) key: String,
    /// Of a register: the value seen before.
    pub(crate) old: u64,
    /// The value read or written, the unique number, the amount ordered.
    pub(crate) new: u64,
    pub(crate) outcome: Outcome,
    /// Since the start of the trial.
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// Where an append was told to be.
    pub(crate) position: Option<u64>,
    /// Up to where a read was told to reach.
    pub(crate) head: Option<u64>,
    /// What was told with an outcome that is not `Done`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) told: String,
}

/// Takes operations of all clients.
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

    /// Nanoseconds since the start: one clock for all clients.
    pub(crate) fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// A number that nobody else has: of a client, or a value.
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

    /// Everything until now, by the time it began.
    pub(crate) fn all(&self) -> Vec<Operation> {
        self.file.lock().expect("the file").flush().expect("the history is written");
        let mut all = self.operations.lock().expect("operations").clone();
        all.sort_by_key(|operation| operation.start_ns);
        all
    }
}
