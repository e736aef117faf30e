//! Topics.

use super::body;
use super::items::{AFTER, LIMIT};
use super::json::push_topic;
use crate::CatalogueFace;
use crate::execute::{Execution, execute};
use crate::fresh::fresh;
use crate::refusal::{another_request, of_refusal};
use crate::segments::TOPIC;
use crate::view::{CatalogueOutcome, Command};
use std::sync::Arc;
use wellspring_host::http::content::expect_json;
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::wire::json::{push_list, push_u64};
use wellspring_host::wire::problem::{Problem, of_fault};

/// `GET /v1/catalogue/topics`.
pub(crate) async fn list(face: Arc<CatalogueFace>, request: Box<Request>) -> Answer {
    let after = usize::try_from(request.query(&AFTER)?.unwrap_or(0)).unwrap_or(usize::MAX);
    let limit = request.query(&LIMIT)? as usize;
    let live = fresh(&face, &request).await?;
    let position = live.position();
    let folded = face.folded(&live)?;
    let state = folded.read();
    let mut out = b"{\"topics\":".to_vec();
    let page = state.topics().skip(after).take(limit);
    push_list(&mut out, page, |out, (id, topic)| push_topic(out, id, topic));
    out.extend_from_slice(b",\"next\":");
    let end = after.saturating_add(limit);
    if end < state.topics().len() {
        push_u64(&mut out, end as u64)
    } else {
        out.extend_from_slice(b"null")
    }
    out.push(b'}');
    Ok(Response::json(200, out).at(position))
}

/// `POST /v1/catalogue/topics`.
pub(crate) async fn add(face: Arc<CatalogueFace>, mut request: Box<Request>) -> Answer {
    let name = name(&mut request).await?;
    told(&face, &request, Command::AddTopic { name }, 201).await
}

/// `PATCH /v1/catalogue/topics/{topic}`.
pub(crate) async fn rename(face: Arc<CatalogueFace>, mut request: Box<Request>) -> Answer {
    let topic = request.segment(&TOPIC)?;
    let name = name(&mut request).await?;
    told(&face, &request, Command::RenameTopic { topic, name }, 200).await
}

async fn name(request: &mut Request) -> Result<String, Box<Problem>> {
    expect_json(request)?;
    let body = request.body.read(body::MAX_BODY_BYTES).await?;
    body::read_topic_name(&body).map_err(|fault| of_fault(&fault, &body))
}

async fn told(face: &CatalogueFace, request: &Request, command: Command, status: u16) -> Answer {
    let Execution { live, outcome, .. } = execute(face, request, command, None).await?;
    let id = match outcome {
        Ok(CatalogueOutcome::Topic(id)) => id,
        Ok(_) => return Err(another_request()),
        Err(refusal) => return Err(of_refusal(&refusal)),
    };
    let position = live.position();
    let folded = face.folded(&live)?;
    let state = folded.read();
    let mut out = Vec::new();
    if let Some(topic) = state.topic(id) {
        push_topic(&mut out, id, topic);
    }
    Ok(Response::json(status, out).at(position))
}
