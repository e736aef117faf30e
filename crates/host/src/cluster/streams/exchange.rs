//! Messages over a stream, in both directions until it ends.

use super::hello::{ReadAhead, StreamFault};
use super::queue::{Dialer, StreamQueue};
use super::{HEADER_BYTES, StreamParty, StreamSink};
use bytes::{Buf as _, Bytes, BytesMut};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};

/// Most pieces of one write.
const MOST_PIECES: usize = 64;

/// Passes on what arrives, and sends what is queued and has no better way.
pub(super) async fn exchange<S: AsyncRead + AsyncWrite>(
    stream: ReadAhead<S>,
    party: &StreamParty,
    queue: &StreamQueue,
    dialer: Dialer,
    sink: &dyn StreamSink,
) -> Result<(), StreamFault> {
    let ReadAhead { stream, read } = stream;
    let (reading, writing) = tokio::io::split(stream);
    let _open = queue.open(dialer);
    tokio::select! {
        ended = receive(reading, read, party, sink) => ended,
        ended = carry(writing, queue, dialer) => ended.map_err(StreamFault::from),
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

async fn carry<S: AsyncRead + AsyncWrite>(
    mut writing: WriteHalf<S>,
    queue: &StreamQueue,
    dialer: Dialer,
) -> io::Result<()> {
    loop {
        let mut messages = queue.take(dialer).await;
        let bytes = messages.iter().map(Bytes::len).sum();
        write_all(&mut writing, &mut messages).await?;
        queue.sent(bytes);
    }
}

/// Writes all messages, as many as possible at a time.
async fn write_all(
    writing: &mut (impl AsyncWrite + Unpin),
    messages: &mut VecDeque<Bytes>,
) -> io::Result<()> {
    while !messages.is_empty() {
        let pieces: Vec<IoSlice<'_>> =
            messages.iter().take(MOST_PIECES).map(|message| IoSlice::new(message)).collect();
        let mut written = writing.write_vectored(&pieces).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        while let Some(first) = messages.front_mut().filter(|_| written > 0) {
            let step = written.min(first.len());
            first.advance(step);
            written -= step;
            if first.is_empty() {
                messages.pop_front();
            }
        }
    }
    writing.flush().await
}
