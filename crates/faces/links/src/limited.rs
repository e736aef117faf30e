//! Following a link that may be followed a number of times only, or whose target is sealed.
//!
//! Each time is a command: decided under one lock with all others, and durable before its answer.
//! So there are exactly as many, also of clients at once, and after a crash.

use super::LinkFace;
use super::redirects::{ClickHeaders, REDIRECT_CACHING, Visit, of_lookup};
use super::{refusal, sealed};
use crate::view::{Code, Command, LinkRefusal, Links, Lookup, url};
use hyper::Method;
use std::time::Duration;
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::view::Live;
use wellspring_host::wire::problem;

/// How long an answer waits for earlier events to be folded.
const FOLD_WAIT: Duration = Duration::from_secs(5);

/// Answers with the target, if that is one of the times. `HEAD` is none.
pub(super) async fn follow(
    links: &LinkFace,
    live: &Live<Links>,
    request: &Request,
    code: Code,
) -> Answer {
    // The log may hold clicks of a node that led it before.
    live.caught_up(request.log()?.head(), FOLD_WAIT).await?;
    let folded = live.folded();
    let folded =
        folded.ok_or_else(|| problem::VIEW_NOT_READY.because("links are being rebuilt"))?;
    let now_us = links.host.clock.wall_us();
    let details = refusal::shown(code, folded.details(code))?;
    match folded.lookup(code, now_us, &mut Vec::new()) {
        Lookup::Limited | Lookup::Sealed => {}
        other => of_lookup(code, other)?,
    }
    let is_used_up = details.max_clicks.is_some_and(|most| details.clicks >= most.into());
    let url = sealed::target_for_visitors(links, request, details)?;
    if request.method == Method::HEAD {
        if is_used_up {
            return Err(refusal::of_refusal(LinkRefusal::UsedUp(code)));
        }
    } else {
        let header = |name: &str| request.header(name).map(str::as_bytes);
        let told = ClickHeaders { agent: header("user-agent"), referrer: header("referer") };
        let visitor = links.visitor_keys.at(now_us).name(request.client);
        let mut data = Vec::new();
        Visit::of(&told).push_data(&visitor, &mut data);
        let commands = [Command::Click { code, data }];
        let on = links.host.commit_on(request);
        let executed = live.execute(&request.effects, &commands, None, on).await?;
        if let Some(refused) = executed.refused {
            return Err(refusal::of_refusal(refused));
        }
    }
    let mut location = Vec::with_capacity(url.len());
    url::push_location(&url, &mut location);
    let location = String::from_utf8(location).unwrap_or_default();
    Ok(Response::empty(302)
        .with("location", location)
        .with("referrer-policy", links.settings.referrer_policy.as_str().to_owned())
        .with("cache-control", REDIRECT_CACHING.to_owned())
        .at(live.position()))
}
