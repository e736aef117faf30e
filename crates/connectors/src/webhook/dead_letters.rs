//! The log of events that a receiver refused too often.

use super::client::ReceiverRefusal;
use super::message::{Message, Original};
use crate::fault::{Fault, StopCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::digest;
use tokio::sync::oneshot;
use wellspring_log::{Append, AppendError, EncodedEvents, Log, RequestKey, SERVER_KEYS};
use wellspring_types::{DataKind, EventRef, hex, limits};

/// Type of the events that it appends.
const EVENT_TYPE: &str = "WebhookDeadLettered";

/// The log of events that a receiver refused too often. The same sink must not deliver this log's
/// events.
///
/// Each becomes an event of type `WebhookDeadLettered`, tagged `sink:NAME` and with the tags of the
/// original (as many as fit), whose data is a JSON object of `sink`, `log`, `position`, `type`,
/// `tries`, `status` and `answer` (the first 200 printable characters of the last refusal), and
/// `data` (JSON) or `data_base64` of the original. If that does not fit into an event,
/// `data_omitted` is `true` instead; the original is at `position`. A dead letter is stored once,
/// however often the event is delivered again.
#[derive(Clone)]
pub struct DeadLetters {
    log: Log,
}

impl DeadLetters {
    /// Dead letters in this log.
    #[must_use]
    pub fn new(log: Log) -> DeadLetters {
        DeadLetters { log }
    }

    /// Stores a letter durably.
    ///
    /// # Errors
    /// [`Fault::Transient`] if a retry helps.
    pub(super) async fn store(&self, append: Append) -> Result<(), Fault> {
        let (tell, outcome) = oneshot::channel();
        // The receiver is gone if the sink has been stopped; the letter is stored nevertheless.
        self.log.submit(append, Box::new(move |stored| drop(tell.send(stored))));
        match outcome.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(fault(&error)),
            Err(_) => Err(Fault::transient("the dead-letter log stopped")),
        }
    }
}

/// Converts an append error to a fault of the sink.
fn fault(error: &AppendError) -> Fault {
    let detail = format!("a dead letter cannot be stored: {error}");
    match error {
        AppendError::Invalid(_)
        | AppendError::KeyReused { .. }
        | AppendError::IdReused { .. }
        | AppendError::Conflict(_) => Fault::stop(StopCode::Rejected, detail),
        AppendError::Read(wellspring_log::ReadError::Corrupt(_)) => {
            Fault::stop(StopCode::LogDamaged, detail)
        }
        _ => Fault::transient(detail),
    }
}

/// An event that was refused too often.
pub(super) struct Letter<'a> {
    /// The sink's name.
    pub(super) sink: &'a str,
    /// Name of the log that the sink reads.
    pub(super) log: &'a str,
    /// The event.
    pub(super) message: &'a Message,
    /// Number of attempts that got a response.
    pub(super) tries: u32,
    /// The last response.
    pub(super) refusal: &'a ReceiverRefusal,
}

impl Letter<'_> {
    /// The append that stores it: always the same request, whatever the response was.
    ///
    /// # Errors
    /// The sink's name or the stored part of the event does not form a valid event.
    pub(super) fn append(&self) -> Result<Append, Fault> {
        let Some(original) = &self.message.original else {
            return Err(Fault::stop(
                StopCode::Unusable,
                "the original events of dead letters were not kept",
            ));
        };
        let own = format!("sink:{}", self.sink);
        let mut tags: Vec<&str> = vec![&own];
        let others = original.tags.iter().map(AsRef::as_ref).filter(|tag| *tag != own);
        tags.extend(others.take(limits::MAX_TAGS - 1));
        let event = EventRef {
            event_type: EVENT_TYPE,
            tags: &tags,
            data: &self.data(original),
            kind: DataKind::Json,
            id: None,
            metadata: &[],
        };
        let mut events = EncodedEvents::new();
        events.push(&event).map_err(|invalid| fault(&AppendError::Invalid(invalid)))?;
        let digest = digest::digest(&digest::SHA256, self.message.id.as_bytes());
        let digits = hex::digits(digest.as_ref());
        let key = format!("{SERVER_KEYS}webhook-dead-letter-{digits}");
        let mut half = [0; 16];
        half.copy_from_slice(&digest.as_ref()[..16]);
        let key = Some(RequestKey { key, digest: half });
        Ok(Append { events, key, ..Append::default() })
    }

    fn data(&self, original: &Original) -> Vec<u8> {
        let head = serde_json::json!({
            "sink": self.sink,
            "log": self.log,
            "position": self.message.position,
            "type": original.event_type,
            "tries": self.tries,
            "status": self.refusal.status.as_u16(),
            "answer": self.refusal.text,
        });
        let head = head.to_string();
        let head = head.strip_suffix('}').unwrap_or(&head);
        let (name, quote) = match original.kind {
            DataKind::Json => ("data", ""),
            DataKind::Binary => ("data_base64", "\""),
        };
        let content = match original.kind {
            DataKind::Json => original.data.to_vec(),
            DataKind::Binary => BASE64.encode(&original.data).into_bytes(),
        };
        let mut out = format!("{head},\"{name}\":{quote}").into_bytes();
        out.extend_from_slice(&content);
        out.extend_from_slice(quote.as_bytes());
        out.push(b'}');
        if out.len() <= limits::MAX_DATA_BYTES {
            return out;
        }
        format!("{head},\"data_omitted\":true}}").into_bytes()
    }
}
