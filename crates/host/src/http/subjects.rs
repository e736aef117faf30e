//! Personal data in requests: the header that names its subject, the sealer of what a request
//! stores, and the keys that open what it reads.

use super::contract::Header;
use super::work::elsewhere;
use super::{Host, Request};
use crate::ingest::subject_of_target;
use crate::subjects::{SUBJECT_HEADER, SUBJECT_NAME, refusal, subject_of_header};
use crate::wire::param::Values;
use crate::wire::problem::{self, Problem};
use std::sync::Arc;
use wellspring_subject_keys::{Persisted, RootSource, SealedWith, Sealer, SubjectKeys};

/// `Wellspring-Subject`, for every route that stores personal data.
pub static SUBJECT: Header = Header {
    name: SUBJECT_NAME,
    what: "The data subject of what the request stores, a tag: its personal data is sealed with \
           the subject's key, so that it can be erased.",
    values: Values::Text(None),
};

/// The subject that a request names for all that it stores.
///
/// # Errors
/// 422 `invalid`: it is no UTF-8.
pub fn subject_of(request: &Request) -> Result<Option<&str>, Box<Problem>> {
    debug_assert!(request.contract.reads(&SUBJECT), "the subject is not declared");
    subject_of_header(request.headers.get(SUBJECT_HEADER).map(|value| value.as_bytes()))
}

/// Refuses a subject: a client that names one relies on it.
///
/// # Errors
/// 422 `invalid`: there is one.
pub(crate) fn refuse(request: &Request) -> Result<(), Box<Problem>> {
    if !request.headers.contains_key(SUBJECT_HEADER) {
        return Ok(());
    }
    let detail = "what this route stores cannot be sealed for a data subject, so it could not be \
                  erased; nothing was done. Keep personal data out of it, or send it without \
                  Wellspring-Subject";
    Err(problem::INVALID.because(detail).field(SUBJECT_NAME))
}

impl Host {
    /// A sealer for one request.
    pub fn sealer(&self) -> Sealer {
        Sealer::new(self.subject_keys.clone(), self.clock.wall_us())
    }

    /// The keys that a request may read with: none if its caller may not see personal data.
    pub fn keys_for(&self, request: &Request) -> Option<Arc<SubjectKeys>> {
        let may_see = request.principal.sees_personal(Some(&request.log_name));
        self.subject_keys.clone().filter(|_| may_see)
    }
}

/// Makes new keys durable, before anything sealed with them is staged.
///
/// # Errors
/// 503 `key-unavailable`.
pub async fn persist_keys(host: &Arc<Host>, sealed: &SealedWith) -> Result<(), Box<Problem>> {
    if sealed.are_durable() {
        return Ok(());
    }
    let host = Arc::clone(host);
    elsewhere(move || host.persist_keys_now()).await?
}

impl Host {
    /// As [`persist_keys`], on a thread that may block.
    ///
    /// # Errors
    /// 503 `key-unavailable`.
    pub fn persist_keys_now(&self) -> Result<(), Box<Problem>> {
        let Some(keys) = &self.subject_keys else { return Ok(()) };
        let persisted = keys.persist(self.clock.wall_us()).map_err(|fault| {
            tracing::error!(%fault, "a key of a data subject could not be stored");
            problem::KEY_UNAVAILABLE.because(format!("a new key could not be stored: {fault}"))
        })?;
        if let (Persisted::KeysAndRoot, RootSource::File(root)) = (persisted, keys.source()) {
            let root = root.display();
            tracing::warn!(
                "the root of the keys of data subjects was made: without it everything sealed is \
                 lost. Keep a second copy apart from the data: cp {root} SOMEWHERE-SAFE. It is best \
                 to keep the root itself on another device, too: --subject-key-root"
            );
        }
        Ok(())
    }
}

/// Makes the key of an ingest target's subject durable, if it is new: the lean loop waits for no
/// barrier.
///
/// # Errors
/// Nothing can be sealed for that subject, or its key cannot be stored.
pub async fn ensure_key(
    host: &Arc<Host>,
    request: &Request,
    target: &str,
) -> Result<(), Box<Problem>> {
    let header = request.headers.get(SUBJECT_HEADER).map(|value| value.as_bytes());
    // Whatever else is wrong with the target is said where it is understood.
    let Some(subject) = subject_of_target(target, header)? else { return Ok(()) };
    let mut sealer = host.sealer();
    sealer.begin(&subject).map_err(|refused| refusal(&refused, "subject", &subject))?;
    persist_keys(host, &sealer.into_used()).await
}
