//! The routes of sinks and sources.

use crate::document::{FieldFault, SinkDocument, SourceDocument, check_name, read_body};
use crate::problems::{
    CONNECTOR_CONFIGURED, KAFKA_NOT_BUILT, SINK_NOT_FOUND, SOURCE_NOT_FOUND, TOO_MANY_CONNECTORS,
    TOO_MANY_SKIPS,
};
use crate::report::report;
use crate::start::{draw_id, start_in, start_position};
use crate::view::{
    Action, Command, ConnectorKey, ConnectorKind, ConnectorOutcome, ConnectorRefusal,
    MAX_CONNECTORS, MAX_SKIPS, Origin, StartPoint,
};
use crate::{ConnectorFace, document};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use wellspring_host::http::content::{expect_json, expect_json_of_pages};
use wellspring_host::http::contract::{CONSISTENCY, Segment, WAIT_MS};
use wellspring_host::http::required_freshness::Freshness;
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::names::MAIN;
use wellspring_host::wire::param::Values;
use wellspring_host::wire::problem::{self, Problem};
use wellspring_types::Position;

/// Largest body of these routes, in bytes: room for the largest query.
const MAX_BODY_BYTES: usize = 2 << 20;

/// The name of a sink.
pub(crate) static SINK: Segment<ConnectorKey> = Segment {
    name: "name",
    what: "Name of the sink.",
    values: Values::Text(None),
    read: |text| Ok(ConnectorKey::sink(text)),
};

/// The name of a source.
pub(crate) static SOURCE: Segment<ConnectorKey> = Segment {
    name: "name",
    what: "Name of the source.",
    values: Values::Text(None),
    read: |text| Ok(ConnectorKey::source(text)),
};

/// Content of `POST /v1/sinks/{name}/skip`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SinkSkip {
    position: Position,
}

/// Content of `POST /v1/sinks/{name}/reset`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SinkReset {
    to: Value,
}

/// Whether a definition needs the Kafka client.
pub(crate) fn is_of_kafka(definition: &Value) -> bool {
    definition.get("brokers").is_some()
}

/// `GET /v1/sinks`.
pub(crate) async fn list_sinks(face: Arc<ConnectorFace>, request: Box<Request>) -> Answer {
    list(&face, &request, ConnectorKind::Sink, "sinks").await
}

/// `GET /v1/sources`.
pub(crate) async fn list_sources(face: Arc<ConnectorFace>, request: Box<Request>) -> Answer {
    list(&face, &request, ConnectorKind::Source, "sources").await
}

async fn list(
    face: &ConnectorFace,
    request: &Request,
    kind: ConnectorKind,
    member: &str,
) -> Answer {
    freshen(face, request).await?;
    let reports: Vec<_> = face.reports(kind).into_iter().map(|(_, report)| report).collect();
    json(200, &std::collections::BTreeMap::from([(member, reports)]))
}

/// `GET /v1/sinks/{name}`.
pub(crate) async fn get_sink(face: Arc<ConnectorFace>, request: Box<Request>) -> Answer {
    freshen(&face, &request).await?;
    shown(&face, &request.segment(&SINK)?, 200)
}

/// `GET /v1/sources/{name}`.
pub(crate) async fn get_source(face: Arc<ConnectorFace>, request: Box<Request>) -> Answer {
    freshen(&face, &request).await?;
    shown(&face, &request.segment(&SOURCE)?, 200)
}

/// `PUT /v1/sinks/{name}`.
pub(crate) async fn define_sink(face: Arc<ConnectorFace>, mut request: Box<Request>) -> Answer {
    let key = request.segment(&SINK)?;
    let body = request.content(MAX_BODY_BYTES).await?;
    expect_json(&request)?;
    let document: SinkDocument = read_body(&body)?;
    let definition = document.definition().map_err(FieldFault::problem)?;
    if let Some(dead) = crate::runner::Definition::Sink(definition).second_log() {
        require_log(&face, "dead_letter_log", dead)?;
    }
    define(&face, &request, key, document.stored().map_err(FieldFault::problem)?).await
}

/// `PUT /v1/sources/{name}`.
pub(crate) async fn define_source(face: Arc<ConnectorFace>, mut request: Box<Request>) -> Answer {
    let key = request.segment(&SOURCE)?;
    let body = request.content(MAX_BODY_BYTES).await?;
    expect_json(&request)?;
    let document: SourceDocument = read_body(&body)?;
    let definition = document.definition().map_err(FieldFault::problem)?;
    require_log(&face, "log", &definition.log)?;
    if let Some(rejects) = &definition.reject_log {
        require_log(&face, "reject_log", rejects)?;
    }
    define(&face, &request, key, document.stored().map_err(FieldFault::problem)?).await
}

fn require_log(face: &ConnectorFace, field: &str, log: &str) -> Result<(), Box<Problem>> {
    if face.host.node.get(log).is_some() {
        return Ok(());
    }
    let detail =
        format!("{field} names a log that does not exist: create it with PUT /v1/logs/{log}");
    Err(problem::INVALID.because(detail).field(field))
}

async fn define(
    face: &ConnectorFace,
    request: &Request,
    key: ConnectorKey,
    definition: Value,
) -> Answer {
    check_name(&key.name).map_err(FieldFault::problem)?;
    if is_of_kafka(&definition) && !cfg!(feature = "kafka") {
        let detail = "this program was built without the feature kafka";
        return Err(KAFKA_NOT_BUILT.because(detail));
    }
    let start = start_position(&face.host, key.kind, &definition).map_err(FieldFault::problem)?;
    let id = draw_id()
        .map_err(|error| problem::INTERNAL.because(format!("cannot generate an id: {error}")))?;
    let action = Action::Define { definition, origin: Origin::Api, id, start };
    let (outcome, position) = execute(face, request, &key, action).await?;
    let status = if outcome == ConnectorOutcome::Created { 201 } else { 200 };
    Ok(shown(face, &key, status)?.at(position))
}

/// `DELETE /v1/sinks/{name}`.
pub(crate) async fn remove_sink(face: Arc<ConnectorFace>, request: Box<Request>) -> Answer {
    remove(&face, &request, request.segment(&SINK)?).await
}

/// `DELETE /v1/sources/{name}`.
pub(crate) async fn remove_source(face: Arc<ConnectorFace>, request: Box<Request>) -> Answer {
    remove(&face, &request, request.segment(&SOURCE)?).await
}

async fn remove(face: &ConnectorFace, request: &Request, key: ConnectorKey) -> Answer {
    let action = Action::Remove { is_configured: face.supervisor.is_configured(&key) };
    let (_, position) = execute(face, request, &key, action).await?;
    Ok(Response::empty(204).at(position))
}

/// `POST /v1/sinks/{name}/pause`.
pub(crate) async fn pause_sink(face: Arc<ConnectorFace>, request: Box<Request>) -> Answer {
    change(&face, &request, request.segment(&SINK)?, Action::Pause).await
}

/// `POST /v1/sources/{name}/pause`.
pub(crate) async fn pause_source(face: Arc<ConnectorFace>, request: Box<Request>) -> Answer {
    change(&face, &request, request.segment(&SOURCE)?, Action::Pause).await
}

/// `POST /v1/sinks/{name}/resume`.
pub(crate) async fn resume_sink(face: Arc<ConnectorFace>, request: Box<Request>) -> Answer {
    change(&face, &request, request.segment(&SINK)?, Action::Resume).await
}

/// `POST /v1/sources/{name}/resume`.
pub(crate) async fn resume_source(face: Arc<ConnectorFace>, request: Box<Request>) -> Answer {
    change(&face, &request, request.segment(&SOURCE)?, Action::Resume).await
}

/// `POST /v1/sinks/{name}/skip`.
pub(crate) async fn skip(face: Arc<ConnectorFace>, mut request: Box<Request>) -> Answer {
    let key = request.segment(&SINK)?;
    let body = request.content(MAX_BODY_BYTES).await?;
    expect_json(&request)?;
    let SinkSkip { position } = read_body(&body)?;
    let log = log_of(&face, &key)?;
    let head = face.host.node.get(&log).map_or(0, |log| log.head());
    if !(1..=head).contains(&position) {
        let rule = match head {
            0 => format!("names no event: the log {log} is empty"),
            _ => format!("must be the position of an event of the log {log}, from 1 to {head}"),
        };
        return Err(problem::INVALID.because(format!("position {rule}")).field("position"));
    }
    change(&face, &request, key, Action::Skip(position)).await
}

/// `POST /v1/sinks/{name}/reset`.
pub(crate) async fn reset_sink(face: Arc<ConnectorFace>, mut request: Box<Request>) -> Answer {
    let key = request.segment(&SINK)?;
    let body = request.content(MAX_BODY_BYTES).await?;
    expect_json(&request)?;
    let SinkReset { to } = read_body(&body)?;
    let start = document::start_of(Some(&to))
        .map_err(|refused| FieldFault { field: "to".to_owned(), ..refused });
    let start = start.map_err(FieldFault::problem)?;
    let log = log_of(&face, &key)?;
    let start = start_in(&face.host, &log, start).map_err(|refused| {
        let field = if refused.field == "from" { "to" } else { "log" };
        FieldFault { field: field.to_owned(), ..refused }.problem()
    })?;
    change(&face, &request, key, Action::Reset { start }).await
}

/// `POST /v1/sources/{name}/reset`.
pub(crate) async fn reset_source(face: Arc<ConnectorFace>, request: Box<Request>) -> Answer {
    change(
        &face,
        &request,
        request.segment(&SOURCE)?,
        Action::Reset { start: StartPoint::default() },
    )
    .await
}

/// The log of a connector.
fn log_of(face: &ConnectorFace, key: &ConnectorKey) -> Result<String, Box<Problem>> {
    let live = face.live()?;
    let folded = live.folded().ok_or_else(not_ready)?;
    let log = folded.read(|connectors| {
        let log = connectors.get(key)?.definition.get("log").and_then(Value::as_str);
        Some(log.unwrap_or(MAIN).to_owned())
    });
    log.ok_or_else(|| unknown(key))
}

fn not_ready() -> Box<Problem> {
    problem::VIEW_NOT_READY.because("the view of sinks and sources is being rebuilt")
}

async fn change(
    face: &ConnectorFace,
    request: &Request,
    key: ConnectorKey,
    action: Action,
) -> Answer {
    // A page of another site can send a POST without a preflight, unless it must be JSON.
    expect_json_of_pages(request)?;
    let (_, position) = execute(face, request, &key, action).await?;
    Ok(shown(face, &key, 200)?.at(position))
}

/// Executes a command. Returns its outcome, and a position of `system` that includes it.
async fn execute(
    face: &ConnectorFace,
    request: &Request,
    key: &ConnectorKey,
    action: Action,
) -> Result<(ConnectorOutcome, Position), Box<Problem>> {
    request.still_may()?;
    let live = face.live()?;
    let command = Command { key: key.clone(), action };
    let executed =
        live.execute(&request.effects, &[command], None, face.host.commit_on(request)).await?;
    if let Some(refusal) = executed.refused {
        return Err(refused(refusal, key));
    }
    face.supervisor.wake();
    let outcome = executed.outcomes.last().copied().unwrap_or(ConnectorOutcome::Unchanged);
    Ok((outcome, live.position()))
}

fn unknown(key: &ConnectorKey) -> Box<Problem> {
    match key.kind {
        ConnectorKind::Sink => SINK_NOT_FOUND.because(format!("there is no sink {:?}", key.name)),
        ConnectorKind::Source => {
            SOURCE_NOT_FOUND.because(format!("there is no source {:?}", key.name))
        }
    }
}

fn refused(refusal: ConnectorRefusal, key: &ConnectorKey) -> Box<Problem> {
    match refusal {
        ConnectorRefusal::NotFound => unknown(key),
        ConnectorRefusal::Configured => CONNECTOR_CONFIGURED.because(format!(
            "the {} {:?} is defined in the server's configuration; change it there",
            key.kind.word(),
            key.name
        )),
        ConnectorRefusal::TooMany => TOO_MANY_CONNECTORS
            .because(format!("there are {MAX_CONNECTORS} sinks and sources, the maximum"))
            .limit(MAX_CONNECTORS as u64),
        ConnectorRefusal::TooManySkips => TOO_MANY_SKIPS
            .because(format!("the sink {:?} has {MAX_SKIPS} events to skip, the maximum", key.name))
            .limit(MAX_SKIPS as u64),
    }
}

/// Waits until the view is as fresh as required.
async fn freshen(face: &ConnectorFace, request: &Request) -> Result<(), Box<Problem>> {
    let live = face.live()?;
    let asked = Freshness::asked(request, &CONSISTENCY, &WAIT_MS)?;
    asked.view(request, &live, None).await.map(drop)
}

/// A connector as an answer.
fn shown(face: &ConnectorFace, key: &ConnectorKey, status: u16) -> Answer {
    let live = face.live()?;
    let folded = live.folded().ok_or_else(not_ready)?;
    let connector = folded.read(|connectors| connectors.get(key).cloned());
    let connector = connector.ok_or_else(|| unknown(key))?;
    json(status, &report(&face.host, &face.supervisor, key, &connector))
}

fn json(status: u16, document: &impl Serialize) -> Answer {
    let text = serde_json::to_vec(document);
    let text = text.map_err(|error| problem::INTERNAL.because(error.to_string()))?;
    Ok(Response::json(status, text))
}
