//! Classifies krafka's errors by what the caller must do.

use crate::fault::{Fault, FaultKind};
use krafka::error::{ErrorCode, KrafkaError};

/// Converts an error to a fault.
pub(super) fn fault_of(what: &str, error: &KrafkaError) -> Fault {
    Fault::new(kind_of(error), format!("{what}: {error}"))
}

fn kind_of(error: &KrafkaError) -> FaultKind {
    match error {
        KrafkaError::Fenced { .. } => FaultKind::Fenced,
        KrafkaError::Auth { .. } => FaultKind::Forbidden,
        KrafkaError::UnknownTopic { .. } => FaultKind::NoTopic,
        KrafkaError::NoOffset { .. } => FaultKind::OutOfRange,
        KrafkaError::DeliveryTimeout { possibly_written: true, .. } => FaultKind::InDoubt,
        KrafkaError::Network(_)
        | KrafkaError::Timeout { .. }
        | KrafkaError::DeliveryTimeout { .. }
        | KrafkaError::OutOfOrderSequence { .. }
        | KrafkaError::Closed { .. } => FaultKind::Unavailable,
        KrafkaError::Broker { code, .. } => kind_of_code(*code),
        KrafkaError::TransactionAbortable { message } => kind_of_abortable(message),
        _ if error.is_retriable() => FaultKind::Unavailable,
        _ => FaultKind::Unusable,
    }
}

/// krafka reports that a transaction must be aborted only through the broker's text at the end of
/// its message. Its version is pinned, and a test against a broker checks that text.
fn kind_of_abortable(message: &str) -> FaultKind {
    match message.rsplit(' ').next() {
        Some("MessageTooLarge" | "RecordListTooLarge") => FaultKind::TooLarge,
        Some("TopicAuthorizationFailed") => FaultKind::Forbidden,
        _ => FaultKind::Unavailable,
    }
}

fn kind_of_code(code: ErrorCode) -> FaultKind {
    match code {
        ErrorCode::ProducerFenced | ErrorCode::InvalidProducerEpoch => FaultKind::Fenced,
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge => FaultKind::TooLarge,
        ErrorCode::UnknownTopicOrPartition => FaultKind::NoTopic,
        ErrorCode::OffsetOutOfRange => FaultKind::OutOfRange,
        ErrorCode::TopicAuthorizationFailed
        | ErrorCode::ClusterAuthorizationFailed
        | ErrorCode::TransactionalIdAuthorizationFailed
        | ErrorCode::SaslAuthenticationFailed => FaultKind::Forbidden,
        code if code.is_retriable() => FaultKind::Unavailable,
        _ => FaultKind::Unusable,
    }
}
