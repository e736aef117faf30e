//! Links of a data subject: their URLs and tags are sealed with the request that stores them, and
//! opened where they are served. The view folds only where they are, so it has nothing to forget.

use super::LinkFace;
use super::redirects::of_lookup;
use super::targets::LinkTargets;
use crate::problems::LINK_ERASED;
use crate::view::event::{LINK_TAG, sealed_at};
use crate::view::{Code, Details, Lookup, SealedTarget, TargetVerdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use wellspring_format::sealed_parts::PartKind;
use wellspring_host::http::subjects::persist_keys;
use wellspring_host::http::{Host, Request};
use wellspring_host::subjects::{SUBJECT_NAME, refusal};
use wellspring_host::wire::json::to_json;
use wellspring_host::wire::problem::{self, Problem};
use wellspring_log::{Log, ReadError, RecordView};
use wellspring_subject_keys::{Closed, NonceSalt, PlainPart, Sealer, SubjectKeys};
use wellspring_types::Position;

/// What is sealed of a link.
#[derive(Serialize, Deserialize)]
struct TargetDocument<'a> {
    url: Cow<'a, str>,
    tags: Cow<'a, [String]>,
}

/// Seals the links of a request for the data subject that it names, if it names one. Until it is
/// dropped, an erasure waits: it is kept until the outcome is known.
pub(super) struct LinkSealer {
    sealer: Sealer,
    subject: Option<String>,
}

impl LinkSealer {
    /// A sealer with the key of this data subject.
    ///
    /// # Errors
    /// Nothing can be sealed for it.
    pub(super) fn new(host: &Host, subject: Option<&str>) -> Result<LinkSealer, Box<Problem>> {
        let mut sealer = host.sealer();
        if let Some(subject) = subject {
            sealer.begin(subject).map_err(|refused| refusal(&refused, SUBJECT_NAME, subject))?;
        }
        Ok(LinkSealer { sealer, subject: subject.map(str::to_owned) })
    }

    /// Whether it seals.
    pub(super) fn has_subject(&self) -> bool {
        self.subject.is_some()
    }

    /// Seals the URL and the tags of a link for an event of this type.
    pub(super) fn seal(
        &mut self,
        event_type: &str,
        url: &str,
        tags: &[String],
    ) -> Result<Option<SealedTarget>, Box<Problem>> {
        let Some(subject) = &self.subject else { return Ok(None) };
        let document = to_json(&TargetDocument { url: url.into(), tags: tags.into() });
        let (kind, plaintext) = (PartKind::Personal, &document[..]);
        // The first tag is the code's.
        let part = PlainPart { tag: 1, subject, kind, plaintext };
        let sealed = self.sealer.seal(event_type, NonceSalt::Random, &[part]);
        let refused = |(_, refused): (_, _)| refusal(&refused, SUBJECT_NAME, subject);
        let parts = sealed.map_err(refused)?.to_vec();
        Ok(Some(SealedTarget { subject: subject.clone(), parts }))
    }

    /// What a digest of the request may be stored as.
    pub(super) fn digest(&self, plain: [u8; 16]) -> [u8; 16] {
        self.sealer.used().digest(plain)
    }

    /// Makes a new key durable, before anything sealed with it is staged.
    pub(super) async fn persist(&self, host: &Arc<Host>) -> Result<(), Box<Problem>> {
        persist_keys(host, self.sealer.used()).await
    }
}

/// A link as it is served.
#[derive(Debug)]
pub(super) struct DisclosedLink {
    /// Without URL and tags if these are not disclosed.
    pub(super) details: Details,
    /// The data subject of what was opened.
    pub(super) subject: Option<String>,
    /// Why URL and tags are not disclosed.
    pub(super) closed: Option<Closed>,
}

impl DisclosedLink {
    /// Its URL, if that is disclosed.
    pub(super) fn url(&self) -> Option<&str> {
        self.closed.is_none().then_some(&self.details.url)
    }

    /// The member that tells what became of what is sealed.
    pub(super) fn member(&self) -> Option<(String, Value)> {
        match self.closed {
            None => Some(("subject".to_owned(), self.subject.as_deref()?.into())),
            Some(closed) => Some((closed.member().to_owned(), true.into())),
        }
    }
}

/// Opens links for a caller.
#[derive(Clone)]
pub(super) struct LinkOpener {
    log: Log,
    keys: Option<Arc<SubjectKeys>>,
    targets: Arc<LinkTargets>,
}

impl LinkOpener {
    /// One that opens what the caller may see.
    pub(super) fn of(links: &LinkFace, request: &Request) -> Result<LinkOpener, Box<Problem>> {
        let targets = Arc::clone(&links.settings.targets);
        Ok(LinkOpener { log: request.log()?.clone(), keys: links.host.keys_for(request), targets })
    }

    /// Whether serving any of these reads the log.
    pub(super) fn reads_for(&self, links: &[Details]) -> bool {
        self.keys.is_some() && links.iter().any(|link| sealed_at(&link.url).is_some())
    }

    /// What is served of a link.
    pub(super) fn disclose(&self, mut details: Details) -> Result<DisclosedLink, Box<Problem>> {
        let (mut subject, mut closed) = (None, None);
        if let Some(position) = sealed_at(&details.url) {
            details.url.clear();
            match self.open(details.code, position)? {
                Ok((named, TargetDocument { url, tags })) => {
                    details.verdict = self.targets.verdict_of(&url);
                    (details.url, details.tags) = (url.into_owned(), tags.into_owned());
                    subject = Some(named);
                }
                Err(why) => closed = Some(why),
            }
        }
        Ok(DisclosedLink { details, subject, closed })
    }

    /// Opens the target in the event at a position.
    fn open(
        &self,
        code: Code,
        position: Position,
    ) -> Result<Result<(String, TargetDocument<'static>), Closed>, ReadError> {
        // Withheld, as what waits for its erasure is.
        let Some(keys) = &self.keys else { return Ok(Err(Closed::Withdrawn)) };
        let open = |event: &RecordView<'_>| {
            let link = format!("{LINK_TAG}{code}");
            if event.position() != position || event.tags().all(|tag| tag != link) {
                return Err(Closed::Unavailable);
            }
            // An export made after the erasure lacks it.
            let part = event.sealed_parts().next().ok_or(Closed::Erased)?;
            let subject = event.tags().nth(part.tag.into()).unwrap_or_default();
            let plain = keys.open_part(&part, subject, event.event_type())?;
            let target = serde_json::from_slice(&plain).map_err(|_| Closed::Unavailable)?;
            Ok((subject.to_owned(), target))
        };
        Ok(self.log.snapshot().at(position, open)?.unwrap_or(Err(Closed::Unavailable)))
    }
}

/// The URL of a link for its visitors, who may see it whatever else they may.
pub(super) fn target_for_visitors(
    links: &LinkFace,
    request: &Request,
    details: Details,
) -> Result<String, Box<Problem>> {
    let keys = links.host.subject_keys.clone();
    let has_keys = keys.is_some();
    let opener = LinkOpener { keys, ..LinkOpener::of(links, request)? };
    let DisclosedLink { details, closed, .. } = opener.disclose(details)?;
    let code = details.code;
    match closed {
        None if details.verdict == TargetVerdict::Followed => Ok(details.url),
        None => of_lookup(code, Lookup::Refused).map(|()| details.url),
        Some(Closed::Erased | Closed::Withdrawn) if has_keys => {
            let detail = format!("the target of the link {code} is erased, or about to be");
            Err(LINK_ERASED.because(detail))
        }
        Some(_) => {
            let detail = format!("the target of the link {code} cannot be opened by this server");
            Err(problem::KEY_UNAVAILABLE.because(detail))
        }
    }
}
