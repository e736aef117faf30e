//! `PATCH` and `DELETE` of `/api/urls/{code}`.

use super::LinkFace;
use super::json::DetailsDocument;
use super::{CODE, body, host_of, refusal, target};
use crate::view::Command;
use std::sync::Arc;
use wellspring_host::http::content::expect_json;
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::wire::problem::of_fault;

/// `PATCH /api/urls/{code}`.
pub(crate) async fn change(links: Arc<LinkFace>, mut request: Box<Request>) -> Answer {
    let code = request.segment(&CODE)?;
    let host = host_of(&request)?.map(str::to_owned);
    let host = host.as_deref();
    expect_json(&request)?;
    let body = request.body.read(body::MAX_BODY_BYTES).await?;
    let change = body::read_change(&body, code).map_err(|fault| of_fault(&fault, &body))?;
    if let Some(url) = &change.url {
        target::check(&links.settings, host, url)?;
        target::check_nodes(&links.host.node, url)?;
    }
    let live = links.live()?;
    let commands = [Command::Change(change)];
    let executed =
        live.execute(&request.effects, &commands, None, links.host.commit_on(&request)).await?;
    if let Some(refused) = executed.refused {
        return Err(refusal::of_refusal(refused));
    }
    let position = live.position();
    // Another client may have deleted it meanwhile: the answer says so.
    let details = live.folded().and_then(|folded| folded.details(code));
    let details = refusal::shown(code, details)?;
    let document = DetailsDocument::of(&details, &links.settings.base(host));
    Ok(Response::of(200, &document).at(position))
}

/// `DELETE /api/urls/{code}`.
pub(crate) async fn delete(links: Arc<LinkFace>, request: Box<Request>) -> Answer {
    let code = request.segment(&CODE)?;
    let live = links.live()?;
    let commands = [Command::Delete { code }];
    let executed =
        live.execute(&request.effects, &commands, None, links.host.commit_on(&request)).await?;
    if let Some(refused) = executed.refused {
        return Err(refusal::of_refusal(refused));
    }
    let response = Response::empty(204);
    Ok(response.at(live.position()))
}
