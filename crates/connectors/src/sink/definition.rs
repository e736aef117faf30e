//! The definition of a sink.

use crate::connection::KafkaConnection;
use wellspring_types::{Position, Query};

/// Where a new sink or source starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartAt {
    /// At the first existing event or record.
    #[default]
    Beginning,
    /// After the time of its definition.
    Now,
    /// Only for sinks: after this position.
    After(Position),
    /// Only for sinks: at the first event recorded at this time or later; µs since 1970 UTC.
    Since(u64),
}

/// The content of a record's value or a request's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PayloadFormat {
    /// The event's data as appended; headers carry the rest.
    #[default]
    Data,
    /// A CloudEvents 1.0 document in JSON (structured mode).
    CloudEvents,
}

/// The delivery guarantee of a Kafka sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeliveryMode {
    /// Each event once, for readers of committed records: one transaction holds records and cursor.
    #[default]
    ExactlyOnce,
    /// Each event at least once: no transactions; the cursor is saved after delivery.
    AtLeastOnce,
}

/// The target of a Kafka sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KafkaTarget {
    /// The connection to the cluster.
    pub connection: KafkaConnection,
    /// The topic.
    pub topic: String,
    /// How to create it if it does not exist; `None`: the sink stops then.
    pub create_topic: Option<TopicToCreate>,
    /// The delivery guarantee.
    pub mode: DeliveryMode,
    /// The compacted topic of cursors (exactly-once), created if necessary.
    pub cursor_topic: String,
}

/// A topic to create.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TopicToCreate {
    /// Number of partitions; `None`: the brokers' default.
    pub partitions: Option<i32>,
    /// Replicas of each; `None`: the brokers' default.
    pub replicas: Option<i16>,
}

/// The target of a webhook sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookTarget {
    /// `http://…` or `https://…`.
    pub url: String,
    /// Name of the secret that signs requests; `None`: requests are not signed.
    pub secret: Option<String>,
    /// Additional headers, sent unchanged.
    pub headers: Vec<(String, String)>,
    /// Additional headers whose values are secrets: header name and secret name.
    pub secret_headers: Vec<(String, String)>,
    /// PEM file of certificate authorities that replace the built-in ones.
    pub ca_file: Option<std::path::PathBuf>,
    /// Maximum number of concurrent requests, from 1.
    pub in_flight: usize,
    /// Timeout of a request, in ms.
    pub timeout_ms: u64,
    /// Maximum number of attempts for an event before it goes to the dead-letter log; `None`:
    /// unlimited.
    pub max_tries: Option<u32>,
    /// The log for events that were refused too often.
    pub dead_letter_log: Option<String>,
}

/// The target of a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A Kafka topic.
    Kafka(KafkaTarget),
    /// A URL that receives one event per request.
    Webhook(WebhookTarget),
}

/// The definition of a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkDefinition {
    /// The log to read.
    pub log: String,
    /// The events to deliver.
    pub query: Query,
    /// Where to start.
    pub start: StartAt,
    /// Prefix of the key tag: an event's key is the text after this and a colon in its first such
    /// tag; `None`: events have no key. Events with the same key are delivered in order.
    pub partition_by: Option<String>,
    /// The content to deliver.
    pub format: PayloadFormat,
    /// The target.
    pub target: Target,
}
