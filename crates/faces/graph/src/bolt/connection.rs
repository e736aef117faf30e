//! A connection: reads, performs one ask at a time while it goes on reading, and writes.

use super::executor::{Executor, Reply, RowsWanted};
use super::{CountedConnection, summary};
use crate::GraphFace;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use wellspring_bolt::{
    Agreement, Ask, Failure, Fetch, Handshake, Metadata, Phase, Remaining, Session, Version,
};
use wellspring_cypher::NEO4J_VERSION;
use wellspring_host::protocol::{ByteStream, ProtocolConnection};
use wellspring_host::wire::effects::Effects;

/// Bytes read at a time, into a buffer that the connections of a thread share.
const READ_BYTES: usize = 64 << 10;
/// Rows up to this size are sent together with their summary.
const SMALL_ROWS_BYTES: usize = 16 << 10;
/// Input up to this size is not counted.
const SMALL_INPUT_BYTES: usize = 64 << 10;
/// How often a client that waits is told that its server is alive.
const SIGN_OF_LIFE: Duration = Duration::from_secs(20);
/// How long a driver waits for any byte of an answer, in s.
const RECEIVE_TIMEOUT_S: i64 = 60;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// A socket with its time limits.
struct Socket {
    stream: Box<dyn ByteStream>,
    /// How long a client may leave bytes unread.
    write_timeout: Duration,
}

impl Socket {
    /// Reads once. No bytes: the client has left.
    async fn read(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<usize> {
        poll_fn(|context| {
            BUFFER.with_borrow_mut(|buffer| {
                let mut read = ReadBuf::new(buffer);
                let polled = Pin::new(&mut self.stream).poll_read(context, &mut read);
                polled.map_ok(|()| {
                    take(read.filled());
                    read.filled().len()
                })
            })
        })
        .await
    }

    async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let some = poll_fn(|context| Pin::new(&mut self.stream).poll_write(context, bytes));
            let written = timeout(self.write_timeout, some).await??;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Writes what the session has for the client. It is not flushed.
    async fn write_output(&mut self, session: &mut Session) -> io::Result<()> {
        self.write(session.output()).await?;
        session.consume(session.output().len());
        Ok(())
    }

    async fn flush(&mut self) -> io::Result<()> {
        let flushed = poll_fn(|context| Pin::new(&mut self.stream).poll_flush(context));
        timeout(self.write_timeout, flushed).await?
    }
}

/// Serves a connection until its client leaves or the server stops.
pub(super) async fn serve(face: Arc<GraphFace>, connection: ProtocolConnection) {
    let ProtocolConnection { stream, read, client } = connection;
    let config = &face.host.config;
    let [header, write] =
        [config.header_timeout_ms, config.write_timeout_ms].map(Duration::from_millis);
    let mut socket = Socket { stream, write_timeout: write };
    let authenticated_by = Instant::now() + header;
    let agreed = timeout(header, shake_hands(&mut socket, read.to_vec())).await;
    let Ok(Ok(Some((version, rest)))) = agreed else { return };
    let _counted = CountedConnection::begin(&face);
    let executor = Executor::new(&face, client, version);
    let mut session = Session::new(version);
    session.receive(&rest);
    let mut client = Client {
        face,
        socket,
        session,
        executor,
        authenticated_by,
        idle_since: Instant::now(),
        partial_since: None,
        held_bytes: 0,
        has_left: false,
    };
    // Whatever ended it: a connection is closed without a word.
    let _ = client.talk().await;
}

/// Agrees on a version; what was read beyond the handshake. `None`: the client speaks no version
/// that is served, and has been told so.
async fn shake_hands(
    socket: &mut Socket,
    mut read: Vec<u8>,
) -> io::Result<Option<(Version, Vec<u8>)>> {
    let mut handshake = Handshake::default();
    loop {
        let mut told = Vec::new();
        let advanced = handshake.advance(&read, &mut told);
        socket.write(&told).await?;
        socket.flush().await?;
        match advanced {
            Ok(Some(Agreement { version, used })) => {
                return Ok(Some((version, read.split_off(used))));
            }
            Ok(None) => {}
            Err(_) => return Ok(None),
        }
        if socket.read(|bytes| read.extend_from_slice(bytes)).await? == 0 {
            return Ok(None);
        }
    }
}

/// How an ask ended.
enum AskEnd {
    Replied(Result<Reply, Failure>),
    /// The client does not want it any more, or has left.
    GivenUp,
}

/// A client that has agreed on a version.
struct Client {
    face: Arc<GraphFace>,
    socket: Socket,
    session: Session,
    executor: Executor,
    /// When it must have proved who it is.
    authenticated_by: Instant,
    /// When its last message was answered.
    idle_since: Instant,
    /// Since when it has sent a part of a message.
    partial_since: Option<Instant>,
    /// Memory that is counted for what it has sent, in bytes.
    held_bytes: usize,
    /// It sends nothing more.
    has_left: bool,
}

impl Client {
    async fn talk(&mut self) -> io::Result<()> {
        let mut stopping = self.face.host.stopping.clone();
        loop {
            while let Some(ask) = self.session.next_ask() {
                self.answer(ask).await?;
                self.idle_since = Instant::now();
            }
            self.send().await?;
            if !self.hold() {
                return Ok(());
            }
            let is_over = self.session.is_closed() || self.has_left;
            if is_over || (*stopping.borrow() && self.session.is_idle()) {
                return Ok(());
            }
            let phase = self.session.phase();
            let is_early = matches!(phase, Phase::Negotiation | Phase::Authentication);
            let expires = self.idle_since + self.face.open.timeout();
            let is_open = self.executor.is_open();
            let (rest_by, is_partial) = self.rest_by();
            let (session, socket) = (&mut self.session, &mut self.socket);
            let is_running = !*stopping.borrow();
            tokio::select! {
                biased;
                read = socket.read(|bytes| session.receive(bytes)) => {
                    self.has_left = read? == 0;
                }
                _ = stopping.wait_for(|&stopping| stopping), if is_running => {}
                () = sleep_until(self.authenticated_by), if is_early => return Ok(()),
                () = sleep_until(rest_by), if is_partial => return Ok(()),
                () = sleep_until(expires), if is_open => self.executor.expire(),
            }
        }
    }

    /// Counts the memory of what was sent and is not acted on; whether there is enough.
    fn hold(&mut self) -> bool {
        let bytes = self.session.memory_bytes();
        let bytes = if bytes > SMALL_INPUT_BYTES { bytes } else { 0 };
        let is_same = bytes == self.held_bytes;
        self.held_bytes = bytes;
        is_same || self.executor.hold(bytes)
    }

    /// When the rest of a message must have come, and whether one has begun.
    fn rest_by(&mut self) -> (Instant, bool) {
        let is_partial = self.session.awaits_rest();
        let since = self.partial_since.filter(|_| is_partial).unwrap_or_else(Instant::now);
        self.partial_since = Some(since).filter(|_| is_partial);
        (since + Duration::from_millis(self.face.host.config.body_timeout_ms), is_partial)
    }

    async fn send(&mut self) -> io::Result<()> {
        if self.session.output().is_empty() {
            return Ok(());
        }
        self.socket.write_output(&mut self.session).await?;
        self.socket.flush().await
    }

    async fn answer(&mut self, ask: Ask) -> io::Result<()> {
        self.face.bolt.messages.fetch_add(1, Relaxed);
        match self.perform(ask).await? {
            AskEnd::Replied(Ok(reply)) => self.reply(reply).await,
            AskEnd::Replied(Err(failure)) => {
                self.face.bolt.failures.fetch_add(1, Relaxed);
                self.executor.reset();
                self.session.fail(&failure);
                Ok(())
            }
            AskEnd::GivenUp => {
                self.executor.reset();
                if self.session.is_interrupted() {
                    self.session.abandon();
                } else {
                    self.session.close();
                }
                Ok(())
            }
        }
    }

    /// Performs an ask while the connection is read: a reset, or the end of the connection, gives
    /// it up. What is at the log is waited for: its outcome is told.
    async fn perform(&mut self, ask: Ask) -> io::Result<AskEnd> {
        let effects = Effects::default();
        self.executor.effects = effects.clone();
        let (session, socket, has_left) = (&mut self.session, &mut self.socket, &mut self.has_left);
        // On the heap: an idle connection would carry its size along.
        let mut work = Box::pin(self.executor.perform(ask));
        // Most asks are done at once.
        let first = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
        if let Poll::Ready(reply) = first {
            return Ok(AskEnd::Replied(reply));
        }
        loop {
            tokio::select! {
                biased;
                reply = &mut work => return Ok(AskEnd::Replied(reply)),
                read = socket.read(|bytes| session.receive(bytes)),
                    if session.wants_input() && !*has_left =>
                {
                    *has_left = read.unwrap_or(0) == 0;
                    let is_unwanted = *has_left || session.is_interrupted();
                    if is_unwanted && !effects.are_at_log() {
                        return Ok(AskEnd::GivenUp);
                    }
                }
                () = sleep(SIGN_OF_LIFE) => {
                    session.keep_alive();
                    socket.write_output(session).await?;
                    socket.flush().await?;
                }
            }
        }
    }

    async fn reply(&mut self, reply: Reply) -> io::Result<()> {
        let version = self.session.version();
        let nothing = Remaining::Nothing;
        match reply {
            Reply::Done => self.session.succeed(nothing, |_| {}),
            Reply::Greeting => {
                let number = self.face.bolt.connections.load(Relaxed);
                self.session.succeed(nothing, |metadata| push_greeting(metadata, number));
                self.executor.follow(&self.session);
            }
            Reply::Begun(database) => self.session.succeed(nothing, |metadata| {
                if version.has_home_database() {
                    metadata.text("db", &database);
                }
            }),
            Reply::Table(table) => {
                self.session.succeed(nothing, |metadata| table.push(metadata.member("rt")));
            }
            Reply::Columns(plan, database) => self.session.succeed(nothing, |metadata| {
                let columns = plan.columns();
                let mut fields = metadata.member("fields");
                fields.list(columns.len());
                columns.iter().for_each(|column| fields.text(column));
                metadata.int("t_first", 0);
                if version.has_home_database() {
                    metadata.text("db", &database);
                }
            }),
            Reply::Committed(bookmark) => self.session.succeed(nothing, |metadata| {
                if let Some(bookmark) = bookmark {
                    metadata.text("bookmark", &bookmark);
                }
            }),
            Reply::Rows(fetch, wanted) => return self.send_rows(fetch, wanted).await,
        }
        Ok(())
    }

    /// Sends rows, and behind the last one the summary.
    async fn send_rows(&mut self, fetch: Fetch, wanted: RowsWanted) -> io::Result<()> {
        let version = self.session.version();
        let Some(open) = self.executor.result(fetch.qid) else {
            self.session.fail(&Failure::invalid("the result is not open"));
            return Ok(());
        };
        let portion = open.take(fetch.amount);
        let remaining = if portion.has_more { Remaining::Rows } else { Remaining::Nothing };
        match wanted {
            RowsWanted::Discarded => {}
            RowsWanted::Sent if portion.rows.len() <= SMALL_ROWS_BYTES => {
                self.session.records(portion.rows);
            }
            RowsWanted::Sent => {
                self.socket.write_output(&mut self.session).await?;
                self.socket.write(portion.rows).await?;
            }
        }
        self.session.succeed(remaining, |metadata| {
            if remaining == Remaining::Nothing {
                let bookmark = open.bookmark.as_deref();
                summary::push(metadata, open.summary(), &open.database, bookmark, version);
            }
        });
        if remaining == Remaining::Nothing {
            self.executor.close_result(fetch.qid);
        }
        Ok(())
    }
}

/// Says who the server is. Java's driver refuses a name that does not begin with `Neo4j/`.
fn push_greeting(metadata: &mut Metadata<'_>, number: u64) {
    metadata.text("server", &format!("Neo4j/{NEO4J_VERSION}"));
    metadata.text("connection_id", &format!("bolt-{number}"));
    let mut hints = metadata.member("hints");
    hints.map(1);
    hints.text("connection.recv_timeout_seconds");
    hints.int(RECEIVE_TIMEOUT_S);
}
