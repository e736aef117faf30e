//! The facts about erasures. Events of the log `system` with the tag `erasure:ID` record the state
//! of each erasure. A `SubjectErased` event in each log with events of the subject, under the
//! subject's tag, tells the log's readers about the erasure in the order of the log.
//!
//! ```text
//! ErasureRequested {"subjects":[…],"keys":[…],"erases_at_us","by"}    the keys that they have now
//! ErasureCancelled {}
//! ErasureBegun     {}                           from here on it always ends
//! ErasureCompleted {"logs":[…]}
//! SubjectErased    {"erasure","subject"}         in the subject's logs
//! ```

use serde::{Deserialize, Serialize};
use wellspring_host::kept_types::KeptEvents;
use wellspring_host::subjects::SUBJECT_ERASED;
use wellspring_log::EncodedEvents;
use wellspring_types::Event;

pub(crate) const REQUESTED: &str = "ErasureRequested";
pub(crate) const CANCELLED: &str = "ErasureCancelled";
pub(crate) const BEGUN: &str = "ErasureBegun";
pub(crate) const COMPLETED: &str = "ErasureCompleted";
/// All of them in the log `system`.
pub(crate) const ALL: [&str; 4] = [REQUESTED, CANCELLED, BEGUN, COMPLETED];
/// Subjects of one event.
const CHUNK: usize = 1_000;

/// What clients may not append to any log.
pub(crate) static KEPT: KeptEvents = KeptEvents {
    log: None,
    types: &[SUBJECT_ERASED],
    prefix: SUBJECT_ERASED,
    advice: "says that a data subject was erased; DELETE /v1/subjects/{subject} does that",
};

/// The content of `ErasureRequested`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ErasureOrder {
    pub(crate) subjects: Vec<String>,
    /// Ids of their keys, in hexadecimal digits, in the same order.
    pub(crate) keys: Vec<String>,
    pub(crate) erases_at_us: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
}

/// The content of `ErasureCompleted`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ErasureResult {
    pub(crate) logs: Vec<ErasedInLog>,
}

/// A log in which subjects of an erasure had events.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ErasedInLog {
    pub(crate) log: String,
    /// How many of them.
    pub(crate) subjects: u64,
}

/// The tag of an erasure's facts.
pub(crate) fn tag(erasure: &str) -> String {
    format!("erasure:{erasure}")
}

fn push<T: Serialize>(events: &mut EncodedEvents, event_type: &str, tag: &str, content: &T) {
    let data = serde_json::to_string(content).expect("texts and numbers");
    let event = Event::json(event_type, &[tag], &data);
    events.push(&event.as_ref()).expect("a fact is within the limits");
}

/// The facts that an erasure was requested.
pub(crate) fn requested(erasure: &str, request: &ErasureOrder) -> EncodedEvents {
    let mut events = EncodedEvents::new();
    for (subjects, keys) in request.subjects.chunks(CHUNK).zip(request.keys.chunks(CHUNK)) {
        let (by, erases_at_us) = (request.by.clone(), request.erases_at_us);
        let (subjects, keys) = (subjects.to_vec(), keys.to_vec());
        let part = ErasureOrder { subjects, keys, erases_at_us, by };
        push(&mut events, REQUESTED, &tag(erasure), &part);
    }
    events
}

/// The fact that keys are being destroyed.
pub(crate) fn begun(erasure: &str) -> EncodedEvents {
    let mut events = EncodedEvents::new();
    push(&mut events, BEGUN, &tag(erasure), &serde_json::json!({}));
    events
}

/// The fact that an erasure was cancelled.
pub(crate) fn cancelled(erasure: &str) -> EncodedEvents {
    let mut events = EncodedEvents::new();
    push(&mut events, CANCELLED, &tag(erasure), &serde_json::json!({}));
    events
}

/// The fact that an erasure is complete.
pub(crate) fn completed(erasure: &str, logs: Vec<ErasedInLog>) -> EncodedEvents {
    let mut events = EncodedEvents::new();
    push(&mut events, COMPLETED, &tag(erasure), &ErasureResult { logs });
    events
}

/// The facts for a log with events of these subjects.
pub(crate) fn subjects_erased(erasure: &str, subjects: &[&str]) -> EncodedEvents {
    let mut events = EncodedEvents::new();
    for subject in subjects {
        let content = serde_json::json!({ "erasure": erasure, "subject": subject });
        push(&mut events, SUBJECT_ERASED, subject, &content);
    }
    events
}
