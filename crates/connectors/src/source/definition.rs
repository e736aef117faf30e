//! The definition of a source.

use super::template::Template;
use crate::connection::KafkaConnection;
use crate::sink::StartAt;

/// How a record's value becomes an event's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordData {
    /// The event's data, which must be JSON; a tombstone becomes `null`.
    #[default]
    Json,
    /// Arbitrary bytes; a tombstone becomes empty data.
    Binary,
}

/// The definition of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceDefinition {
    /// The log to append to.
    pub log: String,
    /// The connection to the cluster.
    pub connection: KafkaConnection,
    /// The topic.
    pub topic: String,
    /// Where to start in a partition that has not been read: [`StartAt::Beginning`] or
    /// [`StartAt::Now`].
    pub start: StartAt,
    /// Template of the event type.
    pub event_type: Template,
    /// Templates of the event tags.
    pub tags: Vec<Template>,
    /// How values become data.
    pub data: RecordData,
    /// The log for records that cannot become events; `None`: the source stops at the first one.
    pub reject_log: Option<String>,
}
