//! The head of a request: whether it is ours (for ingest or for a link), how its body
//! is framed, and what is wrong with it. Where two readers could see different messages
//! in the same bytes, it is refused and the connection ends.

use super::seam::{Credentials, Serves};
use crate::http::body;
use crate::http::head_rules::{self, HeadRules};
use crate::ingest::Media;
use crate::ingest::refuse_key;
use crate::links::{Told, with_error};
use crate::wire::problem::{self, Problem};
use httparse::{EMPTY_HEADER, Error, Header, Status};
use hyper::Version;
use std::mem::MaybeUninit;
use wellspring_views::links::MAX_CODE_CHARS;

/// What a request line holds besides its target: `POST  HTTP/1.1` and the line's end.
const LINE_EXTRA_BYTES: usize = 16;
/// The first line of HTTP/2. It is no request; the other stack knows what to do.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";
/// Where the code begins in the head of a request for a link: behind `GET /`.
pub(super) const CODE_AT: usize = 5;
/// As many headers as are read without an allocation.
const HEADERS_ON_STACK: usize = 64;
/// Digits of a length that fits 64 bits whatever they are.
pub(super) const LENGTH_DIGITS: usize = 19;

/// Limits of a head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Most headers.
    pub(crate) headers: usize,
    /// Longest head, in bytes.
    pub(crate) head_bytes: usize,
    /// Longest path and query, in bytes.
    pub(crate) url_bytes: usize,
    /// Whether requests that belong to a trace are for the other stack, which records it.
    pub(crate) traced: bool,
}

/// How a body is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// So many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
}

/// Whether the client waits for `100 Continue` before it sends the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expects {
    Nothing,
    Continue,
}

/// Whether a connection goes on after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    Keep,
    Close,
}

/// What a head that was understood asks for.
pub(crate) struct Order<T> {
    /// What is to be done with the body, or why nothing can be.
    pub(crate) what: Result<T, Box<Problem>>,
    pub(crate) media: Media,
    pub(crate) framing: Framing,
    pub(crate) expects: Expects,
    pub(crate) after: After,
}

/// What the bytes at the beginning of a request are.
pub(crate) enum Reading<'a, T, P> {
    /// Not a whole head yet. Whether its first line is there and ours.
    Partial { line: bool },
    /// Neither for ingest nor for a link: for the other stack, untouched.
    Foreign,
    /// A whole head.
    Order {
        /// What it asks for.
        order: Order<T>,
        /// Its length in bytes.
        used: usize,
        /// Where the value of its only Content-Length is.
        length_at: Option<(usize, usize)>,
        /// That it may be asked.
        pass: P,
    },
    /// A whole head that asks where a link leads, and has no body.
    Visit(Visit<'a>),
    /// Not to be understood: answer and close.
    Broken(Box<Problem>),
}

/// The head of a request for a link.
pub(crate) struct Visit<'a> {
    /// Where its code ends; where it begins is [`CODE_AT`].
    pub(crate) code_end: usize,
    /// Its length in bytes.
    pub(crate) used: usize,
    pub(crate) after: After,
    /// What it tells of the visitor.
    pub(crate) told: Told<'a>,
}

/// Reads a head at the beginning of `input`, which is not empty and begins with no line end.
pub(crate) fn read<'a, I: Serves>(
    serves: &mut I,
    limits: &Limits,
    input: &'a [u8],
) -> Reading<'a, I::Target, I::Pass> {
    if let Some(reading) = overlong_line(limits, input) {
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
                return Reading::Broken(head_too_long(limits));
            }
            if limits.traced && is_traced(request.headers) {
                return Reading::Foreign;
            }
            let line = (request.method, request.path, request.version);
            match asked_of(serves, line) {
                Some(Asks::Ingest(what)) => judge(serves, what, request.headers, input, used),
                Some(Asks::Link(code)) => {
                    let code_end = CODE_AT + code.len();
                    judge_visit(serves, request.headers, code_end, used)
                }
                None => Reading::Foreign,
            }
        }
        Ok(Status::Partial) => match line_of(serves, input) {
            Line::Ours if input.len() > limits.head_bytes => Reading::Broken(head_too_long(limits)),
            Line::Ours => Reading::Partial { line: true },
            Line::Foreign => Reading::Foreign,
            Line::Incomplete | Line::Broken => Reading::Partial { line: false },
        },
        Err(error) => match line_of(serves, input) {
            Line::Foreign => Reading::Foreign,
            _ => Reading::Broken(broken(error, limits)),
        },
    }
}

/// Whether a request says which trace it belongs to.
fn is_traced(headers: &[Header<'_>]) -> bool {
    headers.iter().any(|header| header.name.eq_ignore_ascii_case("traceparent"))
}

/// A first line that is longer than any may be: refused if it could be ours, else not our affair.
fn overlong_line<'a, T, P>(limits: &Limits, input: &'a [u8]) -> Option<Reading<'a, T, P>> {
    let most = limits.url_bytes + LINE_EXTRA_BYTES;
    if input.len() <= most || input[..=most].contains(&b'\n') {
        return None;
    }
    if !input.starts_with(b"POST ") {
        return Some(Reading::Foreign);
    }
    Some(Reading::Broken(
        problem::URL_TOO_LONG
            .because(format!("the request line is longer than {most} bytes"))
            .limit(limits.url_bytes as u64),
    ))
}

/// A first line, looked at by itself.
enum Line {
    Incomplete,
    Ours,
    Foreign,
    Broken,
}

fn line_of<I: Serves>(serves: &mut I, input: &[u8]) -> Line {
    let Some(end) = input.iter().position(|&b| b == b'\n') else { return Line::Incomplete };
    let mut request = httparse::Request::new(&mut []);
    match request.parse(&input[..=end]) {
        Ok(Status::Partial) => {
            let line = (request.method, request.path, request.version);
            match asked_of(serves, line) {
                Some(_) => Line::Ours,
                None => Line::Foreign,
            }
        }
        _ => Line::Broken,
    }
}

type Parts<'a> = (Option<&'a str>, Option<&'a str>, Option<u8>);

/// What a first line that is ours asks for.
enum Asks<'a, T> {
    Ingest(Result<T, Box<Problem>>),
    /// Where the link with this code leads.
    Link(&'a [u8]),
}

/// What a first line asks for; `None` if it is not ours, or not over HTTP/1.1.
fn asked_of<'a, I: Serves>(serves: &mut I, line: Parts<'a>) -> Option<Asks<'a, I::Target>> {
    match line {
        (Some("POST"), Some(path), Some(1)) => serves.target(path).map(Asks::Ingest),
        (Some("GET"), Some(path), Some(1)) => {
            let code = path.strip_prefix('/')?.as_bytes();
            let is_code =
                (1..=MAX_CODE_CHARS).contains(&code.len()) && code_chars(code) == code.len();
            (is_code && serves.serves_link(code)).then_some(Asks::Link(code))
        }
        _ => None,
    }
}

/// How many characters of a code `bytes` begin with; one more than a code has if it is more.
pub(super) fn code_chars(bytes: &[u8]) -> usize {
    bytes.iter().take(MAX_CODE_CHARS + 1).take_while(|b| b.is_ascii_alphanumeric()).count()
}

/// The values of `X-Forwarded-For` in a head that has been read, in their order.
pub(super) fn forwarded(head: &[u8]) -> Vec<&[u8]> {
    let lines = head.split(|&b| b == b'\n').skip(1);
    let fields =
        lines.filter_map(|line| line.split_at_checked(line.iter().position(|&b| b == b':')?));
    let ours = fields.filter(|(name, _)| name.eq_ignore_ascii_case(b"x-forwarded-for"));
    ours.map(|(_, value)| value[1..].trim_ascii()).collect()
}

/// The headers that mean something here.
#[derive(Default)]
struct Fields<'a> {
    rules: HeadRules<'a>,
    length: Option<&'a [u8]>,
    lengths: usize,
    close: bool,
    /// Whether there is an `Expect`.
    expects: bool,
    media: Option<&'a [u8]>,
    coding: Option<&'a [u8]>,
    idempotent: bool,
    upgrade: bool,
    credentials: Credentials<'a>,
    /// Whether credentials stand twice.
    ambiguous: bool,
    told: Told<'a>,
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
            7 if is("referer") => self.told.referrer = self.told.referrer.or(Some(value)),
            9 if is("x-api-key") => {
                self.ambiguous |= self.credentials.api_key.replace(value).is_some();
            }
            10 if is("user-agent") => self.told.agent = self.told.agent.or(Some(value)),
            10 if is("connection") => {
                let mut options = value.split(|&b| b == b',');
                self.close |= options.any(|o| o.trim_ascii().eq_ignore_ascii_case(b"close"));
            }
            12 if is("content-type") => self.media = self.media.or(Some(value)),
            13 if is("authorization") => {
                self.ambiguous |= self.credentials.authorization.replace(value).is_some();
            }
            14 if is("content-length") => {
                self.lengths += 1;
                self.length = Some(value);
            }
            15 if is("idempotency-key") => self.idempotent = true,
            15 if is("x-forwarded-for") => self.told.forwarded.push(value),
            16 if is("content-encoding") && !value.eq_ignore_ascii_case(b"identity") => {
                self.coding = Some(value);
            }
            _ => {}
        }
    }

    fn after(&self) -> After {
        if self.close { After::Close } else { After::Keep }
    }

    /// How the body is framed, or why that cannot be told for certain.
    fn framing(&self) -> Result<Framing, &'static str> {
        match (self.rules.is_chunked(), self.length) {
            (false, None) => Ok(Framing::Length(0)),
            (true, None) => Ok(Framing::Chunked),
            (true, Some(_)) => {
                Err("Content-Length and Transfer-Encoding are given, which contradict each other")
            }
            (false, Some(_)) if self.lengths > 1 => Err("Content-Length is given more than once"),
            (false, Some(value)) => {
                length(value).map(Framing::Length).ok_or("Content-Length is not a length")
            }
        }
    }

    /// Why a request whose framing is known is refused, whatever its body.
    fn refusal(&self) -> Option<Box<Problem>> {
        if let Some(refusal) = self.rules.refusal() {
            return Some(refusal);
        }
        if let Some(coding) = self.coding {
            let coding = String::from_utf8_lossy(coding);
            let detail = format!("bodies are taken as they are, not encoded as {coding:?}");
            return Some(problem::UNSUPPORTED_MEDIA.because(detail).field("Content-Encoding"));
        }
        refuse_key(self.idempotent).err()
    }
}

/// A length as it may stand in Content-Length: digits, nothing else, at most 19.
pub(super) fn length(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > LENGTH_DIGITS {
        return None;
    }
    digits.iter().try_fold(0u64, |value, digit| {
        digit.is_ascii_digit().then(|| value * 10 + u64::from(digit - b'0'))
    })
}

/// What each head of ours must have: one Host, and a body whose end is certain.
fn sound(fields: &Fields<'_>) -> Result<Framing, Box<Problem>> {
    if let Some(unsound) = fields.rules.unsound(Version::HTTP_11) {
        return Err(unsound.into());
    }
    fields.framing().map_err(|detail| problem::BAD_REQUEST.because(detail))
}

/// Whether requests are answered under the name that this one is for. Only of a sound head.
fn is_answered<I: Serves>(serves: &I, fields: &Fields<'_>) -> bool {
    fields.rules.host().is_some_and(|host| serves.answers_under(host))
}

/// A head that asks for a link. The other stack sees to what hardly anybody sends with it.
fn judge_visit<'a, I: Serves>(
    serves: &I,
    headers: &[Header<'a>],
    code_end: usize,
    used: usize,
) -> Reading<'a, I::Target, I::Pass> {
    let fields = Fields::of(headers);
    let after = fields.after();
    match sound(&fields) {
        Err(problem) => Reading::Broken(with_error(problem)),
        // Before anything else is said: the other stack words it.
        Ok(_) if !is_answered(serves, &fields) || fields.rules.refusal().is_some() => {
            Reading::Foreign
        }
        Ok(Framing::Length(0)) if !fields.expects && !fields.upgrade => {
            Reading::Visit(Visit { code_end, used, after, told: fields.told })
        }
        Ok(_) => Reading::Foreign,
    }
}

fn judge<'a, I: Serves>(
    serves: &mut I,
    what: Result<I::Target, Box<Problem>>,
    headers: &[Header<'a>],
    input: &[u8],
    used: usize,
) -> Reading<'a, I::Target, I::Pass> {
    let fields = Fields::of(headers);
    let framing = match sound(&fields) {
        Ok(framing) => framing,
        Err(problem) => return Reading::Broken(problem),
    };
    if !is_answered(serves, &fields) {
        return Reading::Foreign;
    }
    // What asks for nothing that can be is not told so before it is known whom it is from.
    let target = what.as_ref().ok();
    let Some(pass) = serves.admit(target, &fields.credentials).filter(|_| !fields.ambiguous) else {
        return Reading::Foreign;
    };
    let media = Media::of(fields.media);
    let what = match (what, fields.refusal()) {
        (Ok(_), Some(refusal)) => Err(refusal),
        (Ok(target), None) => fits(serves, media, framing).map(|()| target),
        (Err(problem), _) => Err(fields.rules.refusal().unwrap_or(problem)),
    };
    let expects = if fields.expects { Expects::Continue } else { Expects::Nothing };
    let after = fields.after();
    // Slices of `input`: the difference of their addresses is an offset in it.
    let length_at = fields.length.map(|value| {
        let start = value.as_ptr() as usize - input.as_ptr() as usize;
        (start, start + value.len())
    });
    let order = Order { what, media, framing, expects, after };
    Reading::Order { order, used, length_at, pass }
}

/// Whether a body of this framing may be taken at all.
pub(super) fn fits<I: Serves>(
    serves: &I,
    media: Media,
    framing: Framing,
) -> Result<(), Box<Problem>> {
    let most = serves.largest_body(media);
    match framing {
        Framing::Length(length) if length > most as u64 => Err(body::too_large(most)),
        _ => Ok(()),
    }
}

/// The answer to a head beyond its limit.
pub(super) fn head_too_long(limits: &Limits) -> Box<Problem> {
    problem::HEADERS_TOO_LARGE
        .because(format!("the head of the request is longer than {} bytes", limits.head_bytes))
        .limit(limits.head_bytes as u64)
}

fn broken(error: Error, limits: &Limits) -> Box<Problem> {
    if error == Error::TooManyHeaders {
        return head_rules::too_many_headers(limits.headers);
    }
    problem::BAD_REQUEST.because(format!("this is not HTTP/1.1: {error}"))
}
