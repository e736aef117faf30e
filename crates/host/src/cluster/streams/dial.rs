//! The streams that a node dials: connected again with growing pauses, for as long as it runs.

use super::hello::{self, StreamFault};
use super::queue::StreamQueue;
use super::{Channel, Direction, PROOF_PATIENCE, Peer, Shared, lock};
use bytes::{Buf as _, Bytes};
use rustix::net::sockopt;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use wellspring_client::connection::{ByteStream, reach};
use wellspring_client::endpoint::Endpoint;

/// Pauses between attempts grow from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_secs(1);
/// A machine that acknowledges nothing for so long is gone.
const SILENT_MS: u32 = 5_000;
/// Most pieces of one write.
const MOST_PIECES: usize = 64;

/// Keeps a stream to a node.
pub(super) async fn keep_dialing(shared: Arc<Shared>, peer: Arc<Peer>, channel: Channel) {
    let queue = &peer.queues[channel as usize];
    let mut pause = FIRST_PAUSE;
    loop {
        match connect(&shared, &peer, channel).await {
            Ok(stream) => {
                pause = FIRST_PAUSE;
                shared.succeeded(Direction::Out, peer.name.as_str());
                queue.set_open(true);
                let ended = carry(stream, queue).await;
                queue.set_open(false);
                tracing::debug!(node = %peer.name, ?channel, ?ended, "a stream has ended");
            }
            Err(fault) => {
                let url = lock(&peer.url).clone();
                shared.failed(Direction::Out, peer.name.as_str(), &fault);
                tracing::debug!(node = %peer.name, url, %fault, "a stream is tried again");
            }
        }
        let _ = timeout(pause, peer.moved[channel as usize].notified()).await;
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

async fn connect(
    shared: &Shared,
    peer: &Peer,
    channel: Channel,
) -> Result<Box<dyn ByteStream>, StreamFault> {
    let Some((own, _)) = shared.own.get() else { return Err(StreamFault::NoGroup) };
    let url = lock(&peer.url).clone();
    let endpoint = Endpoint::parse(&url).map_err(io::Error::other)?;
    let terms = shared.trust.terms(&endpoint).map_err(io::Error::other)?;
    let proving = async {
        let socket = reach(&endpoint).await?;
        sockopt::set_tcp_user_timeout(&socket, SILENT_MS).map_err(io::Error::from)?;
        let stream: Box<dyn ByteStream> = match terms {
            None => Box::new(socket),
            Some(terms) => {
                let connector = TlsConnector::from(Arc::clone(&terms.config));
                Box::new(connector.connect(terms.name.clone(), socket).await?)
            }
        };
        hello::dial(shared.key.nodes(), own, (peer.id, channel), stream).await
    };
    let late = |_| StreamFault::Io(io::ErrorKind::TimedOut.into());
    timeout(PROOF_PATIENCE, proving).await.map_err(late)?.map(|(_, stream)| stream)
}

/// Sends what is queued until the stream ends.
async fn carry(stream: Box<dyn ByteStream>, queue: &StreamQueue) -> io::Result<()> {
    let (mut reading, mut writing) = tokio::io::split(stream);
    let mut byte = [0];
    loop {
        let mut messages = tokio::select! {
            messages = queue.take() => messages,
            // The other side says nothing more: it is gone.
            read = reading.read(&mut byte) => return read.map(drop),
        };
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
