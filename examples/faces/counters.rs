//! A face of one's own, in one file: counters that never fall below zero.
//!
//! ```sh
//! cargo run --release -p wellspring-server --example counters -- serve &
//! curl -X POST http://127.0.0.1:4000/counters/apples -H 'Content-Type: application/json' -d '{"by":3}'
//! curl http://127.0.0.1:4000/counters/apples
//! ```
//! `docs/faces.md` goes through it from top to bottom.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wellspring_server::embed::contract::{APPENDING, JSON, Segment, VIEWING, Values};
use wellspring_server::embed::{
    Answer, Decision, EmbeddedFace, Event, Face, Host, KeptEvents, LogEvent, NoSettings, Position,
    Query, QueryItem, Request, Response, ServedRoute, SetupError, SnapshotFault, Ticket, View,
    ViewSlot, problems, routes,
};

/// The log, the type of event, and the beginning of the tag that names the counter.
const LOG: &str = "main";
const ADDED: &str = "CounterAdded";
const TAG: &str = "counter:";

/// The data of an event, and the content of a request: what is added, or taken away if negative.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Added {
    by: i64,
}

/// A counter, and the position of the last event in it: a snapshot may hold the effect of an event
/// that is applied again.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Total {
    total: i64,
    at: Position,
}

/// All counters, by name, shared by the fold and its readers.
type Totals = Mutex<BTreeMap<String, Total>>;

/// The view: decides what may be added, and folds what was.
struct Counters(Arc<Totals>);

/// What a client wants to be added to the counter of a name.
struct Add {
    name: String,
    by: i64,
}

fn total(totals: &Totals, name: &str) -> i64 {
    let totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
    totals.get(name).map_or(0, |counter| counter.total)
}

/// The name of the counter and what is added to it, if the event is one of ours.
fn read(tag: Option<&str>, data: &[u8]) -> Option<(String, i64)> {
    let name = tag?.strip_prefix(TAG)?.to_owned();
    Some((name, serde_json::from_slice::<Added>(data).ok()?.by))
}

impl View for Counters {
    const NAME: &'static str = "counters";
    const VERSION: u32 = 1;
    type Folded = Totals;
    type Staged = Vec<(Ticket, String, i64)>;
    type Command = Add;
    type Context = ();
    type Outcome = ();
    type Refusal = String;

    fn new() -> Counters {
        Counters(Arc::default())
    }

    fn query() -> Query {
        Query::item(&[ADDED], &[])
    }

    fn folded(&self) -> &Arc<Totals> {
        &self.0
    }

    fn apply(&mut self, event: &impl LogEvent) {
        let Some((name, by)) = read(event.tags().next(), event.data()) else { return };
        let mut totals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counter = totals.entry(name).or_default();
        if event.position() > counter.at {
            *counter = Total { total: counter.total.saturating_add(by), at: event.position() };
        }
    }

    fn outcome(_: &impl LogEvent) -> Option<()> {
        Some(())
    }

    fn decide(
        folded: &Totals,
        staged: &Vec<(Ticket, String, i64)>,
        (): &(),
        Add { name, by }: &Add,
    ) -> Result<Decision<()>, String> {
        let on_their_way = staged.iter().filter(|(_, other, _)| other == name).map(|(.., by)| by);
        let now = on_their_way.fold(total(folded, name), |sum, by| sum.saturating_add(*by));
        if now.checked_add(*by).is_none_or(|then| then < 0) {
            return Err(format!("by {by} cannot be added to {now}: a counter is never below zero"));
        }
        let tag = format!("{TAG}{name}");
        Ok(Decision {
            events: vec![Event::json(ADDED, &[&tag], &format!(r#"{{"by":{by}}}"#))],
            unless: vec![QueryItem::new(&[ADDED], &[&tag])],
            outcome: (),
        })
    }

    fn stage(staged: &mut Self::Staged, decision: &Decision<()>, ticket: Ticket) {
        let tag = |event: &Event| event.tags.first().cloned();
        let read = |event: &Event| read(tag(event).as_deref(), &event.data);
        staged.extend(decision.events.iter().filter_map(read).map(|(name, by)| (ticket, name, by)));
    }

    fn settle(staged: &mut Self::Staged, ticket: Ticket) {
        staged.retain(|(other, ..)| *other != ticket);
    }

    fn encode(folded: &Totals, out: &mut impl Write) -> std::io::Result<()> {
        let totals = folded.lock().unwrap_or_else(PoisonError::into_inner).clone();
        serde_json::to_writer(out, &totals).map_err(Into::into)
    }

    fn decode(input: &mut impl Read) -> Result<Counters, SnapshotFault> {
        let totals: BTreeMap<String, Total> = serde_json::from_reader(input)
            .map_err(|_| SnapshotFault::Malformed("these are no counters"))?;
        Ok(Counters(Arc::new(Mutex::new(totals))))
    }
}

/// The name of a counter, as it stands in the path.
static NAME: Segment<String> = Segment {
    name: "name",
    what: "Name of the counter.",
    values: Values::Text(None),
    read: |text| Ok(text.to_owned()),
};

/// The face: two routes on the view.
struct CounterFace {
    host: Arc<Host>,
    view: Arc<ViewSlot<Counters>>,
}

impl Face for CounterFace {
    const NAME: &'static str = "counters";
    type Settings = NoSettings;
    const ROUTES: &'static [ServedRoute<CounterFace>] = routes! { |face| face;
        POST "/counters/{name}" Main Writer add: "Adds to a counter."
            .at(&NAME) .takes[(JSON, "")] .fails[APPENDING, VIEWING] => [200 JSON ""];
        GET "/counters/{name}" Main Reader show: "A counter." .at(&NAME) .fails[VIEWING] => [200 JSON ""];
    };

    fn kept_events(_: &NoSettings) -> Option<&'static KeptEvents> {
        static KEPT: KeptEvents = KeptEvents {
            log: Some(LOG),
            types: &[ADDED],
            prefix: "Counter",
            advice: "counters write themselves: POST /counters/{name} adds to one",
        };
        Some(&KEPT)
    }

    fn open(_: NoSettings, host: &Arc<Host>) -> Result<CounterFace, SetupError> {
        let view = ViewSlot::new(|| Ok(()));
        host.attach(LOG, &view)?;
        Ok(CounterFace { host: Arc::clone(host), view })
    }
}

async fn add(face: Arc<CounterFace>, mut request: Box<Request>) -> Answer {
    let content = request.content(1024).await?;
    let Added { by } = serde_json::from_slice(&content).map_err(|fault| {
        problems::INVALID.because(format!("send {{\"by\":1}}: {fault}")).field("by")
    })?;
    let live = face.view.live().ok_or_else(|| problems::LOG_CLOSED.because("it is emptied"))?;
    let command = Add { name: request.segment(&NAME)?, by };
    let executed =
        live.execute(&request.effects, &[command], None, face.host.commit_on(&request)).await?;
    match executed.refused {
        Some(refusal) => Err(problems::INVALID.because(refusal).field("by")),
        None => show(face, request).await,
    }
}

async fn show(face: Arc<CounterFace>, request: Box<Request>) -> Answer {
    let live = face.view.live().ok_or_else(|| problems::LOG_CLOSED.because("it is emptied"))?;
    let folded = live.caught_up(0, Duration::ZERO).await?;
    let total = total(folded, &request.segment(&NAME)?);
    Ok(Response::json(200, format!(r#"{{"total":{total}}}"#)).at(live.position()))
}

fn main() -> ExitCode {
    wellspring_server::main_with(vec![EmbeddedFace::of::<CounterFace>()])
}

#[cfg(test)]
#[path = "counters_tests.rs"]
mod tests;
