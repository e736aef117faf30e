//! Reading events: as a page, as a stream, one by one.
//!
//! A read begins on the serving thread, because most are short. One that turns
//! out long goes on elsewhere, piece by piece, each piece only when the client
//! has room for it: no slow client holds a thread or more than a few buffers.

use super::elsewhere::{Price, PricedQuery, elsewhere, long_read, parse};
use super::json::{Cursor, Fault, FaultKind, push_u64};
use super::params::{Params, expect_json, freshen, negotiate, page_limit};
use super::problem::{self, Problem, of_fault};
use super::stream::{self, Producer};
use super::wire::{self, Style, missing, once, push_event, push_tags, rule, unknown};
use super::{Answer, JSON, MAX_PAGE_EVENTS, NDJSON, Request, Response, SSE, Shell, subscribe};
use crate::access::Standing;
use crate::limits::Reads;
use std::sync::Arc;
use wellspring_log::{
    CompiledQuery, Events, Order, ReadError, ReadOptions, RecordView, Snapshot, Work,
};
use wellspring_types::{EventId, Invalid, Position, Query, QueryItem, limits};

/// Events in a page if the client does not say.
const DEFAULT_LIMIT: u64 = 100;
/// What a read may cost on a serving thread: events, time, bytes of answer.
const SHORT: Budget = Budget { events: 256, us: 1_000, bytes: 256 << 10 };
/// What one piece of a long read may cost.
const PIECE: Budget = Budget { events: u64::MAX, us: 50_000, bytes: 256 << 10 };

/// Where a piece of reading stops if the events do not stop first.
#[derive(Clone, Copy)]
struct Budget {
    events: u64,
    us: u64,
    bytes: usize,
}

/// What a client wants to read.
#[derive(Default)]
pub(crate) struct Wanted {
    pub(crate) query: Query,
    pub(crate) after: Option<Position>,
    pub(crate) limit: Option<u64>,
    pub(crate) order: Order,
}

/// How events are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// `{"events":[…],"head":n,"next":n}`.
    Page,
    /// One event a line.
    Lines,
    /// `[{"type","tags","data":string,"position"}]`, the DCB dialect.
    Array,
}

/// `GET /v1/events`.
pub(crate) async fn get_events(shell: Arc<Shell>, request: Request) -> Answer {
    let params = Params::of(&request, &["type", "tag", "query", "after", "limit", "order"])?;
    let wanted = wanted_of_params(&params).await?;
    answer(shell, request, params, wanted).await
}

/// `POST /v1/query`.
pub(crate) async fn post_query(shell: Arc<Shell>, mut request: Request) -> Answer {
    let params = Params::of(&request, &[])?;
    negotiate(&request, &[JSON, NDJSON, SSE])?;
    expect_json(&request)?;
    let body = request.body.read(limits::MAX_REQUEST_BYTES).await?;
    // Waits with the body, which is charged, and not with the query, which takes many times as much.
    freshen(&request, &params, request.log()?).await?;
    let wanted = parse(body, read_wanted).await?;
    answer(shell, request, params, wanted).await
}

async fn wanted_of_params(params: &Params) -> Result<Wanted, Box<Problem>> {
    let texts = |name| params.all(name).map(str::to_owned).collect::<Vec<_>>();
    let (types, tags) = (texts("type"), texts("tag"));
    let query = match params.one("query")? {
        Some(_) if !types.is_empty() || !tags.is_empty() => {
            let detail = "query stands beside type or tag; put them into its items";
            return Err(problem::INVALID.because(detail).field("query"));
        }
        Some(text) => query_of(text).await?,
        None if types.is_empty() && tags.is_empty() => Query::all(),
        None => {
            let item = QueryItem { types, tags };
            item.check().map_err(|mut invalid: Invalid| {
                // `tags[1]` of the item is a `tag` of the URL.
                invalid.field.truncate(invalid.field.find('s').unwrap_or(0));
                invalid
            })?;
            Query { items: vec![item] }
        }
    };
    let orders = [("asc", Order::Ascending), ("desc", Order::Descending)];
    let order = params.choice("order", &orders)?.unwrap_or(Order::Ascending);
    let (after, limit) = (params.number("after")?, params.number("limit")?);
    Ok(Wanted { query, after, limit, order })
}

/// A query given as the JSON text of a parameter.
pub(crate) async fn query_of(text: &str) -> Result<Query, Box<Problem>> {
    let read = |text: &str| {
        wire::document(text.as_bytes(), wire::read_query)
            .map_err(|fault| of_parameter(fault, "query", text))
    };
    match Price::of_bytes(text.len()) {
        Price::Short => read(text),
        Price::Dear => {
            let text = text.to_owned();
            elsewhere(move || read(&text)).await?
        }
    }
}

/// A fault in a parameter that holds JSON.
fn of_parameter(fault: Box<Fault>, name: &str, text: &str) -> Box<Problem> {
    let fault = fault.within(name);
    let mut problem = of_fault(&fault, text.as_bytes());
    if matches!(fault.kind, FaultKind::Syntax(_)) {
        problem.detail = format!("{name} is not JSON: {}", problem.detail);
        return problem.field(name);
    }
    problem
}

fn read_wanted(cursor: &mut Cursor<'_>) -> Result<Wanted, Box<Fault>> {
    let start = cursor.at();
    let (mut query, mut after, mut limit, mut order) = (None, None, None, None);
    cursor.object(|key, value| {
        let at = value.at();
        match key {
            "query" => once(&mut query, at, wire::read_query(value)?),
            "after" if !value.null()? => once(&mut after, at, value.u64()?),
            "limit" if !value.null()? => once(&mut limit, at, value.u64()?),
            "order" if !value.null()? => {
                let chosen = match &*value.string()? {
                    "asc" => Order::Ascending,
                    "desc" => Order::Descending,
                    _ => return rule(at, "must be \"asc\" or \"desc\""),
                };
                once(&mut order, at, chosen)
            }
            "after" | "limit" | "order" => Ok(()),
            _ => unknown(at, "query, after, limit, order"),
        }
    })?;
    let Some(query) = query else { return missing("query", start) };
    Ok(Wanted { query, after, limit, order: order.unwrap_or_default() })
}

async fn answer(shell: Arc<Shell>, request: Request, params: Params, wanted: Wanted) -> Answer {
    let media = negotiate(&request, &[JSON, NDJSON, SSE])?;
    let log = request.log()?;
    freshen(&request, &params, log).await?;
    match media {
        SSE => subscribe::subscribe(shell, &request, wanted),
        NDJSON => read(&shell, &request, wanted, Format::Lines).await,
        _ => {
            let limit = page_limit(wanted.limit, DEFAULT_LIMIT, MAX_PAGE_EVENTS)?;
            read(&shell, &request, Wanted { limit: Some(limit), ..wanted }, Format::Page).await
        }
    }
}

/// Reads what is wanted from the request's log as it is now.
pub(crate) async fn read(
    shell: &Arc<Shell>,
    request: &Request,
    mut wanted: Wanted,
    format: Format,
) -> Answer {
    let reads = request.payer.reads()?;
    let permit = match Price::of_terms(wanted.query.term_count()) {
        Price::Short => None,
        Price::Dear => Some(long_read(shell)?),
    };
    let query = std::mem::take(&mut wanted.query);
    let PricedQuery { query, price } = PricedQuery::compile(query, &reads).await?;
    let snapshot = request.log()?.snapshot();
    let head = snapshot.head();
    let mut reading = Reading::new(shell, reads, &snapshot, query, wanted, format);
    let mut out = Vec::with_capacity(4 << 10);
    let content_type = if format == Format::Lines { NDJSON } else { JSON };
    if price == Price::Short && reading.fill(&mut out, SHORT)? {
        return Ok(Response { content_type, ..Response::json(200, out) }.at(head));
    }
    let permit = match permit {
        Some(permit) => permit,
        None => long_read(shell)?,
    };
    if format != Format::Page {
        let (producer, chunks) = stream::channel();
        let standing = request.body.standing().cloned();
        tokio::spawn(pump(reading, out, producer.holding(permit), standing));
        return Ok(Response::stream(content_type, chunks).at(head));
    }
    loop {
        let done;
        (reading, out, done) = elsewhere(move || {
            let mut out = out;
            let done = reading.fill(&mut out, Budget { bytes: usize::MAX, ..PIECE });
            (reading, out, done)
        })
        .await?;
        if done? {
            // Its client may take its time to read it.
            out.shrink_to_fit();
            return Ok(Response::json(200, out).at(head));
        }
    }
}

async fn pump(
    mut reading: Reading,
    first: Vec<u8>,
    producer: Producer,
    standing: Option<Arc<Standing>>,
) {
    if producer.send(first).await.is_err() {
        return;
    }
    let payer = reading.reads.payer().clone();
    // Room is waited for before a buffer is filled, not after.
    while producer.ready().await.is_ok() && producer.paid(&payer).await.is_ok() {
        let piece = elsewhere(move || {
            let mut out = Vec::with_capacity(PIECE.bytes + (16 << 10));
            let done = reading.fill(&mut out, PIECE);
            (reading, out, done)
        });
        let Ok((next, out, done)) = piece.await else { return };
        reading = next;
        if standing.as_ref().is_some_and(|standing| !standing.holds()) {
            // Cut, not ended: it is not all there is.
            return;
        }
        match done {
            Err(error) => {
                tracing::error!(%error, "a stream was cut");
                return;
            }
            Ok(done) => {
                if producer.send(out).await.is_err() {
                    return;
                }
                if done {
                    return producer.end().await;
                }
            }
        }
    }
}

/// A read under way.
struct Reading {
    events: Events,
    format: Format,
    head: Position,
    clock: Arc<dyn wellspring_log::Clock>,
    /// Most events to write; more may be looked at to know whether there are more.
    limit: u64,
    max_bytes: usize,
    written: u64,
    last: Position,
    begun: bool,
    reads: Reads,
}

impl Reading {
    fn new(
        shell: &Shell,
        reads: Reads,
        snapshot: &Snapshot,
        query: Arc<CompiledQuery>,
        wanted: Wanted,
        format: Format,
    ) -> Reading {
        // A page looks one event further, so that `next` is null exactly at the end.
        let ahead = u64::from(format == Format::Page);
        let options = ReadOptions {
            after: wanted.after,
            order: wanted.order,
            limit: wanted.limit.map(|limit| limit.saturating_add(ahead)),
        };
        let page = format == Format::Page;
        Reading {
            events: snapshot.read_compiled(query, options),
            format,
            head: snapshot.head(),
            clock: Arc::clone(&shell.clock),
            limit: wanted.limit.unwrap_or(u64::MAX),
            max_bytes: if page { shell.config.max_page_bytes } else { usize::MAX },
            written: 0,
            last: 0,
            begun: false,
            reads,
        }
    }

    /// Writes events until they or the budget end; true if the answer is complete.
    fn fill(&mut self, out: &mut Vec<u8>, budget: Budget) -> Result<bool, ReadError> {
        let reads = self.reads.clone();
        reads.timed(|| self.write(out, budget))
    }

    fn write(&mut self, out: &mut Vec<u8>, budget: Budget) -> Result<bool, ReadError> {
        if !std::mem::replace(&mut self.begun, true) {
            out.extend_from_slice(match self.format {
                Format::Page => b"{\"events\":[",
                Format::Lines => b"",
                Format::Array => b"[",
            });
        }
        let deadline_us = self.clock.monotonic_us() + budget.us;
        // Between events: a search that finds none must end as well, and goes on where it was.
        self.events.bound(Work::unbounded().with_deadline(Arc::clone(&self.clock), deadline_us));
        let (stop_at, stop_bytes) = (self.written.saturating_add(budget.events), budget.bytes);
        loop {
            if self.written >= stop_at || out.len() >= stop_bytes {
                return Ok(false);
            }
            // The clock is asked rarely; between, events are cheap.
            if self.written % 16 == 15 && self.clock.monotonic_us() > deadline_us {
                return Ok(false);
            }
            let event = match self.events.next() {
                Ok(Some(event)) => event,
                Ok(None) => {
                    self.finish(out, false);
                    return Ok(true);
                }
                Err(ReadError::Stopped(_)) => return Ok(false),
                Err(error) => return Err(error),
            };
            if self.written == self.limit || out.len() > self.max_bytes {
                self.finish(out, true);
                return Ok(true);
            }
            self.last = event.position();
            push(out, self.format, self.written == 0, &event);
            self.written += 1;
        }
    }

    fn finish(&self, out: &mut Vec<u8>, more: bool) {
        match self.format {
            Format::Lines => {}
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
                out.push(b'}');
            }
        }
    }
}

fn push(out: &mut Vec<u8>, format: Format, first: bool, event: &RecordView<'_>) {
    match format {
        Format::Page => {
            if !first {
                out.push(b',');
            }
            push_event(out, event);
        }
        Format::Lines => push_line(out, event),
        Format::Array => {
            out.extend_from_slice(if first { b"{\"type\":" } else { b",{\"type\":" });
            super::json::push_string(out, event.event_type());
            push_tags(out, event.tags());
            out.extend_from_slice(b",\"data\":");
            super::json::push_lossy(out, event.data());
            out.extend_from_slice(b",\"position\":");
            push_u64(out, event.position());
            out.push(b'}');
        }
    }
}

/// One event, one line: a payload that was sent over several lines is the one thing that is not
/// copied as it is; the line breaks in it can only be white space between tokens.
fn push_line(out: &mut Vec<u8>, event: &RecordView<'_>) {
    let start = out.len();
    push_event(out, event);
    for byte in &mut out[start..] {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    out.push(b'\n');
}

/// `GET /v1/events/{position}`.
pub(crate) async fn get_event(_shell: Arc<Shell>, request: Request) -> Answer {
    let reads = request.payer.reads()?;
    let digits = request.param.bytes().all(|b| b.is_ascii_digit());
    let Ok(position) = request
        .param
        .parse::<Position>()
        .map_err(drop)
        .and_then(|p| if digits { Ok(p) } else { Err(()) })
    else {
        return Err(problem::INVALID
            .because(format!("a position is an integer from 1, not {:?}", request.param))
            .field("position"));
    };
    let snapshot = fresh_snapshot(&request).await?;
    reads.timed(|| one_event(&snapshot, position, &format!("position {position}")))
}

/// `GET /v1/events/by-id/{uuid}`.
pub(crate) async fn get_event_by_id(_shell: Arc<Shell>, request: Request) -> Answer {
    let reads = request.payer.reads()?;
    let Some(id) = EventId::parse(&request.param) else {
        let detail = format!("an id is a UUID, not {:?}", request.param);
        return Err(problem::INVALID.because(detail).field("uuid"));
    };
    let snapshot = fresh_snapshot(&request).await?;
    reads.timed(|| {
        let position = snapshot.find_id(id)?.unwrap_or(0);
        one_event(&snapshot, position, &format!("id {id}"))
    })
}

async fn fresh_snapshot(request: &Request) -> Result<Snapshot, Box<Problem>> {
    let params = Params::of(request, &[])?;
    negotiate(request, &[JSON])?;
    let log = request.log()?;
    freshen(request, &params, log).await?;
    Ok(log.snapshot())
}

fn one_event(snapshot: &Snapshot, position: Position, name: &str) -> Answer {
    let mut out = Vec::new();
    // 0 never names an event.
    let found = match position {
        0 => None,
        position => snapshot.at(position, |event| push_event(&mut out, event))?,
    };
    match found {
        Some(()) => Ok(Response::json(200, out).at(snapshot.head())),
        None => {
            let head = snapshot.head();
            let detail = format!("there is no event with {name}; the head is {head}");
            Err(problem::NOT_FOUND.because(detail))
        }
    }
}

/// The `options` of the DCB dialect: `{"from","limit","backwards"}`, `from` inclusive.
pub(crate) fn dialect_options(text: &str, query: Query) -> Result<Wanted, Box<Problem>> {
    let read = |cursor: &mut Cursor<'_>| {
        let (mut from, mut limit, mut backwards) = (None, None, None);
        cursor.object(|key, value| {
            let at = value.at();
            match key {
                "from" if !value.null()? => {
                    once(&mut from, at, wire::read_after(value, Style::Dialect)?)
                }
                "limit" if !value.null()? => once(&mut limit, at, value.u64()?),
                "backwards" if !value.null()? => match value.raw()? {
                    b"true" => once(&mut backwards, at, true),
                    b"false" => once(&mut backwards, at, false),
                    _ => {
                        let (expected, found) = ("a boolean", "something else");
                        Err(Fault::new(at, FaultKind::WrongType { expected, found }))
                    }
                },
                "from" | "limit" | "backwards" => Ok(()),
                _ => unknown(at, "from, limit, backwards"),
            }
        })?;
        Ok((from, limit, backwards.unwrap_or(false)))
    };
    let (from, limit, backwards) = wire::document(text.as_bytes(), read)
        .map_err(|fault| of_parameter(fault, "options", text))?;
    let (order, after) = if backwards {
        (Order::Descending, from.map(|from| from.saturating_add(1)))
    } else {
        (Order::Ascending, from.map(|from| from.saturating_sub(1)))
    };
    Ok(Wanted { query, after, limit, order })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_is_inclusive_both_ways() {
        let options = |text| dialect_options(text, Query::all()).unwrap();
        assert_eq!(options(r#"{"from":0}"#).after, Some(0));
        assert_eq!(options(r#"{"from":5}"#).after, Some(4));
        let back = options(r#"{"from":5,"backwards":true,"limit":2}"#);
        assert_eq!((back.after, back.order, back.limit), (Some(6), Order::Descending, Some(2)));
        assert!(dialect_options(r#"{"backwards":1}"#, Query::all()).is_err());
    }

    #[test]
    fn a_body_may_say_all_that_a_url_can() {
        let text = br#"{"query":{"items":[]},"after":7,"limit":3,"order":"desc"}"#;
        let wanted = wire::document(text, read_wanted).unwrap();
        assert_eq!(
            (wanted.after, wanted.limit, wanted.order),
            (Some(7), Some(3), Order::Descending)
        );
        let fault =
            wire::document(br#"{"query":{"items":[{"tag":[]}]}}"#, read_wanted).err().unwrap();
        assert_eq!(fault.field, "query.items[0].tag");
    }
}
