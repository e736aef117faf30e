//! `PATCH` and `DELETE` of `/api/urls/{code}`.

use super::{body, code_of, host_of, json, live, refusal, target};
use crate::http::content::{expect_json, negotiate};
use crate::http::{Answer, JSON, Request, Response, Shell};
use crate::wire::problem::of_fault;
use std::sync::Arc;
use wellspring_views::links::Command;

/// `PATCH /api/urls/{code}`.
pub(crate) async fn change(shell: Arc<Shell>, mut request: Box<Request>) -> Answer {
    let code = code_of(&request)?;
    let host = host_of(&request)?.map(str::to_owned);
    let host = host.as_deref();
    request.params(&[])?;
    negotiate(&request, &[JSON])?;
    expect_json(&request)?;
    let body = request.body.read(body::MAX_BODY_BYTES).await?;
    let change = body::read_change(&body, code).map_err(|fault| of_fault(&fault, &body))?;
    if let Some(url) = &change.url {
        target::check(&shell.link_settings, host, url)?;
    }
    let live = live(&shell)?;
    let commands = [Command::Change(change)];
    let executed = live.execute(&commands, None, shell.commit_on(&request)).await?;
    if let Some(refused) = executed.refused {
        return Err(refusal::of_refusal(refused));
    }
    let position = live.position();
    // Another client may have deleted it meanwhile: then this says so.
    let details = live.folded().and_then(|folded| folded.details(code));
    let details = refusal::shown(code, details)?;
    let mut out = Vec::with_capacity(320);
    json::push_details(&mut out, &details, &shell.link_settings.base(host));
    Ok(Response::json(200, out).at(position))
}

/// `DELETE /api/urls/{code}`.
pub(crate) async fn delete(shell: Arc<Shell>, request: Box<Request>) -> Answer {
    let code = code_of(&request)?;
    request.params(&[])?;
    let live = live(&shell)?;
    let commands = [Command::Delete { code }];
    let executed = live.execute(&commands, None, shell.commit_on(&request)).await?;
    if let Some(refused) = executed.refused {
        return Err(refusal::of_refusal(refused));
    }
    let response = Response { content_type: "", ..Response::json(204, "") };
    Ok(response.at(live.position()))
}
