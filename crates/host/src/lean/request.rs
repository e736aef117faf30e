//! From bytes to a complete request: a session in a head or a body.

use super::answer;
use super::desk::{Arrival, Desk};
use super::head::{self, Expects, Framing, HeadMeaning, HeadParse, LaneOrder, Persistence};
use super::logged::AccessLogEntry;
use super::outcome::Placement;
use super::repeat::{Meaning, Repeat};
use super::seam::Guards;
use super::session::Session;
use super::state::{KeptHead, PendingRequest, ReceivingBody, RefusedRequest, Rest, State};
use crate::http::body::{self, MALFORMED_CHUNKS};
use crate::http::body_memory::Charge;
use crate::http::chunked::ChunkFault;
use crate::wire::problem::{self, Problem};
use std::net::IpAddr;

/// What is known of a request apart from its head and its order.
struct RequestFacts {
    client: Option<IpAddr>,
    logged: Option<Box<AccessLogEntry>>,
}

impl Session {
    /// Handles a head at the start of `input`, which is not empty: bytes consumed, including the
    /// available part of its body; `None` if more input is needed.
    pub(super) fn head<G: Guards>(
        &mut self,
        desk: &mut Desk<G>,
        input: &[u8],
        seen: usize,
        line: bool,
    ) -> Option<usize> {
        if let Some((lane, again)) = desk.again(input)
            && let Some(repeat) = &desk.lanes[lane].repeat
        {
            let (head, rest) = input.split_at(again.used);
            let Meaning { what, after, pass, forwarded } = &repeat.meaning;
            let client = desk.guards.client(self.peer, forwarded);
            let counted = self.count(desk, client, pass.as_ref());
            let framing = Framing::Length(again.length);
            let what =
                counted.and_then(|()| head::fits(what.largest, framing)).map(|()| what.clone());
            let logged = desk.logged(head, client, pass.as_ref());
            let (expects, after) = (Expects::Nothing, *after);
            let order = LaneOrder { lane, what, framing, expects, after, word: again.word };
            return self.begin(desk, order, RequestFacts { client, logged }, head, rest);
        }
        // Line ends before a request are ignored.
        match input {
            [b'\r', b'\n', ..] => return Some(2),
            [b'\n', ..] => return Some(1),
            [b'\r'] => return None,
            _ => {}
        }
        if !worth_reading(input, seen, line, &desk.limits) {
            self.state = State::Head { seen: input.len(), line };
            return None;
        }
        if self.begun == 0 && input.len() < head::PREFACE.len() && head::PREFACE.starts_with(input)
        {
            return None;
        }
        if self.begun == 0 && input.starts_with(head::PREFACE) {
            self.state = State::Leaving;
            return None;
        }
        match head::read(desk, input) {
            HeadParse::Partial { line } => {
                self.state = State::Head { seen: input.len(), line };
                None
            }
            HeadParse::Foreign => {
                self.state = State::Leaving;
                None
            }
            HeadParse::Broken(problem, lane) => {
                self.give_up(desk, problem, lane);
                None
            }
            HeadParse::Order { mut order, used, piece, pass, forwarded } => {
                let (head, rest) = input.split_at(used);
                let client = desk.guards.client(self.peer, &forwarded);
                let counted = self.count(desk, client, pass.as_ref());
                let logged = desk.logged(head, client, pass.as_ref());
                if let (Some(piece), Ok(what), Expects::Nothing) =
                    (&piece, &order.what, order.expects)
                {
                    let (what, after) = (what.clone(), order.after);
                    let meaning = Meaning { what, after, pass, forwarded };
                    Repeat::remember(&mut desk.lanes[order.lane].repeat, head, piece, meaning);
                }
                if let Err(problem) = counted {
                    order.what = Err(problem);
                }
                self.begin(desk, order, RequestFacts { client, logged }, head, rest)
            }
        }
    }

    /// Starts a request with a parsed head: bytes consumed of `head` and `rest`. `None`: the other
    /// stack has to handle it, unchanged.
    fn begin<G: Guards>(
        &mut self,
        desk: &mut Desk<G>,
        order: LaneOrder,
        known: RequestFacts,
        head: &[u8],
        rest: &[u8],
    ) -> Option<usize> {
        self.begun = self.begun.wrapping_add(1);
        let LaneOrder { lane, what, framing, expects, after, word } = order;
        let RequestFacts { client, logged } = known;
        let came = Arrival { at_us: desk.now_us, logged };
        let HeadMeaning { order, largest } = match what {
            Ok(understood) => understood,
            Err(problem) => {
                // Whether a client that asked first now sends the body is unknown.
                let after = if expects == Expects::Continue { Persistence::Close } else { after };
                let body = Rest::of(framing, desk.limits.head_bytes);
                let refused = RefusedRequest { lane, came, after, framing, rest: body };
                self.refuse(desk, problem, refused, rest.len());
                return Some(head.len());
            }
        };
        let asking = PendingRequest { lane, order, client, after, came };
        if let Framing::Length(length) = framing
            && length <= rest.len() as u64
        {
            let length = length as usize;
            let (content, behind) = rest.split_at(length);
            let parts = (&head[word], content);
            self.charge_bytes(desk, length);
            match self.place(desk, asking, parts, !behind.is_empty()) {
                Placement::Done => {}
                Placement::Full(asking) => self.keep(desk, asking, parts, behind.len()),
                Placement::Elsewhere(..) => {
                    self.state = State::Leaving;
                    return None;
                }
            }
            return Some(head.len() + length);
        }
        if expects == Expects::Continue && rest.is_empty() {
            self.replies.next(&mut desk.out).extend_from_slice(answer::CONTINUE);
        }
        self.state = State::Body(Box::new(ReceivingBody {
            most: largest,
            asking,
            rest: Rest::of(framing, desk.limits.head_bytes),
            body: desk.spare.take(),
            charge: Charge::default(),
            framing,
        }));
        Some(head.len())
    }

    /// Handles a part of a body: bytes consumed.
    pub(super) fn body<G: Guards>(&mut self, desk: &mut Desk<G>, input: &[u8]) -> usize {
        let State::Body(mut receiving) = std::mem::replace(&mut self.state, State::IDLE) else {
            return 0;
        };
        let mut at = 0;
        while at < input.len() {
            let (used, data, end) = match receiving.rest.next(&input[at..]) {
                Ok(piece) => piece,
                Err(broken) => {
                    let problem = lost(broken, desk.limits.head_bytes);
                    self.give_up(desk, problem, Some(receiving.asking.lane));
                    return input.len();
                }
            };
            at += used;
            self.charge_bytes(desk, used);
            let room = if receiving.body.len() + data.len() > receiving.most {
                Err(body::too_large(receiving.most))
            } else {
                receiving.charge.raise(&desk.memory, receiving.body.len() + data.len())
            };
            if let Err(problem) = room {
                let ReceivingBody { asking, rest, framing, body, .. } = *receiving;
                let PendingRequest { lane, after, came, .. } = asking;
                desk.spare.give(body);
                let refused = RefusedRequest { lane, came, after, framing, rest };
                self.refuse(desk, problem, refused, input.len() - at);
                return at;
            }
            receiving.body.extend_from_slice(data);
            if end {
                let ReceivingBody { asking, body, charge, .. } = *receiving;
                let kept = KeptHead { asking, word: Vec::new(), body, _charge: charge };
                self.place_kept(desk, kept, at < input.len());
                return at;
            }
        }
        self.state = State::Body(receiving);
        at
    }

    /// Executes a completely buffered request, and keeps it if there is no room.
    pub(super) fn place_kept<G: Guards>(
        &mut self,
        desk: &mut Desk<G>,
        kept: KeptHead,
        follows: bool,
    ) {
        let KeptHead { asking, word, body, _charge } = kept;
        let after = asking.after;
        match self.place(desk, asking, (&word, &body), follows) {
            Placement::Done => desk.spare.give(body),
            Placement::Full(asking) => {
                self.state = State::Stalled(Box::new(KeptHead { asking, word, body, _charge }));
            }
            // Its bytes are gone, so the other stack cannot answer it.
            Placement::Elsewhere(asking, problem) => {
                desk.spare.give(body);
                let said = if desk.stopping && !follows { Persistence::Close } else { after };
                self.answer_problem(desk, asking, problem, said);
            }
        }
    }

    /// Handles a part of a refused body: bytes consumed.
    pub(super) fn skip<G: Guards>(&mut self, desk: &Desk<G>, input: &[u8]) -> usize {
        let State::Skip { rest, allowance } = &mut self.state else { return 0 };
        let next = rest.next(input);
        if let (Ok((used, ..)), Some(purse)) = (&next, self.purse) {
            desk.guards.charge(purse, *used, desk.now_us);
        }
        match next {
            Ok((used, _, true)) => {
                self.state = State::IDLE;
                used
            }
            Ok((used, _, false)) if used as u64 <= *allowance => {
                *allowance -= used as u64;
                used
            }
            // Its answer is sent; the rest cannot be understood.
            Ok(_) | Err(_) => {
                self.state = State::Ended;
                input.len()
            }
        }
    }
}

/// Whether an incomplete head, of which `seen` bytes were parsed in vain, is worth parsing again: a
/// client that sends it byte by byte must not cause quadratic work.
fn worth_reading(input: &[u8], seen: usize, line: bool, limits: &head::HeadLimits) -> bool {
    let new = &input[seen.saturating_sub(3)..];
    if line {
        let ends = |bytes: &[u8]| bytes.starts_with(b"\n\r\n") || bytes.starts_with(b"\n\n");
        return input.len() > limits.head_bytes || (0..new.len()).any(|at| ends(&new[at..]));
    }
    seen == 0 || new.contains(&b'\n') || input.len() > limits.url_bytes
}

/// The answer to a body with malformed chunks.
fn lost(broken: ChunkFault, head_bytes: usize) -> Box<Problem> {
    match broken {
        ChunkFault::Malformed => problem::BAD_REQUEST.because(MALFORMED_CHUNKS),
        ChunkFault::TooLong => problem::HEADERS_TOO_LARGE
            .because("chunk extensions and trailers are too long")
            .limit(head_bytes as u64),
    }
}
