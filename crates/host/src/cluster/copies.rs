//! Batches of a log from the copies of other nodes, for a copy that lacks what the engine has
//! dropped: `GET /v1/cluster/batches/{log}`, after the place in [a header](AFTER_PLACE).
//!
//! The answer has any number of batches, each as `place u64 | length u32 | entry`, little-endian;
//! those of `system` are sealed as they are on the way to the engine.

use super::{PeerRequest, Peers};
use crate::setup::SetupError;
use crate::threads;
use bytes::{Buf as _, Bytes};
use hyper::header::HeaderValue;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use wellspring_log::shared::{Place, PlacedEntry};
use wellspring_log::{Clock as _, SystemClock};

/// The header with the place after which batches are wanted.
pub const AFTER_PLACE: &str = "wellspring-after-place";
/// Bytes of batches in an answer, unless one is longer.
pub const BATCH_BYTES: usize = 4 << 20;
/// Longest accepted answer: a batch of one large request.
const MOST_BYTES: usize = 256 << 20;
/// How long a node may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Batches, as they travel.
#[must_use]
pub fn encode(batches: &[PlacedEntry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (place, entry) in batches {
        bytes.extend_from_slice(&place.0.to_le_bytes());
        bytes.extend_from_slice(&(entry.len() as u32).to_le_bytes());
        bytes.extend_from_slice(entry);
    }
    bytes
}

/// The batches of these bytes; `None` if they are not such.
fn decode(mut bytes: Bytes) -> Option<Vec<PlacedEntry>> {
    let mut batches = Vec::new();
    while !bytes.is_empty() {
        let place = Place(bytes.try_get_u64_le().ok()?);
        let length = bytes.try_get_u32_le().ok()? as usize;
        let entry = (length <= bytes.len()).then(|| bytes.split_to(length))?;
        batches.push((place, Arc::from(&entry[..])));
    }
    Some(batches)
}

/// A question for a node's batches.
struct Question {
    url: String,
    target: String,
    after: Place,
    tell: mpsc::Sender<Option<Vec<PlacedEntry>>>,
}

/// Asks other nodes for batches, one after the other, on a thread of its own.
pub struct CopyReader(mpsc::Sender<Question>);

impl CopyReader {
    /// A reader over these connections.
    ///
    /// # Errors
    /// The system provides no thread.
    pub fn start(peers: Peers) -> Result<CopyReader, SetupError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("reading copies of other nodes: {error}"))?;
        let (ask, asked) = mpsc::channel::<Question>();
        threads::spawn("copies".to_owned(), move || {
            while let Ok(Question { url, target, after, tell }) = asked.recv() {
                // Nobody may wait any more.
                let _ = tell.send(runtime.block_on(batches(&peers, &url, &target, after)));
            }
        })?;
        Ok(CopyReader(ask))
    }

    /// The batches that the node at a URL has after a place; `None` if it gives none. Blocks.
    #[must_use]
    pub fn batches(&self, url: &str, log: &str, after: Place) -> Option<Vec<PlacedEntry>> {
        let (tell, told) = mpsc::channel();
        let target = format!("/v1/cluster/batches/{log}");
        self.0.send(Question { url: url.to_owned(), target, after, tell }).ok()?;
        told.recv().ok()?.filter(|batches| !batches.is_empty())
    }
}

async fn batches(peers: &Peers, url: &str, target: &str, after: Place) -> Option<Vec<PlacedEntry>> {
    let (mut request, now_us) = (PeerRequest::get(target), SystemClock.wall_us());
    request.headers.insert(AFTER_PLACE, HeaderValue::from(after.0));
    match peers.ask_for(url, &request, PATIENCE, now_us, MOST_BYTES).await {
        Ok(answer) if answer.status == 200 => {
            let batches = decode(answer.content);
            if batches.is_none() {
                tracing::warn!(url, target, "the node sent something else than batches");
            }
            batches
        }
        Ok(answer) => {
            tracing::debug!(url, target, status = answer.status, "no batches from this node");
            None
        }
        Err(error) => {
            tracing::debug!(url, target, %error, "no batches from this node");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_read_as_they_were_written_and_nothing_else_is() {
        let batches: Vec<PlacedEntry> =
            vec![(Place(1), Arc::from(&b"one"[..])), (Place(u64::MAX), Arc::from(&b""[..]))];
        let bytes = Bytes::from(encode(&batches));
        assert_eq!(decode(bytes.clone()), Some(batches.clone()));
        assert_eq!(decode(Bytes::new()), Some(Vec::new()));
        for end in 1..bytes.len() {
            let part = decode(bytes.slice(..end));
            assert!(part.is_none() || part == Some(batches[..1].to_vec()), "{end}");
        }
    }
}
