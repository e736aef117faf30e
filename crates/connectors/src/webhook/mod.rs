//! Webhooks: one `POST` an event, at least once, the events of one key in order.
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
//! | `Idempotency-Key` | the sink's identity and the event's position, the same at every repetition |
//! | `webhook-id`, `webhook-timestamp`, `webhook-signature` | a signature by [Standard Webhooks], if there is a secret |
//! | `wellspring-log`, `wellspring-position`, `wellspring-type` | where the event lies, and its type |
//! | `wellspring-tags` | its tags as a JSON array; left out beyond 7 KiB, where servers refuse a header |
//!
//! Texts in headers are the inside of a JSON string: what is not visible ASCII is written `\uXXXX`.
//!
//! # What counts as an attempt
//!
//! An attempt counts towards `max_tries` if the receiver answered it with a status other than 2xx;
//! redirects are such answers and are never followed. An attempt without an answer (no connection,
//! a timeout, a connection closed early, an answer that is not HTTP) is repeated without being
//! counted: an outage of the receiver must not push a backlog into the dead-letter log. The price:
//! an event that the receiver never answers holds up the sink. The state of the sink is `retrying`
//! then and names the position, which a person can skip.
//!
//! # What waits for what
//!
//! A failing event holds up the later events of its key, and all events of later batches: a batch
//! (4,096 events) is delivered as a whole before the next one begins.
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
