//! The receiving side: frames out of bytes, and what each kind of frame does.

use super::control::OF_CONNECTION;
use super::frame::{self, FrameHead, HEAD_BYTES, SHORT};
use super::head::{self, BlockCache, Reading};
use super::streams::{Owner, Stage};
use super::{Broken, Event, Http2, LossReason, OUR_FRAME_BYTES, WRONG_LENGTH};
use crate::engine::wire::{LARGEST_KEPT_BYTES, ServerFacts};
use crate::result::ErrorKind;

/// The largest header block of an answer.
const LARGEST_HEAD_BYTES: usize = 256 << 10;

/// A DATA frame that is being read; its payload is used as it comes.
#[derive(Clone, Copy, Debug)]
struct Data {
    /// Whose it is; nobody's any more if its request was given up.
    place: Option<u32>,
    left: usize,
    padding: usize,
    ends: bool,
}

/// A header block that has not ended yet.
#[derive(Debug)]
struct Block {
    stream: u32,
    ends_stream: bool,
    bytes: Vec<u8>,
}

/// What was read and could not be used yet.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// A frame, or the head of one, that is not complete.
    kept: Vec<u8>,
    data: Option<Data>,
    block: Option<Block>,
}

impl Reader {
    /// The request at `place` is over: what still arrives is not for the next one there.
    pub(super) fn forget(&mut self, place: u32) {
        if let Some(data) = &mut self.data
            && data.place == Some(place)
        {
            data.place = None;
        }
    }
}

/// How many bytes must be there before a frame can be dealt with. DATA needs only its head.
fn needed(head: &FrameHead) -> usize {
    match head.kind {
        frame::DATA => HEAD_BYTES + usize::from(head.has(frame::PADDED)),
        _ => HEAD_BYTES + head.length,
    }
}

impl Http2 {
    /// Reads one frame or part of one. Returns how much of `rest` that took; `None` if it took all
    /// and needs more.
    pub(super) fn read(
        &mut self,
        rest: &[u8],
        heads: &mut BlockCache,
        seen: &mut ServerFacts,
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>, Broken> {
        if rest.is_empty() {
            return Ok(None);
        }
        if let Some(data) = self.reader.data {
            return Ok(Some(self.read_data(data, rest, out)));
        }
        if !self.reader.kept.is_empty() {
            return self.read_kept(rest, heads, seen, out);
        }
        if let Some(head) = FrameHead::parse(rest) {
            self.check(&head)?;
            let needed = needed(&head);
            if needed <= rest.len() {
                self.frame(&head, &rest[HEAD_BYTES..needed], heads, seen, out)?;
                return Ok(Some(needed));
            }
        }
        self.reader.kept.extend_from_slice(rest);
        Ok(None)
    }

    /// Completes a frame whose beginning was kept.
    fn read_kept(
        &mut self,
        rest: &[u8],
        heads: &mut BlockCache,
        seen: &mut ServerFacts,
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>, Broken> {
        let mut taken = 0;
        loop {
            let head = FrameHead::parse(&self.reader.kept);
            if let Some(head) = &head {
                self.check(head)?;
            }
            let missing = head.as_ref().map_or(HEAD_BYTES, needed) - self.reader.kept.len();
            if missing == 0
                && let Some(head) = head
            {
                let mut kept = std::mem::take(&mut self.reader.kept);
                let done = self.frame(&head, &kept[HEAD_BYTES..], heads, seen, out);
                kept.clear();
                self.reader.kept = kept;
                return done.map(|()| Some(taken));
            }
            let part = &rest[taken..];
            let part = &part[..part.len().min(missing)];
            if part.is_empty() {
                return Ok(None);
            }
            self.reader.kept.extend_from_slice(part);
            taken += part.len();
        }
    }

    /// Whether such a frame may come now.
    #[inline]
    fn check(&self, head: &FrameHead) -> Result<(), Broken> {
        if !self.settled && (head.kind != frame::SETTINGS || head.has(frame::ACK)) {
            return Err(Broken::protocol(
                "what came first was not SETTINGS; the server does not speak HTTP/2 here",
            ));
        }
        if head.length > OUR_FRAME_BYTES as usize {
            return Err(Broken::protocol("a frame larger than we take"));
        }
        if head.length + HEAD_BYTES < needed(head) {
            return Err(Broken::protocol("padding longer than its frame"));
        }
        let expected = match &self.reader.block {
            Some(block) => head.kind == frame::CONTINUATION && head.stream == block.stream,
            None => head.kind != frame::CONTINUATION,
        };
        if expected { Ok(()) } else { Err(Broken::protocol("a header block in disorder")) }
    }

    #[inline]
    fn frame(
        &mut self,
        head: &FrameHead,
        payload: &[u8],
        heads: &mut BlockCache,
        seen: &mut ServerFacts,
        out: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        match head.kind {
            frame::DATA => self.begin_data(head, payload.first().copied(), out),
            frame::HEADERS => {
                let block = frame::block_of(head, payload)?;
                let ends_stream = head.has(frame::END_STREAM);
                if head.has(frame::END_HEADERS) {
                    return self.block(head.stream, ends_stream, block, heads, seen, out);
                }
                let bytes = block.to_vec();
                self.reader.block = Some(Block { stream: head.stream, ends_stream, bytes });
                Ok(())
            }
            frame::CONTINUATION => self.continuation(head, payload, heads, seen, out),
            frame::RST_STREAM => self.reset(head, payload, out),
            frame::SETTINGS => self.settings(head, payload, out),
            frame::PING if payload.len() != 8 => Err(SHORT),
            frame::GOAWAY if payload.len() < 8 => Err(SHORT),
            frame::PING | frame::GOAWAY if head.stream != 0 => Err(OF_CONNECTION),
            frame::PING => {
                if !head.has(frame::ACK) {
                    frame::write(frame::PING, frame::ACK, 0, payload, out);
                }
                Ok(())
            }
            frame::GOAWAY => self.goaway(payload, out),
            frame::WINDOW_UPDATE => self.window_update(head, payload, out),
            frame::PUSH_PROMISE => Err(Broken::protocol("a push, which we did not allow")),
            frame::PRIORITY if payload.len() != 5 => Err(SHORT),
            // PRIORITY is advice, and unknown frames are to be ignored (section 5.5).
            _ => Ok(()),
        }
    }

    /// The place of an open stream; `None` if it is closed.
    #[inline]
    pub(super) fn place_of(&self, stream: u32) -> Result<Option<u32>, Broken> {
        match self.streams.owner(stream) {
            Owner::Place(place) => Ok(Some(place)),
            Owner::Gone => Ok(None),
            Owner::Never => Err(Broken::protocol("a frame on a stream that we did not open")),
        }
    }

    fn begin_data(
        &mut self,
        head: &FrameHead,
        padding: Option<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        let around = usize::from(padding.is_some()) + padding.map_or(0, usize::from);
        let left = head.length.checked_sub(around);
        let left = left.ok_or(Broken::protocol("padding longer than its frame"))?;
        let mut place = self.place_of(head.stream)?;
        if let Some(more) = self.receive_window.arrived(head.length) {
            frame::write(frame::WINDOW_UPDATE, 0, 0, &more.to_be_bytes(), out);
        }
        let ends = head.has(frame::END_STREAM);
        if let Some(owner) = place {
            let stream = &mut self.places[owner as usize];
            if let Some(more) = stream.receive_window.arrived(head.length)
                && !ends
            {
                frame::write(frame::WINDOW_UPDATE, 0, head.stream, &more.to_be_bytes(), out);
            }
            let whole = stream.body_bytes + left as u64;
            let too_long = stream.content_length.is_some_and(|length| whole > length)
                || (stream.without_body() && left > 0);
            let why = match stream.stage {
                Stage::Body if !too_long => None,
                Stage::Body => Some(WRONG_LENGTH),
                _ => Some(LossReason("a body before its head", None)),
            };
            if let Some(why) = why {
                self.lose(owner, ErrorKind::Protocol, why, Some(frame::PROTOCOL_ERROR), out);
                place = None;
            }
        }
        let padding = padding.map_or(0, usize::from);
        let data = Data { place, left, padding, ends };
        if left + padding == 0 {
            self.end_data(data, out);
        } else {
            self.reader.data = Some(data);
        }
        Ok(())
    }

    /// Uses what is there of a DATA frame's payload; returns how much that was.
    #[inline]
    fn read_data(&mut self, mut data: Data, rest: &[u8], out: &mut Vec<u8>) -> usize {
        let part = &rest[..rest.len().min(data.left)];
        data.left -= part.len();
        let skipped = (rest.len() - part.len()).min(data.padding);
        data.padding -= skipped;
        let over = data.left + data.padding == 0;
        self.reader.data = (!over).then_some(data);
        if let Some(place) = data.place {
            let stream = &mut self.places[place as usize];
            stream.body_bytes += part.len() as u64;
            if stream.needs.body {
                if stream.body.len() + part.len() > LARGEST_KEPT_BYTES {
                    let why = LossReason("a body larger than what is kept for checks", None);
                    self.lose(place, ErrorKind::TooLarge, why, Some(frame::CANCEL), out);
                    return part.len() + skipped;
                }
                stream.body.extend_from_slice(part);
            }
        }
        if over {
            self.end_data(data, out);
        }
        part.len() + skipped
    }

    #[inline]
    fn end_data(&mut self, data: Data, out: &mut Vec<u8>) {
        if let Some(place) = data.place
            && data.ends
        {
            self.finish(place, out);
        }
    }

    fn continuation(
        &mut self,
        head: &FrameHead,
        payload: &[u8],
        heads: &mut BlockCache,
        seen: &mut ServerFacts,
        out: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        let Some(block) = &mut self.reader.block else { return Ok(()) };
        if block.bytes.len() + payload.len() > LARGEST_HEAD_BYTES {
            let why = "a header block larger than we take";
            return Err(Broken { kind: ErrorKind::TooLarge, why });
        }
        block.bytes.extend_from_slice(payload);
        if head.has(frame::END_HEADERS)
            && let Some(Block { stream, ends_stream, bytes }) = self.reader.block.take()
        {
            return self.block(stream, ends_stream, &bytes, heads, seen, out);
        }
        Ok(())
    }

    /// A whole header block: a head, an interim head, or trailers.
    #[inline]
    fn block(
        &mut self,
        stream: u32,
        ends_stream: bool,
        block: &[u8],
        heads: &mut BlockCache,
        seen: &mut ServerFacts,
        out: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        // Blocks stand for themselves, so one that nobody waits for need not be read.
        let Some(place) = self.place_of(stream)? else { return Ok(()) };
        let at = &mut self.places[place as usize];
        if self.phases && !at.begun {
            at.begun = true;
            self.events.push_back(Event::Begun(place));
        }
        let malformed = if at.stage == Stage::Body {
            let fault = head::trailers_fault(block)?;
            fault.or((!ends_stream).then_some("trailers that do not end the stream"))
        } else {
            match heads.read(block, seen)? {
                Reading::Head(parsed) if parsed.status >= 200 => {
                    at.stage = Stage::Body;
                    at.status = parsed.status;
                    at.content_length = parsed.content_length;
                    seen.cache_hits += u64::from(parsed.from_cache);
                    if at.needs.head {
                        at.head.extend_from_slice(block);
                    }
                    None
                }
                Reading::Head(parsed) if parsed.status == 101 || ends_stream => {
                    Some("an interim answer that cannot be one")
                }
                Reading::Head(_) => return Ok(()),
                Reading::Malformed(why) => Some(why),
            }
        };
        match malformed {
            Some(why) => {
                let code = Some(frame::PROTOCOL_ERROR);
                self.lose(place, ErrorKind::Protocol, LossReason(why, None), code, out);
            }
            None if ends_stream => self.finish(place, out),
            None => {}
        }
        Ok(())
    }
}
