//! What can go wrong with a connector, by what has to be done about it.

use std::fmt;
use wellspring_kafka::FaultKind;
use wellspring_types::Position;

/// Why a connector stopped until a person decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopCode {
    /// An event is larger than the destination takes.
    TooLarge,
    /// The cursor does not fit the log: the log was emptied, dropped or restored, or the cursor is
    /// another server's.
    AnotherHistory,
    /// The topic was deleted and made again.
    TopicRecreated,
    /// There is no such topic.
    NoTopic,
    /// Records that were not read yet are gone: retention was faster.
    RecordsLost,
    /// Another server runs a connector of the same identity.
    Fenced,
    /// The credentials are wrong, or do not allow this.
    Forbidden,
    /// A record cannot be made an event, or an event was refused, and nothing says where to put it.
    Rejected,
    /// The definition does not work with this destination or source.
    Unusable,
    /// The log is damaged where it has to be read.
    LogDamaged,
}

impl StopCode {
    /// The word for it in documents and figures.
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

/// Something that went wrong. Its words name no credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It goes away by itself: the connector begins again from its cursor after a while.
    Transient(String),
    /// It does not go away by itself: the connector stops until a person decides.
    Stop {
        /// Why.
        code: StopCode,
        /// What happened, as a sentence without its full stop.
        detail: String,
        /// The event it is about, where it is about one.
        position: Option<Position>,
    },
}

impl Fault {
    /// A fault that goes away by itself.
    pub fn transient(detail: impl Into<String>) -> Fault {
        Fault::Transient(detail.into())
    }

    /// A fault that a person has to decide about.
    pub fn stop(code: StopCode, detail: impl Into<String>) -> Fault {
        Fault::Stop { code, detail: detail.into(), position: None }
    }

    /// The same, about an event.
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
            // What was delivered is found out from the cursor, by beginning again.
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
            passing => Fault::Transient(passing.to_string()),
        }
    }
}
