//! HTTP/2 (RFC 9113), the client's side of one connection: a stream at a time at each place.
//!
//! Lean because it need not be general: no push, no priorities, no dynamic
//! table for answers, windows so large that they never hold an answer back.
//! What the server says about our side (streams, windows, frame and table
//! sizes) is obeyed to the letter. What breaks the protocol ends the
//! connection; what breaks HTTP on one stream ends that stream.

mod control;
mod encoder;
mod flow;
mod frame;
mod head;
mod hpack;
mod huffman;
mod receive;
mod request;
mod streams;

pub(crate) use head::BlockCache;

use super::{Advance, Layout, ServerFacts};
use crate::result::ErrorKind;
use crate::workload::{Answer, Head, Needs, Request};
use encoder::Encoder;
use flow::{DEFAULT_WINDOW, LARGEST_WINDOW, ReceiveWindow, SendWindow};
use receive::Reader;
use request::{Fixed, Waiting};
use std::collections::VecDeque;
use streams::{Stage, Stream, Streams};

/// The largest frame we take.
const OUR_FRAME_BYTES: u32 = 64 << 10;
/// Streams opened before the peer has said how many it takes (RFC 9113 section 6.5.2 advises no
/// limit below).
const STREAMS_BEFORE_SETTINGS: u32 = 100;

/// The connection is of no further use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Broken {
    kind: ErrorKind,
    why: &'static str,
}

impl Broken {
    const fn protocol(why: &'static str) -> Self {
        Broken { kind: ErrorKind::Protocol, why }
    }
}

/// What the peer's SETTINGS say about what we send.
#[derive(Clone, Copy, Debug)]
struct Peer {
    most_streams: u32,
    window: u32,
    frame_bytes: usize,
}

/// Something that happened at a place.
#[derive(Clone, Copy, Debug)]
enum Event {
    Begun(u32),
    Answered(u32),
    Lost(u32, ErrorKind),
    Unprocessed(u32),
}

impl Event {
    fn told(self, used: usize) -> Advance {
        match self {
            Event::Begun(place) => Advance::Begun { used, place },
            Event::Answered(place) => Advance::Answered { used, place },
            Event::Lost(place, kind) => Advance::Lost { used, place, kind },
            Event::Unprocessed(place) => Advance::Unprocessed { used, place },
        }
    }
}

/// Why a request was lost, for people: a sentence, and the peer's error code if it gave one.
#[derive(Clone, Copy, Debug)]
struct LossReason(&'static str, Option<u32>);

/// One connection.
#[derive(Debug)]
pub(crate) struct Http2 {
    phases: bool,
    places: Vec<Stream>,
    streams: Streams,
    encoder: Encoder,
    reader: Reader,
    peer: Peer,
    send_window: SendWindow,
    receive_window: ReceiveWindow,
    /// Requests for which the peer has no stream free, in order.
    waiting: VecDeque<Waiting>,
    /// Places whose request body waits for a window, in turn.
    blocked: VecDeque<u32>,
    fixed: Vec<Option<Fixed>>,
    /// What has happened and was not told yet.
    events: VecDeque<Event>,
    /// The peer's first SETTINGS have arrived.
    settled: bool,
    /// The peer takes no more streams.
    going_away: bool,
    keep_alive: bool,
    why: Option<LossReason>,
}

impl Http2 {
    /// A fresh connection with so many places.
    pub(crate) fn new(places: u32, phases: bool) -> Self {
        Http2 {
            phases,
            places: (0..places).map(|_| Stream::new()).collect(),
            streams: Streams::new(),
            encoder: Encoder::new(),
            reader: Reader::default(),
            peer: Peer {
                most_streams: STREAMS_BEFORE_SETTINGS,
                window: DEFAULT_WINDOW,
                frame_bytes: 16_384,
            },
            send_window: SendWindow::new(DEFAULT_WINDOW),
            receive_window: ReceiveWindow::default(),
            waiting: VecDeque::new(),
            blocked: VecDeque::new(),
            fixed: Vec::new(),
            events: VecDeque::new(),
            settled: false,
            going_away: false,
            keep_alive: true,
            why: None,
        }
    }

    /// Appends what a client says first, and windows that will not be felt.
    pub(super) fn open(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(frame::PREFACE);
        let settings = [
            (frame::HEADER_TABLE_SIZE, 0),
            (frame::ENABLE_PUSH, 0),
            (frame::INITIAL_WINDOW_SIZE, LARGEST_WINDOW),
            (frame::MAX_FRAME_SIZE, OUR_FRAME_BYTES),
        ];
        frame::write_settings(&settings, out);
        let more = LARGEST_WINDOW - DEFAULT_WINDOW;
        frame::write(frame::WINDOW_UPDATE, 0, 0, &more.to_be_bytes(), out);
    }

    pub(super) fn send(
        &mut self,
        place: u32,
        request: &Request<'_>,
        needs: Needs,
        layout: Layout<'_>,
        out: &mut Vec<u8>,
    ) {
        let stream = &mut self.places[place as usize];
        debug_assert_eq!(stream.stage, Stage::Free);
        stream.prepare(needs, request.method == "HEAD");
        self.keep_alive = layout.keep_alive;
        if self.takes_more() && self.waiting.is_empty() {
            self.start(place, request, layout, out);
        } else {
            self.places[place as usize].stage = Stage::Waiting;
            self.waiting.push_back(Waiting::new(place, request, layout));
        }
    }

    /// Gives up the request at `place`; the connection goes on.
    pub(super) fn cancel(&mut self, place: u32, out: &mut Vec<u8>) -> bool {
        match self.places[place as usize].stage {
            Stage::Free => {}
            Stage::Waiting => {
                self.waiting.retain(|waiting| waiting.place != place);
                self.places[place as usize].stage = Stage::Free;
            }
            Stage::Asked | Stage::Body => {
                let id = self.places[place as usize].id;
                frame::write(frame::RST_STREAM, 0, id, &frame::CANCEL.to_be_bytes(), out);
                self.release(place);
                self.start_waiting(out);
            }
        }
        true
    }

    pub(super) fn advance(
        &mut self,
        input: &[u8],
        heads: &mut BlockCache,
        seen: &mut ServerFacts,
        out: &mut Vec<u8>,
    ) -> Result<Advance, ErrorKind> {
        let mut used = 0;
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event.told(used));
            }
            match self.read(&input[used..], heads, seen, out) {
                Ok(Some(taken)) => used += taken,
                Ok(None) => return Ok(Advance::More),
                Err(broken) => {
                    self.why = Some(LossReason(broken.why, None));
                    return Err(broken.kind);
                }
            }
        }
    }

    /// The peer closed its side, which never completes an answer.
    pub(super) fn closed(&mut self) -> Result<u32, ErrorKind> {
        if !self.settled {
            let why = "the server closed the connection without a word of HTTP/2";
            self.why = Some(LossReason(why, None));
        }
        Err(ErrorKind::Closed)
    }

    pub(super) fn reusable(&self) -> bool {
        // What waits needs streams too.
        let places = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        self.keep_alive && !self.going_away && self.streams.has_room_for(2 * places)
    }

    /// Whether the peer wants no further requests on this connection.
    pub(super) fn going_away(&self) -> bool {
        self.going_away
    }

    /// Why requests were lost, for people, if there is more to say than the kind of error.
    pub(super) fn why(&self) -> Option<String> {
        let LossReason(why, code) = self.why?;
        Some(match code {
            None => format!("HTTP/2: {why}"),
            Some(code) => format!("HTTP/2: {why} with error {}", code_name(code)),
        })
    }

    pub(super) fn answer(&self, place: u32, endpoint: u16) -> Answer<'_> {
        let stream = &self.places[place as usize];
        Answer {
            endpoint,
            status: stream.status,
            head: if stream.needs.head { head::fields(&stream.head) } else { Head::default() },
            body: &stream.body,
            body_bytes: stream.body_bytes,
        }
    }

    fn takes_more(&self) -> bool {
        self.streams.open < self.peer.most_streams && !self.going_away
    }

    /// The place is free again, its stream closed.
    #[inline]
    fn release(&mut self, place: u32) {
        let stream = &mut self.places[place as usize];
        stream.stage = Stage::Free;
        self.streams.close(stream.id);
        if !stream.unsent.is_empty() {
            stream.unsent.clear();
            self.blocked.retain(|blocked| *blocked != place);
        }
        self.reader.forget(place);
    }

    /// The request at `place` gets no answer. With `reset` the peer is told.
    fn lose(
        &mut self,
        place: u32,
        kind: ErrorKind,
        why: LossReason,
        reset: Option<u32>,
        out: &mut Vec<u8>,
    ) {
        if let Some(code) = reset {
            let id = self.places[place as usize].id;
            frame::write(frame::RST_STREAM, 0, id, &code.to_be_bytes(), out);
        }
        self.why = Some(why);
        self.release(place);
        self.events.push_back(Event::Lost(place, kind));
        self.start_waiting(out);
    }

    /// The answer at `place` has ended.
    fn finish(&mut self, place: u32, out: &mut Vec<u8>) {
        let stream = &self.places[place as usize];
        let right = stream.length_is_right();
        if !stream.unsent.is_empty() {
            // Answered before it was wholly asked: the rest is of no interest.
            frame::write(frame::RST_STREAM, 0, stream.id, &frame::CANCEL.to_be_bytes(), out);
        }
        if !right {
            return self.lose(place, ErrorKind::Protocol, WRONG_LENGTH, None, out);
        }
        self.release(place);
        self.events.push_back(Event::Answered(place));
        self.start_waiting(out);
    }
}

const WRONG_LENGTH: LossReason =
    LossReason("a body of another length than its content-length", None);

/// The name of an error code (RFC 9113 section 7).
fn code_name(code: u32) -> String {
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    let name = usize::try_from(code).ok().and_then(|code| NAMES.get(code));
    name.map_or_else(|| format!("{code:#x}"), |name| (*name).to_owned())
}

#[cfg(test)]
mod broken_tests;
#[cfg(test)]
mod tests;
