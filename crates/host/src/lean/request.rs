//! From bytes to a complete request: a session in a head or a body.

use super::answer;
use super::head::{
    self, Completeness, Expects, Framing, HeadMeaning, HeadParse, ParsedRequest, Persistence,
};
use super::logged::AccessLogEntry;
use super::loop_state::{Arrival, LoopState};
use super::placement::Placement;
use super::repeat::{Meaning, Repeat};
use super::seam::Guards;
use super::session::Session;
use super::state::{KeptHead, PendingRequest, ReceivingBody, RefusedRequest, Rest, State};
use crate::access::Principal;
use crate::http::body::{self, MALFORMED_CHUNKS};
use crate::http::body_memory::Charge;
use crate::http::chunked::ChunkFault;
use crate::protocol::{FirstBytes, first_bytes};
use crate::wire::problem::{self, Problem};
use std::net::IpAddr;
use std::sync::Arc;

/// What is known of a request apart from its head and its parameters.
struct RequestFacts {
    client: Option<IpAddr>,
    logged: Option<Box<AccessLogEntry>>,
    /// Of a request that is read as a whole.
    principal: Option<Arc<Principal>>,
}

impl Session {
    /// Handles a head at the start of `input`, which is not empty: bytes consumed, including the
    /// available part of its body; `None` if more input is needed.
    pub(super) fn head<G: Guards>(
        &mut self,
        shared: &mut LoopState<G>,
        input: &[u8],
        seen: usize,
        line: bool,
    ) -> Option<usize> {
        if let Some((path_index, again)) = shared.again(input)
            && let Some(repeat) = &shared.paths[path_index].repeat
        {
            let (head, rest) = input.split_at(again.used);
            let Meaning { what, after, pass, forwarded } = &repeat.meaning;
            let framing = Framing::Length(again.length);
            if let Some(state) = self.unreadable(path_index, what, framing, again.used, rest.len())
            {
                self.state = state;
                return None;
            }
            let client = shared.guards.client(self.peer, forwarded);
            let counted = self.count(shared, path_index, client, pass.as_ref());
            let what =
                counted.and_then(|()| head::fits(what.largest, framing)).map(|()| what.clone());
            let logged = shared.logged(head, client, pass.as_ref());
            let principal = caller_of_whole(shared, &what, pass.as_ref());
            let (expects, after) = (Expects::Nothing, *after);
            let request =
                ParsedRequest { path_index, what, framing, expects, after, word: again.word };
            let facts = RequestFacts { client, logged, principal };
            return self.begin(shared, request, facts, input, again.used);
        }
        // Line ends before a request are ignored.
        match input {
            [b'\r', b'\n', ..] => return Some(2),
            [b'\n', ..] => return Some(1),
            [b'\r'] => return None,
            _ => {}
        }
        let said = match self.begun {
            0 => first_bytes(&shared.magics, input),
            _ => FirstBytes::Http,
        };
        match said {
            FirstBytes::Http => {}
            FirstBytes::Undecided => return None,
            FirstBytes::Protocol(_) => {
                self.state = State::Leaving;
                return None;
            }
        }
        if !worth_reading(input, seen, line, &shared.limits) {
            self.state = State::Head { seen: input.len(), line };
            return None;
        }
        self.new_head(shared, input, 0)
    }

    /// The same for a head that no path has seen before, or none before this one: it goes to the
    /// first that claims it from there on.
    fn new_head<G: Guards>(
        &mut self,
        shared: &mut LoopState<G>,
        input: &[u8],
        first_path: usize,
    ) -> Option<usize> {
        match head::read(shared, input, first_path) {
            HeadParse::Partial { line } => {
                self.state = State::Head { seen: input.len(), line };
                None
            }
            HeadParse::Foreign => {
                self.state = State::Leaving;
                None
            }
            HeadParse::Broken(problem, path_index) => {
                self.give_up(shared, problem, path_index);
                None
            }
            HeadParse::Whole { mut request, used, piece, pass, forwarded } => {
                let (head, rest) = input.split_at(used);
                let ParsedRequest { path_index, what, framing, .. } = &request;
                if let Ok(what) = what
                    && let Some(state) =
                        self.unreadable(*path_index, what, *framing, used, rest.len())
                {
                    self.state = state;
                    return None;
                }
                let client = shared.guards.client(self.peer, &forwarded);
                let counted = self.count(shared, request.path_index, client, pass.as_ref());
                let logged = shared.logged(head, client, pass.as_ref());
                let principal = caller_of_whole(shared, &request.what, pass.as_ref());
                if let (Some(piece), Ok(what), Expects::Nothing) =
                    (&piece, &request.what, request.expects)
                {
                    let (what, after) = (what.clone(), request.after);
                    let meaning = Meaning { what, after, pass, forwarded };
                    Repeat::remember(
                        &mut shared.paths[request.path_index].repeat,
                        head,
                        piece,
                        meaning,
                    );
                }
                if let Err(problem) = counted {
                    request.what = Err(problem);
                }
                let facts = RequestFacts { client, logged, principal };
                self.begin(shared, request, facts, input, used)
            }
        }
    }

    /// The state in which a request that is read as a whole is left, if it cannot be read here and
    /// now: it waits for more bytes or for answers, or goes to the other stack. Nothing of it is
    /// counted yet.
    fn unreadable(
        &self,
        path_index: usize,
        what: &HeadMeaning,
        framing: Framing,
        head_bytes: usize,
        here: usize,
    ) -> Option<State> {
        let Framing::Length(length) = framing else { return None };
        if what.completeness == Completeness::InParts {
            return None;
        }
        if self.handed_in || length > what.largest as u64 {
            return Some(State::Leaving);
        }
        if length > here as u64 {
            return Some(State::Whole { needs: head_bytes + length as usize, path_index });
        }
        let is_behind = what.completeness == Completeness::WholeBehind && self.waits();
        is_behind.then_some(State::Behind)
    }

    /// Starts a request whose head is the first `used` bytes of `input`: bytes consumed. `None`:
    /// the other stack has to handle it, unchanged.
    fn begin<G: Guards>(
        &mut self,
        shared: &mut LoopState<G>,
        request: ParsedRequest,
        known: RequestFacts,
        input: &[u8],
        used: usize,
    ) -> Option<usize> {
        let (head, rest) = input.split_at(used);
        self.begun = self.begun.wrapping_add(1);
        let is_counted = std::mem::take(&mut self.is_counted);
        let ParsedRequest { path_index, what, framing, expects, after, word } = request;
        let RequestFacts { client, logged, principal } = known;
        let came = Arrival { at_us: shared.now_us, logged };
        let HeadMeaning { params, largest, completeness } = match what {
            Ok(understood) => understood,
            Err(problem) => {
                // Whether a client that asked first now sends the body is unknown.
                let after = if expects == Expects::Continue { Persistence::Close } else { after };
                let body = Rest::of(framing, shared.limits.head_bytes);
                let refused = RefusedRequest { path_index, came, after, framing, rest: body };
                self.refuse(shared, problem, refused, rest.len());
                return Some(head.len());
            }
        };
        let asking = PendingRequest { path_index, params, principal, client, after, came };
        if let Framing::Length(length) = framing
            && length <= rest.len() as u64
        {
            let length = length as usize;
            let (content, behind) = rest.split_at(length);
            let word = &head[word];
            match self.place(shared, asking, word, content, !behind.is_empty()) {
                Placement::Done => {}
                Placement::Full(asking) => self.keep(shared, asking, word, content, behind.len()),
                Placement::Later => {
                    (self.state, self.is_counted) = (State::Later, is_counted);
                    return None;
                }
                Placement::Elsewhere(..) => {
                    self.is_counted = is_counted;
                    return self.new_head(shared, input, path_index + 1);
                }
            }
            self.charge_bytes(shared, length);
            self.executed += u32::from(completeness != Completeness::InParts);
            return Some(head.len() + length);
        }
        if expects == Expects::Continue && rest.is_empty() {
            self.replies.next(&mut shared.out).extend_from_slice(answer::CONTINUE);
        }
        self.state = State::Body(Box::new(ReceivingBody {
            most: largest,
            asking,
            rest: Rest::of(framing, shared.limits.head_bytes),
            body: shared.spare.take(),
            charge: Charge::default(),
            framing,
        }));
        Some(head.len())
    }

    /// Handles a part of a body: bytes consumed.
    pub(super) fn body<G: Guards>(&mut self, shared: &mut LoopState<G>, input: &[u8]) -> usize {
        let State::Body(mut receiving) = std::mem::replace(&mut self.state, State::IDLE) else {
            return 0;
        };
        let mut at = 0;
        while at < input.len() {
            let (used, data, end) = match receiving.rest.next(&input[at..]) {
                Ok(piece) => piece,
                Err(broken) => {
                    let problem = lost(broken, shared.limits.head_bytes);
                    self.give_up(shared, problem, Some(receiving.asking.path_index));
                    return input.len();
                }
            };
            at += used;
            self.charge_bytes(shared, used);
            let room = if receiving.body.len() + data.len() > receiving.most {
                Err(body::too_large(receiving.most))
            } else {
                receiving.charge.raise(&shared.memory, receiving.body.len() + data.len())
            };
            if let Err(problem) = room {
                let ReceivingBody { asking, rest, framing, body, .. } = *receiving;
                let PendingRequest { path_index, after, came, .. } = asking;
                shared.spare.give(body);
                let refused = RefusedRequest { path_index, came, after, framing, rest };
                self.refuse(shared, problem, refused, input.len() - at);
                return at;
            }
            receiving.body.extend_from_slice(data);
            if end {
                let ReceivingBody { asking, body, charge, .. } = *receiving;
                let kept = KeptHead { asking, word: Vec::new(), body, _charge: charge };
                self.place_kept(shared, kept, at < input.len());
                return at;
            }
        }
        self.state = State::Body(receiving);
        at
    }

    /// Executes a completely buffered request, and keeps it if there is no room.
    pub(super) fn place_kept<G: Guards>(
        &mut self,
        shared: &mut LoopState<G>,
        kept: KeptHead,
        follows: bool,
    ) {
        let KeptHead { asking, word, body, _charge } = kept;
        let after = asking.after;
        match self.place(shared, asking, &word, &body, follows) {
            Placement::Done => shared.spare.give(body),
            Placement::Full(asking) => {
                self.state = State::Stalled(Box::new(KeptHead { asking, word, body, _charge }));
            }
            // Only what is read as a whole is put off.
            Placement::Later => unreachable!("its bytes are gone"),
            // Its bytes are gone, so the other stack cannot answer it.
            Placement::Elsewhere(asking, problem) => {
                shared.spare.give(body);
                let said = if shared.stopping && !follows { Persistence::Close } else { after };
                self.answer_problem(shared, asking, problem, said);
            }
        }
    }

    /// Handles a part of a refused body: bytes consumed.
    pub(super) fn skip<G: Guards>(&mut self, shared: &LoopState<G>, input: &[u8]) -> usize {
        let State::Skip { rest, allowance } = &mut self.state else { return 0 };
        let next = rest.next(input);
        if let (Ok((used, ..)), Some(quota_keys)) = (&next, self.quota_keys) {
            shared.guards.charge(quota_keys, *used, shared.now_us);
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

/// The caller of a request, if it is read as a whole.
fn caller_of_whole<G: Guards>(
    shared: &LoopState<G>,
    what: &Result<HeadMeaning, Box<Problem>>,
    pass: Option<&G::Pass>,
) -> Option<Arc<Principal>> {
    let is_whole = matches!(what, Ok(what) if what.completeness != Completeness::InParts);
    pass.filter(|_| is_whole).and_then(|pass| shared.guards.principal(pass))
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
