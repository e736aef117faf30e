//! `GET /{code}` over the general stack (HTTP/2, and connections that the lean loop has handed
//! over), and `GET /{code}.qr`.

use super::LinkFace;
use super::redirects::unknown_to_visitors;
use super::{CODE, host_of, limited, refusal};
use crate::view::{Lookup, url};
use std::sync::Arc;
use std::time::Duration;
use wellspring_host::http::{Answer, Request, Response, fast};
use wellspring_host::wire::param::{Integer, IntegerOr, MAX_WAIT_MS, Param};
use wellspring_host::wire::problem;

/// Side length of a QR code, in px.
pub(super) static SIZE: Param<Integer> =
    Param::integer("size", "Side length of the picture in pixels.", 16..=4096);
/// How long the picture may take.
pub(super) static WAIT_MS: Param<IntegerOr> = Param::integer(
    "wait_ms",
    "Longest wait while links are being rebuilt, in ms.",
    0..=MAX_WAIT_MS,
)
.or(1_000);

/// `GET /{code}`: the redirect. A `HEAD` counts no click.
pub(crate) async fn redirect(links: Arc<LinkFace>, mut request: Box<Request>) -> Answer {
    if request.param().contains('.') {
        let detail =
            format!("there is no file {} here; codes of links have no dots", request.param());
        return Err(problem::NOT_FOUND.because(detail));
    }
    let code = request.segment(&CODE)?;
    // Unused here, but the lean loop accepts it, too.
    host_of(&request)?;
    // Without waiting: while the view is not ready, a visitor gets its progress at once.
    let live = links.live()?;
    live.caught_up(0, Duration::ZERO).await?;
    if (links.host.routes.is_reserved())(request.param()) {
        return Err(unknown_to_visitors(code));
    }
    let now_us = links.host.clock.wall_us();
    let lookup = live.folded().map(|folded| folded.lookup(code, now_us, &mut Vec::new()));
    let mut answer = if matches!(lookup, Some(Lookup::Limited | Lookup::Sealed)) {
        limited::follow(&links, &live, &request, code).await?
    } else {
        fast::serve(&links.host, &mut request, &format!("/{code}")).await
    };
    let query = request.uri.query().filter(|query| !query.is_empty());
    if let Some(query) = query.filter(|_| links.settings.passes_query) {
        let mut headers = answer.headers.iter_mut();
        if let Some((_, location)) = headers.find(|(name, _)| *name == "location") {
            *location = url::with_query(location, query);
        }
    }
    Ok(answer)
}

/// `GET /{code}.qr`: the short URL as a picture.
pub(crate) async fn qr(links: Arc<LinkFace>, request: Box<Request>) -> Answer {
    let code = request.segment(&CODE)?;
    let host = host_of(&request)?;
    let size_px = request.query(&SIZE)?;
    let live = links.live()?;
    let wait = Duration::from_millis(request.query(&WAIT_MS)?);
    let folded = live.caught_up(0, wait).await?;
    refusal::shown(code, folded.details(code))?;
    let short_url = format!("{}/{code}", links.settings.base(host));
    let svg = super::qr::svg(&short_url, size_px)
        .ok_or_else(|| problem::TOO_LARGE.because("the short URL is too long for a QR code"))?;
    // The picture stays the same while the code is valid, but one based on a client's Host is for
    // that client only.
    let scope = if links.settings.has_base_url() { "public" } else { "private" };
    Ok(Response::text("image/svg+xml", svg).with("cache-control", format!("{scope}, max-age=3600")))
}
