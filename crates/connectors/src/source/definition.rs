//! What a source is told to do.

use super::template::Template;
use crate::connection::KafkaConnection;
use crate::sink::StartAt;

/// What a record's value becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordData {
    /// The event's data, which has to be JSON; a tombstone becomes `null`.
    #[default]
    Json,
    /// Bytes, whatever they are; a tombstone becomes none.
    Binary,
}

/// What a source is told to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceDefinition {
    /// The log it appends to.
    pub log: String,
    /// How to reach the cluster.
    pub connection: KafkaConnection,
    /// The topic.
    pub topic: String,
    /// Where it begins in a partition of which nothing was read: [`StartAt::Beginning`] or
    /// [`StartAt::Now`].
    pub start: StartAt,
    /// The type of a record's event.
    pub event_type: Template,
    /// The tags of a record's event.
    pub tags: Vec<Template>,
    /// What its value becomes.
    pub data: RecordData,
    /// Where records go that cannot be made an event; `None`: the source stops at the first.
    pub reject_log: Option<String>,
}
