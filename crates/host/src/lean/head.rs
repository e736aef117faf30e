//! Parses the head of a request: which fast path claims it, how its body is framed, and what is
//! wrong with it. A head that two readers could interpret differently is refused and the connection
//! closed.

use super::loop_state::LoopState;
use super::repeat::Piece;
use super::seam::{Credentials, Guards};
use crate::fast::{AnyParams, Claim, Head, Headers, PipelineOrder, Shape, Word};
use crate::http::body;
use crate::http::framing::length;
use crate::http::head_rules::{self, HeadAmbiguity, HeadRules};
use crate::wire::problem::{self, Problem};
use httparse::{EMPTY_HEADER, Error, Header, Status};
use hyper::Version;
use std::mem::MaybeUninit;
use std::ops::Range;

/// The constant length of a request line, beyond its target: `POST  HTTP/1.1` and the line end.
const LINE_EXTRA_BYTES: usize = 16;
/// The first line of HTTP/2, which is not a request; the other stack handles it.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";
/// Headers parsed without an allocation.
const HEADERS_ON_STACK: usize = 64;

/// Limits of a head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadLimits {
    /// Most headers.
    pub(crate) headers: usize,
    /// Longest head, in bytes.
    pub(crate) head_bytes: usize,
    /// Longest path and query, in bytes.
    pub(crate) url_bytes: usize,
    /// Whether requests that belong to a trace go to the other stack, which records traces.
    pub(crate) traced: bool,
}

/// How a body is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Content of this length, in bytes.
    Length(u64),
    Chunked,
}

/// Whether the client waits for `100 Continue` before it sends the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expects {
    Nothing,
    Continue,
}

/// Whether a connection stays open after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persistence {
    Keep,
    Close,
}

/// How a request is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completeness {
    /// Its head by itself, then its body as it comes.
    InParts,
    /// All of it at once ([`Shape::Whole`]).
    Whole,
    /// The same, once all requests before it are answered.
    WholeBehind,
}

/// What a path understood of a head.
#[derive(Clone)]
pub(crate) struct HeadMeaning {
    pub(crate) params: AnyParams,
    /// The largest content it accepts, in bytes.
    pub(crate) largest: usize,
    pub(crate) completeness: Completeness,
}

/// A request with a parsed head.
pub(crate) struct ParsedRequest {
    /// The index of its fast path.
    pub(crate) path_index: usize,
    /// Its parameters, or why it is refused.
    pub(crate) what: Result<HeadMeaning, Box<Problem>>,
    pub(crate) framing: Framing,
    pub(crate) expects: Expects,
    pub(crate) after: Persistence,
    /// Position of the word in the head; empty if none varies.
    pub(crate) word: Range<usize>,
}

/// The result of parsing the start of a request.
pub(crate) enum HeadParse<P> {
    /// An incomplete head. Whether its first line is complete and claimed.
    Partial { line: bool },
    /// Not claimed: for the other stack, untouched.
    Foreign,
    /// A whole head.
    Whole {
        request: ParsedRequest,
        /// Its length in bytes.
        used: usize,
        /// The part that may vary when the head is repeated; `None`: do not remember it.
        piece: Option<Piece>,
        /// The pass of its caller; `None`: public.
        pass: Option<P>,
        /// All values of `X-Forwarded-For`, joined.
        forwarded: Vec<u8>,
    },
    /// Malformed: answer and close. The index of the path that claimed it, if known.
    Broken(Box<Problem>, Option<usize>),
}

/// Parses a head at the start of `input`, which is not empty and does not start with a line end,
/// for one of the paths from this one on.
pub(crate) fn read<G: Guards>(
    shared: &mut LoopState<G>,
    input: &[u8],
    first_path: usize,
) -> HeadParse<G::Pass> {
    let limits = shared.limits;
    if let Some(reading) = overlong_line(&limits, input) {
        return reading;
    }
    let mut stack = [const { MaybeUninit::uninit() }; HEADERS_ON_STACK];
    let mut heap = Vec::new();
    let headers = if limits.headers <= HEADERS_ON_STACK {
        &mut stack[..limits.headers]
    } else {
        heap.resize(limits.headers, MaybeUninit::new(EMPTY_HEADER));
        &mut heap[..]
    };
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(input, headers) {
        Ok(Status::Complete(used)) => {
            if used > limits.head_bytes {
                return HeadParse::Broken(head_too_long(&limits), None);
            }
            if limits.traced && is_traced(request.headers) {
                return HeadParse::Foreign;
            }
            let Some(line) = Line::of(&request) else { return HeadParse::Foreign };
            let mut first = first_path;
            while let Some((path_index, claim)) = claim(shared, line, first) {
                let parsed = ParsedHead { line, headers: request.headers, input, used };
                if let Some(read) = judge(shared, path_index, claim, parsed) {
                    return read;
                }
                first = path_index + 1;
            }
            HeadParse::Foreign
        }
        Ok(Status::Partial) => match first_line(shared, input) {
            FirstLine::Ours(shape) if input.len() > limits.head_bytes => {
                broken(shape, head_too_long(&limits))
            }
            FirstLine::Ours(_) => HeadParse::Partial { line: true },
            FirstLine::Foreign => HeadParse::Foreign,
            FirstLine::Incomplete | FirstLine::Broken => HeadParse::Partial { line: false },
        },
        Err(error) => match first_line(shared, input) {
            FirstLine::Foreign => HeadParse::Foreign,
            FirstLine::Ours(shape) => broken(shape, unreadable(error, &limits)),
            _ => HeadParse::Broken(unreadable(error, &limits), None),
        },
    }
}

/// Whether a request names the trace it belongs to.
fn is_traced(headers: &[Header<'_>]) -> bool {
    headers.iter().any(|header| header.name.eq_ignore_ascii_case("traceparent"))
}

/// A first line that exceeds the limit: refused if it could be claimed, otherwise left to the other
/// stack.
fn overlong_line<P>(limits: &HeadLimits, input: &[u8]) -> Option<HeadParse<P>> {
    let most = limits.url_bytes + LINE_EXTRA_BYTES;
    if input.len() <= most || input[..=most].contains(&b'\n') {
        return None;
    }
    if !input.starts_with(b"POST ") {
        return Some(HeadParse::Foreign);
    }
    let problem = problem::URL_TOO_LONG
        .because(format!("the request line is longer than {most} bytes"))
        .limit(limits.url_bytes as u64);
    Some(HeadParse::Broken(problem, None))
}

/// The verdict on a first line alone.
enum FirstLine {
    Incomplete,
    /// Claimed, with this shape.
    Ours(Shape),
    Foreign,
    Broken,
}

fn first_line<G: Guards>(shared: &mut LoopState<G>, input: &[u8]) -> FirstLine {
    let Some(end) = input.iter().position(|&b| b == b'\n') else { return FirstLine::Incomplete };
    let mut request = httparse::Request::new(&mut []);
    match request.parse(&input[..=end]) {
        Ok(Status::Partial) => match Line::of(&request).and_then(|line| claim(shared, line, 0)) {
            Some((_, claim)) => FirstLine::Ours(claim.shape),
            None => FirstLine::Foreign,
        },
        _ => FirstLine::Broken,
    }
}

/// A first line of HTTP/1.1.
#[derive(Clone, Copy)]
struct Line<'a> {
    method: &'a str,
    target: &'a str,
}

impl<'a> Line<'a> {
    /// The parts of a request line; `None`: it is of another version.
    fn of(request: &httparse::Request<'_, 'a>) -> Option<Line<'a>> {
        match (request.method, request.path, request.version) {
            (Some(method), Some(target), Some(1)) => Some(Line { method, target }),
            _ => None,
        }
    }
}

/// The index of the first path from `first` on that claims a first line, and its claim.
fn claim<G: Guards>(
    shared: &mut LoopState<G>,
    line: Line<'_>,
    first: usize,
) -> Option<(usize, Claim)> {
    let paths = shared.paths.iter_mut().enumerate().skip(first);
    let mut claims =
        paths.filter_map(|(at, served)| Some((at, served.path.claim(line.method, line.target)?)));
    claims.next()
}

/// The headers that matter here.
#[derive(Default)]
struct Fields<'a> {
    rules: HeadRules<'a>,
    length: Option<&'a [u8]>,
    lengths: usize,
    close: bool,
    /// Whether there is an `Expect`.
    expects: bool,
    upgrade: bool,
    /// Whether there is a header that only the other stack understands: from a node, or from a
    /// client that made a change on another node.
    is_foreign: bool,
    /// Whether the client names the history that it knows.
    names_history: bool,
    credentials: Credentials<'a>,
    /// Whether credentials are repeated.
    ambiguous: bool,
    /// All values of `X-Forwarded-For`, joined.
    forwarded: Vec<u8>,
}

impl<'a> Fields<'a> {
    fn of(headers: &[Header<'a>]) -> Fields<'a> {
        let mut fields = Fields::default();
        for header in headers {
            fields.note(header.name, header.value.trim_ascii());
        }
        fields
    }

    fn note(&mut self, name: &str, value: &'a [u8]) {
        self.rules.note(name, value);
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match name.len() {
            6 if is("expect") => self.expects = true,
            6 if is("origin") => self.credentials.of_a_page = true,
            7 if is("upgrade") => self.upgrade = true,
            9 if is("x-api-key") => {
                self.ambiguous |= self.credentials.api_key.replace(value).is_some();
            }
            10 if is("connection") => {
                let mut options = value.split(|&b| b == b',');
                self.close |= options.any(|o| o.trim_ascii().eq_ignore_ascii_case(b"close"));
            }
            13 if is("authorization") => {
                self.ambiguous |= self.credentials.authorization.replace(value).is_some();
            }
            14 if is("content-length") => {
                self.lengths += 1;
                self.length = Some(value);
            }
            15 if is("wellspring-node") => self.is_foreign = true,
            18 if is("wellspring-history") => self.names_history = true,
            30 if is("wellspring-min-system-position") => self.is_foreign = true,
            15 if is("x-forwarded-for") => {
                if !self.forwarded.is_empty() {
                    self.forwarded.push(b',');
                }
                self.forwarded.extend_from_slice(value);
            }
            _ => {}
        }
    }

    fn after(&self) -> Persistence {
        if self.close { Persistence::Close } else { Persistence::Keep }
    }

    /// The framing of the body, or why it is ambiguous.
    fn framing(&self) -> Result<Framing, HeadAmbiguity> {
        match (self.rules.is_chunked(), self.length) {
            (false, None) => Ok(Framing::Length(0)),
            (true, None) => Ok(Framing::Chunked),
            (true, Some(_)) => Err(HeadAmbiguity::LengthAndCoding),
            (false, Some(_)) if self.lengths > 1 => Err(HeadAmbiguity::Lengths),
            (false, Some(value)) => length(value).map(Framing::Length).ok_or(HeadAmbiguity::Length),
        }
    }
}

/// The requirements on each claimed head: one Host, and unambiguous framing.
fn sound(fields: &Fields<'_>) -> Result<Framing, Box<Problem>> {
    if let Some(unsound) = fields.rules.unsound(Version::HTTP_11) {
        return Err(unsound.into());
    }
    Ok(fields.framing()?)
}

/// Whether the server answers under the host name of the request. Only for a sound head.
fn is_answered<G: Guards>(guards: &G, fields: &Fields<'_>) -> bool {
    fields.rules.host().is_some_and(|host| guards.answers_under(host))
}

/// A complete head at the start of `input`.
struct ParsedHead<'a> {
    line: Line<'a>,
    headers: &'a [Header<'a>],
    input: &'a [u8],
    used: usize,
}

impl ParsedHead<'_> {
    /// The range of a part within the input.
    fn place_of(&self, part: &[u8]) -> Range<usize> {
        let start = part.as_ptr() as usize - self.input.as_ptr() as usize;
        start..start + part.len()
    }

    /// The word of the target, if one varies.
    fn word(&self, shape: Shape) -> Option<(Range<usize>, usize)> {
        let Shape::Bare(Some(Word { at, most })) = shape else { return None };
        let word = self.line.target.as_bytes().get(at..)?;
        Some((self.place_of(word), most))
    }
}

/// A complete head claimed by a path; `None`: the path passes it on.
fn judge<G: Guards>(
    shared: &mut LoopState<G>,
    path_index: usize,
    claim: Claim,
    parsed: ParsedHead<'_>,
) -> Option<HeadParse<G::Pass>> {
    let fields = Fields::of(parsed.headers);
    let framing = match sound(&fields) {
        Ok(framing) => framing,
        Err(_) if matches!(claim.shape, Shape::Whole { .. }) => return Some(HeadParse::Foreign),
        Err(problem) => return Some(HeadParse::Broken(problem, Some(path_index))),
    };
    let is_bare = matches!(claim.shape, Shape::Bare(_));
    // The other stack handles the rare rest of a request without content or that is read as a
    // whole, and words every refusal that comes first.
    let is_unusual = || fields.expects || fields.upgrade || fields.rules.refusal().is_some();
    let is_rare = match claim.shape {
        Shape::Content => false,
        Shape::Bare(_) => framing != Framing::Length(0) || is_unusual(),
        Shape::Whole { most } => {
            framing == Framing::Chunked || fits(most, framing).is_err() || is_unusual()
        }
    };
    let is_foreign = fields.is_foreign
        || (fields.names_history && !shared.paths[path_index].path.compares_history());
    if is_foreign || is_rare || !is_answered(&shared.guards, &fields) {
        return Some(HeadParse::Foreign);
    }
    let pass = match claim.role {
        None => None,
        Some(role) => {
            let admitted = shared.guards.admit(role, claim.log.as_deref(), &fields.credentials);
            let Some(pass) = admitted.filter(|_| !fields.ambiguous) else {
                return Some(HeadParse::Foreign);
            };
            Some(pass)
        }
    };
    let path = &mut *shared.paths[path_index].path;
    let Line { method, target } = parsed.line;
    let what = match fields.rules.refusal() {
        Some(refusal) => Err(refusal),
        None => path
            .understand(&Head { method, target, headers: Headers::Parsed(parsed.headers) })
            .transpose()?,
    };
    let what = what.and_then(|params| {
        let (largest, completeness) = match claim.shape {
            Shape::Whole { most } => match path.order() {
                PipelineOrder::Overlapping => (most, Completeness::Whole),
                PipelineOrder::Behind | PipelineOrder::Alone => (most, Completeness::WholeBehind),
            },
            _ => (path.largest_content(&params), Completeness::InParts),
        };
        fits(largest, framing).map(|()| HeadMeaning { params, largest, completeness })
    });
    let expects = if fields.expects { Expects::Continue } else { Expects::Nothing };
    let word = parsed.word(claim.shape);
    let piece = match (&word, fields.length) {
        (Some((at, most)), _) => Some(Piece::Word(at.clone(), *most)),
        (None, _) if is_bare => Some(Piece::None),
        (None, length) => length.map(|length| Piece::Length(parsed.place_of(length))),
    };
    let word = word.map_or(0..0, |(at, _)| at);
    let request = ParsedRequest { path_index, what, framing, expects, after: fields.after(), word };
    let (used, forwarded) = (parsed.used, fields.forwarded);
    Some(HeadParse::Whole { request, used, piece, pass, forwarded })
}

/// Whether a body with this framing is acceptable where at most `largest` bytes are.
#[inline]
pub(super) fn fits(largest: usize, framing: Framing) -> Result<(), Box<Problem>> {
    match framing {
        Framing::Length(length) if length > largest as u64 => Err(body::too_large(largest)),
        _ => Ok(()),
    }
}

/// The answer to a head over its limit.
pub(super) fn head_too_long(limits: &HeadLimits) -> Box<Problem> {
    problem::HEADERS_TOO_LARGE
        .because(format!("the request's head is longer than {} bytes", limits.head_bytes))
        .limit(limits.head_bytes as u64)
}

/// A head that cannot be read. What is read as a whole goes to the other stack, which knows the
/// words of every route.
fn broken<P>(shape: Shape, problem: Box<Problem>) -> HeadParse<P> {
    match shape {
        Shape::Whole { .. } => HeadParse::Foreign,
        Shape::Content | Shape::Bare(_) => HeadParse::Broken(problem, None),
    }
}

fn unreadable(error: Error, limits: &HeadLimits) -> Box<Problem> {
    if error == Error::TooManyHeaders {
        return head_rules::too_many_headers(limits.headers);
    }
    problem::BAD_REQUEST.because(format!("this is not HTTP/1.1: {error}"))
}
