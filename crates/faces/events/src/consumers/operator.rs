//! What operators do with consumers, and the sign of life of a worker.

use super::definition::{ConsumerDefinition, StartAt, read_definition, read_start};
use super::fence::StateFence;
use super::interrupted::Interrupted;
use super::open::{CloseVerdict, OpenConsumer};
use super::pull::worker_name;
use super::registry::{LogConsumers, not_found};
use super::status::{ConsumerStatus, OpenKeyDocument, PlaceName};
use super::stored;
use super::turn::read_worker;
use crate::EventFace;
use crate::append::{begin, outcome};
use crate::params::{CONSUMER, KEY_STATE, KEYS_AFTER, KEYS_LIMIT};
use crate::problems::{CONSUMER_BUSY, TOO_MANY_CONSUMERS};
use crate::subscribe::MAX_QUERY_BYTES;
use crate::times::PositionsOfTimes;
use serde::Serialize;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use wellspring_consumers::{Consumer, KeyStatus, ParkedSelection};
use wellspring_host::http::content::expect_json;
use wellspring_host::http::history::check_reached;
use wellspring_host::http::work::{Job, elsewhere};
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::random;
use wellspring_host::wire::json::{
    Cursor, ReadResult, document, missing, once, push_list, push_u64, rule, unknown,
};
use wellspring_host::wire::problem::{self, Problem, of_fault};
use wellspring_log::{Append, EncodedEvents, Work};
use wellspring_types::Position;
use wellspring_types::moment::TimeRange;

/// Most consumers of a log.
pub(crate) const MAX_CONSUMERS: usize = 64;
/// Largest body that names parked events, or a definition, in bytes.
const MAX_BODY_BYTES: usize = 1 << 20;
/// Time between two tries to close a consumer while appends settle its deliveries.
const CLOSE_PAUSE: Duration = Duration::from_millis(1);

/// A request of an operator about a consumer. It holds [`LogConsumers::changing`], so no other
/// request opens, changes or deletes a consumer of the log meanwhile.
struct Operated<'a> {
    face: &'a EventFace,
    request: &'a Request,
    consumers: &'a LogConsumers,
    name: &'a str,
}

impl Operated<'_> {
    /// The problem of what ended a step.
    fn problem(&self, interrupted: Interrupted) -> Box<Problem> {
        interrupted.problem(&self.request.effects)
    }

    async fn append(&self, events: EncodedEvents) -> Result<Position, Box<Problem>> {
        let fence = StateFence { epoch: self.consumers.epoch, consumer: None };
        let append = Append { events, fence: Some(Arc::new(fence)), ..Append::default() };
        let on = self.face.host.commit_on(self.request);
        let appended = outcome(begin(self.request.log()?, append, on)).await;
        Ok(self.request.effects.settle(appended)?.last)
    }

    /// Does something with a consumer that has to be durable.
    async fn change<T>(
        &self,
        consumer: &Arc<OpenConsumer>,
        act: impl FnOnce(&mut Consumer) -> T,
    ) -> Result<T, Box<Problem>> {
        let acted = consumer.with(|state, _| act(state));
        let acted = acted.map_err(|closed| self.problem(closed.into()))?;
        consumer.news.notify_one();
        let saved = consumer.saved(consumer.next_save()).await;
        saved.map_err(|not_saved| self.problem(not_saved.into()))?;
        self.request.effects.begin();
        Ok(acted)
    }

    async fn status(&self, status: u16, consumer: &Arc<OpenConsumer>) -> Answer {
        let (reported, wall_us) = (Arc::clone(consumer), self.face.host.wall_us());
        let report = move || ConsumerStatus::of(&reported, wall_us);
        let report = elsewhere(report).await?.map_err(|interrupted| self.problem(interrupted))?;
        let mut out = Vec::with_capacity(1 << 10);
        report.push(&mut out, consumer);
        Ok(Response::json(status, out).at(consumer.log.head()))
    }

    /// The position after which something begins.
    async fn after(&self, job: &mut Job, start: StartAt) -> Result<Position, Box<Problem>> {
        let log = self.request.log()?;
        match start {
            StartAt::Beginning => Ok(log.snapshot().first() - 1),
            StartAt::Now => Ok(log.head()),
            StartAt::After(position) => {
                check_reached(log, position).await?;
                Ok(position)
            }
            StartAt::Since(time_us) => {
                let times = TimeRange { since_us: Some(time_us), until_us: None };
                let found = PositionsOfTimes::find(job, &log.snapshot(), times).await?;
                Ok(found.after(None).unwrap_or(0))
            }
        }
    }

    async fn create(
        &self,
        job: &mut Job,
        definition: ConsumerDefinition,
        start: StartAt,
    ) -> Answer {
        if self.consumers.names(job).await?.len() >= MAX_CONSUMERS {
            return Err(TOO_MANY_CONSUMERS
                .because(format!("the log has {MAX_CONSUMERS} consumers, the maximum"))
                .limit(MAX_CONSUMERS as u64));
        }
        let after = self.after(job, start).await?;
        let id: [u8; 4] = random::bytes()
            .map_err(|error| problem::IO.because(format!("no id can be drawn: {error}")))?;
        let id = format!("{:08x}", u32::from_be_bytes(id));
        let mut consumer = Consumer::new(definition.terms.clone(), 1, after);
        let first = consumer.checkpoint(self.request.log()?.head());
        self.append(stored::defined(self.name, &id, &definition, first)).await?;
        let opened = self.consumers.open_changing(&self.face.host, job, self.name).await?;
        self.status(201, &opened.ok_or_else(|| not_found(self.name))?).await
    }

    /// Gives a consumer another definition. What its workers hold is lost, and delivered again.
    async fn redefine(
        &self,
        job: &mut Job,
        consumer: &Arc<OpenConsumer>,
        definition: ConsumerDefinition,
    ) -> Answer {
        let has_other_key = definition.terms.key != consumer.definition.terms.key;
        let busy = |state: &Consumer| {
            let open_keys = state.open_key_count();
            (has_other_key && open_keys > 0).then_some(open_keys)
        };
        let last = loop {
            match consumer.close_saving(busy) {
                CloseVerdict::Closed(last) => break last,
                CloseVerdict::Refused(open_keys) => {
                    let name = self.name;
                    let detail = format!(
                        "the consumer {name:?} has {open_keys} open keys, and another key would \
                         give their events another order"
                    );
                    return Err(CONSUMER_BUSY
                        .because(detail)
                        .field("key")
                        .with("open_keys", open_keys.to_string()));
                }
                CloseVerdict::NotYet => tokio::time::sleep(CLOSE_PAUSE).await,
            }
        };
        self.consumers.forget(self.name);
        self.append(stored::defined(self.name, &consumer.id, &definition, last)).await?;
        let opened = self.consumers.open_changing(&self.face.host, job, self.name).await?;
        self.status(200, &opened.ok_or_else(|| not_found(self.name))?).await
    }
}

/// Evaluates `act` with a consumer under the lock of [`LogConsumers::changing`], and with the job
/// that is charged for it.
macro_rules! operate {
    ($face:ident, $request:ident, |$operated:ident, $job:ident, $consumer:ident| $act:expr) => {{
        let name = $request.segment(&CONSUMER)?;
        let consumers = $face.consumers.of_log(&$request)?;
        #[allow(unused_mut)]
        let mut $job = Job::begin(&$face.host, &$request.payer)?;
        let _changing = consumers.changing.lock().await;
        let $operated =
            Operated { face: &$face, request: &$request, consumers: &consumers, name: &name };
        let opened = consumers.open_changing(&$face.host, &mut $job, &name).await?;
        let $consumer = opened.ok_or_else(|| not_found(&name))?;
        $act
    }};
}

async fn read_body<T: Send + 'static>(
    request: &mut Request,
    read: fn(&mut Cursor<'_>) -> ReadResult<T>,
) -> Result<T, Box<Problem>> {
    expect_json(request)?;
    let body = request.body.read(MAX_BODY_BYTES).await?;
    document(&body, read).map_err(|fault| of_fault(&fault, &body))
}

/// `PUT /v1/consumers/{name}`.
pub(crate) async fn define(face: Arc<EventFace>, mut request: Box<Request>) -> Answer {
    let name = request.segment(&CONSUMER)?;
    let (definition, start) = read_body(&mut request, read_definition).await?;
    let query_bytes = definition.query.memory_bytes();
    if query_bytes > MAX_QUERY_BYTES {
        let detail = format!(
            "the query takes {query_bytes} bytes; the limit for a consumer is {MAX_QUERY_BYTES}"
        );
        let problem = problem::TOO_LARGE.because(detail).field("query");
        return Err(problem.limit(MAX_QUERY_BYTES as u64));
    }
    let consumers = face.consumers.of_log(&request)?;
    let mut job = Job::begin(&face.host, &request.payer)?;
    let _changing = consumers.changing.lock().await;
    let operated = Operated { face: &face, request: &request, consumers: &consumers, name: &name };
    match consumers.open_changing(&face.host, &mut job, &name).await? {
        None => operated.create(&mut job, definition, start.unwrap_or_default()).await,
        Some(known) if known.definition == definition => operated.status(200, &known).await,
        Some(known) => operated.redefine(&mut job, &known, definition).await,
    }
}

/// `GET /v1/consumers`.
pub(crate) async fn list(face: Arc<EventFace>, request: Box<Request>) -> Answer {
    let consumers = face.consumers.of_log(&request)?;
    let mut job = Job::begin(&face.host, &request.payer)?;
    let mut opened = Vec::new();
    for name in consumers.names(&mut job).await? {
        opened.push(consumers.open(&face.host, &mut job, &name).await?);
    }
    let (wall_us, head) = (face.host.wall_us(), request.log()?.head());
    let write = move || {
        let mut out = b"{\"consumers\":".to_vec();
        // One that is being changed is left out: it is there with the next request.
        let reported = opened
            .iter()
            .filter_map(|consumer| Some((consumer, ConsumerStatus::of(consumer, wall_us).ok()?)));
        push_list(&mut out, reported, |out, (consumer, status)| status.push(out, consumer));
        out.push(b'}');
        out
    };
    Ok(Response::json(200, elsewhere(write).await?).at(head))
}

/// `GET /v1/consumers/{name}`.
pub(crate) async fn get(face: Arc<EventFace>, request: Box<Request>) -> Answer {
    operate!(face, request, |operated, job, consumer| operated.status(200, &consumer).await)
}

/// `DELETE /v1/consumers/{name}`.
pub(crate) async fn delete(face: Arc<EventFace>, request: Box<Request>) -> Answer {
    operate!(face, request, |operated, job, consumer| {
        // Appends that settle its deliveries are refused from now on.
        drop(consumer);
        let position = operated.append(stored::dropped(operated.name)).await?;
        operated.consumers.forget(operated.name);
        Ok(Response::of(200, &Deleted { deleted: operated.name }).at(position))
    })
}

#[derive(Serialize)]
struct Deleted<'a> {
    deleted: &'a str,
}

/// `POST /v1/consumers/{name}/pause`.
pub(crate) async fn pause(face: Arc<EventFace>, request: Box<Request>) -> Answer {
    operate!(face, request, |operated, job, consumer| {
        operated.change(&consumer, Consumer::pause).await?;
        operated.status(200, &consumer).await
    })
}

/// `POST /v1/consumers/{name}/resume`.
pub(crate) async fn resume(face: Arc<EventFace>, request: Box<Request>) -> Answer {
    operate!(face, request, |operated, job, consumer| {
        operated.change(&consumer, Consumer::resume).await?;
        operated.status(200, &consumer).await
    })
}

/// `POST /v1/consumers/{name}/reset`.
pub(crate) async fn reset(face: Arc<EventFace>, mut request: Box<Request>) -> Answer {
    let to = read_body(&mut request, |cursor| {
        let start = cursor.at();
        let mut to = None;
        cursor.object(|name, value| {
            let at = value.at();
            match name {
                "to" => once(&mut to, at, read_start(value)?),
                _ => unknown(at, "to"),
            }
        })?;
        let Some(to) = to else { return missing("to", start) };
        Ok(to)
    })
    .await?;
    operate!(face, request, |operated, job, consumer| {
        let after = operated.after(&mut job, to).await?;
        operated.change(&consumer, |state| state.reset(after)).await?;
        operated.status(200, &consumer).await
    })
}

/// Which parked events are meant.
enum ParkedChoice {
    All,
    Keys(Vec<String>),
    Positions(Vec<Position>),
}

impl ParkedChoice {
    /// Does something with them under the consumer's lock, where nothing is to be searched for.
    async fn apply(
        &self,
        operated: &Operated<'_>,
        consumer: &Arc<OpenConsumer>,
        act: fn(&mut Consumer, ParkedSelection<'_>) -> usize,
    ) -> Result<usize, Box<Problem>> {
        match self {
            ParkedChoice::All => {
                operated.change(consumer, |state| act(state, ParkedSelection::All)).await
            }
            ParkedChoice::Keys(keys) => {
                let keys: HashSet<&str> = keys.iter().map(String::as_str).collect();
                operated.change(consumer, |state| act(state, ParkedSelection::Keys(&keys))).await
            }
            ParkedChoice::Positions(positions) => {
                let positions: HashSet<Position> = positions.iter().copied().collect();
                let positions = ParkedSelection::Positions(&positions);
                operated.change(consumer, |state| act(state, positions)).await
            }
        }
    }
}

fn read_parked(cursor: &mut Cursor<'_>) -> ReadResult<ParkedChoice> {
    const RULE: &str = "must have one of keys, positions and \"all\": true";
    let start = cursor.at();
    let mut parked = None;
    cursor.object(|name, value| {
        let at = value.at();
        let named = match name {
            "all" if value.boolean()? => ParkedChoice::All,
            "all" => return rule(at, "must be true"),
            "keys" => {
                let mut keys = Vec::new();
                value.array(|_, value| {
                    keys.push(value.string()?.into_owned());
                    Ok(())
                })?;
                ParkedChoice::Keys(keys)
            }
            "positions" => {
                let mut positions = Vec::new();
                value.array(|_, value| {
                    positions.push(value.u64()?);
                    Ok(())
                })?;
                ParkedChoice::Positions(positions)
            }
            _ => return unknown(at, "keys, positions, all"),
        };
        match parked.replace(named) {
            None => Ok(()),
            Some(_) => rule(at, RULE),
        }
    })?;
    match parked {
        Some(parked) => Ok(parked),
        None => rule(start, RULE),
    }
}

#[derive(Serialize)]
struct Replayed {
    replayed: usize,
}

/// `POST /v1/consumers/{name}/replay`.
pub(crate) async fn replay(face: Arc<EventFace>, mut request: Box<Request>) -> Answer {
    let parked = read_body(&mut request, read_parked).await?;
    operate!(face, request, |operated, job, consumer| {
        let replayed = parked.apply(&operated, &consumer, Consumer::replay).await?;
        Ok(Response::of(200, &Replayed { replayed }).at(consumer.log.head()))
    })
}

#[derive(Serialize)]
struct Skipped {
    skipped: usize,
}

/// `POST /v1/consumers/{name}/skip`.
pub(crate) async fn skip(face: Arc<EventFace>, mut request: Box<Request>) -> Answer {
    let parked = read_body(&mut request, read_parked).await?;
    operate!(face, request, |operated, job, consumer| {
        let skipped = parked.apply(&operated, &consumer, Consumer::skip).await?;
        Ok(Response::of(200, &Skipped { skipped }).at(consumer.log.head()))
    })
}

/// `GET /v1/consumers/{name}/open`.
pub(crate) async fn open_keys(face: Arc<EventFace>, request: Box<Request>) -> Answer {
    let state: Option<PlaceName> = request.query(&KEY_STATE)?;
    let limit = request.query(&KEYS_LIMIT)? as usize;
    let after = request.query(&KEYS_AFTER)?.unwrap_or(0);
    operate!(face, request, |operated, job, consumer| {
        let page = OpenKeyPage { state, limit, after };
        let of = Arc::clone(&consumer);
        let written = elsewhere(move || page.write(&of)).await?;
        let out = written.map_err(|interrupted| operated.problem(interrupted))?;
        Ok(Response::json(200, out).at(consumer.log.head()))
    })
}

/// A page of open keys, by the position of their next event.
struct OpenKeyPage {
    state: Option<PlaceName>,
    limit: usize,
    after: Position,
}

impl OpenKeyPage {
    fn write(&self, consumer: &OpenConsumer) -> Result<Vec<u8>, Interrupted> {
        // Positions first: the documents of all keys would be made under the lock for one page.
        let (mut keys, has_more) = consumer.with(|state, now_us| {
            let wanted = |key: &KeyStatus<'_>| {
                let is_in_state = |state| PlaceName::of(key.place) == state;
                key.next > self.after && self.state.is_none_or(is_in_state)
            };
            let mut positions: Vec<Position> =
                state.open_keys().filter(wanted).map(|key| key.next).collect();
            // Keys of one event stay together, so that a page can begin after it.
            let last = if positions.len() > self.limit {
                *positions.select_nth_unstable(self.limit - 1).1
            } else {
                Position::MAX
            };
            let page = state.open_keys().filter(wanted).filter(|key| key.next <= last);
            let page: Vec<_> = page.map(|key| OpenKeyDocument::of(&key, now_us)).collect();
            let has_more = positions.len() > page.len();
            (page, has_more)
        })?;
        keys.sort_by_key(|key| key.position);
        let next = keys.last().filter(|_| has_more).map(|key| key.position);
        let parked = keys.iter().filter(|key| key.state == PlaceName::Parked);
        let parked: HashSet<Position> = parked.map(|key| key.position).collect();
        if !parked.is_empty() {
            let (snapshot, work) = (consumer.log.snapshot(), Work::unbounded());
            let reasons = stored::reasons(&snapshot, &consumer.name, &parked, work)
                .map_err(Box::<Problem>::from)?;
            for key in &mut keys {
                let reason = reasons.get(&key.position).filter(|_| key.state == PlaceName::Parked);
                key.reason = reason.map(|event| event.reason.clone());
            }
        }
        let mut out = b"{\"open\":".to_vec();
        out.extend_from_slice(&wellspring_json::to_json(&keys));
        out.extend_from_slice(b",\"next\":");
        match next {
            Some(next) => push_u64(&mut out, next),
            None => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
        Ok(out)
    }
}

#[derive(Serialize)]
struct Extended {
    held: usize,
    hold_ms: u64,
}

/// `POST /v1/consumers/{name}/extend`.
pub(crate) async fn extend(face: Arc<EventFace>, mut request: Box<Request>) -> Answer {
    let name = request.segment(&CONSUMER)?;
    let worker = read_body(&mut request, |cursor| {
        let start = cursor.at();
        let mut worker = None;
        cursor.object(|name, value| {
            let at = value.at();
            match name {
                "worker" => once(&mut worker, at, read_worker(value)?),
                _ => unknown(at, "worker"),
            }
        })?;
        let Some(worker) = worker else { return missing("worker", start) };
        Ok(worker)
    })
    .await?;
    let worker = worker_name(request.principal.holder(), &worker);
    let consumers = face.consumers.of_log(&request)?;
    let mut job = Job::begin(&face.host, &request.payer)?;
    let consumer = consumers.open(&face.host, &mut job, &name).await?;
    // A consumer that is being changed has no deliveries any more.
    let held = consumer.with(|state, now_us| state.extend(&worker, now_us)).unwrap_or(0);
    let hold_ms = consumer.definition.terms.hold_us / 1_000;
    Ok(Response::of(200, &Extended { held, hold_ms }))
}
