//! The faults of connectors, classified by what resolves them.

use std::fmt;
use wellspring_kafka::FaultKind;
use wellspring_types::Position;

/// Why a connector stopped until an operator intervenes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopCode {
    /// An event is larger than the destination accepts.
    TooLarge,
    /// The cursor does not match the log: the log was emptied, dropped or restored, or the cursor
    /// belongs to another server.
    AnotherHistory,
    /// The topic was deleted and created again.
    TopicRecreated,
    /// The topic does not exist.
    NoTopic,
    /// Retention deleted records that had not been read yet.
    RecordsLost,
    /// Another server runs a connector with the same identity.
    Fenced,
    /// The credentials are wrong or lack a permission.
    Forbidden,
    /// A record cannot become an event, or an event was refused, and no reject or dead-letter log
    /// is configured.
    Rejected,
    /// The definition does not work with its destination or source.
    Unusable,
    /// A part of the log that must be read is damaged.
    LogDamaged,
}

impl StopCode {
    /// Its name in documents and figures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            StopCode::TooLarge => "too-large",
            StopCode::AnotherHistory => "another-history",
            StopCode::TopicRecreated => "topic-recreated",
            StopCode::NoTopic => "no-topic",
            StopCode::RecordsLost => "records-lost",
            StopCode::Fenced => "fenced",
            StopCode::Forbidden => "forbidden",
            StopCode::Rejected => "rejected",
            StopCode::Unusable => "unusable",
            StopCode::LogDamaged => "log-damaged",
        }
    }
}

/// A fault of a connector. Its text contains no credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Resolves by itself: the connector retries from its cursor after a while.
    Transient(String),
    /// Needs an operator: the connector stops.
    Stop {
        /// The reason.
        code: StopCode,
        /// What happened, as a sentence without its full stop.
        detail: String,
        /// The event concerned, if any.
        position: Option<Position>,
    },
}

impl Fault {
    /// A fault that resolves by itself.
    pub fn transient(detail: impl Into<String>) -> Fault {
        Fault::Transient(detail.into())
    }

    /// A fault that needs an operator.
    pub fn stop(code: StopCode, detail: impl Into<String>) -> Fault {
        Fault::Stop { code, detail: detail.into(), position: None }
    }

    /// Adds the event concerned.
    #[must_use]
    pub fn at(self, at: Position) -> Fault {
        match self {
            Fault::Stop { code, detail, .. } => Fault::Stop { code, detail, position: Some(at) },
            transient @ Fault::Transient(_) => transient,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Transient(detail) | Fault::Stop { detail, .. } => f.write_str(detail),
        }
    }
}

impl std::error::Error for Fault {}

impl From<wellspring_kafka::Fault> for Fault {
    fn from(fault: wellspring_kafka::Fault) -> Fault {
        let code = match fault.kind {
            // Starting over from the cursor determines what was delivered.
            FaultKind::Unavailable | FaultKind::InDoubt => return Fault::Transient(fault.detail),
            FaultKind::Fenced => StopCode::Fenced,
            FaultKind::TooLarge => StopCode::TooLarge,
            FaultKind::Forbidden => StopCode::Forbidden,
            FaultKind::NoTopic => StopCode::NoTopic,
            FaultKind::TopicRecreated => StopCode::TopicRecreated,
            FaultKind::OutOfRange => StopCode::RecordsLost,
            FaultKind::Unusable => StopCode::Unusable,
        };
        Fault::stop(code, fault.detail)
    }
}

impl From<wellspring_log::ReadError> for Fault {
    fn from(error: wellspring_log::ReadError) -> Fault {
        match error {
            wellspring_log::ReadError::Corrupt(damage) => {
                Fault::stop(StopCode::LogDamaged, damage.to_string())
            }
            trimmed @ wellspring_log::ReadError::Trimmed { .. } => {
                Fault::stop(StopCode::RecordsLost, trimmed.to_string())
            }
            passing => Fault::Transient(passing.to_string()),
        }
    }
}
