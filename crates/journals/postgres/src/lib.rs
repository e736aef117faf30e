//! A shared log of Wellspring in PostgreSQL: several nodes agree on one order by a table.
//!
//! ```no_run
//! use wellspring_journal_postgres::{ConnectOptions, PostgresNode};
//! use wellspring_log::{Log, Options, SharedOptions};
//! use std::sync::Arc;
//! # fn storage() -> Arc<dyn wellspring_log::storage::Storage> { unimplemented!() }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let url = "postgres://wellspring@db.example/events?sslmode=verify-full";
//! let node = PostgresNode::connect(ConnectOptions::parse(url)?.or_password_of_environment())?;
//! println!("{}", node.durability());
//! let shared = SharedOptions::new("node-1", "http://node-1:8080");
//! let engine = node.shared_log(&shared.log);
//! let log = Log::open_shared(storage(), Options::default(), shared, Box::new(engine))?;
//! # Ok(()) }
//! ```
//!
//! # Setting up
//!
//! A database and a user that may make a schema in it, or that owns one named as `?schema=` says:
//!
//! ```sql
//! CREATE ROLE wellspring LOGIN PASSWORD '…';
//! CREATE DATABASE events OWNER wellspring;
//! ```
//!
//! The tables are made by the first node that connects, and have a version (`ws_meta`); tables of a
//! newer version are refused. A node has two connections, however many logs it has: one writes, one
//! reads. They must reach the server itself or a pooler in *session* mode: plans are prepared, and
//! settings are those of the session. Tested with PostgreSQL 15. With several hosts in the URL, the
//! one that takes writes is used.
//!
//! Beyond this machine connections are encrypted (`sslmode=verify-full`) or refused. The password
//! stands in the URL, in `PGPASSWORD` or in a file of mode 0600, and is in no error, log line or
//! `Debug` output.
//!
//! # How it works
//!
//! `ws_end` has a row for each log with the last place, `ws_entry` the entries. An offer is one
//! statement, one round trip, one commit: it moves the end from the place the node has seen to the
//! next, if it is still there, and adds the entry. The end row stays locked to the commit, so that
//! places become visible in order and without a gap. One row added: it stands there. None:
//! something else does, and this never will. A connection lost meanwhile: unknown, until it is read
//! or offered again. The node that placed an entry takes it from memory, the others read every 5 to
//! 50 ms. To find the end a node *writes* the end row as it is: only a primary that can commit
//! answers.
//!
//! # What "durable" means
//!
//! What the server's settings say; [`DurabilityReport`] reads them and says it in words. With
//! `fsync` and `full_page_writes` on (the default), an acknowledged append survives a power loss of
//! the server. To survive the loss of the server it takes a standby in `synchronous_standby_names`,
//! and that nobody promotes another one. `synchronous_commit` is raised to `on` for the node's own
//! sessions where it is `off` or `local`.
//!
//! # Failures
//!
//! | what happens | what follows |
//! |---|---|
//! | a connection is lost, or the server restarts | both are made anew after 20 ms to 1 s, again and again; offers under way are in doubt and made again by the log; meanwhile the log is unavailable and says why |
//! | nothing comes from the server for 10 s | the connection is given up (TCP) |
//! | another node placed something first | the offer is refused, the node reads at once |
//! | a commit hangs (no synchronous standby answers) | it is waited for, without limit: statements are never cancelled here. Others wait behind it on the end row |
//! | somebody else cancels that wait | the server warns that the commit may not be replicated: the outcome is unknown |
//! | a standby without the last commits is promoted, or the server is restored | found with the next connection or question for the end: the log is unusable here, and says so. Nothing is offered any more |
//! | entries are deleted that a node has not read | the same |
//! | the disk is full, rights are taken away | offers are in doubt; [`NodeStatus::last_trouble`] has what the server said |
//!
//! An entry whose commit was not replicated may show to readers before it is lost (PostgreSQL shows
//! it when the server restarts, or when the wait for the standby is cancelled). That is why a
//! promoted standby is compared with what was read.
//!
//! # Events as rows
//!
//! Unless told not to ([`EventRows::Omit`]), a node writes the events of each batch into
//! `ws_event`, by the statement that places the batch: `log, position, recorded_at, type, tags, id,
//! metadata, data` (JSON, as text) or `data_bytes`. A batch that is placed but counts for nobody
//! (of a leader that was overtaken) leaves no rows; one in parts shows with its last part.
//! `ws_end.rows_place` says up to which place the rows are complete; what nodes without rows have
//! placed is filled in by the next node with them.
//!
//! ```sql
//! -- what happened to one thing
//! SELECT position, recorded_at, type, data::jsonb FROM wellspring.ws_event
//! WHERE log = 'main' AND tags @> '{order:1001}' ORDER BY position;
//!
//! -- how often what happened, by day
//! SELECT date_trunc('day', recorded_at) AS day, type, count(*) FROM wellspring.ws_event
//! WHERE log = 'main' GROUP BY 1, 2 ORDER BY 1, 2;
//!
//! -- a sum over a field of the data
//! SELECT sum((data::jsonb ->> 'amount')::numeric) FROM wellspring.ws_event
//! WHERE log = 'main' AND type = 'OrderPlaced';
//!
//! -- everything after a position, for another system; positions have no gaps
//! SELECT * FROM wellspring.ws_event WHERE log = 'main' AND position > 41 ORDER BY position LIMIT 1000;
//! ```
//!
//! Readers need `USAGE` on the schema and `SELECT` on `ws_event`, and no more.
//!
//! # Limits
//!
//! An entry has at most 8 MiB; larger batches travel in parts. One offer of a log is under way at a
//! time. Offers of several logs go over one connection, one behind another: a commit that hangs
//! holds up all logs of the node.

#![forbid(unsafe_code)]

mod fault;
mod keep;
mod log;
mod node;
mod options;
mod read;
mod report;
mod rows;
mod schema;
mod serve;
mod session;
mod shared;
mod state;
mod statements;
mod tls;

pub use fault::{ConnectError, Retry};
pub use log::PostgresLog;
pub use node::PostgresNode;
pub use options::{ConnectOptions, EventRows, Host, OptionsError, Password, Tls};
pub use report::{Durability, DurabilityReport};
pub use shared::{Connection, NodeStatus};
