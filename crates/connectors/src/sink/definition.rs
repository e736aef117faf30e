//! What a sink is told to do.

use crate::connection::KafkaConnection;
use wellspring_types::{Position, Query};

/// Where a sink or source begins that has delivered nothing yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartAt {
    /// With the first event or record there is.
    #[default]
    Beginning,
    /// With what comes after the moment of its definition.
    Now,
    /// A sink: behind this position.
    After(Position),
}

/// What a record's value or a request's body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PayloadFormat {
    /// The event's data as it was appended; the rest stands in headers.
    #[default]
    Data,
    /// A CloudEvents 1.0 document in JSON (structured mode).
    CloudEvents,
}

/// What a Kafka sink promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeliveryMode {
    /// Each event once, for readers of what is committed: records and cursor are one transaction.
    #[default]
    ExactlyOnce,
    /// Each event once or more: no transactions, the cursor follows.
    AtLeastOnce,
}

/// Where a Kafka sink delivers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KafkaTarget {
    /// How to reach the cluster.
    pub connection: KafkaConnection,
    /// The topic. It has to be there.
    pub topic: String,
    /// What is promised.
    pub mode: DeliveryMode,
    /// The compacted topic of cursors (exactly-once). It is made if it is not there.
    pub cursor_topic: String,
}

/// Where a webhook sink delivers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookTarget {
    /// `http://…` or `https://…`.
    pub url: String,
    /// Name of the secret that signs requests; `None`: they are not signed.
    pub secret: Option<String>,
    /// Further headers, sent as they are.
    pub headers: Vec<(String, String)>,
    /// Names of secrets whose content is sent as the value of a header, by the header's name.
    pub secret_headers: Vec<(String, String)>,
    /// PEM file of authorities to trust instead of those this program knows.
    pub ca_file: Option<std::path::PathBuf>,
    /// Most requests at a time, from 1.
    pub in_flight: usize,
    /// Longest that a request may take, in ms.
    pub timeout_ms: u64,
    /// Attempts at one event before it goes to the dead-letter log; `None`: without end.
    pub max_tries: Option<u32>,
    /// Where events go that were refused too often.
    pub dead_letter_log: Option<String>,
}

/// Where a sink delivers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A Kafka topic.
    Kafka(KafkaTarget),
    /// A URL that takes one event a request.
    Webhook(WebhookTarget),
}

/// What a sink is told to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkDefinition {
    /// The log it reads.
    pub log: String,
    /// The events it delivers.
    pub query: Query,
    /// Where it begins.
    pub start: StartAt,
    /// The key of an event is the rest of its first tag that begins with this and a colon; `None`:
    /// events have no key. Events of one key are delivered in order.
    pub partition_by: Option<String>,
    /// What is delivered of an event.
    pub format: PayloadFormat,
    /// Where to.
    pub target: Target,
}
