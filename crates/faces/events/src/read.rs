//! Reading events: as a page or as a stream.
//!
//! A read begins on the serving thread, because most are short. A long one continues elsewhere; a
//! stream piece by piece, each piece only when the client has room for it: no slow client occupies
//! a thread or more than a few buffers.

use super::disclosure::Disclosure;
use super::event_json::push_event;
use super::read_request::{ReadRequest, read_wanted, wanted_of_query};
use super::subscribe;
use super::times::PositionsOfTimes;
use bytes::Bytes;
use std::borrow::Borrow;
use std::sync::Arc;
use wellspring_host::access::AccessRecheck;
use wellspring_host::http::content::expect_json;
use wellspring_host::http::history;
use wellspring_host::http::required_freshness::freshen;
use wellspring_host::http::stream::{self, Producer};
use wellspring_host::http::work::{Cost, Job, Progress, Task};
use wellspring_host::http::{Answer, Host, JSON, NDJSON, Request, Response, SSE};
use wellspring_host::wire::json::{
    Cursor, Fault, document, push_lossy, push_string, push_tags, push_u64,
};
use wellspring_host::wire::params::within;
use wellspring_host::wire::problem::{self, Problem, of_fault};
use wellspring_log::{
    CompiledQuery, Events, Order, ReadError, ReadOptions, RecordView, Snapshot, Work,
};
use wellspring_types::{Position, Query, limits};

/// Most events in one JSON page.
pub(crate) const MAX_PAGE_EVENTS: u64 = 1000;
/// Default number of events on a page.
const DEFAULT_LIMIT: u64 = 100;
/// Bytes of one piece of a stream.
const PIECE_BYTES: usize = 256 << 10;
/// Bytes of an answer whose writing counts as a step of work, as a power of two.
const STEP_BYTES_LOG2: u32 = 8;

/// The media type of stored records, one after another, as `docs/format.md` has them, without the
/// keys of requests.
pub(crate) const RECORDS: &str = "application/vnd.wellspring.records";

/// The format of events.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// `{"events":[…],"head":n,"next":n}`.
    Page,
    /// One event per line.
    Lines,
    /// One stored record after another ([`RECORDS`]).
    Records,
    /// `[{"type","tags","data":string,"position"}]`, the DCB dialect.
    Array,
}

/// `GET /v1/events`.
pub(crate) async fn get_events(host: Arc<Host>, request: Box<Request>) -> Answer {
    let wanted = wanted_of_query(&request.query)?;
    answer(host, request, wanted).await
}

/// `POST /v1/query`.
pub(crate) async fn post_query(host: Arc<Host>, mut request: Box<Request>) -> Answer {
    expect_json(&request)?;
    let body = request.body.read(limits::MAX_REQUEST_BYTES).await?;
    // Waits with the body, which is charged, and not with the query, which takes many times as
    // much.
    freshen(&request, request.log()?).await?;
    let job = Job::begin(&host, &request.payer)?;
    let wanted = parse(&job, body, read_wanted).await?;
    drop(job);
    answer(host, request, wanted).await
}

/// Parses a body that is one JSON document.
///
/// # Errors
/// The problem of a fault in it.
pub(super) async fn parse<T: Send + 'static>(
    job: &Job,
    body: Bytes,
    read: fn(&mut Cursor<'_>) -> Result<T, Box<Fault>>,
) -> Result<T, Box<Problem>> {
    let cost = Cost::of_bytes(body.len());
    let parse = move || document(&body, read).map_err(|fault| of_fault(&fault, &body));
    job.brief(cost, parse).await?
}

async fn answer(host: Arc<Host>, request: Box<Request>, wanted: ReadRequest) -> Answer {
    freshen(&request, request.log()?).await?;
    let resumed = subscribe::last_event(&request)?;
    if let Some(named) = resumed.and_then(|point| point.history) {
        history::check(request.log()?, named)?;
    }
    let after = resumed.map(|point| point.position).or(wanted.after);
    if wanted.order == Order::Ascending {
        history::check_reached(request.log()?, after.unwrap_or(0)).await?;
    }
    if wanted.fence.is_some() && request.wants != SSE {
        let detail = "only a subscription (Accept: text/event-stream) ends with a lease";
        return Err(problem::INVALID.because(detail).field("fence"));
    }
    match request.wants {
        SSE => subscribe::subscribe(host, &request, ReadRequest { after, ..wanted }).await,
        NDJSON => read(&host, &request, wanted, Format::Lines).await,
        RECORDS => read(&host, &request, wanted, Format::Records).await,
        _ => {
            let limit = page_limit(wanted.limit)?;
            read(&host, &request, ReadRequest { limit: Some(limit), ..wanted }, Format::Page).await
        }
    }
}

/// Number of events on a page: the client's limit, which in other formats may be larger.
pub(super) fn page_limit(asked: Option<u64>) -> Result<u64, Box<Problem>> {
    match within(asked.unwrap_or(DEFAULT_LIMIT), MAX_PAGE_EVENTS, "limit")? {
        0 => Err(problem::INVALID.because("limit must be at least 1").field("limit")),
        limit => Ok(limit),
    }
}

/// A query compiled for a job, which is charged for its memory.
pub(super) struct ReadyQuery {
    pub(super) query: Arc<CompiledQuery>,
    pub(super) cost: Cost,
}

impl ReadyQuery {
    /// Compiles a query, and drops the original.
    ///
    /// # Errors
    /// 429, 503: it is expensive, and the limit of long work is reached; 503: there is no memory
    /// for it.
    pub(super) async fn compile(
        job: &mut Job,
        query: impl Borrow<Query> + Send + 'static,
    ) -> Result<ReadyQuery, Box<Problem>> {
        let cost = Cost::of_terms(query.borrow().term_count());
        if cost == Cost::Expensive {
            job.admit()?;
        }
        // As parsed, and compiled.
        job.hold(2 * query.borrow().memory_bytes())?;
        let query = job.brief(cost, move || CompiledQuery::shared(query.borrow())).await?;
        Ok(ReadyQuery { query, cost })
    }
}

/// Reads the requested events from the log as it is now.
pub(crate) async fn read(
    host: &Arc<Host>,
    request: &Request,
    mut wanted: ReadRequest,
    format: Format,
) -> Answer {
    let mut job = Job::begin(host, &request.payer)?;
    let query = std::mem::take(&mut wanted.query);
    let ReadyQuery { query, cost } = ReadyQuery::compile(&mut job, query).await?;
    let snapshot = request.log()?.snapshot();
    let head = snapshot.head();
    let times = PositionsOfTimes::find(&mut job, &snapshot, wanted.times).await?;
    let disclosure = Disclosure::of(host, request);
    let snapshot = times.of(snapshot);
    let reading = ReadTask::new(host, (&snapshot, head), query, wanted, times, format, disclosure);
    let content_type = match format {
        Format::Lines => NDJSON,
        Format::Records => RECORDS,
        Format::Page | Format::Array => JSON,
    };
    let whole = |out| Response::json(200, out).of_type(content_type).at(head);
    if format == Format::Page {
        let mut out = job.run(cost, reading).await?.out;
        // Its client may read it slowly.
        out.shrink_to_fit();
        return Ok(whole(out));
    }
    let reading = match job.begin_here(cost, reading)? {
        (reading, Progress::Done) => return Ok(whole(reading.out)),
        (reading, Progress::More) => reading,
    };
    let (producer, chunks) = stream::channel();
    let producer = producer.holding(job.admit()?);
    let recheck = request.body.recheck().cloned();
    let (host, log_name) = (Arc::clone(host), request.log_name.clone());
    tokio::spawn(pump(job, reading, producer, recheck, host, log_name));
    Ok(Response::stream(content_type, chunks).at(head))
}

async fn pump(
    mut job: Job,
    mut reading: ReadTask,
    producer: Producer,
    recheck: Option<Arc<AccessRecheck>>,
    host: Arc<Host>,
    log_name: String,
) {
    if producer.send(std::mem::take(&mut reading.out)).await.is_err() {
        return;
    }
    let payer = job.payer().clone();
    // Wait for room before a buffer is filled, not after.
    while producer.ready().await.is_ok() && producer.paid(&payer).await.is_ok() {
        reading.out.reserve(PIECE_BYTES + (16 << 10));
        let piece = tokio::select! {
            biased;
            piece = job.piece(reading) => piece,
            () = producer.gone() => return,
        };
        let progress;
        (reading, progress) = match piece {
            Ok(piece) => piece,
            Err(problem) => return host.tell_cut(&problem, &log_name),
        };
        if recheck.as_ref().is_some_and(|recheck| !recheck.holds()) {
            // Cut off, not ended: the answer is incomplete.
            return;
        }
        if producer.send(std::mem::take(&mut reading.out)).await.is_err() {
            return;
        }
        if progress == Progress::Done {
            return producer.end().await;
        }
    }
}

/// A read in progress.
pub(super) struct ReadTask {
    events: Events,
    format: Format,
    disclosure: Disclosure,
    /// Of the log, which may be beyond what is read.
    head: Position,
    times: PositionsOfTimes,
    /// Written but not sent.
    pub(super) out: Vec<u8>,
    /// Most events to write; one more may be examined to know whether there are more.
    limit: u64,
    /// Bytes after which the answer ends, or a piece of it.
    max_bytes: usize,
    written: u64,
    last: Position,
    begun: bool,
}

impl ReadTask {
    pub(super) fn new(
        host: &Host,
        (snapshot, head): (&Snapshot, Position),
        query: Arc<CompiledQuery>,
        wanted: ReadRequest,
        times: PositionsOfTimes,
        format: Format,
        disclosure: Disclosure,
    ) -> ReadTask {
        // A page examines one more event, so that `next` is null exactly at the end.
        let ahead = u64::from(format == Format::Page);
        let options = ReadOptions {
            after: wanted.after,
            order: wanted.order,
            limit: wanted.limit.map(|limit| limit.saturating_add(ahead)),
        };
        let page = format == Format::Page;
        let events = snapshot.read_compiled(query, options);
        ReadTask {
            events: events.only_after(times.since.map_or(0, |since| since - 1)),
            format,
            disclosure,
            head,
            times,
            out: Vec::with_capacity(4 << 10),
            limit: wanted.limit.unwrap_or(u64::MAX),
            max_bytes: if page { host.config.max_page_bytes } else { PIECE_BYTES },
            written: 0,
            last: 0,
            begun: false,
        }
    }

    fn finish(&mut self, more: bool) {
        let out = &mut self.out;
        match self.format {
            Format::Lines | Format::Records => {}
            Format::Array => out.push(b']'),
            Format::Page => {
                out.extend_from_slice(b"],\"head\":");
                push_u64(out, self.head);
                out.extend_from_slice(b",\"next\":");
                if more && self.written > 0 {
                    push_u64(out, self.last);
                } else {
                    out.extend_from_slice(b"null");
                }
                self.times.push(out);
                out.push(b'}');
            }
        }
    }
}

impl Task for ReadTask {
    /// Writes events until they, the work or the room of a piece end.
    fn proceed(&mut self, work: Work) -> Result<Progress, Box<Problem>> {
        if !std::mem::replace(&mut self.begun, true) {
            self.out.extend_from_slice(match self.format {
                Format::Page => b"{\"events\":[",
                Format::Lines | Format::Records => b"",
                Format::Array => b"[",
            });
        }
        self.events.bound(work);
        loop {
            let full = self.out.len() > self.max_bytes;
            if full && self.format != Format::Page {
                return Ok(Progress::More);
            }
            let event = match self.events.next() {
                Ok(Some(event)) => event,
                Ok(None) => {
                    self.finish(false);
                    return Ok(Progress::Done);
                }
                Err(ReadError::Stopped(_)) => return Ok(Progress::More),
                // What the page does not show may be gone: the next page tells.
                Err(ReadError::Trimmed { .. }) if self.written == self.limit => {
                    self.finish(true);
                    return Ok(Progress::Done);
                }
                Err(error) => return Err(error.into()),
            };
            if self.written == self.limit || full {
                self.finish(true);
                return Ok(Progress::Done);
            }
            self.last = event.position();
            let before = self.out.len();
            push(&mut self.out, self.format, &self.disclosure, self.written == 0, &event);
            self.written += 1;
            self.events.spend(((self.out.len() - before) >> STEP_BYTES_LOG2) as u64);
        }
    }
}

fn push(
    out: &mut Vec<u8>,
    format: Format,
    disclosure: &Disclosure,
    first: bool,
    event: &RecordView<'_>,
) {
    match format {
        Format::Page => {
            if !first {
                out.push(b',');
            }
            push_event(out, event, disclosure);
        }
        Format::Lines => push_line(out, event, disclosure),
        Format::Records => {
            let disclosed = disclosure.of_event(event);
            event.push_for_readers(out, disclosed.kind, &disclosed.data);
        }
        Format::Array => {
            out.extend_from_slice(if first { b"{\"type\":" } else { b",{\"type\":" });
            push_string(out, event.event_type());
            push_tags(out, event.tags());
            out.extend_from_slice(b",\"data\":");
            push_lossy(out, &disclosure.of_event(event).data);
            out.extend_from_slice(b",\"position\":");
            push_u64(out, event.position());
            out.push(b'}');
        }
    }
}

/// One event per line: only payloads sent over several lines are not copied verbatim; their line
/// breaks can only be white space between tokens.
pub(super) fn push_line(out: &mut Vec<u8>, event: &RecordView<'_>, disclosure: &Disclosure) {
    let start = out.len();
    push_event(out, event, disclosure);
    for byte in &mut out[start..] {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    out.push(b'\n');
}

/// The log as fresh as required.
pub(super) async fn fresh_snapshot(request: &Request) -> Result<Snapshot, Box<Problem>> {
    let log = request.log()?;
    freshen(request, log).await?;
    Ok(log.snapshot())
}
