//! One connection without its socket: bytes go in, answers and the next thing to
//! do come out. Every split of the same bytes gives the same requests in the same
//! order, and the same answers.

use super::answer;
use super::chunked::{Broken, Chunked};
use super::desk::{Answered, Asked, Charge, Desk};
use super::head::{self, After, Expects, Framing, Order, Reading};
use super::replies::Replies;
use super::seam::{Ingest, Taken};
use crate::http::problem::{self, Problem};
use crate::ingest::Media;

/// With so many bytes of answers at hand they are sent before more requests are looked at.
const OUT_BYTES: usize = 64 << 10;
/// Rest of a refused body that is read and thrown away so that the connection can go on.
const SKIP_BYTES: u64 = 2 << 20;

/// What a session wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// More bytes.
    More,
    /// To be called again once the answers so far are sent.
    Flush,
    /// To be called again when there may be room for the request it keeps.
    Stalled,
    /// To be called again when an answer may be settled; no bytes before that.
    Wait,
    /// To be handed over to the other stack with [`Session::into_rest`].
    Leave,
    /// To be ended once the answers are sent.
    End,
}

/// What a session waits for the client to do, for the timeouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// To begin a request.
    Idle,
    /// To complete a head.
    Head,
    /// To complete a body.
    Body,
    /// Nothing: the client waits for us.
    Ours,
}

/// One connection without its socket.
pub(crate) struct Session<I: Ingest> {
    state: State<I>,
    /// Bytes read and not used: a part of a head, or what follows a request that waits.
    left: Vec<u8>,
    replies: Replies<I::Ticket>,
    /// Requests begun, wrapping: tells a request from the one before it.
    begun: u32,
}

enum State<I: Ingest> {
    /// Between requests or in a head of which `seen` bytes were looked at, in vain.
    Head {
        seen: usize,
        line: bool,
    },
    Body(Box<Receiving<I>>),
    /// A refused body: so many more bytes of it may come.
    Skip {
        rest: Rest,
        allowance: u64,
    },
    /// A whole request that found no room.
    Stalled(Box<Kept<I>>),
    Leaving,
    Ended,
}

impl<I: Ingest> State<I> {
    /// Between requests.
    const IDLE: State<I> = State::Head { seen: 0, line: false };
}

/// A request as far as the head tells.
struct Asking<T> {
    target: T,
    media: Media,
    after: After,
    asked: Asked,
}

struct Receiving<I: Ingest> {
    asking: Asking<I::Target>,
    rest: Rest,
    body: Vec<u8>,
    charge: Charge,
    most: usize,
    /// What the head announced.
    framing: Framing,
}

struct Kept<I: Ingest> {
    asking: Asking<I::Target>,
    body: Vec<u8>,
    _charge: Charge,
}

/// A request that is not taken, whatever else its body holds.
struct Refused {
    asked: Asked,
    after: After,
    framing: Framing,
    rest: Rest,
}

/// What of a body has not come.
enum Rest {
    Length(u64),
    Chunked(Chunked),
}

impl Rest {
    fn of(framing: Framing, head_bytes: usize) -> Rest {
        match framing {
            Framing::Length(length) => Rest::Length(length),
            Framing::Chunked => Rest::Chunked(Chunked::new(head_bytes)),
        }
    }

    /// The next piece of the body in `input`: bytes used, data, whether it is the last.
    fn next<'a>(&mut self, input: &'a [u8]) -> Result<(usize, &'a [u8], bool), Broken> {
        match self {
            Rest::Length(left) => {
                let used = usize::try_from(*left).map_or(input.len(), |l| l.min(input.len()));
                *left -= used as u64;
                Ok((used, &input[..used], *left == 0))
            }
            Rest::Chunked(chunked) => chunked.next(input).map(|p| (p.used, p.data, p.end)),
        }
    }
}

impl<I: Ingest> Session<I> {
    /// A connection on which nothing has come.
    pub(crate) fn new() -> Session<I> {
        Session { state: State::IDLE, left: Vec::new(), replies: Replies::new(), begun: 0 }
    }

    /// Takes bytes that were read. Only after [`Turn::More`].
    pub(crate) fn receive(&mut self, desk: &mut Desk<I>, input: &[u8]) -> Turn {
        if !self.left.is_empty() {
            self.left.extend_from_slice(input);
            return self.resume(desk);
        }
        let (used, turn) = self.advance(desk, input);
        if used < input.len() {
            self.left = desk.spare.take();
            self.left.extend_from_slice(&input[used..]);
        }
        turn
    }

    /// Goes on with what was read before.
    pub(crate) fn resume(&mut self, desk: &mut Desk<I>) -> Turn {
        let mut left = std::mem::take(&mut self.left);
        let (used, turn) = self.advance(desk, &left);
        if used == left.len() {
            desk.spare.give(left);
        } else {
            left.drain(..used);
            self.left = left;
        }
        turn
    }

    /// The client will send no more. Only after [`Turn::More`].
    pub(crate) fn end_of_input(&mut self, desk: &mut Desk<I>) -> Turn {
        if matches!(self.state, State::Body(_)) {
            let problem = problem::BAD_REQUEST.because("the body broke off");
            self.give_up(desk, &problem);
        } else if !self.left.is_empty() {
            let left = std::mem::take(&mut self.left);
            if let Reading::Broken(problem) = head::read(&mut desk.ingest, &desk.limits, &left) {
                self.give_up(desk, &problem);
            }
        }
        self.state = State::Ended;
        self.turn()
    }

    /// The client took too long: says so if a request has begun, and ends.
    pub(crate) fn expire(&mut self, desk: &mut Desk<I>) -> Turn {
        let problem = match self.phase() {
            Phase::Head => Some(problem::REQUEST_TIMEOUT.because("the head did not come in time")),
            Phase::Body if matches!(self.state, State::Body(_)) => {
                Some(problem::BODY_TIMEOUT.because("the body did not come in time"))
            }
            _ => None,
        };
        if let Some(problem) = problem {
            self.give_up(desk, &problem);
        }
        self.state = State::Ended;
        self.turn()
    }

    /// Hands out answers that are settled, and goes on.
    pub(crate) fn settle(&mut self, desk: &mut Desk<I>) -> Turn {
        let quiet = matches!(self.state, State::Head { .. }) && self.left.is_empty();
        let last = if desk.stopping && quiet { After::Close } else { After::Keep };
        self.replies.settle(desk, last);
        if last == After::Close && self.replies.is_empty() {
            self.state = State::Ended;
        }
        self.resume(desk)
    }

    /// Tries again to place the request that found no room. What follows it has to wait.
    pub(crate) fn retry(&mut self, desk: &mut Desk<I>) -> Turn {
        match std::mem::replace(&mut self.state, State::IDLE) {
            State::Stalled(kept) => {
                let follows = !self.left.is_empty();
                if let Some(asking) = self.place(desk, kept.asking, &kept.body, follows) {
                    self.state = State::Stalled(Box::new(Kept { asking, ..*kept }));
                    return Turn::Stalled;
                }
                desk.spare.give(kept.body);
            }
            other => self.state = other,
        }
        Turn::Flush
    }

    /// Whether answers wait to be settled.
    pub(crate) fn waits(&self) -> bool {
        !self.replies.is_empty()
    }

    /// What the client is expected to do.
    pub(crate) fn phase(&self) -> Phase {
        match &self.state {
            _ if self.waits() => Phase::Ours,
            State::Head { .. } if self.left.is_empty() => Phase::Idle,
            State::Head { .. } => Phase::Head,
            State::Body(_) | State::Skip { .. } => Phase::Body,
            State::Stalled(_) | State::Leaving | State::Ended => Phase::Ours,
        }
    }

    /// Changes with every request.
    pub(crate) fn begun(&self) -> u32 {
        self.begun
    }

    /// The bytes that were read and not used.
    pub(crate) fn into_rest(self) -> Vec<u8> {
        self.left
    }

    fn turn(&self) -> Turn {
        match &self.state {
            State::Stalled(_) => Turn::Stalled,
            State::Leaving if self.replies.is_empty() => Turn::Leave,
            State::Ended if self.replies.is_empty() => Turn::End,
            State::Leaving | State::Ended => Turn::Wait,
            _ if self.replies.is_full() => Turn::Wait,
            _ => Turn::More,
        }
    }

    /// Works through `input`: bytes used, and what is wanted next.
    fn advance(&mut self, desk: &mut Desk<I>, input: &[u8]) -> (usize, Turn) {
        let mut used = 0;
        loop {
            if self.replies.is_full() {
                break;
            }
            let rest = &input[used..];
            let step = match &mut self.state {
                State::Head { .. } if rest.is_empty() => {
                    // Nothing is asked for any more, and nothing will be.
                    if desk.stopping && self.replies.is_empty() {
                        self.state = State::Ended;
                    }
                    None
                }
                State::Head { .. } if desk.out.len() >= OUT_BYTES => return (used, Turn::Flush),
                State::Head { seen, line } => {
                    let (seen, line) = (*seen, *line);
                    self.head(desk, rest, seen, line)
                }
                State::Body(_) | State::Skip { .. } if rest.is_empty() => None,
                State::Body(_) => Some(self.body(desk, rest)),
                State::Skip { .. } => Some(self.skip(rest)),
                State::Stalled(_) | State::Leaving | State::Ended => None,
            };
            match step {
                Some(step) => used += step,
                None => break,
            }
        }
        if matches!(self.state, State::Ended) {
            used = input.len();
        }
        (used, self.turn())
    }

    /// A head at the beginning of `input`, which is not empty: bytes used with its
    /// body as far as it is there, `None` if more is needed.
    fn head(&mut self, desk: &mut Desk<I>, input: &[u8], seen: usize, line: bool) -> Option<usize> {
        if let Some((used, length)) = desk.repeat.find(input)
            && let Some(order) = repeated(desk, length)
        {
            return Some(used + self.begin(desk, order, &input[..used], &input[used..]));
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
        match head::read(&mut desk.ingest, &desk.limits, input) {
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
            Reading::Order { order, used, length_at } => {
                let (head, rest) = input.split_at(used);
                if let (Some(at), Ok(_), Expects::Nothing) = (length_at, &order.what, order.expects)
                {
                    desk.repeat.remember(head, at, order.media, order.after);
                }
                Some(used + self.begin(desk, order, head, rest))
            }
        }
    }

    /// Begins a request whose head is understood: bytes used of `rest`.
    fn begin(
        &mut self,
        desk: &mut Desk<I>,
        order: Order<I::Target>,
        head: &[u8],
        rest: &[u8],
    ) -> usize {
        self.begun = self.begun.wrapping_add(1);
        let Order { what, media, framing, expects, after } = order;
        let asked = Asked { at_us: desk.now_us, path: path_of(desk, head) };
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
            if let Some(asking) = self.place(desk, asking, body, !behind.is_empty()) {
                self.keep(desk, asking, body, behind.len());
            }
            return length;
        }
        if expects == Expects::Continue && rest.is_empty() {
            self.replies.next(&mut desk.out).extend_from_slice(answer::CONTINUE);
        }
        self.state = State::Body(Box::new(Receiving {
            most: desk.ingest.largest_body(media),
            asking,
            rest: Rest::of(framing, desk.limits.head_bytes),
            body: desk.spare.take(),
            charge: Charge::default(),
            framing,
        }));
        0
    }

    /// A part of a body: bytes used.
    fn body(&mut self, desk: &mut Desk<I>, input: &[u8]) -> usize {
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
            let room = if receiving.body.len() + data.len() > receiving.most {
                Err(head::body_too_large(receiving.most))
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
    fn skip(&mut self, input: &[u8]) -> usize {
        let State::Skip { rest, allowance } = &mut self.state else { return 0 };
        match rest.next(input) {
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

    /// Hands a whole request over and answers it. Gives it back if there is no room.
    /// `follows`: whether bytes behind it have been read.
    fn place(
        &mut self,
        desk: &mut Desk<I>,
        asking: Asking<I::Target>,
        body: &[u8],
        follows: bool,
    ) -> Option<Asking<I::Target>> {
        // Whoever waits for the same room was here before.
        if desk.is_full(&asking.target) {
            return Some(asking);
        }
        let taken = desk.ingest.take(&asking.target, asking.media, body);
        let Asking { target, media, after, asked } = asking;
        let said = if desk.stopping && !follows { After::Close } else { after };
        let ends = match taken {
            Taken::Accepted => {
                self.replies.next(&mut desk.out).extend_from_slice(answer::accepted(said));
                if asked.at_us == desk.now_us && asked.path.is_none() {
                    desk.tally.prompt += 1;
                } else {
                    desk.tally.others.push(Answered { status: answer::ACCEPTED_STATUS, asked });
                }
                said
            }
            Taken::Pending(ticket) => {
                self.replies.wait_for(ticket, after, asked);
                after
            }
            Taken::Refused(problem) => {
                answer::push_problem(self.replies.next(&mut desk.out), &problem, said);
                desk.tally.others.push(Answered { status: problem.kind.status, asked });
                said
            }
            Taken::Full => {
                desk.full.push(target.clone());
                return Some(Asking { target, media, after, asked });
            }
        };
        self.state = if ends == After::Close { State::Ended } else { State::IDLE };
        None
    }

    /// Keeps a request that found no room, of which only `body` is here and `behind` bytes follow.
    fn keep(&mut self, desk: &mut Desk<I>, asking: Asking<I::Target>, body: &[u8], behind: usize) {
        let mut charge = Charge::default();
        if let Err(problem) = charge.raise(&desk.memory, body.len()) {
            let Asking { asked, after, .. } = asking;
            let framing = Framing::Length(0);
            let refused = Refused { asked, after, framing, rest: Rest::Length(0) };
            return self.refuse(desk, &problem, refused, behind);
        }
        let mut kept = desk.spare.take();
        kept.extend_from_slice(body);
        self.state = State::Stalled(Box::new(Kept { asking, body: kept, _charge: charge }));
    }

    /// Answers a request with a problem and sees to the rest of its body, of which
    /// `here` bytes, perhaps with requests behind it, have been read.
    fn refuse(&mut self, desk: &mut Desk<I>, problem: &Problem, refused: Refused, here: usize) {
        let Refused { asked, after, framing, rest } = refused;
        let (skippable, last) = match (framing, &rest) {
            (Framing::Length(length), Rest::Length(left)) => {
                (length <= SKIP_BYTES, here as u64 <= *left)
            }
            _ => (true, here == 0),
        };
        let closes = after == After::Close || !skippable || (desk.stopping && last);
        let said = if closes { After::Close } else { After::Keep };
        answer::push_problem(self.replies.next(&mut desk.out), problem, said);
        desk.tally.others.push(Answered { status: problem.kind.status, asked });
        self.state = match (said, rest) {
            (After::Close, _) => State::Ended,
            (After::Keep, Rest::Length(0)) => State::IDLE,
            (After::Keep, rest) => State::Skip { rest, allowance: SKIP_BYTES },
        };
    }

    /// Answers with a problem after which nothing can be understood.
    fn give_up(&mut self, desk: &mut Desk<I>, problem: &Problem) {
        answer::push_problem(self.replies.next(&mut desk.out), problem, After::Close);
        let asked = Asked { at_us: desk.now_us, path: None };
        desk.tally.others.push(Answered { status: problem.kind.status, asked });
        self.state = State::Ended;
    }
}

/// The request that a repeated head asks for.
fn repeated<I: Ingest>(desk: &mut Desk<I>, length: u64) -> Option<Order<I::Target>> {
    let Desk { ingest, repeat, .. } = desk;
    let (media, after, framing) = (repeat.media, repeat.after, Framing::Length(length));
    let what = ingest.target(&repeat.target)?;
    let what = what.and_then(|target| head::fits(ingest, media, framing).map(|()| target));
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

/// The path of a request, if requests are logged.
fn path_of<I: Ingest>(desk: &Desk<I>, head: &[u8]) -> Option<Box<str>> {
    if !desk.tally.paths {
        return None;
    }
    let target = head.split(|&b| b == b' ').nth(1)?;
    let path = target.split(|&b| b == b'?').next()?;
    Some(String::from_utf8_lossy(path).into())
}

/// The answer to a body whose chunks cannot be read.
fn lost(broken: Broken, head_bytes: usize) -> Box<Problem> {
    match broken {
        Broken::Malformed => problem::BAD_REQUEST.because("the chunks of the body are malformed"),
        Broken::TooLong => problem::HEADERS_TOO_LARGE
            .because("extensions and trailers of the chunks are too long")
            .limit(head_bytes as u64),
    }
}
