//! A shared log of Wellspring in PostgreSQL: several nodes agree on one order through a table.
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
//! # Setup
//!
//! A database and a user that may create a schema in it, or that owns the one named by `?schema=`:
//!
//! ```sql
//! CREATE ROLE wellspring LOGIN PASSWORD '…';
//! CREATE DATABASE events OWNER wellspring;
//! ```
//!
//! The first node that connects creates the tables, which have a version (`ws_meta`); tables of a
//! newer version are refused. A node has five connections, however many logs it has: four write,
//! one reads. They must reach the server itself or a pooler in *session* mode, because they use
//! prepared plans and session settings. Tested with PostgreSQL 15. With several hosts in the URL,
//! the one that accepts writes is used.
//!
//! Connections to other machines must be encrypted (`sslmode=verify-full`). The password is given
//! in the URL, in `PGPASSWORD` or in a file of mode 0600, and never appears in an error, log line
//! or `Debug` output.
//!
//! # How it works
//!
//! `ws_end` has a row for each log with the last place, `ws_entry` the entries. An offer is one
//! statement, one round trip, one commit: it moves the end from the place that the node has seen to
//! the next, if it is still there, and adds the entry. The end row stays locked until the commit,
//! so places become visible in order and without gaps. If one row is added, the entry has been
//! placed; if none, another entry has that place and this one never will. If the connection is lost
//! meanwhile, the outcome is unknown until the entry is read or offered again. An offer may follow
//! another that is on the way, over the same connection: it is placed behind that one or nowhere.
//! The node that placed an entry takes it from memory; the others read every 5 to 50 ms. To
//! determine the end, a node *writes* the end row unchanged: only a primary that can commit
//! answers.
//!
//! # What "durable" means
//!
//! That depends on the server's settings; [`DurabilityReport`] reads them and explains them. With
//! `fsync` and `full_page_writes` on (the default), an acknowledged append survives a power loss of
//! the server. Surviving the loss of the server requires a standby in `synchronous_standby_names`,
//! and that no other standby is promoted. `synchronous_commit` is raised to `on` for the node's own
//! sessions if it is `off` or `local`.
//!
//! # Failures
//!
//! | event | consequence |
//! |---|---|
//! | a connection is lost, or the server restarts | all connections are reopened after 20 ms to 1 s, repeatedly; unsettled offers are in doubt and repeated by the log; meanwhile the log is unavailable and reports why |
//! | the server is silent for 10 s | the connection is closed (TCP) |
//! | another node placed an entry first | the offer is refused, and the node reads at once |
//! | a commit hangs (no synchronous standby answers) | the node waits without limit: it never cancels statements. Others wait for the end row |
//! | that wait is cancelled from elsewhere | the server warns that the commit may not be replicated: the outcome is unknown |
//! | a standby without the last commits is promoted, or the server is restored | detected at the next connection or question for the end: the log is unusable on this node, and reports so. Nothing is offered any more |
//! | entries are deleted that a node has not read | the same |
//! | the disk is full, privileges are revoked | offers are in doubt; [`NodeStatus::last_trouble`] has the server's message |
//!
//! An entry whose commit was not replicated may become visible before it is lost (when the server
//! restarts, or when the wait for the standby is cancelled). That is why a promoted standby is
//! compared with what was read.
//!
//! # Events as rows
//!
//! Unless configured otherwise ([`EventRows::Omit`]), a node writes the events of each batch into
//! `ws_event`, in the statement that places the batch: `log, position, recorded_at, type, tags, id,
//! metadata, data` (JSON, as text) or `data_bytes`. A batch that is placed but void (of a former
//! leader) leaves no rows; the rows of a batch in parts appear with its last part.
//! `ws_end.rows_place` is the place up to which the rows are complete; the next node that writes
//! rows adds those of batches placed by nodes that do not.
//!
//! ```sql
//! -- the events of one order
//! SELECT position, recorded_at, type, data::jsonb FROM wellspring.ws_event
//! WHERE log = 'main' AND tags @> '{order:1001}' ORDER BY position;
//!
//! -- number of events by day and type
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
//! Readers need only `USAGE` on the schema and `SELECT` on `ws_event`.
//!
//! # Limits
//!
//! An entry has at most 8 MiB; larger batches are sent in parts. A log has at most four unsettled
//! offers, or two if the server is near. Offers of all logs share four connections, the least busy
//! one takes the next: commits that hang on all four block every log of the node.

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
