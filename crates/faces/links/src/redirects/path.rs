//! `GET /{code}` as a fast path: the redirect, and the recorded click.

use super::click::Clicks;
use super::refusal::{of_lookup, with_error};
use super::visit::{ClickHeaders, Visit};
use super::{REDIRECT_CACHING, VisitorKeys};
use crate::problems;
use crate::view::{Code, Links, Lookup, MAX_CODE_CHARS, RecentLink};
use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use wellspring_host::fast::{
    Claim, Factory, FastAnswer, FastPath, FastRequest, FastRoute, Form, FormContent, Head, Headers,
    Shape, TicketState, Varying, Word, erase,
};
use wellspring_host::ingest::{IngestContext, Intake, intake_at};
use wellspring_host::view::{Live, ViewSlot};
use wellspring_host::wire::problem::{self, Problem};
use wellspring_log::Clock;
use wellspring_types::Invalid;

/// The form of a redirect, by index.
const FOUND: usize = 0;

/// What redirects need of the server.
pub(crate) struct RedirectContext {
    /// The ingest of clicks.
    pub(crate) ingest: IngestContext,
    /// The view of links.
    pub(crate) view: Arc<ViewSlot<Links>>,
    /// Words that cannot be codes.
    pub(crate) is_reserved: fn(&str) -> bool,
    pub(crate) clock: Arc<dyn Clock>,
    /// The keys that hash visitors.
    pub(crate) visitor_keys: Arc<VisitorKeys>,
    /// `Referrer-Policy` of every redirect.
    pub(crate) referrer_policy: &'static str,
}

/// Makes the path for a serving thread.
///
/// # Errors
/// Those of [`Clicks::new`].
pub(crate) fn fast_path(context: RedirectContext) -> Result<Factory, Invalid> {
    let RedirectContext { ingest, view, is_reserved, clock, visitor_keys, referrer_policy } =
        context;
    let clicks = Clicks::new(visitor_keys)?;
    Ok(Arc::new(move |thread| {
        erase(Redirects {
            view: Arc::clone(&view),
            is_reserved,
            clock: Arc::clone(&clock),
            intake: intake_at(thread, &ingest),
            clicks: clicks.clone(),
            referrer_policy,
            turn: LoopTime { at_us: u64::MAX, wall_us: 0 },
            live: None,
            recent: RecentLink::default(),
        })
    }))
}

/// The time of a turn of the loop.
#[derive(Clone, Copy)]
struct LoopTime {
    /// On the monotonic clock.
    at_us: u64,
    /// The same, µs since 1970 UTC.
    wall_us: u64,
}

/// A thread's access to links.
struct Redirects {
    view: Arc<ViewSlot<Links>>,
    is_reserved: fn(&str) -> bool,
    clock: Arc<dyn Clock>,
    intake: Rc<RefCell<Intake>>,
    clicks: Clicks,
    referrer_policy: &'static str,
    turn: LoopTime,
    /// The view; a new one after the log has been emptied.
    live: Option<Arc<Live<Links>>>,
    /// The link of the last request, in that view.
    recent: RecentLink,
}

/// What a head asks for, whatever the code.
enum VisitKind {
    /// A redirect; recorded as this.
    Click(Visit),
    /// The target only: no click.
    Look,
}

/// Whether the request is a prefetch, a prerendering or a preview: no person has clicked the link.
fn is_fetched_ahead(headers: &Headers<'_>) -> bool {
    const AHEAD: [&[u8]; 3] = [b"prefetch", b"prerender", b"preview"];
    let is_ahead = |word: &[u8]| AHEAD.iter().any(|known| word.eq_ignore_ascii_case(known));
    let says = |value: &[u8]| value.split(|byte| !byte.is_ascii_alphanumeric()).any(is_ahead);
    let names = ["sec-purpose", "purpose", "x-purpose", "x-moz"];
    names.iter().any(|name| headers.get(name).is_some_and(says))
}

impl Redirects {
    /// The view of links. Missing while the log is being emptied.
    fn renew(&mut self) {
        if self.live.as_ref().is_none_or(|live| live.is_closed()) {
            self.live = self.view.live();
            self.recent = RecentLink::default();
        }
    }

    /// The time of this turn, in µs since 1970 UTC.
    fn wall_us(&mut self, now_us: u64) -> u64 {
        if self.turn.at_us != now_us {
            self.turn = LoopTime { at_us: now_us, wall_us: self.clock.wall_us() };
        }
        self.turn.wall_us
    }
}

impl FastPath for Redirects {
    type Params = VisitKind;
    type Ticket = Infallible;

    fn route(&self) -> FastRoute {
        FastRoute { method: "GET", path: "/{code}" }
    }

    fn forms(&self) -> Vec<Form> {
        vec![Form {
            status: 302,
            content_type: "",
            headers: vec![
                ("referrer-policy", self.referrer_policy.to_owned()),
                ("cache-control", REDIRECT_CACHING.to_owned()),
            ],
            varying_headers: &["location"],
            content: FormContent::Fixed(b""),
        }]
    }

    fn claim(&mut self, method: &str, target: &str) -> Option<Claim> {
        let code = target.strip_prefix('/').filter(|_| method == "GET")?.as_bytes();
        let shape = Shape::Bare(Some(Word { at: 1, most: MAX_CODE_CHARS }));
        let is_ours = Code::parse(code).is_some() && self.accepts(code);
        is_ours.then_some(Claim { role: None, log: None, shape })
    }

    /// Whether a code can be a link's.
    fn accepts(&self, code: &[u8]) -> bool {
        std::str::from_utf8(code).is_ok_and(|code| !(self.is_reserved)(code))
    }

    fn understand(&mut self, head: &Head<'_>) -> Result<Option<VisitKind>, Box<Problem>> {
        if head.method == "HEAD" {
            return Ok(Some(VisitKind::Look));
        }
        if is_fetched_ahead(&head.headers) {
            return Ok(Some(VisitKind::Look));
        }
        let (agent, referrer) = (head.headers.get("user-agent"), head.headers.get("referer"));
        Ok(Some(VisitKind::Click(Visit::of(&ClickHeaders { agent, referrer }))))
    }

    fn hands_in(&self) -> bool {
        true
    }

    fn answer(
        &mut self,
        visiting: &VisitKind,
        asked: FastRequest<'_>,
        varying: &mut Varying,
    ) -> FastAnswer<Infallible> {
        let wall_us = self.wall_us(asked.now_us);
        self.renew();
        let Some(code) = Code::parse(asked.word) else {
            return FastAnswer::Elsewhere(problems::BAD_CODE.because("this is not a valid code"));
        };
        let Some(folded) = self.live.as_ref().and_then(|live| live.folded()) else {
            let problem = problem::VIEW_NOT_READY.because("the view is being rebuilt");
            return FastAnswer::Elsewhere(problem);
        };
        let recent = &mut self.recent;
        let lookup = varying.header(|out| folded.lookup_near(recent, code, wall_us, out));
        if let Err(problem) = of_lookup(code, lookup) {
            // Only the general stack decides commands.
            return match lookup {
                Lookup::Limited | Lookup::Sealed => FastAnswer::Elsewhere(problem),
                _ => FastAnswer::Refused(problem),
            };
        }
        if let VisitKind::Click(visit) = visiting {
            let mut intake = self.intake.borrow_mut();
            self.clicks.record(&mut intake, code, visit, asked.client, wall_us);
        }
        FastAnswer::Reply(FOUND)
    }

    fn settled(&mut self, ticket: &Infallible, _: &mut Varying) -> TicketState {
        match *ticket {}
    }

    fn render(&self, problem: Box<Problem>) -> Box<Problem> {
        with_error(problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use wellspring_host::fast::{AnyFastPath, AnyTicket, ServingThread, Stack};
    use wellspring_host::http::Host;
    use wellspring_host::http::server::Server;
    use wellspring_host::limits::Payer;
    use wellspring_host::names::MAIN;
    use wellspring_host::view::all_stored;
    use wellspring_host::view::contract::View as _;
    use wellspring_log::ReadOptions;
    use wellspring_log::batcher::EventTemplate;
    use wellspring_types::Query;

    const SOON: Duration = Duration::from_secs(20);

    /// A serving thread, without its loop.
    struct Thread {
        host: Arc<Host>,
        /// Dropping it ends the host's faces.
        _server: Arc<Server>,
        intake: Rc<RefCell<Intake>>,
        path: Box<dyn AnyFastPath>,
        turn_us: u64,
    }

    impl Thread {
        fn start(data: &std::path::Path, flags: &[&str]) -> Thread {
            let server = wellspring_host::testing::server::<crate::LinkFace>(data, flags);
            let host = Arc::clone(&server.host);
            let thread = ServingThread::new(Stack::Lean, Arc::new(|| {}));
            let intake = intake_at(&thread, &host.ingest());
            let paths = host.faces.fast_paths();
            let mut paths = paths.iter().map(|make| make(&thread));
            let path = paths.find(|path| path.route().path == "/{code}").unwrap();
            Thread { host, _server: server, intake, path, turn_us: 0 }
        }

        fn event(&mut self, event_type: &str, tag: &str, data: &str) {
            let template = EventTemplate::new(event_type, &[tag]).unwrap();
            self.intake.borrow_mut().offer(&template, data.as_bytes());
        }

        /// The answer to a visit, and what was appended.
        fn visit(&mut self, code: &str) -> (FastAnswer<AnyTicket>, String) {
            self.visit_for(code, "192.0.2.7")
        }

        fn visit_for(&mut self, code: &str, client: &str) -> (FastAnswer<AnyTicket>, String) {
            let agent = httparse::Header { name: "User-Agent", value: b"curl/8.5.0" };
            let headers = Headers::Parsed(&[agent]);
            let target = format!("/{code}");
            let head = Head { method: "GET", target: &target, headers };
            let params = self.path.understand(&head).unwrap().unwrap();
            let (word, client) = (code.as_bytes(), client.parse().ok());
            let (payer, now_us) = (&Payer::default(), self.turn_us);
            let (content, connection, caller) = (&b""[..], None, None);
            let asked = FastRequest { word, content, client, connection, payer, caller, now_us };
            self.turn_us += 1;
            let mut varying = Varying::new();
            let became = self.path.answer(&params, asked, &mut varying);
            (became, String::from_utf8(varying.header_at(0).to_vec()).unwrap())
        }

        /// The data of a code's clicks stored so far.
        fn clicks(&self, code: &str) -> Vec<String> {
            let snapshot = self.host.node.get(MAIN).unwrap().snapshot();
            let query = Query::item(&["LinkClicked"], &[&format!("clicked:{code}")]);
            let mut clicks = snapshot.read(&query, ReadOptions::default());
            let mut seen = Vec::new();
            while let Some(click) = clicks.next().unwrap() {
                seen.push(String::from_utf8(click.data().to_vec()).unwrap());
            }
            seen
        }

        fn name_of(&self, address: &str) -> String {
            let now_us = self.host.clock.wall_us();
            let keys = VisitorKeys::open(&self.host.process.data, now_us).unwrap();
            let key = keys.at(now_us);
            String::from_utf8(key.name(address.parse().ok()).to_vec()).unwrap()
        }

        /// Waits until everything accepted is stored and folded.
        fn settle(&self) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                all_stored(&self.host.node.batcher(MAIN).unwrap(), SOON).await.unwrap();
                let head = self.host.node.get(MAIN).unwrap().head();
                let is_folded = || {
                    let views = self.host.node.views();
                    let mut links = views.iter().filter(|(log, ..)| log == MAIN);
                    links.any(|(_, name, at)| *name == Links::NAME && at.position >= head)
                };
                while !is_folded() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
        }
    }

    #[test]
    fn a_link_leads_where_the_log_says_and_each_visit_is_an_event() {
        let dir = tempfile::tempdir().unwrap();
        let mut thread = Thread::start(dir.path(), &[]);
        let created = r#"{"url":"http://example.com/a","chosen":"alias"}"#;
        for tag in ["link:abc", "link:api", "link:gone"] {
            thread.event("LinkCreated", tag, created);
        }
        thread.event("LinkDeleted", "link:gone", "{}");
        thread.settle();
        for _ in 0..3 {
            let (became, location) = thread.visit("abc");
            assert!(matches!(became, FastAnswer::Reply(FOUND)), "{became:?}");
            assert_eq!(location, "http://example.com/a");
        }
        assert!(!thread.path.accepts(b"api"), "a route stays a route");
        for (code, status) in [("other", 404), ("gone", 410)] {
            let FastAnswer::Refused(problem) = thread.visit(code).0 else { panic!("{code}") };
            assert_eq!(problem.kind.status, status);
            assert_eq!(thread.path.render(problem).more[0].0, "error");
        }
        thread.settle();
        let name = thread.name_of("192.0.2.7");
        let expected = format!(r#"{{"visitor":"{name}","agent":"curl"}}"#);
        assert_eq!(thread.clicks("abc"), [&expected[..]; 3]);
        let head = thread.host.node.get(MAIN).unwrap().head();
        assert_eq!(head, 4 + 3, "only what led somewhere was recorded");
    }

    #[test]
    fn visitors_are_named_by_their_addresses() {
        let dir = tempfile::tempdir().unwrap();
        let mut thread = Thread::start(dir.path(), &[]);
        let created = r#"{"url":"http://example.com/a","chosen":"alias"}"#;
        thread.event("LinkCreated", "link:abc", created);
        thread.settle();
        let clients = ["203.0.113.1", "203.0.113.2", "203.0.113.1"];
        for client in clients {
            thread.visit_for("abc", client);
        }
        thread.settle();
        let data = |address: &str| {
            format!(r#"{{"visitor":"{}","agent":"curl"}}"#, thread.name_of(address))
        };
        assert_eq!(thread.clicks("abc"), clients.map(data));
    }

    #[test]
    fn no_event_that_anybody_appends_can_write_headers_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let mut thread = Thread::start(dir.path(), &[]);
        let targets =
            ["http://e.example/\\r\\nSet-Cookie: a=b", "http://e.example/ü\\u0000", "javascript:x"];
        for target in targets {
            let created = format!(r#"{{"url":"{target}","chosen":"alias"}}"#);
            thread.event("LinkCreated", "link:evil", &created);
            thread.settle();
            let (_, location) = thread.visit("evil");
            assert!(location.bytes().all(|byte| byte.is_ascii_graphic()), "{location:?}");
            assert!(!location.starts_with("javascript"), "{location:?}");
        }
    }

    #[test]
    fn a_click_that_cannot_be_taken_is_counted_and_the_redirect_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let mut thread = Thread::start(dir.path(), &[]);
        let created = r#"{"url":"http://example.com/a","chosen":"alias"}"#;
        thread.event("LinkCreated", "link:abc", created);
        thread.settle();
        thread.host.node.get(MAIN).unwrap().close();
        let shed = |thread: &Thread| thread.host.node.account(MAIN).unwrap().shed.events;
        let mut visits = 0;
        // The batcher learns that the log is closed when it next stores something.
        while shed(&thread) < 50 {
            assert!(matches!(thread.visit("abc").0, FastAnswer::Reply(FOUND)));
            visits += 1;
            assert!(visits < 10_000_000, "nothing is shed");
        }
        let account = thread.host.node.account(MAIN).unwrap();
        assert_eq!(account.accepted.events + account.shed.events, visits + 1);
    }
}
