//! Links over HTTP: creating, changing and reading them, and redirects on connections that the lean
//! loop does not serve.

#![forbid(unsafe_code)]

mod body;
mod bulk;
mod change;
mod create;
#[cfg(feature = "fuzzing")]
pub mod fuzzed;
mod json;
mod limited;
mod problems;
mod qr;
mod read;
mod redirect;
mod redirects;
mod refusal;
mod sealed;
mod settings;
mod target;
mod targets;
pub mod view;

pub(crate) use change::{change, delete};
pub(crate) use create::create;
pub(crate) use read::{details, list, stats};
pub(crate) use redirect::{qr, redirect};

use crate::problems::{
    ALIAS_RESERVED, ALIAS_TAKEN, BAD_CODE, BAD_URL, CODES_EXHAUSTED, CODES_TAKEN, HOST_REFUSED,
    LINK_DELETED, LINK_DISABLED, LINK_ERASED, LINK_EXPIRED, LINK_NOT_FOUND, LINK_REFUSED, OWN_HOST,
    TOO_MANY_LINKS, URL_REQUIRED,
};
use crate::view::{Code, Folded, Links};
use hyper::Version;
use read::{AFTER, BUCKET, FROM, LIMIT, ORDER, SEARCH, TAG, TO};
use redirect::{SIZE, WAIT_MS as QR_WAIT_MS};
use redirects::{RedirectContext, VisitorKeys, attach, fast_path, visitor_key_file, with_error};
use settings::{LinkConfig, LinkSettings};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use wellspring_host::declare::routes;
use wellspring_host::fast::Factory;
use wellspring_host::http::contract::{
    Accept, CONSISTENCY, IDEMPOTENCY_KEY, LOCATION, Query, Segment, wait_ms,
};
use wellspring_host::http::declared_problems::{APPENDING, READING, VIEWING};
use wellspring_host::http::face::{Face, ServedRoute, Surroundings};
use wellspring_host::http::required_freshness::Freshness;
use wellspring_host::http::subjects::SUBJECT;
use wellspring_host::http::{Host, JSON, NDJSON, Request, Response, SVG};
use wellspring_host::kept_file::KeptFile;
use wellspring_host::kept_types::KeptEvents;
use wellspring_host::names::MAIN;
use wellspring_host::setup::SetupError;
use wellspring_host::stats::RefusalReason;
use wellspring_host::stats::family::Family;
use wellspring_host::view::{Live, ViewSlot};
use wellspring_host::wire::param::{AnyParam, IntegerOr, Param, Values};
use wellspring_host::wire::problem::{
    self, KEY_REUSED, KEY_UNAVAILABLE, Kind, NOT_FOUND, Problem, READS_TOO_COSTLY, TOO_LARGE,
};
use wellspring_types::Position;

/// Problems of a link's target.
const TARGET: &[&Kind] = &[&URL_REQUIRED, &BAD_URL, &HOST_REFUSED, &OWN_HOST];
/// Problems of a code.
const NAMED: &[&Kind] = &[&BAD_CODE, &LINK_NOT_FOUND, &LINK_DELETED];
/// Problems of following a code.
const NOT_FOLLOWED: &[&Kind] =
    &[&NOT_FOUND, &LINK_DISABLED, &LINK_ERASED, &LINK_EXPIRED, &LINK_REFUSED, &KEY_UNAVAILABLE];

/// The face: links are created, changed and read at `/api/urls`, and followed at `/CODE`.
pub struct LinkFace {
    host: Arc<Host>,
    settings: LinkSettings,
    /// The links of the log `main`.
    view: Arc<ViewSlot<Links>>,
    /// The keys that hash visitors.
    visitor_keys: Arc<VisitorKeys>,
    /// Makes redirects for a serving thread.
    redirects: Factory,
}

impl Face for LinkFace {
    const NAME: &'static str = "links";
    const PROBLEMS: &'static [&'static Kind] = problems::ALL;
    type Settings = LinkConfig;
    const ROUTES: &'static [ServedRoute<LinkFace>] = routes! { |links| links;
        POST "/api/urls" Main Writer create:
            "Creates a link. With application/x-ndjson: a bulk of one link per line, streamed, \
             atomic per batch of at most 250 lines."
            .takes[(JSON, "LinkToCreate"), (NDJSON, "LinkToCreate")] .headers[&IDEMPOTENCY_KEY, &SUBJECT] .short(true)
            .fails[APPENDING, VIEWING, TARGET, &[&ALIAS_TAKEN, &ALIAS_RESERVED, &CODES_TAKEN, &CODES_EXHAUSTED, &KEY_REUSED,
                &TOO_MANY_LINKS, &READS_TOO_COSTLY]]
            => [201 JSON "Link" + LOCATION, 200 JSON "Link" + LOCATION];
        GET "/api/urls" Main Reader list: "Links, newest first, in pages."
            .query[&LIMIT, &AFTER, &ORDER, &TAG, &SEARCH] .fresh(FRESHNESS) .short(true) .fails[READING, VIEWING] => [200 JSON "Links"];
        GET "/api/urls/{code}" Main Reader details: "A link and its clicks."
            .at(&CODE) .fresh(FRESHNESS) .short(true) .fails[READING, VIEWING, NAMED] => [200 JSON "LinkDetails"];
        PATCH "/api/urls/{code}" Main Writer change: "Changes a link."
            .at(&CODE) .takes[(JSON, "LinkChange")] .headers[&SUBJECT] .short(true) .fails[APPENDING, VIEWING, NAMED, TARGET] => [200 JSON "LinkDetails"];
        DELETE "/api/urls/{code}" Main Writer delete: "Deletes a link. Its code is never reused."
            .at(&CODE) .short(true) .fails[APPENDING, VIEWING, NAMED] => [204];
        GET "/api/urls/{code}/stats" Main Reader stats: "Clicks over time, referrers and user agents."
            .at(&CODE) .query[&BUCKET, &FROM, &TO] .fresh(FRESHNESS) .fails[READING, VIEWING, NAMED] => [200 JSON "LinkStats"];
        // Last, because it matches many paths.
        GET "/{code}.qr" Main Public qr: "The short URL as a QR code, an SVG."
            .at(&CODE) .query[&SIZE, &QR_WAIT_MS] .accept(Accept::Ignored) .fails[VIEWING, NAMED, &[&TOO_LARGE]] => [200 SVG ""];
        GET "/{code}" Main Public redirect: "Redirects to a link's target and counts the click."
            .at(&CODE) .query_is(Query::Ignored) .accept(Accept::Ignored)
            .fails[APPENDING, VIEWING, NAMED, NOT_FOLLOWED] => [302 + LOCATION];
        GET "/{code}/" Main Public redirect: "The same: some programs add the slash."
            .at(&CODE) .query_is(Query::Ignored) .accept(Accept::Ignored)
            .fails[APPENDING, VIEWING, NAMED, NOT_FOLLOWED] => [302 + LOCATION];
    };

    fn check(settings: &LinkConfig, surroundings: Surroundings<'_>) -> Result<(), SetupError> {
        LinkSettings::of(surroundings.process, settings, surroundings.has_tls).map(drop)
    }

    fn own_url(settings: &LinkConfig) -> Option<&str> {
        settings.link_base_url.as_deref()
    }

    fn kept_events(settings: &LinkConfig) -> Option<&'static KeptEvents> {
        settings.kept_events()
    }

    fn open(settings: LinkConfig, host: &Arc<Host>) -> Result<LinkFace, SetupError> {
        let settings = LinkSettings::of(&host.process, &settings, host.tls.is_some())?;
        let data = &host.process.data;
        let now_us = host.clock.wall_us();
        let visitor_keys = match &host.cluster_key {
            Some(key) => VisitorKeys::of_cluster(data, Arc::clone(key), now_us),
            None => VisitorKeys::open(data, now_us),
        };
        let visitor_keys = visitor_keys
            .map_err(|e| format!("cannot store the visitor key in {}: {e}", data.display()))?;
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
        let family =
            |links| Family::gauge("wellspring_links", "Links created since the log began.", links);
        count.map(family).into_iter().collect()
    }

    fn kept_files(&self) -> Vec<KeptFile> {
        visitor_key_file(&self.visitor_keys).into_iter().collect()
    }

    fn bound_to(&self, address: SocketAddr) {
        self.settings.bound_to(address);
    }

    fn tick(self: &Arc<Self>, wall_us: u64) {
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

/// The code of a link.
static CODE: Segment<Code> = Segment {
    name: "code",
    what: "Code of the link.",
    values: Values::Matching("^[A-Za-z0-9]{1,10}$"),
    read: |text| {
        Code::check(text.as_bytes()).map_err(|fault| {
            problems::BAD_CODE.because(format!("code {text:?} {fault}")).field("code")
        })
    },
};

/// How long a read waits by default: a device that stalls for a second is no reason to fail.
static WAIT_MS: Param<IntegerOr> = wait_ms(30_000);
/// The parameters of every read of links.
const FRESHNESS: &[&dyn AnyParam] = &[&CONSISTENCY, &WAIT_MS];

/// The host name, with its port, by which the client addressed this server.
///
/// # Errors
/// An HTTP/1.1 request without exactly one `Host` (RFC 9112, section 3.2).
fn host_of(request: &Request) -> Result<Option<&str>, Box<Problem>> {
    let hosts = request.headers.get_all("host").iter().count();
    if request.version == Version::HTTP_11 && hosts != 1 {
        let detail = "HTTP/1.1 requires exactly one Host header";
        return Err(problem::BAD_REQUEST.because(detail).field("Host"));
    }
    // An absolute request target takes precedence over the header (section 3.2.2).
    let authority = request.uri.authority().map(|authority| authority.as_str());
    Ok(authority.or_else(|| request.header("host")).filter(|host| !host.is_empty()))
}

/// The remaining number of links that a client may create this minute.
struct Allowance<'a> {
    links: &'a LinkFace,
    client: Option<IpAddr>,
}

impl Allowance<'_> {
    /// Takes up to `wanted` links from it, at least one; returns how many.
    ///
    /// # Errors
    /// 429 with `Retry-After`, after which there is room for the rest.
    fn take(&self, wanted: u64) -> Result<u64, Box<Problem>> {
        let Some(limiter) = &self.links.settings.creates else { return Ok(wanted) };
        let now_us = self.links.host.clock.monotonic_us();
        limiter.take(self.client, wanted, now_us).map_err(|seconds| {
            self.links.host.stats.refusals.count(RefusalReason::Link);
            let links = match wanted.min(limiter.rate().tokens()) {
                1 => "another link".to_owned(),
                links => format!("{links} more links"),
            };
            problems::TOO_MANY_LINKS
                .because(format!("in {seconds} s this address may create {links}"))
                .limit(limiter.rate().tokens())
                .retry(problem::Retry::Seconds(seconds))
        })
    }

    /// Returns what was not used for a new link.
    fn put_back(&self, links: u64) {
        if let Some(limiter) = &self.links.settings.creates {
            limiter.put_back(self.client, links);
        }
    }
}

/// A view as fresh as required, with its position.
struct FreshLinks {
    live: Arc<Live<Links>>,
    position: Position,
}

impl FreshLinks {
    /// The fold. The view is ready: it has been waited for.
    fn folded(&self) -> Result<&Folded, Box<Problem>> {
        self.live
            .folded()
            .ok_or_else(|| problem::VIEW_NOT_READY.because("the view is being rebuilt"))
    }
}

/// Waits until the view is as fresh as required. Unless the current fold is enough, clicks accepted
/// earlier count, durable or not.
async fn fresh(links: &LinkFace, request: &Request) -> Result<FreshLinks, Box<Problem>> {
    let asked = Freshness::asked(request, &CONSISTENCY, &WAIT_MS)?;
    let live = links.live()?;
    let clicks = links.host.node.started_batcher(MAIN);
    asked.view(request, &live, clicks.as_ref()).await?;
    let position = live.position();
    Ok(FreshLinks { live, position })
}
