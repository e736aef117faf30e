//! Answers: status, headers and the body as it comes. A body that ends early is an error and never
//! a short body: what is exported or tailed must be whole.

use crate::connection::Sender;
use crate::reactor::Reactor;
use crate::tls_fault::TlsFault;
use bytes::{Buf as _, Bytes};
use hyper::body::{Body as _, Incoming};
use hyper::{HeaderMap, Response};
use std::error::Error as _;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Why no answer was understood.
#[derive(Debug)]
pub enum MessageError {
    /// The connection ended before an answer began: an idle connection that the server had closed
    /// looks like this.
    Gone,
    /// The connection failed or was cut.
    Io(io::Error),
    /// What came is not HTTP/1.1, or uses what the tools do not read.
    Malformed(String),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageError::Gone => write!(f, "the server closed the connection"),
            MessageError::Io(error) if error.kind() == io::ErrorKind::TimedOut => {
                write!(f, "the server did not answer in time")
            }
            MessageError::Io(error) => error.fmt(f),
            MessageError::Malformed(what) => {
                write!(f, "the answer is not HTTP as expected ({what}); is this a Wellspring?")
            }
        }
    }
}

impl From<io::Error> for MessageError {
    fn from(error: io::Error) -> MessageError {
        MessageError::Io(error)
    }
}

impl From<&hyper::Error> for MessageError {
    fn from(error: &hyper::Error) -> MessageError {
        if let Some(cause) = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()) {
            return MessageError::Io(of_connection(cause));
        }
        if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
            return MessageError::Gone;
        }
        MessageError::Malformed(error.to_string())
    }
}

/// The server said nothing for as long as the client waits.
pub(crate) fn timed_out() -> io::Error {
    io::ErrorKind::TimedOut.into()
}

/// What a connection failed with; of TLS in words.
fn of_connection(error: &io::Error) -> io::Error {
    let of_tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match of_tls {
        Some(fault) => io::Error::other(TlsFault::from(fault)),
        None if error.kind() == io::ErrorKind::UnexpectedEof => cut(),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the answer was cut off in the middle")
}

/// Status and headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Three digits.
    pub status: u16,
    headers: HeaderMap,
}

impl Head {
    /// Value of the first header of that name (given in lower case), if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
    }

    /// Whether the media type is `wanted`, whatever its parameters.
    pub fn is_type(&self, wanted: &str) -> bool {
        let media = self.header("content-type").and_then(|value| value.split(';').next());
        media.is_some_and(|media| media.trim().eq_ignore_ascii_case(wanted))
    }

    /// Whether it says where the body ends. One that ends with the connection could be cut off
    /// without anyone noticing.
    fn bounds_its_body(&self) -> bool {
        let chunked = |coding: &str| coding.eq_ignore_ascii_case("chunked");
        matches!(self.status, 204 | 304)
            || match self.header("transfer-encoding") {
                Some(coding) => chunked(coding),
                None => self.header("content-length").is_some(),
            }
    }
}

/// The body of an answer. Reads as the bytes of the body; fails with `UnexpectedEof` if the
/// connection ends before the body does, with `TimedOut` if nothing comes for too long.
#[derive(Debug)]
pub struct Stream {
    reactor: Arc<Reactor>,
    /// The connection, for the next request.
    sender: Sender,
    incoming: Incoming,
    /// What has come and was not read yet.
    piece: Bytes,
    /// Whether the end has come. Of chunks, only waiting for more tells.
    ended: bool,
    patience: Duration,
}

impl Stream {
    /// The head and the body of an answer.
    ///
    /// # Errors
    /// [`MessageError::Malformed`] if the head does not say where the body ends.
    pub(crate) fn begin(
        reactor: Arc<Reactor>,
        sender: Sender,
        answer: Response<Incoming>,
        patience: Duration,
    ) -> Result<(Head, Stream), MessageError> {
        let (parts, incoming) = answer.into_parts();
        let head = Head { status: parts.status.as_u16(), headers: parts.headers };
        if !head.bounds_its_body() {
            return Err(MessageError::Malformed("neither length nor chunks".to_owned()));
        }
        let ended = incoming.is_end_stream();
        Ok((head, Stream { reactor, sender, incoming, piece: Bytes::new(), ended, patience }))
    }

    /// Whether every byte of the body has been read.
    pub(crate) fn is_done(&self) -> bool {
        self.piece.is_empty() && self.ended
    }

    /// The connection, for the next request.
    pub(crate) fn into_sender(self) -> Sender {
        self.sender
    }

    /// Waits for what comes next; `None` at the end.
    fn next(&mut self) -> io::Result<Option<Bytes>> {
        let incoming = &mut self.incoming;
        let frame = std::future::poll_fn(|context| Pin::new(&mut *incoming).poll_frame(context));
        match self.reactor.within(self.patience, frame) {
            None => Err(timed_out()),
            Some(None) => Ok(None),
            // Trailers say nothing to the tools.
            Some(Some(Ok(frame))) => Ok(Some(frame.into_data().unwrap_or_default())),
            Some(Some(Err(error))) => Err(match MessageError::from(&error) {
                MessageError::Io(error) => error,
                MessageError::Gone => cut(),
                malformed => io::Error::new(io::ErrorKind::InvalidData, malformed.to_string()),
            }),
        }
    }
}

impl BufRead for Stream {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.piece.is_empty() && !self.ended {
            match self.next()? {
                Some(piece) => {
                    self.piece = piece;
                    self.ended = self.incoming.is_end_stream();
                }
                None => self.ended = true,
            }
        }
        Ok(&self.piece)
    }

    fn consume(&mut self, amount: usize) {
        self.piece.advance(amount);
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let count = bytes.len().min(into.len());
        into[..count].copy_from_slice(&bytes[..count]);
        self.consume(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_server::{Reply, TestServer};
    use crate::{ClientError, Request};

    /// What a server's bytes are read as; after them it hangs up.
    fn answer(bytes: &str) -> Result<(Head, Vec<u8>), ClientError> {
        let bytes = bytes.to_owned();
        let server = TestServer::start(move |_, _| Reply::raw(&bytes).dripped().then_hang_up());
        let (head, mut body) = server.client().open(&Request::get("/", &[]))?;
        let mut all = Vec::new();
        body.read_to_end(&mut all)?;
        assert!(body.is_done());
        Ok((head, all))
    }

    #[test]
    fn both_framings_survive_split_reads() {
        let (head, body) =
            answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A:  b \r\n\r\nhello").unwrap();
        assert_eq!((head.status, head.header("x-a")), (200, Some("b")));
        assert_eq!(body, b"hello");
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nConnection: close\r\n\r\n\
                       3;x=y\r\nhel\r\nA\r\nlo, world!\r\n0\r\nTrailer: t\r\n\r\n";
        let (_, body) = answer(chunked).unwrap();
        assert_eq!(body, b"hello, world!");
    }

    #[test]
    fn interim_answers_are_passed_over() {
        let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n";
        let (head, _) = answer(&format!("{interim}HTTP/1.1 204 No Content\r\n\r\n")).unwrap();
        assert_eq!(head.status, 204);
    }

    #[test]
    fn every_truncation_is_an_error() {
        for whole in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
        ] {
            assert!(answer(whole).is_ok());
            for end in 0..whole.len() {
                assert!(answer(&whole[..end]).is_err(), "{:?}", &whole[..end]);
            }
        }
    }

    #[test]
    fn what_is_not_http_is_refused() {
        for bad in [
            "SSH-2.0-OpenSSH\r\n\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\nuntil the end",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        ] {
            let refusal = answer(bad).expect_err(bad);
            let malformed = matches!(refusal, ClientError::Message(MessageError::Malformed(_)));
            assert!(malformed, "{bad}: {refusal:?}");
        }
        let bad_chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\nx\r\n0\r\n\r\n";
        assert!(answer(bad_chunk).is_err());
    }
}
