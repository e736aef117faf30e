//! The sending side: requests as frames, as far as streams and windows allow.

use super::encoder::Index;
use super::flow::SendWindow;
use super::streams::Stage;
use super::{Http2, frame};
use crate::engine::wire::Layout;
use crate::workload::Request;

/// Requests that stand for themselves are kept laid out up to this number.
const MOST_FIXED: usize = 1024;

/// The HEADERS frame of a request that is sent again and again.
#[derive(Debug)]
pub(super) struct Fixed {
    /// [`super::encoder::Encoder::stamp`] when it was written.
    stamp: u64,
    /// Its stream is still to be filled in.
    frame: Vec<u8>,
}

/// A request that waits for a stream.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) place: u32,
    endpoint: u16,
    fixed: Option<u32>,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    authority: String,
    scheme: &'static str,
}

impl Waiting {
    pub(super) fn new(place: u32, request: &Request<'_>, layout: Layout<'_>) -> Self {
        Waiting {
            place,
            endpoint: request.endpoint,
            fixed: request.fixed,
            method: request.method.to_owned(),
            path: request.path.to_owned(),
            headers: request.headers.to_vec(),
            body: request.body.to_vec(),
            authority: layout.authority.to_owned(),
            scheme: if layout.scheme == "https" { "https" } else { "http" },
        }
    }
}

impl Http2 {
    /// Opens a stream for a request and sends as much of it as may be sent.
    pub(super) fn start(
        &mut self,
        place: u32,
        request: &Request<'_>,
        layout: Layout<'_>,
        out: &mut Vec<u8>,
    ) {
        let id = self.streams.open(place);
        let stream = &mut self.places[place as usize];
        stream.id = id;
        stream.stage = Stage::Asked;
        stream.send_window = SendWindow::new(self.peer.window);
        let number = request.fixed.and_then(|number| usize::try_from(number).ok());
        let number = number.filter(|number| *number < MOST_FIXED);
        let known = number.and_then(|number| self.fixed.get(number)).and_then(Option::as_ref);
        match known {
            Some(known) if known.stamp == self.encoder.stamp() => {
                let from = out.len();
                out.extend_from_slice(&known.frame);
                out[from + 5..from + 9].copy_from_slice(&id.to_be_bytes());
            }
            _ => self.write_headers(id, number, request, layout, out),
        }
        if !request.body.is_empty() {
            let sent = self.write_data(place, request.body, out);
            if sent < request.body.len() {
                let stream = &mut self.places[place as usize];
                stream.unsent.extend_from_slice(&request.body[sent..]);
                self.blocked.push_back(place);
            }
        }
    }

    fn write_headers(
        &mut self,
        id: u32,
        number: Option<usize>,
        request: &Request<'_>,
        layout: Layout<'_>,
        out: &mut Vec<u8>,
    ) {
        let index = if number.is_some() { Index::Now } else { Index::Repeated };
        let encoder = &mut self.encoder;
        let stamp = encoder.stamp();
        let mut block = Vec::with_capacity(256);
        encoder.begin(&mut block);
        encoder.field(":method", request.method, index, &mut block);
        encoder.field(":scheme", layout.scheme, Index::Now, &mut block);
        encoder.field(":path", request.path, index, &mut block);
        encoder.field(":authority", layout.authority, Index::Now, &mut block);
        for (name, value) in request.headers {
            encoder.field(name, value, index, &mut block);
        }
        if !request.body.is_empty() || matches!(request.method, "POST" | "PUT" | "PATCH") {
            let length = request.body.len().to_string();
            encoder.field("content-length", &length, index, &mut block);
        }
        let end = if request.body.is_empty() { frame::END_STREAM } else { 0 };
        let from = out.len();
        frame::write_block(&block, end, id, self.peer.frame_bytes, out);
        if let Some(number) = number
            && self.encoder.stamp() == stamp
            && block.len() <= self.peer.frame_bytes
        {
            if self.fixed.len() <= number {
                self.fixed.resize_with(number + 1, || None);
            }
            self.fixed[number] = Some(Fixed { stamp, frame: out[from..].to_vec() });
        }
    }

    /// Writes DATA as far as the windows allow; returns how much that was.
    fn write_data(&mut self, place: u32, body: &[u8], out: &mut Vec<u8>) -> usize {
        let mut sent = 0;
        while sent < body.len() {
            let part = self.write_one(place, &body[sent..], out);
            if part == 0 {
                break;
            }
            sent += part;
        }
        sent
    }

    /// Writes one frame of DATA; returns how much went into it, 0 if a window is used up.
    fn write_one(&mut self, place: u32, body: &[u8], out: &mut Vec<u8>) -> usize {
        let stream = &mut self.places[place as usize];
        let most = self.send_window.allows(body.len().min(self.peer.frame_bytes));
        let part = stream.send_window.allows(most);
        if part > 0 {
            let end = if part == body.len() { frame::END_STREAM } else { 0 };
            frame::write(frame::DATA, end, stream.id, &body[..part], out);
            stream.send_window.spend(part);
            self.send_window.spend(part);
        }
        part
    }

    /// Goes on with bodies that wait for a window, a frame each in turn.
    pub(super) fn continue_bodies(&mut self, out: &mut Vec<u8>) {
        let mut stuck = 0;
        while stuck < self.blocked.len()
            && let Some(place) = self.blocked.pop_front()
        {
            let stream = &mut self.places[place as usize];
            let unsent = std::mem::take(&mut stream.unsent);
            let from = stream.unsent_from;
            let part = self.write_one(place, &unsent[from..], out);
            if from + part == unsent.len() {
                stuck = 0;
                continue;
            }
            let stream = &mut self.places[place as usize];
            stream.unsent_from += part;
            stream.unsent = unsent;
            stuck = if part > 0 { 0 } else { stuck + 1 };
            self.blocked.push_back(place);
        }
    }

    /// Starts requests that waited for a stream.
    pub(super) fn start_waiting(&mut self, out: &mut Vec<u8>) {
        while self.takes_more()
            && let Some(waiting) = self.waiting.pop_front()
        {
            let request = Request {
                endpoint: waiting.endpoint,
                fixed: waiting.fixed,
                method: &waiting.method,
                path: &waiting.path,
                headers: &waiting.headers,
                body: &waiting.body,
            };
            let layout = Layout {
                authority: &waiting.authority,
                scheme: waiting.scheme,
                keep_alive: self.keep_alive,
            };
            self.start(waiting.place, &request, layout, out);
        }
    }
}
