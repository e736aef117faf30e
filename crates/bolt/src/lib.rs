//! Neo4j's Bolt protocol, versions 4.4, 5.0 to 5.4 and 5.6 to 5.8, as a server speaks it: bytes in,
//! asks out, answers in, bytes out. No socket, no clock, no graph.
//!
//! ```text
//! first bytes → Handshake → Version → Session: receive → next_ask → succeed | fail | abandon → output
//!                                       dechunker, Request        Metadata, Failure
//! rows: begin_record, Writer, end_message → one buffer of framed messages → measure_messages
//! ```
//!
//! [`Session`] knows which message a state allows, which results of a transaction are open, and
//! what it answers without its caller. The caller executes one ask at a time.

#![forbid(unsafe_code)]

mod dechunk;
mod failure;
mod framing;
mod handshake;
mod message;
pub mod packstream;
mod session;
pub mod structure;
mod version;

pub use failure::Failure;
pub use framing::{
    MAX_CHUNK_BYTES, MeasuredMessages, MessageStart, begin_message, begin_record, end_message,
    measure_messages,
};
pub use handshake::{Agreement, Handshake, HandshakeFault, MAGIC};
pub use message::{
    AccessMode, Auth, Fetch, FetchAmount, Hello, NotificationFilter, NotificationSeverity,
    PackedMap, Route, Routing, Run, TextList, TransactionSettings,
};
pub use session::{Ask, Metadata, Phase, Remaining, ResultPlace, Session};
pub use version::Version;
