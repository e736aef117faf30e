//! `PATCH` and `DELETE` of `/api/urls/{code}`.

use super::LinkFace;
use super::json::DetailsDocument;
use super::sealed::{LinkOpener, LinkSealer};
use super::{CODE, body, host_of, refusal, target};
use crate::view::event::CHANGED;
use crate::view::{Command, Details};
use std::sync::Arc;
use wellspring_host::http::content::expect_json;
use wellspring_host::http::subjects::subject_of;
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::wire::problem::{self, Problem, of_fault};
use wellspring_subject_keys::Closed;

/// `PATCH /api/urls/{code}`.
pub(crate) async fn change(links: Arc<LinkFace>, mut request: Box<Request>) -> Answer {
    let code = request.segment(&CODE)?;
    let host = host_of(&request)?.map(str::to_owned);
    let host = host.as_deref();
    expect_json(&request)?;
    let body = request.body.read(body::MAX_BODY_BYTES).await?;
    let mut change = body::read_change(&body, code).map_err(|fault| of_fault(&fault, &body))?;
    if let Some(url) = &change.url {
        target::check(&links.settings, host, url)?;
        target::check_nodes(&links.host.node, url)?;
    }
    let live = links.live()?;
    let opener = LinkOpener::of(&links, &request)?;
    let mut sealer = LinkSealer::new(&links.host, subject_of(&request)?)?;
    if sealer.has_subject() {
        let no_url = || {
            let detail = "a change for a data subject needs url: that is what is sealed";
            problem::INVALID.because(detail).field("url")
        };
        let url = change.url.as_deref().ok_or_else(no_url)?;
        let tags = match &change.tags {
            Some(tags) => tags.clone(),
            None => tags_of(&opener, live.folded().and_then(|folded| folded.details(code)))?,
        };
        change.sealed = sealer.seal(CHANGED, url, &tags)?;
        sealer.persist(&links.host).await?;
    }
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
    let details = opener.disclose(details)?;
    let document = DetailsDocument::of(&details, &links.settings.base(host));
    Ok(Response::of(200, &document).at(position))
}

/// The tags of a link, if it has any and they are not erased.
fn tags_of(opener: &LinkOpener, details: Option<Details>) -> Result<Vec<String>, Box<Problem>> {
    let Some(details) = details else { return Ok(Vec::new()) };
    let disclosed = opener.disclose(details)?;
    match disclosed.closed {
        None | Some(Closed::Erased) => Ok(disclosed.details.tags),
        Some(_) => {
            let detail = "the link's tags are sealed and cannot be opened; name all its tags";
            Err(problem::KEY_UNAVAILABLE.because(detail).field("tags"))
        }
    }
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
