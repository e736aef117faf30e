//! Streamed answers: a bounded channel from the producer to the connection. A stream that is
//! dropped without its end cuts the connection, so that a client can never take it for complete.

use super::work::Permit;
use crate::limits::Payer;
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Pieces that may wait for a slow client.
const WAITING_CHUNKS: usize = 2;

/// A message from a producer.
pub(crate) enum Chunk {
    /// Some bytes.
    Bytes(Bytes),
    /// The regular end, with the trailers.
    End(Trailers),
}

/// Trailers of an answer (RFC 9110, 6.5): its outcome, where that is known only at the end. Over
/// HTTP/1.1 a client that does not ask for them (`TE: trailers`) gets none.
pub(crate) type Trailers = Vec<(&'static str, String)>;

/// The receiving end, polled by the connection.
pub struct Chunks {
    receiver: mpsc::Receiver<Chunk>,
    ended: bool,
    trailers: Trailers,
    payer: Payer,
}

/// The producing end. Dropping it without [`end`](Self::end) cuts the connection.
pub struct Producer {
    sender: mpsc::Sender<Chunk>,
    /// Held by every piece until it is sent.
    permit: Option<Arc<Permit>>,
}

/// The client has gone.
pub struct ClientGone;

/// Bytes that hold on to a permit.
struct ConcurrentShare(Vec<u8>, #[allow(dead_code)] Arc<Permit>);

impl AsRef<[u8]> for ConcurrentShare {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A stream and its producing end.
pub fn channel() -> (Producer, Chunks) {
    let (sender, receiver) = mpsc::channel(WAITING_CHUNKS);
    let chunks = Chunks { receiver, ended: false, trailers: Vec::new(), payer: Payer::default() };
    (Producer { sender, permit: None }, chunks)
}

impl Producer {
    /// The same; returns the permit once all of the answer has left memory: a client that does not
    /// read must not accumulate answers in memory.
    pub fn holding(self, permit: Arc<Permit>) -> Producer {
        Producer { permit: Some(permit), ..self }
    }

    /// Waits until there is room for another piece.
    pub async fn ready(&self) -> Result<(), ClientGone> {
        self.sender.reserve().await.map(drop).map_err(|_| ClientGone)
    }

    /// Sends a piece, waiting for room.
    pub async fn send(&self, bytes: Vec<u8>) -> Result<(), ClientGone> {
        if bytes.is_empty() {
            return Ok(());
        }
        let bytes = match &self.permit {
            None => bytes.into(),
            Some(permit) => Bytes::from_owner(ConcurrentShare(bytes, Arc::clone(permit))),
        };
        self.sender.send(Chunk::Bytes(bytes)).await.map_err(|_| ClientGone)
    }

    /// Ends the stream regularly.
    pub async fn end(self) {
        self.end_with(Trailers::new()).await;
    }

    /// Ends the stream regularly, with these trailers.
    pub(crate) async fn end_with(self, trailers: Trailers) {
        let _ = self.sender.send(Chunk::End(trailers)).await;
    }

    /// Blocks while the payer's quota is overdrawn, which throttles long reads.
    ///
    /// # Errors
    /// The client has gone.
    pub async fn paid(&self, payer: &Payer) -> Result<(), ClientGone> {
        tokio::select! {
            biased;
            () = payer.solvent() => Ok(()),
            () = self.gone() => Err(ClientGone),
        }
    }

    /// Waits until the client has gone.
    pub async fn gone(&self) {
        self.sender.closed().await;
    }
}

/// The result of polling a stream.
pub(crate) enum StreamPoll {
    /// A piece.
    Bytes(Bytes),
    End,
    /// It was cut.
    Cut,
}

impl Chunks {
    /// Charges what is sent to a payer.
    pub(crate) fn pay_by(&mut self, payer: Payer) {
        self.payer = payer;
    }

    /// The trailers; once, after the end.
    pub(crate) fn take_trailers(&mut self) -> Trailers {
        std::mem::take(&mut self.trailers)
    }

    /// The next piece.
    pub(crate) fn poll(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<StreamPoll> {
        if self.ended {
            return std::task::Poll::Ready(StreamPoll::End);
        }
        self.receiver.poll_recv(context).map(|message| match message {
            Some(Chunk::Bytes(bytes)) => {
                self.payer.bytes(bytes.len());
                StreamPoll::Bytes(bytes)
            }
            Some(Chunk::End(trailers)) => {
                (self.ended, self.trailers) = (true, trailers);
                StreamPoll::End
            }
            None => StreamPoll::Cut,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn a_producer_that_dies_is_no_end() {
        let mut context = Context::from_waker(Waker::noop());
        let (producer, mut chunks) = channel();
        drop(producer);
        assert!(matches!(chunks.poll(&mut context), Poll::Ready(StreamPoll::Cut)));

        let (producer, mut chunks) = channel();
        producer.sender.try_send(Chunk::End(Trailers::new())).ok().unwrap();
        drop(producer);
        assert!(matches!(chunks.poll(&mut context), Poll::Ready(StreamPoll::End)));
        assert!(matches!(chunks.poll(&mut context), Poll::Ready(StreamPoll::End)));
    }
}
