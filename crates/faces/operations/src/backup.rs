//! What a backup reads: `GET /v1/backup` and `GET /v1/segments/{base}`.

use std::io::Read;
use std::sync::Arc;
use wellspring_backup::{BackupError, Source};
use wellspring_host::backup::source;
use wellspring_host::http::contract::Segment;
use wellspring_host::http::stream::{self, Producer};
use wellspring_host::http::work::elsewhere;
use wellspring_host::http::{Answer, Host, OCTETS, Request, Response};
use wellspring_host::limits::Payer;
use wellspring_host::wire::param::{Integer, Param, Values};
use wellspring_host::wire::problem::{self, Problem};
use wellspring_log::{ReadError, SegmentExtent, SegmentSlice};
use wellspring_types::Position;

/// Bytes of one piece of a stream.
const PIECE_BYTES: usize = 1 << 20;

/// The segment's first position.
pub(crate) static BASE: Segment<Position> = Segment {
    name: "base",
    what: "Position of the segment's first event.",
    values: Values::Integer { least: 1, most: u64::MAX, default: None },
    read: |text| {
        text.parse().map_err(|_| {
            let detail = format!("the base of a segment is a position, not {text:?}");
            problem::INVALID.because(detail).field("base")
        })
    },
};
/// Where to begin.
pub(crate) static FROM: Param<Integer> =
    Param::integer("from", "Offset of the first byte (default 0).", 0..=u64::MAX);
/// Where to end.
pub(crate) static BYTES: Param<Integer> = Param::integer(
    "bytes",
    "Number of bytes of the segment; fewer than are durable now, if the segment has grown since \
     the backup was planned.",
    0..=u64::MAX,
);

/// `GET /v1/backup`.
pub(crate) async fn plan(host: Arc<Host>, _: Box<Request>) -> Answer {
    let (node, clock) = (Arc::clone(&host.node), Arc::clone(&host.clock));
    let planned = elsewhere(move || source(&node, &clock).plan()).await?;
    Ok(Response::of(200, &planned.map_err(problem_of)?))
}

fn problem_of(error: BackupError) -> Box<Problem> {
    let detail = error.to_string();
    match error {
        BackupError::Refused { status: Some(409), .. } => problem::SHARED_LOG.because(detail),
        BackupError::DamagedSource { .. } | BackupError::Damaged { .. } => {
            problem::CORRUPT.because(detail)
        }
        _ => problem::IO.because(detail),
    }
}

/// `GET /v1/segments/{base}`.
pub(crate) async fn segment(host: Arc<Host>, request: Box<Request>) -> Answer {
    let base = request.segment(&BASE)?;
    let (from, bytes) = (request.query(&FROM)?, request.query(&BYTES)?);
    let log = request.log()?;
    let extent = log.extent_now();
    let found = extent.segments.iter().find(|segment| segment.base() == base).cloned();
    let first = extent.segments.first().map_or(1, |segment| segment.base());
    if base < first {
        return Err(ReadError::Trimmed { first }.into());
    }
    let Some(found) = found else {
        let detail = format!("the log has no segment that begins at position {base}");
        return Err(problem::NOT_FOUND.because(detail));
    };
    let slice = elsewhere(move || part(&found, from.unwrap_or(0), bytes)).await??;
    let (producer, chunks) = stream::channel();
    let (payer, log_name) = (request.payer.clone(), request.log_name.clone());
    tokio::spawn(pump(slice, producer, payer, host, log_name));
    Ok(Response::stream(OCTETS, chunks).at(extent.head))
}

/// A part of a segment's durable bytes.
fn part(
    segment: &SegmentExtent,
    from: u64,
    bytes: Option<u64>,
) -> Result<SegmentSlice, Box<Problem>> {
    let durable = segment.byte_len()?;
    let end = bytes.unwrap_or(durable);
    if end > durable || from > end {
        let detail = format!("{durable} bytes of the segment are durable, not {}", end.max(from));
        return Err(problem::NOT_FOUND.because(detail).field("bytes"));
    }
    Ok(segment.read_from(from)?.until(end))
}

/// Sends the bytes as fast as the client takes them.
async fn pump(
    mut slice: SegmentSlice,
    producer: Producer,
    payer: Payer,
    host: Arc<Host>,
    log_name: String,
) {
    while slice.remaining() > 0 {
        if producer.ready().await.is_err() || producer.paid(&payer).await.is_err() {
            return;
        }
        let read = elsewhere(move || {
            let mut piece = vec![0; PIECE_BYTES.min(slice.remaining() as usize)];
            let read = slice.read_exact(&mut piece);
            (slice, read.map(|()| piece))
        });
        let piece;
        (slice, piece) = match read.await {
            Ok((slice, Ok(piece))) => (slice, piece),
            Ok((_, Err(error))) => {
                return host.tell_cut(&problem::IO.because(error.to_string()), &log_name);
            }
            Err(_) => return,
        };
        if producer.send(piece).await.is_err() {
            return;
        }
    }
    producer.end().await;
}
