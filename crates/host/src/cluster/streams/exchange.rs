//! Messages over a stream, in both directions until it ends.

use super::hello::{ReadAhead, StreamFault};
use super::queue::{Dialer, StreamQueue};
use super::{HEADER_BYTES, StreamParty, StreamSink};
use bytes::BytesMut;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf};

/// Passes on what arrives, and sends what is queued and has no better way.
pub(super) async fn exchange<S: AsyncRead + AsyncWrite + Send + 'static>(
    stream: ReadAhead<S>,
    party: &StreamParty,
    queue: &StreamQueue,
    dialer: Dialer,
    sink: &dyn StreamSink,
) -> Result<(), StreamFault> {
    let ReadAhead { stream, read } = stream;
    let (reading, writing) = tokio::io::split(stream);
    let open = queue.open(dialer, Box::new(writing));
    tokio::select! {
        ended = receive(reading, read, party, sink) => ended,
        ended = open.carry() => ended.map_err(StreamFault::from),
    }
}

async fn receive<S: AsyncRead + AsyncWrite>(
    stream: ReadHalf<S>,
    read: BytesMut,
    from: &StreamParty,
    sink: &dyn StreamSink,
) -> Result<(), StreamFault> {
    let mut stream = ReadAhead { stream, read };
    loop {
        let header = stream.take(HEADER_BYTES).await?;
        let header: &[u8; HEADER_BYTES] = header[..].try_into().map_err(io::Error::other)?;
        let length = sink.body_bytes(header).ok_or(StreamFault::Malformed)?;
        let body = stream.take(length).await?;
        if !sink.arrived(from.id, header, body) {
            return Err(StreamFault::Malformed);
        }
    }
}
