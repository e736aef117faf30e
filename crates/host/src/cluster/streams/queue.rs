//! What waits to be sent to a node: bounded, and dropped while there is no stream. It leaves by a
//! stream that the other node has dialed, or else by one that this node has: streams are read where
//! they were dialed, on the thread of the engine.
//!
//! Whoever flushes the queue writes, as far as that does not block; the task of the stream does the
//! rest.

use bytes::{Buf as _, Bytes};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;

/// Most pieces of one write.
const MOST_PIECES: usize = 64;

/// Who has dialed a stream. Messages prefer the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dialer {
    Other,
    ThisNode,
}

pub(super) type StreamWriter = Box<dyn AsyncWrite + Send + Unpin>;

/// The messages for one channel to a node.
pub(super) struct StreamQueue {
    most_bytes: usize,
    state: Mutex<QueueState>,
}

#[derive(Default)]
struct QueueState {
    messages: VecDeque<Bytes>,
    bytes: usize,
    last_id: u64,
    streams: Vec<StreamState>,
}

struct StreamState {
    id: u64,
    dialer: Dialer,
    /// Nobody writes.
    writer: Option<StreamWriter>,
    /// What is left of a message that did not fit; empty if it has to be flushed.
    left: Option<Bytes>,
    /// Bytes that its task writes.
    taken: usize,
    /// The task of the stream has something to do.
    has_work: Arc<Notify>,
}

impl StreamState {
    /// Writes messages as far as that does not block; whether all of them are on their way. What
    /// is left is for the task of the stream, which asks again with its own waker.
    fn write_now(&mut self, messages: &mut VecDeque<Bytes>) -> bool {
        let writer = self.writer.as_mut().expect("it was looked for");
        let mut writer = Pin::new(writer);
        let context = &mut Context::from_waker(Waker::noop());
        while !messages.is_empty() {
            let written = writer.as_mut().poll_write_vectored(context, &pieces(messages));
            let Poll::Ready(Ok(written @ 1..)) = written else {
                // The task finds an error again.
                return false;
            };
            self.left = advance(messages, written);
            if self.left.is_some() {
                return false;
            }
        }
        let is_flushed = matches!(writer.poll_flush(context), Poll::Ready(Ok(())));
        self.left = (!is_flushed).then(Bytes::new);
        is_flushed
    }
}

/// The first messages, for one write.
fn pieces(messages: &VecDeque<Bytes>) -> Vec<IoSlice<'_>> {
    messages.iter().take(MOST_PIECES).map(|message| IoSlice::new(message)).collect()
}

/// Removes what was written; returns what is left of a message of which a part was.
fn advance(messages: &mut VecDeque<Bytes>, mut written: usize) -> Option<Bytes> {
    while written > 0 {
        let mut first = messages.pop_front().expect("no more is written than was given");
        let step = written.min(first.len());
        first.advance(step);
        written -= step;
        if !first.is_empty() {
            return Some(first);
        }
    }
    None
}

impl QueueState {
    /// The stream that carries the messages.
    fn carrier(&mut self) -> Option<&mut StreamState> {
        self.streams.iter_mut().min_by_key(|stream| stream.dialer)
    }

    fn stream(&mut self, id: u64) -> Option<&mut StreamState> {
        self.streams.iter_mut().find(|stream| stream.id == id)
    }
}

/// A stream that lasts until this is dropped.
pub(super) struct OpenStream<'a> {
    queue: &'a StreamQueue,
    id: u64,
    has_work: Arc<Notify>,
}

impl Drop for OpenStream<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        let taken = state.stream(self.id).map_or(0, |stream| stream.taken);
        state.bytes -= taken;
        state.streams.retain(|stream| stream.id != self.id);
        match state.carrier() {
            Some(carrier) => carrier.has_work.notify_one(),
            // Nobody waits for it any more when there is a stream again.
            None => (state.messages, state.bytes) = (VecDeque::new(), 0),
        }
    }
}

impl OpenStream<'_> {
    /// Carries the messages that this stream is to carry.
    ///
    /// # Errors
    /// The stream has ended.
    pub(super) async fn carry(&self) -> io::Result<()> {
        loop {
            let (mut writer, mut messages) = self.take().await;
            write_all(&mut writer, &mut messages).await?;
            let mut state = self.queue.state();
            let stream = state.stream(self.id).expect("it is open");
            stream.writer = Some(writer);
            let written = std::mem::take(&mut stream.taken);
            state.bytes -= written;
        }
    }

    /// Waits for something to write, and takes all of it. It counts until it is written.
    async fn take(&self) -> (StreamWriter, VecDeque<Bytes>) {
        loop {
            {
                let mut state = self.queue.state();
                let is_carrier = state.carrier().is_some_and(|carrier| carrier.id == self.id);
                let mut messages = VecDeque::new();
                if is_carrier {
                    std::mem::swap(&mut messages, &mut state.messages);
                }
                let taken = messages.iter().map(Bytes::len).sum();
                let stream = state.stream(self.id).expect("it is open");
                let left = stream.left.take();
                if left.is_some() || !messages.is_empty() {
                    stream.taken = taken;
                    left.into_iter().for_each(|left| messages.push_front(left));
                    return (stream.writer.take().expect("it was returned"), messages);
                }
            }
            self.has_work.notified().await;
        }
    }
}

/// Writes all messages, as many as possible at a time.
async fn write_all(writer: &mut StreamWriter, messages: &mut VecDeque<Bytes>) -> io::Result<()> {
    messages.retain(|message| !message.is_empty());
    while !messages.is_empty() {
        let written = writer.write_vectored(&pieces(messages)).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        advance(messages, written).into_iter().for_each(|left| messages.push_front(left));
    }
    writer.flush().await
}

impl StreamQueue {
    pub(super) fn new(most_bytes: usize) -> StreamQueue {
        StreamQueue { most_bytes, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream begins.
    pub(super) fn open(&self, dialer: Dialer, writer: StreamWriter) -> OpenStream<'_> {
        let mut state = self.state();
        state.last_id += 1;
        let (id, has_work) = (state.last_id, Arc::new(Notify::new()));
        let (writer, left) = (Some(writer), None);
        let stream =
            StreamState { id, dialer, writer, left, taken: 0, has_work: Arc::clone(&has_work) };
        // Of several by one dialer, the last one carries.
        state.streams.insert(0, stream);
        OpenStream { queue: self, id, has_work }
    }

    /// Whether there is a stream.
    pub(super) fn is_open(&self) -> bool {
        !self.state().streams.is_empty()
    }

    /// Queues a message; without a stream, or if there is no room, it is dropped.
    pub(super) fn push(&self, message: Bytes) {
        let mut state = self.state();
        let queued = state.bytes + message.len();
        if !state.streams.is_empty() && queued <= self.most_bytes {
            state.messages.push_back(message);
            state.bytes = queued;
        }
    }

    /// Sends what is queued: at once as far as that does not block, the rest later.
    pub(super) fn flush(&self) {
        let state = &mut *self.state();
        let mut messages = std::mem::take(&mut state.messages);
        let Some(carrier) = state.carrier().filter(|_| !messages.is_empty()) else { return };
        let bytes = |messages: &VecDeque<Bytes>| messages.iter().map(Bytes::len).sum::<usize>();
        let before = bytes(&messages);
        let is_idle = carrier.left.is_none() && carrier.writer.is_some();
        if !is_idle || !carrier.write_now(&mut messages) {
            carrier.has_work.notify_one();
        }
        state.bytes -= before - bytes(&messages);
        state.messages = messages;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, DuplexStream, duplex};

    /// A stream whose other end takes so many bytes before it is read.
    fn stream(bytes: usize) -> (StreamWriter, DuplexStream) {
        let (writer, reader) = duplex(bytes);
        (Box::new(writer), reader)
    }

    async fn read(reader: &mut DuplexStream, bytes: usize) -> String {
        let mut read = vec![0; bytes];
        reader.read_exact(&mut read).await.unwrap();
        String::from_utf8(read).unwrap()
    }

    fn push(queue: &StreamQueue, message: &'static str) {
        queue.push(Bytes::from_static(message.as_bytes()));
        queue.flush();
    }

    #[tokio::test]
    async fn what_does_not_fit_or_has_no_stream_is_dropped() {
        let queue = StreamQueue::new(10);
        push(&queue, "early");
        let (writer, mut reader) = stream(4);
        let open = queue.open(Dialer::ThisNode, writer);
        for message in ["at once", "12345", "67890", "more"] {
            push(&queue, message);
        }
        assert_eq!(read(&mut reader, 4).await, "at o");
        let carried = async {
            assert_eq!(read(&mut reader, 13).await, "nce1234567890");
            push(&queue, "now");
            assert_eq!(read(&mut reader, 3).await, "now");
        };
        tokio::select! {
            ended = open.carry() => panic!("{ended:?}"),
            () = carried => {}
        }
    }

    #[tokio::test]
    async fn messages_prefer_a_stream_that_the_other_node_has_dialed() {
        let queue = StreamQueue::new(100);
        let ((mine, mut mine_end), (other, mut other_end)) = (stream(4), stream(4));
        let mine = queue.open(Dialer::ThisNode, mine);
        push(&queue, "mine");
        let other = queue.open(Dialer::Other, other);
        push(&queue, "other");
        push(&queue, "rest");
        assert_eq!(read(&mut mine_end, 4).await, "mine");
        assert_eq!(read(&mut other_end, 4).await, "othe");
        // What this one had begun ends with it; what waits goes by the other.
        drop(other);
        tokio::select! {
            ended = mine.carry() => panic!("{ended:?}"),
            rest = read(&mut mine_end, 4) => assert_eq!(rest, "rest"),
        }
        drop(mine);
        assert!(!queue.is_open());
    }

    #[tokio::test]
    async fn a_stream_whose_end_is_gone_ends() {
        let queue = StreamQueue::new(10);
        let (writer, reader) = stream(4);
        let open = queue.open(Dialer::Other, writer);
        drop(reader);
        push(&queue, "lost");
        assert!(open.carry().await.is_err());
    }
}
