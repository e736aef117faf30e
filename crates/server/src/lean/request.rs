//! From bytes to a whole request: a session in a head or a body.

use super::answer;
use super::chunked::Broken;
use super::desk::{Asked, Desk};
use super::head::{self, After, Expects, Framing, Order, Reading, Visit};
use super::logged::Logged;
use super::seam::Serves;
use super::session::Session;
use super::state::{Asking, Kept, Receiving, Refused, Rest, State};
use crate::http::body::{self, MALFORMED_CHUNKS};
use crate::http::body_memory::Charge;
use crate::wire::problem::{self, Problem};

impl<I: Serves> Session<I> {
    /// A head at the beginning of `input`, which is not empty: bytes used with its
    /// body as far as it is there, `None` if more is needed.
    pub(super) fn head(
        &mut self,
        desk: &mut Desk<I>,
        input: &[u8],
        seen: usize,
        line: bool,
    ) -> Option<usize> {
        if let Some((used, length)) = desk.repeat.find(input)
            && desk.repeat.pass.as_ref().is_some_and(|pass| desk.serving.holds(pass))
            && let Some(mut order) = repeated(desk, length)
        {
            if let Err(problem) = self.count(desk, &input[..used], desk.repeat.pass.as_ref()) {
                order.what = Err(problem);
            }
            let logged = self.logged(desk, &input[..used], desk.repeat.pass.as_ref());
            return Some(used + self.begin(desk, order, logged, &input[used..]));
        }
        if let Some((code_end, used)) = desk.visited.find(input)
            && desk.serving.serves_link(&input[head::CODE_AT..code_end])
        {
            let (head, rest) = input.split_at(used);
            return self.visit(desk, head, code_end, rest.is_empty());
        }
        // Line ends before a request mean nothing.
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
        match head::read(&mut desk.serving, &desk.limits, input) {
            Reading::Partial { line } => {
                self.state = State::Head { seen: input.len(), line };
                None
            }
            Reading::Foreign => {
                self.state = State::Leaving;
                None
            }
            Reading::Broken(problem) => {
                self.give_up(desk, &problem);
                None
            }
            Reading::Visit(Visit { code_end, used, after, told }) => {
                let (head, rest) = input.split_at(used);
                desk.visited.remember(&head[code_end..], after, &told);
                self.visit(desk, head, code_end, rest.is_empty())
            }
            Reading::Order { mut order, used, length_at, pass } => {
                let (head, rest) = input.split_at(used);
                let counted = self.count(desk, head, Some(&pass));
                let logged = self.logged(desk, head, Some(&pass));
                if let (Some(at), Ok(_), Expects::Nothing) = (length_at, &order.what, order.expects)
                {
                    desk.repeat.remember(head, at, order.media, order.after, pass);
                }
                if let Err(problem) = counted {
                    order.what = Err(problem);
                }
                Some(used + self.begin(desk, order, logged, rest))
            }
        }
    }

    /// Begins a request whose head is understood: bytes used of `rest`.
    fn begin(
        &mut self,
        desk: &mut Desk<I>,
        order: Order<I::Target>,
        logged: Option<Box<Logged>>,
        rest: &[u8],
    ) -> usize {
        self.begun = self.begun.wrapping_add(1);
        let Order { what, media, framing, expects, after } = order;
        let asked = Asked { at_us: desk.now_us, logged };
        let target = match what {
            Ok(target) => target,
            Err(problem) => {
                // Whether a client that asked first sends the body now, nobody can know.
                let after = if expects == Expects::Continue { After::Close } else { after };
                let body = Rest::of(framing, desk.limits.head_bytes);
                let refused = Refused { asked, after, framing, rest: body };
                self.refuse(desk, &problem, refused, rest.len());
                return 0;
            }
        };
        let asking = Asking { target, media, after, asked };
        if let Framing::Length(length) = framing
            && length <= rest.len() as u64
        {
            let length = length as usize;
            let (body, behind) = rest.split_at(length);
            self.charge_bytes(desk, length);
            if let Some(asking) = self.place(desk, asking, body, !behind.is_empty()) {
                self.keep(desk, asking, body, behind.len());
            }
            return length;
        }
        if expects == Expects::Continue && rest.is_empty() {
            self.replies.next(&mut desk.out).extend_from_slice(answer::CONTINUE);
        }
        self.state = State::Body(Box::new(Receiving {
            most: desk.serving.largest_body(media),
            asking,
            rest: Rest::of(framing, desk.limits.head_bytes),
            body: desk.spare.take(),
            charge: Charge::default(),
            framing,
        }));
        0
    }

    /// A part of a body: bytes used.
    pub(super) fn body(&mut self, desk: &mut Desk<I>, input: &[u8]) -> usize {
        let State::Body(mut receiving) = std::mem::replace(&mut self.state, State::IDLE) else {
            return 0;
        };
        let mut at = 0;
        while at < input.len() {
            let (used, data, end) = match receiving.rest.next(&input[at..]) {
                Ok(piece) => piece,
                Err(broken) => {
                    self.give_up(desk, &lost(broken, desk.limits.head_bytes));
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
                let Receiving { asking: Asking { asked, after, .. }, rest, framing, body, .. } =
                    *receiving;
                desk.spare.give(body);
                let refused = Refused { asked, after, framing, rest };
                self.refuse(desk, &problem, refused, input.len() - at);
                return at;
            }
            receiving.body.extend_from_slice(data);
            if end {
                let Receiving { asking, body, charge, .. } = *receiving;
                if let Some(asking) = self.place(desk, asking, &body, at < input.len()) {
                    self.state = State::Stalled(Box::new(Kept { asking, body, _charge: charge }));
                } else {
                    desk.spare.give(body);
                }
                return at;
            }
        }
        self.state = State::Body(receiving);
        at
    }

    /// A part of a refused body: bytes used.
    pub(super) fn skip(&mut self, desk: &Desk<I>, input: &[u8]) -> usize {
        let State::Skip { rest, allowance } = &mut self.state else { return 0 };
        let next = rest.next(input);
        if let (Ok((used, ..)), Some(purse)) = (&next, self.purse) {
            desk.serving.charge(purse, *used, desk.now_us);
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
            // Its answer is sent; nothing that follows can be understood.
            Ok(_) | Err(_) => {
                self.state = State::Ended;
                input.len()
            }
        }
    }
}

/// The request that a repeated head asks for.
fn repeated<I: Serves>(desk: &mut Desk<I>, length: u64) -> Option<Order<I::Target>> {
    let Desk { serving, repeat, .. } = desk;
    let (media, after, framing) = (repeat.media, repeat.after, Framing::Length(length));
    let what = serving.target(&repeat.target)?;
    let what = what.and_then(|target| head::fits(serving, media, framing).map(|()| target));
    Some(Order { what, media, framing, expects: Expects::Nothing, after })
}

/// Whether an incomplete head, of which `seen` bytes were read in vain, is worth
/// reading again: a client that sends it byte by byte must not cost its square.
fn worth_reading(input: &[u8], seen: usize, line: bool, limits: &head::Limits) -> bool {
    let new = &input[seen.saturating_sub(3)..];
    if line {
        let ends = |bytes: &[u8]| bytes.starts_with(b"\n\r\n") || bytes.starts_with(b"\n\n");
        return input.len() > limits.head_bytes || (0..new.len()).any(|at| ends(&new[at..]));
    }
    seen == 0 || new.contains(&b'\n') || input.len() > limits.url_bytes
}

/// The answer to a body whose chunks cannot be read.
fn lost(broken: Broken, head_bytes: usize) -> Box<Problem> {
    match broken {
        Broken::Malformed => problem::BAD_REQUEST.because(MALFORMED_CHUNKS),
        Broken::TooLong => problem::HEADERS_TOO_LARGE
            .because("extensions and trailers of the chunks are too long")
            .limit(head_bytes as u64),
    }
}
