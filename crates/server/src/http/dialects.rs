//! The dialects of two other projects: the DCB project's own HTTP interface and
//! go-crablet's. Same log, same promises, their shapes.

use super::append::{SentAppend, begin, outcome, submit};
use super::dialect_data::{Size, example_events};
use super::elsewhere::{Price, at_price, elsewhere, parse};
use super::fold::{Folding, fold};
use super::json::{Cursor, Fault, push_string, push_u64};
use super::params::{Params, expect_json_of_pages};
use super::problem::{Problem, of_fault};
use super::read::{self, Format, dialect_options, query_of};
use super::wire::{self, Style, missing, once, push_query, read_after, read_query, unknown};
use super::{Answer, Request, Response, Shell};
use std::sync::Arc;
use wellspring_log::{Ack, Append, AppendError, CommitOn, EncodedEvents, RecordView};
use wellspring_types::{Position, Query, limits};

/// Most projectors of one request.
const MAX_PROJECTORS: usize = 256;

/// `POST /append`: a condition that fails is not an HTTP error here.
pub(crate) async fn append(shell: Arc<Shell>, mut request: Request) -> Answer {
    let started_us = shell.clock.monotonic_us();
    expect_json_of_pages(&request)?;
    let body = request.body.read(limits::MAX_REQUEST_BYTES).await?;
    let sent = SentAppend { body, style: Style::Dialect, key: None };
    let failed = match submit(&shell, &request, sent).await?.outcome {
        Ok(_) => false,
        Err(AppendError::Conflict(_)) => true,
        Err(error) => return Err(error.into()),
    };
    let mut out = took(&shell, started_us);
    out.extend_from_slice(b",\"appendConditionFailed\":");
    out.extend_from_slice(if failed { b"true}" } else { b"false}" });
    Ok(Response::json(200, out))
}

fn took(shell: &Shell, started_us: u64) -> Vec<u8> {
    let mut out = b"{\"durationInMicroseconds\":".to_vec();
    push_u64(&mut out, shell.clock.monotonic_us().saturating_sub(started_us));
    out
}

/// `GET /read?query=&options=`.
pub(crate) async fn get_read(shell: Arc<Shell>, request: Request) -> Answer {
    let params = Params::of(&request, &["query", "options"])?;
    let query = match params.one("query")?.filter(|text| !text.is_empty()) {
        Some(text) => query_of(text).await?,
        None => Query::all(),
    };
    let options = params.one("options")?.filter(|text| !text.is_empty()).unwrap_or("{}");
    let wanted = dialect_options(options, query)?;
    read::read(&shell, &request, wanted, Format::Array).await
}

/// Counts events and remembers the last.
struct Count {
    events: u64,
    last: Position,
}

impl Folding for Count {
    fn fold(&mut self, event: &RecordView<'_>) {
        self.events += 1;
        self.last = event.position();
    }
}

/// `POST /read`: how many events match, and the last of them.
pub(crate) async fn post_read(shell: Arc<Shell>, mut request: Request) -> Answer {
    let started_us = shell.clock.monotonic_us();
    let body = request.body.read(limits::MAX_REQUEST_BYTES).await?;
    let (query, after) = parse(body, read_read).await?;
    let nothing = Count { events: 0, last: 0 };
    let (count, head) = fold(&shell, &request, query, after, nothing).await?;
    let mut out = took(&shell, started_us);
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
            // Their options concern their way of reading; a count has none.
            "options" => value.raw().map(drop),
            _ => unknown(at, "query, after, options"),
        }
    })?;
    Ok((query.unwrap_or_default(), after))
}

/// One projector: its name, what it counts, what it is before anything matched.
struct Projector {
    id: String,
    query: Query,
    initial: Vec<u8>,
    count: u64,
}

struct Projectors(Vec<Projector>);

impl Folding for Projectors {
    fn fold(&mut self, event: &RecordView<'_>) {
        for projector in &mut self.0 {
            let matched = projector.query.matching_item(event.event_type(), event.tags());
            projector.count += u64::from(matched.is_some());
        }
    }
}

/// `POST /project`: the function is ignored, as the original does; matches are counted.
pub(crate) async fn project(shell: Arc<Shell>, mut request: Request) -> Answer {
    let started_us = shell.clock.monotonic_us();
    let body = request.body.read(limits::MAX_REQUEST_BYTES).await?;
    let price = Price::of_bytes(body.len());
    let united = move || {
        let (projectors, after) =
            wire::document(&body, read_project).map_err(|fault| of_fault(&fault, &body))?;
        let union = union(&projectors)?;
        Ok::<_, Box<Problem>>((Projectors(projectors), Arc::new(union), after))
    };
    let (projectors, union, after) = at_price(price, united).await??;
    let price = price.max(Price::of_terms(union.term_count()));
    let (folded, head) = fold(&shell, &request, Arc::clone(&union), after, projectors).await?;
    let answer = move || {
        let mut out = took(&shell, started_us);
        push_projected(&mut out, &folded.0, &union, head);
        out
    };
    Ok(Response::json(200, at_price(price, answer).await?).at(head))
}

fn push_projected(out: &mut Vec<u8>, projectors: &[Projector], union: &Query, head: Position) {
    out.extend_from_slice(b",\"states\":{");
    for (i, projector) in projectors.iter().enumerate() {
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
    push_query(out, union);
    // The original leaves this out, and with it the use of the condition.
    out.extend_from_slice(b",\"after\":\"");
    push_u64(out, head);
    out.extend_from_slice(b"\"}}");
}

fn union(projectors: &[Projector]) -> Result<Query, Box<Problem>> {
    if projectors.iter().any(|projector| projector.query.is_all()) {
        return Ok(Query::all());
    }
    let mut union = Query::all();
    for item in projectors.iter().flat_map(|projector| &projector.query.items) {
        if !union.items.contains(item) {
            union.items.push(item.clone());
        }
    }
    union.check().map_err(|invalid| invalid.within("projectors"))?;
    Ok(union)
}

type Project = (Vec<Projector>, Option<Position>);

fn read_project(cursor: &mut Cursor<'_>) -> Result<Project, Box<Fault>> {
    let start = cursor.at();
    let (mut projectors, mut after) = (None, None);
    cursor.object(|key, value| {
        let at = value.at();
        match key {
            "projectors" => {
                let mut list = Vec::new();
                value.array(|_, value| {
                    if list.len() == MAX_PROJECTORS {
                        return wire::rule(
                            at,
                            format!("is more than the {MAX_PROJECTORS} allowed"),
                        );
                    }
                    list.push(read_projector(value)?);
                    Ok(())
                })?;
                once(&mut projectors, at, list)
            }
            "after" if value.null()? => Ok(()),
            "after" => once(&mut after, at, read_after(value, Style::Dialect)?),
            _ => unknown(at, "projectors, after"),
        }
    })?;
    match projectors {
        Some(list) if list.is_empty() => wire::rule(start, "must hold at least one projector")
            .map_err(|fault: Box<Fault>| fault.within("projectors")),
        Some(list) => Ok((list, after)),
        None => missing("projectors", start),
    }
}

fn read_projector(cursor: &mut Cursor<'_>) -> Result<Projector, Box<Fault>> {
    let start = cursor.at();
    let (mut id, mut query, mut initial) = (None, None, None);
    cursor.object(|key, value| {
        let at = value.at();
        match key {
            "id" => once(&mut id, at, value.string()?.into_owned()),
            "query" if value.null()? => Ok(()),
            "query" => once(&mut query, at, read_query(value)?),
            "initialState" => once(&mut initial, at, value.raw()?.to_vec()),
            "transitionFunction" => value.raw().map(drop),
            _ => unknown(at, "id, query, initialState, transitionFunction"),
        }
    })?;
    let Some(id) = id else { return missing("id", start) };
    let initial = initial.unwrap_or_else(|| b"null".to_vec());
    Ok(Projector { id, query: query.unwrap_or_default(), initial, count: 0 })
}

/// `POST /cleanup`, for development.
pub(crate) async fn cleanup(shell: Arc<Shell>, request: Request) -> Answer {
    expect_json_of_pages(&request)?;
    let name = request.log_name;
    elsewhere(move || shell.node.empty(&name)).await??;
    let body = r#"{"message":"All events were removed; the log begins again at position 1","success":true}"#;
    Ok(Response::json(200, body).at(0))
}

/// `POST /load-test-data?size=`, for development.
pub(crate) async fn load_test_data(shell: Arc<Shell>, request: Request) -> Answer {
    let started_us = shell.clock.monotonic_us();
    expect_json_of_pages(&request)?;
    let params = Params::of(&request, &["size"])?;
    let sizes = [("tiny", Size::TINY), ("small", Size::SMALL)];
    let size = params.choice("size", &sizes)?.unwrap_or(Size::TINY);
    let log = request.log()?;
    let mut batch = EncodedEvents::new();
    for event in example_events(size) {
        batch.push(&event.as_ref())?;
        if batch.len() == limits::MAX_EVENTS {
            append_batch(log, std::mem::take(&mut batch)).await?;
        }
    }
    append_batch(log, batch).await?;
    let body = format!(
        r#"{{"success":true,"message":"loaded","courses":{},"students":{},"enrollments":{},"dataset_size":"{}","durationInMicroseconds":{}}}"#,
        size.courses,
        size.students,
        size.enrollments,
        size.name,
        shell.clock.monotonic_us().saturating_sub(started_us)
    );
    Ok(Response::json(200, body))
}

async fn append_batch(
    log: &wellspring_log::Log,
    events: EncodedEvents,
) -> Result<(), Box<Problem>> {
    if events.is_empty() {
        return Ok(());
    }
    let append = Append { events, condition: None, ack: Ack::Durable, key: None, fence: None };
    outcome(begin(log, append, CommitOn::JournalThread)).await?;
    Ok(())
}
