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

pub(crate) use body::reads;
pub(crate) use change::{change, delete};
pub(crate) use create::create;
pub(crate) use read::{details, list, stats};
pub(crate) use redirect::{qr, redirect};

use crate::declare::routes;
use crate::fast::Factory;
use crate::http::content::reach;
use crate::http::face::{Face, Served, Surroundings};
use crate::http::{Host, Request, Response};
use crate::kept_types::KeptEvents;
use crate::links::settings::{LinkConfig, LinkSettings};
use crate::links::{RedirectContext, VisitorKeys, attach, fast_path, with_error};
use crate::names::MAIN;
use crate::stats::RefusalReason;
use crate::stats::family::Family;
use crate::view::{self, Live, ViewSlot};
use crate::wire::params::Params;
use crate::wire::problem::{self, Problem};
use hyper::Version;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use wellspring_types::Position;
use wellspring_views::links::{Code, Folded, Links};

/// The face: links are made, changed and read under `/api/urls`, and followed at `/CODE`.
pub(crate) struct LinkFace {
    host: Arc<Host>,
    settings: LinkSettings,
    /// The links of the log `main`.
    view: Arc<ViewSlot<Links>>,
    /// The keys under which visitors are counted.
    visitor_keys: Arc<VisitorKeys>,
    /// What makes redirects for a serving thread.
    redirects: Factory,
}

impl Face for LinkFace {
    const NAME: &'static str = "links";
    type Settings = LinkConfig;
    const ROUTES: &'static [Served<LinkFace>] = routes! { |links| links;
        POST "/api/urls" Main Writer create:
            "Makes a link. With application/x-ndjson: bulk, one link a line, streamed, atomic per batch of at most 250 lines."
            ? [] "LinkToCreate" => "Link";
        GET "/api/urls" Main Reader list: "Links, newest first, page by page."
            ? ["limit", "after", "order", "tag", "search", "consistency", "wait_ms"] "" => "Links";
        GET "/api/urls/{code}" Main Reader details: "A link and its clicks so far."
            ? ["consistency", "wait_ms"] "" => "LinkDetails";
        PATCH "/api/urls/{code}" Main Writer change: "Changes a link."
            ? [] "LinkChange" => "LinkDetails";
        DELETE "/api/urls/{code}" Main Writer delete: "Deletes a link. Its code is never given again."
            ? [] "" => "";
        GET "/api/urls/{code}/stats" Main Reader stats: "Clicks over time, referrers and user agents."
            ? ["bucket", "from", "to", "consistency", "wait_ms"] "" => "LinkStats";
        // Last, as they look like much else.
        GET "/{code}.qr" Main Public qr: "The short URL as a QR code, an SVG." ? ["size"] "" => "";
        GET "/{code}" Main Public redirect: "Leads to a link's target and counts the click." ? [] "" => "";
    };

    fn check(settings: &LinkConfig, around: Surroundings<'_>) -> Result<(), String> {
        LinkSettings::of(around.process, settings, around.has_tls).map(drop)
    }

    fn own_url(settings: &LinkConfig) -> Option<&str> {
        settings.link_base_url.as_deref()
    }

    fn kept_events(settings: &LinkConfig) -> Option<&'static KeptEvents> {
        settings.kept_events()
    }

    fn open(settings: LinkConfig, host: &Arc<Host>) -> Result<LinkFace, String> {
        let settings = LinkSettings::of(&host.process, &settings, host.tls.is_some())?;
        let data = &host.process.data;
        let visitor_keys = VisitorKeys::open(data, host.clock.wall_us()).map_err(|e| {
            format!("the key of visitors cannot be kept in {}: {e}", data.display())
        })?;
        let is_reserved = host.routes.is_reserved();
        let view = attach(&host.node, settings.targets.rule(), is_reserved)?;
        let visitor_keys = Arc::new(visitor_keys);
        let redirects = fast_path(RedirectContext {
            ingest: host.ingest(),
            view: Arc::clone(&view),
            is_reserved,
            clock: Arc::clone(&host.clock),
            visitor_keys: Arc::clone(&visitor_keys),
            referrer_policy: settings.referrer_policy.as_str(),
        });
        let redirects = redirects.map_err(|invalid| invalid.to_string())?;
        Ok(LinkFace { host: Arc::clone(host), settings, view, visitor_keys, redirects })
    }

    fn render(problem: Box<Problem>) -> Response {
        with_error(problem).into()
    }

    fn figures(&self) -> Vec<Family> {
        let links = self.view.live();
        let count = links.as_ref().and_then(|links| links.folded()).map(Folded::count);
        let family = |links| Family::gauge("wellspring_links", "Links ever made.", links);
        count.map(family).into_iter().collect()
    }

    fn bound_to(&self, address: SocketAddr) {
        self.settings.bound_to(address);
    }

    fn tick(&self, wall_us: u64) {
        self.visitor_keys.turn(wall_us);
    }

    fn fast_paths(&self) -> Vec<Factory> {
        vec![Arc::clone(&self.redirects)]
    }
}

impl LinkFace {
    /// The view of links.
    fn live(&self) -> Result<Arc<Live<Links>>, Box<Problem>> {
        self.view.live().ok_or_else(|| problem::LOG_CLOSED.because("the log main is being emptied"))
    }
}

/// The code that the path names.
fn code_of(request: &Request) -> Result<Code, Box<Problem>> {
    Code::check(request.param.as_bytes()).map_err(|fault| {
        problem::BAD_CODE.because(format!("code {:?} {fault}", request.param)).field("code")
    })
}

/// The host by which the client knows this server, with its port, as the client wrote it.
///
/// # Errors
/// An HTTP/1.1 request without exactly one `Host` (RFC 9112, section 3.2).
fn host_of(request: &Request) -> Result<Option<&str>, Box<Problem>> {
    let hosts = request.headers.get_all("host").iter().count();
    if request.version == Version::HTTP_11 && hosts != 1 {
        let detail = "HTTP/1.1 asks for exactly one Host header";
        return Err(problem::BAD_REQUEST.because(detail).field("Host"));
    }
    // What the target of the request names stands before the header (section 3.2.2).
    let authority = request.uri.authority().map(|authority| authority.as_str());
    Ok(authority.or_else(|| request.header("host")).filter(|host| !host.is_empty()))
}

/// Wait for clicks on their way if the client does not say how long, in ms: a device that stalls for
/// a second is no reason to fail.
const DEFAULT_WAIT_MS: u64 = 30_000;

/// What is left of the links that a client may make in a minute.
struct Allowance<'a> {
    links: &'a LinkFace,
    client: Option<IpAddr>,
}

impl Allowance<'_> {
    /// Takes up to `wanted` links of it, at least one; tells how many.
    ///
    /// # Errors
    /// 429 with `Retry-After`: by then there is room for the rest.
    fn take(&self, wanted: u64) -> Result<u64, Box<Problem>> {
        let Some(limiter) = &self.links.settings.creates else { return Ok(wanted) };
        let now_us = self.links.host.clock.monotonic_us();
        limiter.take(self.client, wanted, now_us).map_err(|seconds| {
            self.links.host.stats.refusals.count(RefusalReason::Link);
            let links = match wanted.min(limiter.rate().tokens()) {
                1 => "another link".to_owned(),
                links => format!("{links} more links"),
            };
            problem::TOO_MANY_LINKS
                .because(format!(
                    "{seconds} s from now there is room for {links} from this address"
                ))
                .limit(limiter.rate().tokens())
                .retry(problem::Retry::Seconds(seconds))
        })
    }

    /// Gives back what came to no new link.
    fn put_back(&self, links: u64) {
        if let Some(limiter) = &self.links.settings.creates {
            limiter.put_back(self.client, links);
        }
    }
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
async fn fresh(
    links: &LinkFace,
    request: &Request,
    params: &Params,
) -> Result<Fresh, Box<Problem>> {
    let log = request.log()?;
    let wait = params.wait_or(DEFAULT_WAIT_MS)?;
    let waits = [("local", true), ("linearizable", true), ("cached", false)];
    let waits = params.choice("consistency", &waits)?.unwrap_or(true);
    let mut wanted = reach(request, log, wait).await?.unwrap_or(0);
    let live = links.live()?;
    if waits {
        if let Some(batcher) = links.host.node.started_batcher(MAIN) {
            view::all_stored(&batcher, wait).await?;
        }
        wanted = wanted.max(log.head());
    }
    live.caught_up(wanted, wait).await?;
    let position = live.position();
    Ok(Fresh { live, position })
}
