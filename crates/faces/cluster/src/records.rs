//! `POST /v1/cluster/records/{log}`: the leader stores events that another node's batcher has
//! accepted.

use super::{ClusterFace, json};
use std::sync::Arc;
use tokio::sync::oneshot;
use wellspring_host::http::contract::{Header, Segment};
use wellspring_host::http::{Answer, Request};
use wellspring_host::node::hand_over::{self, PieceAnswer, PieceOutcome, piece_key};
use wellspring_host::wire::param::Values;
use wellspring_host::wire::problem;
use wellspring_log::AppendError;

/// Largest piece, in bytes: a single event may be large.
const MAX_PIECE_BYTES: usize = 64 << 20;

pub(super) static LOG: Segment<String> = Segment {
    name: "log",
    what: "Name of the log.",
    values: Values::Text(None),
    read: |text| Ok(text.to_owned()),
};
/// The key of a piece.
pub(super) static PIECE: Header = Header {
    name: hand_over::PIECE,
    what: "Key of the piece, which is stored once.",
    values: Values::Text(None),
};
/// The digest of a piece.
pub(super) static PIECE_DIGEST: Header = Header {
    name: hand_over::PIECE_DIGEST,
    what: "Digest of the piece: another piece under the same key is refused.",
    values: Values::Text(None),
};

/// The incarnation of the log that a piece is for.
pub(super) static PIECE_INCARNATION: Header = Header {
    name: hand_over::PIECE_INCARNATION,
    what: "Generation of the log, which tells apart logs that had the same name.",
    values: Values::Integer { least: 0, most: u64::MAX, default: None },
};

pub(super) async fn take(face: Arc<ClusterFace>, mut request: Box<Request>) -> Answer {
    let name = request.segment(&LOG)?;
    let log = face.host.node.get(&name);
    let log = log.ok_or_else(|| problem::no_such_log(&name))?;
    let [piece, digest] = [hand_over::PIECE, hand_over::PIECE_DIGEST]
        .map(|header| request.header(header).unwrap_or_default().to_owned());
    let key = piece_key(&piece, &digest).ok_or_else(|| {
        problem::BAD_REQUEST.because("a piece needs a key and a digest").field(hand_over::PIECE)
    })?;
    let wanted = request.header(hand_over::PIECE_INCARNATION).and_then(|text| text.parse().ok());
    match (face.host.node.incarnation(&name), wanted) {
        (here, wanted) if here == wanted => {}
        // It was dropped and created again: events for the old log are dropped with it.
        (Some(here), Some(wanted)) if here > wanted => {
            let reason = Some(format!("the log {name} was dropped meanwhile"));
            return json(&PieceAnswer { outcome: PieceOutcome::Refused, position: None, reason });
        }
        _ => {
            let reason =
                Some(format!("the log {name} on this node is not of the same generation yet"));
            return json(&PieceAnswer { outcome: PieceOutcome::NotTaken, position: None, reason });
        }
    }
    let records = request.content(MAX_PIECE_BYTES).await?;
    let (tell, told) = oneshot::channel();
    let done = Box::new(move |taken| drop(tell.send(taken)));
    if let Err(fault) = log.take_handed_over(&records, key, done) {
        let (outcome, reason) = (PieceOutcome::Refused, Some(fault.to_string()));
        return json(&PieceAnswer { outcome, position: None, reason });
    }
    let reason = "the log ended before it was known what became of it";
    let unknown = || Err(AppendError::Unknown { reason: reason.into() });
    json(&PieceAnswer::of(&told.await.unwrap_or_else(|_| unknown())))
}
