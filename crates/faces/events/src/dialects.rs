//! The dialects of two other projects: the DCB project's own HTTP interface and go-crablet's. The
//! same log and guarantees in their formats.

use super::append::{SentAppend, begin, outcome, submit};
use super::dialect_data::{Size, example_events};
use super::event_json::{Style, read_after};
use super::fold::{Folding, fold};
use super::params::{OPTIONS, QUERY};
use super::read::{self, Format, parse};
use super::read_request::{dialect_options, query_of};
use crate::EventFace;
use std::collections::HashMap;
use std::sync::Arc;
use wellspring_host::http::content::expect_json_of_pages;
use wellspring_host::http::work::{Cost, Job, elsewhere};
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::wire::effects::StepRefusal;
use wellspring_host::wire::json::{Cursor, Fault, push_string, push_u64};
use wellspring_host::wire::json::{document, missing, once, rule, unknown};
use wellspring_host::wire::param::{Param, Words};
use wellspring_host::wire::problem::{Problem, of_fault};
use wellspring_json::{push_query, read_query};
use wellspring_log::{Append, AppendError, CommitOn, EncodedEvents, RecordView};
use wellspring_types::{Position, Query, QueryItem, limits};

/// Number of example events to append.
pub(super) static SIZE: Param<Words<Size>> = Param::words(
    "size",
    "How many events.",
    &[("tiny", Size::TINY), ("small", Size::SMALL)],
    "tiny",
);
/// Most projectors of one request.
const MAX_PROJECTORS: usize = 256;

/// `POST /append`: a failed condition is not an HTTP error here.
pub(crate) async fn append(face: Arc<EventFace>, mut request: Box<Request>) -> Answer {
    let host = &face.host;
    let started_us = host.clock.monotonic_us();
    expect_json_of_pages(&request)?;
    let body = request.body.read(limits::MAX_REQUEST_BYTES).await?;
    let sent = SentAppend { body, style: Style::Dialect, key: None, subject: None };
    let outcome = submit(&face, &request, sent).await?.outcome;
    let failed = match request.effects.settle(outcome) {
        Ok(_) => false,
        Err(StepRefusal { error: AppendError::Conflict(_), .. }) => true,
        Err(refused) => return Err(refused.into()),
    };
    let mut out = took(host, started_us);
    out.extend_from_slice(b",\"appendConditionFailed\":");
    out.extend_from_slice(if failed { b"true}" } else { b"false}" });
    Ok(Response::json(200, out))
}

fn took(host: &Host, started_us: u64) -> Vec<u8> {
    let mut out = b"{\"durationInMicroseconds\":".to_vec();
    push_u64(&mut out, host.clock.monotonic_us().saturating_sub(started_us));
    out
}

/// `GET /read?query=&options=`.
pub(crate) async fn get_read(host: Arc<Host>, request: Box<Request>) -> Answer {
    let query = match request.query(&QUERY)?.filter(|text| !text.is_empty()) {
        Some(text) => query_of(text)?,
        None => Query::all(),
    };
    let options = request.query(&OPTIONS)?.filter(|text| !text.is_empty()).unwrap_or("{}");
    let wanted = dialect_options(options, query)?;
    read::read(&host, &request, wanted, Format::Array).await
}

/// Counts events and remembers the last.
struct Count {
    events: u64,
    last: Position,
}

impl Folding for Count {
    fn fold(&mut self, event: &RecordView<'_>) -> u64 {
        self.events += 1;
        self.last = event.position();
        0
    }
}

/// `POST /read`: the number of matching events, and the last of them.
pub(crate) async fn post_read(host: Arc<Host>, mut request: Box<Request>) -> Answer {
    let started_us = host.clock.monotonic_us();
    let body = request.body.read(limits::MAX_REQUEST_BYTES).await?;
    let mut job = Job::begin(&host, &request.payer)?;
    let (query, after) = parse(&job, body, read_read).await?;
    let nothing = Count { events: 0, last: 0 };
    let snapshot = request.log()?.snapshot();
    let head = snapshot.head();
    let count = fold(&mut job, &snapshot, query, after, nothing).await?;
    let mut out = took(&host, started_us);
    out.extend_from_slice(b",\"numberOfMatchingEvents\":");
    push_u64(&mut out, count.events);
    if count.events > 0 {
        out.extend_from_slice(b",\"checkpointEventId\":\"");
        push_u64(&mut out, count.last);
        out.push(b'"');
    }
    out.push(b'}');
    Ok(Response::json(200, out).at(head))
}

fn read_read(cursor: &mut Cursor<'_>) -> Result<(Query, Option<Position>), Box<Fault>> {
    let (mut query, mut after) = (None, None);
    cursor.object(|key, value| {
        let at = value.at();
        match key {
            "query" if value.null()? => Ok(()),
            "query" => once(&mut query, at, read_query(value)?),
            "after" if value.null()? => Ok(()),
            "after" => once(&mut after, at, read_after(value, Style::Dialect)?),
            // Their options concern the way of reading, which a count does not need.
            "options" => value.raw().map(drop),
            _ => unknown(at, "query, after, options"),
        }
    })?;
    Ok((query.unwrap_or_default(), after))
}

/// One projector: its name, its query, its initial value.
struct Projector {
    id: String,
    items: ItemSet,
    initial: Vec<u8>,
    count: u64,
}

/// The items of the union of all queries that belong to a projector.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemSet {
    /// Its query matches every event.
    Everything,
    Of([u64; limits::MAX_QUERY_ITEMS / 64]),
}

impl ItemSet {
    const NONE: ItemSet = ItemSet::Of([0; limits::MAX_QUERY_ITEMS / 64]);

    fn insert(&mut self, item: usize) {
        if let ItemSet::Of(bits) = self {
            bits[item / 64] |= 1 << (item % 64);
        }
    }

    fn meets(&self, other: &ItemSet) -> bool {
        match (self, other) {
            (ItemSet::Of(a), ItemSet::Of(b)) => a.iter().zip(b).any(|(a, b)| a & b != 0),
            _ => true,
        }
    }
}

/// All projectors of a request, and the union of their queries: each distinct item once, so that an
/// event is compared with at most 256 items.
#[derive(Default)]
struct Projectors {
    list: Vec<Projector>,
    /// The distinct items in order of first appearance, and their indexes while parsing.
    items: Arc<Query>,
    places: HashMap<QueryItem, usize>,
}

impl Projectors {
    /// Adds the items of a projector's query; returns their indexes in the union.
    ///
    /// # Errors
    /// The union would exceed the limit of a query. Reported while parsing, before it gets
    /// expensive.
    fn unite(&mut self, query: Query) -> Result<ItemSet, String> {
        if query.is_all() {
            return Ok(ItemSet::Everything);
        }
        let mut set = ItemSet::NONE;
        for item in query.items {
            let next = self.places.len();
            let place = *self.places.entry(item).or_insert(next);
            if place >= limits::MAX_QUERY_ITEMS {
                let most = limits::MAX_QUERY_ITEMS;
                return Err(format!(
                    "brings the number of distinct query items to more than {most}"
                ));
            }
            set.insert(place);
        }
        Ok(set)
    }

    /// Completes the union.
    fn finish(&mut self) -> Result<(), Box<Problem>> {
        let places = std::mem::take(&mut self.places);
        let mut items: Vec<(QueryItem, usize)> = places.into_iter().collect();
        items.sort_unstable_by_key(|(_, place)| *place);
        let items = Query { items: items.into_iter().map(|(item, _)| item).collect() };
        items.check().map_err(|invalid| invalid.within("projectors"))?;
        self.items = Arc::new(items);
        Ok(())
    }

    /// The events to read, and the query of an append condition.
    fn union(&self) -> Arc<Query> {
        if self.list.iter().any(|projector| projector.items == ItemSet::Everything) {
            Arc::default()
        } else {
            Arc::clone(&self.items)
        }
    }
}

impl Folding for Projectors {
    fn fold(&mut self, event: &RecordView<'_>) -> u64 {
        let mut matched = ItemSet::NONE;
        for (place, item) in self.items.items.iter().enumerate() {
            if item.matches(event.event_type(), event.tags()) {
                matched.insert(place);
            }
        }
        for projector in &mut self.list {
            projector.count += u64::from(projector.items.meets(&matched));
        }
        (self.items.items.len() + self.list.len() / 16) as u64
    }
}

/// `POST /project`: the function is ignored, as in the original; matches are counted.
pub(crate) async fn project(host: Arc<Host>, mut request: Box<Request>) -> Answer {
    let started_us = host.clock.monotonic_us();
    let body = request.body.read(limits::MAX_REQUEST_BYTES).await?;
    let mut job = Job::begin(&host, &request.payer)?;
    let cost = Cost::of_bytes(body.len());
    let read = move || document(&body, read_project).map_err(|fault| of_fault(&fault, &body));
    let (mut projectors, after) = job.brief(cost, read).await??;
    projectors.finish()?;
    job.hold(2 * projectors.items.memory_bytes())?;
    let cost = cost.max(Cost::of_terms(projectors.items.term_count()));
    let union = projectors.union();
    let snapshot = request.log()?.snapshot();
    let head = snapshot.head();
    let folded = fold(&mut job, &snapshot, union, after, projectors).await?;
    let answer = move || {
        let mut out = took(&host, started_us);
        push_projected(&mut out, &folded, head);
        out
    };
    Ok(Response::json(200, job.brief(cost, answer).await?).at(head))
}

fn push_projected(out: &mut Vec<u8>, projectors: &Projectors, head: Position) {
    out.extend_from_slice(b",\"states\":{");
    for (i, projector) in projectors.list.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_string(out, &projector.id);
        out.push(b':');
        match projector.count {
            0 => out.extend_from_slice(&projector.initial),
            count => push_u64(out, count),
        }
    }
    out.extend_from_slice(b"},\"appendCondition\":{\"failIfEventsMatch\":");
    push_query(out, &projectors.union());
    // The original omits this, which makes the condition useless.
    out.extend_from_slice(b",\"after\":\"");
    push_u64(out, head);
    out.extend_from_slice(b"\"}}");
}

type Project = (Projectors, Option<Position>);

fn read_project(cursor: &mut Cursor<'_>) -> Result<Project, Box<Fault>> {
    let start = cursor.at();
    let (mut projectors, mut after) = (None, None);
    cursor.object(|key, value| {
        let at = value.at();
        match key {
            "projectors" => {
                let mut all = Projectors::default();
                value.array(|_, value| {
                    if all.list.len() == MAX_PROJECTORS {
                        return rule(at, format!("is more than the {MAX_PROJECTORS} allowed"));
                    }
                    let projector = read_projector(value, &mut all)?;
                    all.list.push(projector);
                    Ok(())
                })?;
                once(&mut projectors, at, all)
            }
            "after" if value.null()? => Ok(()),
            "after" => once(&mut after, at, read_after(value, Style::Dialect)?),
            _ => unknown(at, "projectors, after"),
        }
    })?;
    match projectors {
        Some(all) if all.list.is_empty() => rule(start, "must contain at least one projector")
            .map_err(|fault: Box<Fault>| fault.within("projectors")),
        Some(all) => Ok((all, after)),
        None => missing("projectors", start),
    }
}

fn read_projector(cursor: &mut Cursor<'_>, all: &mut Projectors) -> Result<Projector, Box<Fault>> {
    let start = cursor.at();
    let (mut id, mut items, mut initial) = (None, None, None);
    cursor.object(|key, value| {
        let at = value.at();
        match key {
            "id" => once(&mut id, at, value.string()?.into_owned()),
            "query" if value.null()? => Ok(()),
            "query" => {
                let query = read_query(value)?;
                let united = all.unite(query).or_else(|detail| rule(at, detail))?;
                once(&mut items, at, united)
            }
            "initialState" => once(&mut initial, at, value.raw()?.to_vec()),
            "transitionFunction" => value.raw().map(drop),
            _ => unknown(at, "id, query, initialState, transitionFunction"),
        }
    })?;
    let Some(id) = id else { return missing("id", start) };
    let initial = initial.unwrap_or_else(|| b"null".to_vec());
    Ok(Projector { id, items: items.unwrap_or(ItemSet::Everything), initial, count: 0 })
}

/// `POST /cleanup`, for development.
pub(crate) async fn cleanup(host: Arc<Host>, request: Box<Request>) -> Answer {
    expect_json_of_pages(&request)?;
    let name = request.log_name;
    request.effects.settle(elsewhere(move || host.node.empty(&name)).await?)?;
    let body = r#"{"message":"All events were removed; the log begins again at position 1","success":true}"#;
    Ok(Response::json(200, body).at(0))
}

/// `POST /load-test-data?size=`, for development.
pub(crate) async fn load_test_data(host: Arc<Host>, request: Box<Request>) -> Answer {
    let started_us = host.clock.monotonic_us();
    expect_json_of_pages(&request)?;
    let size = request.query(&SIZE)?;
    let mut batch = EncodedEvents::new();
    for event in example_events(size) {
        batch.push(&event.as_ref())?;
        if batch.len() == limits::MAX_EVENTS {
            append_batch(&request, std::mem::take(&mut batch)).await?;
        }
    }
    append_batch(&request, batch).await?;
    let body = format!(
        r#"{{"success":true,"message":"loaded","courses":{},"students":{},"enrollments":{},"dataset_size":"{}","durationInMicroseconds":{}}}"#,
        size.courses,
        size.students,
        size.enrollments,
        size.name,
        host.clock.monotonic_us().saturating_sub(started_us)
    );
    Ok(Response::json(200, body))
}

async fn append_batch(request: &Request, events: EncodedEvents) -> Result<(), Box<Problem>> {
    if events.is_empty() {
        return Ok(());
    }
    let append = Append { events, ..Append::default() };
    let outcome = outcome(begin(request.log()?, append, CommitOn::JournalThread)).await;
    request.effects.settle(outcome)?;
    Ok(())
}
