//! The frames that are about the connection and its streams, not about answers.

use super::flow::LARGEST_WINDOW;
use super::frame::{self, FrameHead, SHORT};
use super::streams::Stage;
use super::{Broken, Event, Http2, LossReason};
use crate::result::ErrorKind;

/// A frame about the connection that names a stream.
pub(super) const OF_CONNECTION: Broken = Broken::protocol("a frame of the connection on a stream");

impl Http2 {
    pub(super) fn reset(
        &mut self,
        head: &FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        let code = frame::word(payload)?;
        if let Some(place) = self.place_of(head.stream)? {
            let why = LossReason("the server reset a stream", Some(code));
            self.lose(place, ErrorKind::Reset, why, None, out);
        }
        Ok(())
    }

    pub(super) fn settings(
        &mut self,
        head: &FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        if head.stream != 0 {
            return Err(OF_CONNECTION);
        }
        if head.has(frame::ACK) {
            return if payload.is_empty() { Ok(()) } else { Err(SHORT) };
        }
        if !payload.len().is_multiple_of(6) {
            return Err(SHORT);
        }
        if !self.settled {
            self.settled = true;
            self.peer.most_streams = u32::MAX;
        }
        for setting in payload.chunks_exact(6) {
            let id = u16::from_be_bytes([setting[0], setting[1]]);
            let value = u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
            self.setting(id, value)?;
        }
        frame::write(frame::SETTINGS, frame::ACK, 0, &[], out);
        self.start_waiting(out);
        self.continue_bodies(out);
        Ok(())
    }

    fn setting(&mut self, id: u16, value: u32) -> Result<(), Broken> {
        match id {
            frame::HEADER_TABLE_SIZE => self.encoder.set_peer_limit(value),
            frame::ENABLE_PUSH if value != 0 => {
                return Err(Broken::protocol("a server that wants to be pushed to"));
            }
            frame::MAX_CONCURRENT_STREAMS => self.peer.most_streams = value,
            frame::INITIAL_WINDOW_SIZE => {
                if value > LARGEST_WINDOW {
                    return Err(Broken::protocol("a window larger than 2^31 - 1"));
                }
                let by = i64::from(value) - i64::from(self.peer.window);
                self.peer.window = value;
                let asked = |stage| matches!(stage, Stage::Asked | Stage::Body);
                for stream in self.places.iter_mut().filter(|stream| asked(stream.stage)) {
                    stream.send_window.change(by)?;
                }
            }
            frame::MAX_FRAME_SIZE => {
                if !(16_384..=0x00ff_ffff).contains(&value) {
                    return Err(Broken::protocol("a frame size out of bounds"));
                }
                self.peer.frame_bytes = value as usize;
            }
            _ => {}
        }
        Ok(())
    }

    /// The peer takes no more streams, and of those we opened none above the last it names. Without
    /// an error these requests are not lost: the peer has not looked at them, and another
    /// connection takes them (RFC 9113 section 6.8).
    pub(super) fn goaway(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Broken> {
        let last = frame::word(&payload[..4])? & 0x7fff_ffff;
        let code = frame::word(&payload[4..8])?;
        self.going_away = true;
        let why = LossReason("the server ended the connection", Some(code));
        let in_order = code == 0;
        for place in self.streams.above(last) {
            if in_order {
                self.release(place);
                self.events.push_back(Event::Unprocessed(place));
            } else {
                self.lose(place, ErrorKind::Closed, why, None, out);
            }
        }
        while let Some(waiting) = self.waiting.pop_front() {
            self.places[waiting.place as usize].stage = Stage::Free;
            self.events.push_back(if in_order {
                Event::Unprocessed(waiting.place)
            } else {
                Event::Lost(waiting.place, ErrorKind::Closed)
            });
        }
        if code != 0 {
            self.why = Some(why);
        }
        Ok(())
    }

    pub(super) fn window_update(
        &mut self,
        head: &FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        let more = frame::word(payload)? & 0x7fff_ffff;
        if head.stream == 0 {
            if more == 0 {
                return Err(Broken::protocol("a window update of nothing"));
            }
            self.send_window.change(i64::from(more))?;
        } else if let Some(place) = self.place_of(head.stream)? {
            let window = &mut self.places[place as usize].send_window;
            if more == 0 || window.change(i64::from(more)).is_err() {
                let why = LossReason("a window update out of bounds", None);
                self.lose(place, ErrorKind::Protocol, why, Some(frame::PROTOCOL_ERROR), out);
            }
        }
        self.continue_bodies(out);
        Ok(())
    }
}
