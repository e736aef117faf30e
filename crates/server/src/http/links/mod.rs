//! Links over HTTP: making, changing and reading them, and the redirects of connections
//! that the lean loop does not serve.

mod body;
mod bulk;
mod change;
mod create;
mod json;
mod qr;
mod read;
mod redirect;
mod refusal;
mod target;

pub(crate) use change::{change, delete};
pub(crate) use create::create;
pub(crate) use read::{details, list, stats};
pub(crate) use redirect::{qr, redirect};
pub(crate) use refusal::{of_lookup, with_error};

use super::params::{Params, reach};
use super::problem::{self, Problem};
use super::{Request, Shell};
use crate::node::MAIN;
use crate::view::{self, Live};
use std::net::IpAddr;
use std::sync::Arc;
use wellspring_types::Position;
use wellspring_views::links::{Code, Folded, Links};

/// The view of links.
fn live(shell: &Shell) -> Result<Arc<Live<Links>>, Box<Problem>> {
    shell.node.links().ok_or_else(|| problem::LOG_CLOSED.because("the log main is being emptied"))
}

/// The code that the path names.
fn code_of(request: &Request) -> Result<Code, Box<Problem>> {
    Code::check(request.param.as_bytes()).map_err(|fault| {
        problem::BAD_CODE.because(format!("code {:?} {fault}", request.param)).field("code")
    })
}

/// The host by which the client knows this server, with its port.
fn host_of(request: &Request) -> Option<&str> {
    let authority = request.uri.authority().map(|authority| authority.as_str());
    request.header("host").or(authority).filter(|host| !host.is_empty())
}

/// Who asks, as far as trusted proxies tell.
fn client_of(shell: &Shell, request: &Request) -> Option<IpAddr> {
    let forwarded = request.headers.get_all("x-forwarded-for");
    let forwarded = forwarded.iter().map(|value| value.as_bytes());
    shell.link_settings.proxies.client(request.peer, forwarded)
}

/// The client may make so many links a minute; this is one.
fn admit(shell: &Shell, client: Option<IpAddr>) -> Result<(), Box<Problem>> {
    let Some(limiter) = &shell.link_settings.creates else { return Ok(()) };
    limiter.take(client, shell.clock.monotonic_us()).map_err(|seconds| {
        problem::TOO_MANY_LINKS
            .because(format!(
                "{seconds} s from now there is room for another link from this address"
            ))
            .limit(limiter.per_minute())
            .retry(problem::Retry::Seconds(seconds))
    })
}

/// A view that shows what the client asks for, and the position it is at.
struct Fresh {
    live: Arc<Live<Links>>,
    position: Position,
}

impl Fresh {
    /// What is folded. It answers: it has been waited for.
    fn folded(&self) -> Result<&Folded, Box<Problem>> {
        self.live
            .folded()
            .ok_or_else(|| problem::VIEW_NOT_READY.because("the view is being rebuilt"))
    }
}

/// Waits until the view shows every click that was accepted before, unless the client asks for
/// `consistency=cached`, and the position it names, if any.
async fn fresh(shell: &Shell, request: &Request, params: &Params) -> Result<Fresh, Box<Problem>> {
    let log = request.log()?;
    let wait = params.wait()?;
    let cached = match params.one("consistency")? {
        None | Some("local" | "linearizable") => false,
        Some("cached") => true,
        Some(other) => {
            return Err(problem::INVALID
                .because(format!(
                    "consistency must be local, linearizable or cached, not {other:?}"
                ))
                .field("consistency"));
        }
    };
    let mut wanted = reach(request, log, wait).await?.unwrap_or(0);
    let live = live(shell)?;
    if !cached {
        if let Some(batcher) = shell.node.started_batcher(MAIN) {
            view::all_stored(&batcher, wait).await?;
        }
        wanted = wanted.max(log.head());
    }
    live.caught_up(wanted, wait).await?;
    let position = live.position();
    Ok(Fresh { live, position })
}
