//! Webhooks: one `POST` per event, at least once; events with the same key in order.
//!
//! ```text
//! push ─► Message (headers, body)      deliver ─► Round: which event may be sent now, and when again
//!                                                   └─► Client: one attempt over one connection ─► Outcome
//!                                                   └─► DeadLetters: events that were refused too often
//! ```
//!
//! # What a receiver gets
//!
//! | header | content |
//! |---|---|
//! | `Idempotency-Key` | the sink's identity and the event's position, the same for every retry |
//! | `webhook-id`, `webhook-timestamp`, `webhook-signature` | a signature by [Standard Webhooks], if there is a secret |
//! | `wellspring-log`, `wellspring-position`, `wellspring-type` | the event's log, position and type |
//! | `wellspring-tags` | its tags as a JSON array; omitted above 7 KiB, because servers refuse longer headers |
//!
//! Texts in headers are the inside of a JSON string: characters outside visible ASCII are written
//! `\uXXXX`.
//!
//! # What counts as an attempt
//!
//! An attempt counts towards `max_tries` if the receiver responded with a status other than 2xx;
//! redirects count too and are never followed. An attempt without a response (no connection, a
//! timeout, a connection closed early, a response that is not HTTP) is repeated without being
//! counted: an outage of the receiver must not push a backlog into the dead-letter log. The price:
//! an event to which the receiver never responds blocks the sink. The sink's state is then
//! `retrying` and names the position, which an operator can skip.
//!
//! # What a failing event blocks
//!
//! A failing event blocks the later events with its key, and all events of later batches: a batch
//! (4,096 events) is delivered completely before the next one starts.
//!
//! [Standard Webhooks]:
//! https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md

mod client;
mod connection;
mod dead_letters;
mod destination;
mod endpoint;
mod message;
mod round;
mod signature;
mod target;

pub use dead_letters::DeadLetters;
pub use destination::{WebhookDestination, WebhookDestinationSettings};
pub use endpoint::check_url;
pub use target::{check_header, check_target};
