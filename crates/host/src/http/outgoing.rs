//! An answer's content as hyper takes it: pieces, then trailers.

use super::Content;
use super::body_memory::Charge;
use super::stream::{StreamPoll, Trailers};
use super::unread_answers::{PIECE_BYTES, Progress, UnreadAnswers};
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{HeaderName, HeaderValue};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The content of an answer, which keeps `K` until it is handed over.
pub(super) struct Outgoing<K> {
    content: Content,
    trailers: Trailers,
    /// The unsent rest of a stream's piece.
    rest: Bytes,
    /// Over HTTP/2, where content is sent in pieces.
    progress: Option<Arc<Progress>>,
    _kept: Option<(K, Option<Charge>)>,
}

impl<K> Outgoing<K> {
    /// The content with its trailers. `watched`: over HTTP/2, where the client's reading is
    /// watched.
    pub(super) fn new(
        content: Content,
        trailers: Trailers,
        watched: Option<&UnreadAnswers>,
    ) -> Outgoing<K> {
        let is_empty = matches!(&content, Content::Full(bytes) if bytes.is_empty());
        let progress = watched.filter(|_| !is_empty).map(UnreadAnswers::begin);
        Outgoing { content, trailers, rest: Bytes::new(), progress, _kept: None }
    }

    /// The same; keeps a request counted as in progress, and its memory charged, until handed over.
    pub(super) fn holding(self, in_flight: K, held: Option<Charge>) -> Outgoing<K> {
        Outgoing { _kept: Some((in_flight, held)), ..self }
    }

    /// The next bytes, in any number.
    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let most = if self.progress.is_some() { PIECE_BYTES } else { usize::MAX };
        let bytes = match &mut self.content {
            Content::Full(bytes) => bytes,
            Content::Stream(chunks) => {
                if self.rest.is_empty() {
                    self.rest = match std::task::ready!(chunks.poll(context)) {
                        StreamPoll::Bytes(bytes) => bytes,
                        StreamPoll::End => {
                            self.trailers.append(&mut chunks.take_trailers());
                            return Poll::Ready(None);
                        }
                        StreamPoll::Cut => {
                            return Poll::Ready(Some(Err(io::Error::other(
                                "the answer was cut off",
                            ))));
                        }
                    };
                }
                &mut self.rest
            }
        };
        let piece = bytes.split_to(bytes.len().min(most));
        Poll::Ready((!piece.is_empty()).then_some(Ok(piece)))
    }

    /// The trailers' frame, once, if there are any.
    fn last_frame(&mut self) -> Option<io::Result<Frame<Bytes>>> {
        let trailers =
            std::mem::take(&mut self.trailers).into_iter().filter_map(|(name, value)| {
                Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
            });
        let trailers: HeaderMap = trailers.collect();
        (!trailers.is_empty()).then(|| Ok(Frame::trailers(trailers)))
    }
}

impl<K: Unpin> Body for Outgoing<K> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let polled = self.poll_bytes(context);
        if let Some(progress) = &self.progress {
            progress.asked(polled.is_pending());
        }
        match std::task::ready!(polled) {
            None => Poll::Ready(self.last_frame()),
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            Some(Ok(bytes)) => {
                let bytes = match &self.progress {
                    Some(progress) => progress.piece(bytes),
                    None => bytes,
                };
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.trailers.is_empty()
            && matches!(&self.content, Content::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream;
    use super::*;
    use std::task::Waker;

    /// The bytes and the trailers of a body that never waits.
    fn all(mut body: Outgoing<()>) -> (Vec<u8>, Vec<(String, String)>) {
        let mut context = Context::from_waker(Waker::noop());
        let (mut bytes, mut trailers) = (Vec::new(), Vec::new());
        while !body.is_end_stream() {
            let Poll::Ready(polled) = Pin::new(&mut body).poll_frame(&mut context) else {
                panic!("it waits")
            };
            let Some(frame) = polled else { break };
            assert!(trailers.is_empty(), "nothing comes behind trailers");
            match frame.expect("a frame").into_data() {
                Ok(data) => bytes.extend_from_slice(&data),
                Err(frame) => {
                    let fields = frame.into_trailers().expect("trailers");
                    let field = |(name, value): (&HeaderName, &HeaderValue)| {
                        (name.to_string(), value.to_str().expect("text").to_owned())
                    };
                    trailers.extend(fields.iter().map(field));
                }
            }
        }
        (bytes, trailers)
    }

    fn status(text: &str) -> Trailers {
        vec![("grpc-status", text.to_owned())]
    }

    #[test]
    fn trailers_come_behind_content_of_every_kind_and_once() {
        let expected = [("grpc-status".to_owned(), "0".to_owned())];
        for watched in [None, Some(&UnreadAnswers::default())] {
            for content in ["", "all of it", &"x".repeat(3 * PIECE_BYTES)] {
                let full = || Content::Full(Bytes::from(content.to_owned()));
                let (bytes, trailers) = all(Outgoing::new(full(), status("0"), watched));
                assert_eq!((&*bytes, &*trailers), (content.as_bytes(), &expected[..]));
                let (bytes, trailers) = all(Outgoing::new(full(), Vec::new(), watched));
                assert_eq!((&*bytes, trailers.len()), (content.as_bytes(), 0));
            }
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (producer, chunks) = stream::channel();
            producer.send(b"in pieces".to_vec()).await.ok().expect("room");
            producer.end_with(status("0")).await;
            let (bytes, trailers) = all(Outgoing::new(Content::Stream(chunks), Vec::new(), None));
            assert_eq!((&*bytes, &*trailers), (&b"in pieces"[..], &expected[..]));
        });
    }
}
