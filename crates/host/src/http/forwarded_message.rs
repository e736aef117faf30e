//! Requests as one node forwards them to another, and their answers on the way back.

use super::{Content, ReflectedPosition, Request, Response, stream};
use crate::cluster::{PeerRequest, node_auth};
use crate::wire::authority::is_authority;
use crate::wire::problem::{Problem, Retry};
use bytes::{Bytes, BytesMut};
use hyper::body::{Body as _, Incoming};
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use std::collections::HashSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use wellspring_types::Position;

/// A node's header for another: the position of `system` at which its answer is valid.
pub(super) const SYSTEM_POSITION: &str = "wellspring-system-position";
/// A node's header for another: it refused because it does not lead, whatever the wording. Its
/// values are those of [`FollowerRefusal`].
pub(super) const NOT_LEADING: &str = "wellspring-not-leading";
/// A node's header for another: the forwarded content is incomplete at its end.
const BROKEN_OFF: &str = "wellspring-broken-off";
/// The header of the position that an answer reflects.
const POSITION: &str = "wellspring-position";

/// Request headers that concern one connection only, or that this node has already judged.
const NOT_PASSED_ON: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "forwarded",
    "keep-alive",
    "origin",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-forwarded-for",
    BROKEN_OFF,
    node_auth::HEADER,
];
/// Answer headers that this node sets itself, or that concern one connection only.
const NOT_PASSED_BACK: &[&str] = &[
    "connection",
    "content-length",
    "content-type",
    "date",
    "keep-alive",
    "transfer-encoding",
    "x-request-id",
    NOT_LEADING,
    SYSTEM_POSITION,
    POSITION,
];
/// Largest answer content that is buffered; longer content is streamed.
const GATHERED_BYTES: usize = 256 << 10;
/// Most names and media types of answers that are kept for good.
const MOST_TEXTS: usize = 512;

/// How a request was refused by a node that does not lead, or no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FollowerRefusal {
    /// Before the request had changed anything.
    NothingDone,
    /// After it had, and it may be sent again; or by an older version, which does not tell.
    Interrupted,
}

impl FollowerRefusal {
    /// The refusal that a problem is, if it is one.
    pub(super) fn of(problem: &Problem) -> Option<FollowerRefusal> {
        let may_repeat = problem.is_interrupted() && problem.retry == Retry::Same;
        match problem.nothing_done {
            Some(_) => Some(FollowerRefusal::NothingDone),
            None => may_repeat.then_some(FollowerRefusal::Interrupted),
        }
    }

    /// Its name between nodes.
    pub(super) fn header_value(self) -> &'static str {
        match self {
            FollowerRefusal::NothingDone => "nothing-done",
            FollowerRefusal::Interrupted => "interrupted",
        }
    }

    fn read(value: &HeaderValue) -> FollowerRefusal {
        if value == FollowerRefusal::NothingDone.header_value() {
            FollowerRefusal::NothingDone
        } else {
            FollowerRefusal::Interrupted
        }
    }
}

/// How the content of a forwarded request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyEnd {
    Whole,
    /// Its client is gone; this is the received part.
    BrokenOff,
}

/// Whether a node's request holds only the received part of an incomplete body.
pub(super) fn is_broken_off(request: &Request) -> bool {
    request.of_node.is_some() && request.headers.contains_key(BROKEN_OFF)
}

/// An answer of another node.
pub(super) struct PassedBack {
    /// The answer.
    pub(super) response: Response,
    /// The position of `system` at which it is valid.
    pub(super) system_position: Position,
    /// Present if it refused because it does not lead.
    pub(super) refused: Option<FollowerRefusal>,
}

/// A request as forwarded, with all of its content. `own`: host and port of this node, for links if
/// the client's Host is invalid.
pub(super) fn request(request: &Request, content: Bytes, end: BodyEnd, own: &str) -> PeerRequest {
    let mut headers = HeaderMap::with_capacity(request.headers.len());
    for (name, value) in &request.headers {
        if !NOT_PASSED_ON.contains(&name.as_str()) {
            headers.append(name.clone(), value.clone());
        }
    }
    // URLs of links and transactions use the host that the client addressed.
    if let Some(authority) = request.uri.authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        headers.insert(HOST, host);
    }
    name_host(&mut headers, own);
    if end == BodyEnd::BrokenOff {
        headers.insert(BROKEN_OFF, HeaderValue::from_static("1"));
    }
    PeerRequest {
        method: request.method.clone(),
        target: request.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned(),
        headers,
        content,
        client: request.client,
    }
}

/// An invalid host is replaced by that of this node, which was addressed.
fn name_host(headers: &mut HeaderMap, own: &str) {
    let named = headers.get(HOST).and_then(|host| host.to_str().ok());
    if !named.is_some_and(is_authority)
        && let Ok(own) = HeaderValue::from_str(own)
    {
        headers.insert(HOST, own);
    }
}

/// Another node's answer as this one's.
///
/// # Errors
/// It ended early.
pub(super) async fn answer(answered: hyper::Response<Incoming>) -> Result<PassedBack, String> {
    let (head, mut body) = answered.into_parts();
    let position = |name| head.headers.get(name)?.to_str().ok()?.parse::<Position>().ok();
    let media = head.headers.get("content-type").and_then(|value| value.to_str().ok());
    let mut response = Response {
        content_type: media.and_then(kept_text).unwrap_or_default(),
        position: position(POSITION),
        reflects: ReflectedPosition::Nothing,
        ..Response::json(head.status.as_u16(), "")
    };
    let system_position = position(SYSTEM_POSITION).unwrap_or(0);
    let refused = head.headers.get(NOT_LEADING).map(FollowerRefusal::read);
    response.headers = headers_of(&head.headers);
    let mut whole = BytesMut::new();
    while let Some(piece) = piece(&mut body).await? {
        whole.extend_from_slice(&piece);
        if whole.len() > GATHERED_BYTES {
            response.content = Content::Stream(passed_as_it_comes(whole, body));
            return Ok(PassedBack { response, system_position, refused });
        }
    }
    response.content = Content::Full(whole.freeze());
    Ok(PassedBack { response, system_position, refused })
}

fn headers_of(headers: &HeaderMap) -> Vec<(&'static str, String)> {
    let passed = |(name, value): (&HeaderName, &HeaderValue)| {
        if NOT_PASSED_BACK.contains(&name.as_str()) {
            return None;
        }
        Some((kept_text(name.as_str())?, value.to_str().ok()?.to_owned()))
    };
    headers.iter().filter_map(passed).collect()
}

async fn piece(body: &mut Incoming) -> Result<Option<Bytes>, String> {
    loop {
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(error)) => return Err(error.to_string()),
        }
    }
}

/// The rest of a streamed answer. If it ends early, so does this one.
fn passed_as_it_comes(begun: BytesMut, mut body: Incoming) -> stream::Chunks {
    let (producer, chunks) = stream::channel();
    tokio::task::spawn(async move {
        let mut next = begun.freeze();
        loop {
            if producer.send(next.into()).await.is_err() {
                return;
            }
            match piece(&mut body).await {
                Ok(Some(piece)) => next = piece,
                Ok(None) => return producer.end().await,
                Err(_) => return,
            }
        }
    });
    chunks
}

/// A text that is kept for good. All nodes use the same few; beyond a limit there is no room.
fn kept_text(text: &str) -> Option<&'static str> {
    static TEXTS: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    let texts = texts.get_or_insert_default();
    if let Some(known) = texts.get(text) {
        return Some(known);
    }
    if texts.len() >= MOST_TEXTS {
        return None;
    }
    let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
    texts.insert(kept);
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_can_be_none_becomes_that_of_the_node_that_was_asked() {
        for (asked, passed) in
            [(Some("go.example:81"), "go.example:81"), (Some("a b"), "own:1"), (None, "own:1")]
        {
            let mut headers = HeaderMap::new();
            if let Some(asked) = asked {
                headers.insert(HOST, HeaderValue::from_static(asked));
            }
            name_host(&mut headers, "own:1");
            assert_eq!(headers.get(HOST).unwrap(), passed);
        }
    }
}
