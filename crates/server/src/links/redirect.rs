//! Where a link leads, for a thread that serves nothing but redirects and ingest.

use super::click::Clicks;
use super::refusal::{of_lookup, with_error};
use super::visit::Visit;
use super::visitor::Visitor;
use crate::ingest::Intake;
use crate::view::{Live, ViewSlot};
use crate::wire::problem::Problem;
use std::sync::Arc;
use wellspring_log::Clock;
use wellspring_views::links::{Code, Links, Recent};

/// A request for a link.
pub(crate) struct Visiting<'a> {
    /// The code, 1 to 10 letters and digits.
    pub(crate) code: &'a [u8],
    /// What is recorded of the visit.
    pub(crate) visit: &'a Visit,
    /// Who visits.
    pub(crate) visitor: &'a mut Visitor,
    /// Monotonic time of this turn of the loop, µs.
    pub(crate) now_us: u64,
}

/// What became of a request for a link.
#[derive(Debug)]
pub(crate) enum Redirected {
    /// The click is recorded, and where the link leads is appended.
    Found,
    /// It leads nowhere: answer this, go on with the connection.
    Refused(Box<Problem>),
    /// For the general stack: the view does not answer yet.
    Foreign,
}

/// The time of a turn of the loop.
#[derive(Clone, Copy)]
struct Turn {
    /// By the monotonic clock.
    at_us: u64,
    /// The same, µs since 1970 UTC.
    wall_us: u64,
}

/// A thread's way to links.
pub(crate) struct Redirects {
    links: Arc<ViewSlot<Links>>,
    is_reserved: fn(&str) -> bool,
    clock: Arc<dyn Clock>,
    clicks: Clicks,
    turn: Turn,
    /// The view; another once the log has been emptied.
    live: Option<Arc<Live<Links>>>,
    /// The link of the last request, in that view.
    recent: Recent,
}

impl Redirects {
    /// Nobody redirected yet.
    pub(crate) fn new(
        links: Arc<ViewSlot<Links>>,
        is_reserved: fn(&str) -> bool,
        clock: Arc<dyn Clock>,
        clicks: Clicks,
    ) -> Redirects {
        let turn = Turn { at_us: u64::MAX, wall_us: 0 };
        let recent = Recent::default();
        Redirects { links, is_reserved, clock, clicks, turn, live: None, recent }
    }

    /// Whether a code may be a link's at all.
    pub(crate) fn serves(&self, code: &[u8]) -> bool {
        std::str::from_utf8(code).is_ok_and(|code| !(self.is_reserved)(code))
    }

    /// Appends where a link leads to `location`, and records the click. Only for a code that it
    /// [`serves`](Self::serves).
    pub(crate) fn redirect(
        &mut self,
        intake: &mut Intake,
        visiting: Visiting<'_>,
        location: &mut Vec<u8>,
    ) -> Redirected {
        let Visiting { code, visit, visitor, now_us } = visiting;
        if self.turn.at_us != now_us {
            self.turn = Turn { at_us: now_us, wall_us: self.clock.wall_us() };
        }
        let wall_us = self.turn.wall_us;
        let Some(code) = Code::parse(code) else {
            return Redirected::Foreign;
        };
        if self.live.as_ref().is_none_or(|live| live.is_closed()) {
            self.live = self.links.live();
            self.recent = Recent::default();
        }
        let Some(folded) = self.live.as_ref().and_then(|live| live.folded()) else {
            return Redirected::Foreign;
        };
        match of_lookup(code, folded.lookup_near(&mut self.recent, code, wall_us, location)) {
            Ok(()) => {
                self.clicks.record(intake, code, visit, visitor, wall_us);
                Redirected::Found
            }
            Err(problem) => Redirected::Refused(with_error(problem)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Host;
    use crate::ingest::Order;
    use crate::links::RedirectSource;
    use crate::links::Told;
    use crate::names::MAIN;
    use crate::view::all_stored;
    use std::time::Duration;
    use wellspring_log::ReadOptions;
    use wellspring_log::batcher::EventTemplate;
    use wellspring_types::Query;

    const SOON: Duration = Duration::from_secs(20);

    /// A thread that serves, without its loop.
    struct Thread {
        host: Arc<Host>,
        source: RedirectSource,
        intake: Intake,
        redirects: Redirects,
        visitor: Visitor,
        turn_us: u64,
    }

    impl Thread {
        fn start(data: &std::path::Path, flags: &[&str]) -> Thread {
            let server = crate::serve::open::for_tests(data, flags);
            let (host, source) = (Arc::clone(&server.host), server.redirects().unwrap());
            let intake = Intake::new(host.ingest(), Order::First, Arc::new(|| {}));
            let redirects = Redirects::new(
                Arc::clone(&source.view),
                crate::faces::is_reserved,
                Arc::clone(&host.clock),
                Clicks::new(Arc::clone(&source.visitor_keys), Arc::clone(&host.limits)).unwrap(),
            );
            let visitor = Visitor::at(Some("192.0.2.7".parse().unwrap()));
            Thread { host, source, intake, redirects, visitor, turn_us: 0 }
        }

        fn event(&mut self, event_type: &str, tag: &str, data: &str) {
            let template = EventTemplate::new(event_type, &[tag]).unwrap();
            self.intake.offer(&template, data.as_bytes());
        }

        /// What a visit comes to, and what was appended.
        fn visit(&mut self, code: &str) -> (Redirected, String) {
            self.visit_for(code, "")
        }

        fn visit_for(&mut self, code: &str, forwarded: &str) -> (Redirected, String) {
            let mut visit = Visit::default();
            let forwarded = vec![forwarded.as_bytes()];
            visit.read(&Told { agent: Some(b"curl/8.5.0"), forwarded, ..Told::default() });
            let visiting = Visiting {
                code: code.as_bytes(),
                visit: &visit,
                visitor: &mut self.visitor,
                now_us: self.turn_us,
            };
            self.turn_us += 1;
            let mut location = Vec::new();
            let became = self.redirects.redirect(&mut self.intake, visiting, &mut location);
            (became, String::from_utf8(location).unwrap())
        }

        /// The data of the clicks of a code, stored so far.
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
            let key = self.source.visitor_keys.at(self.host.clock.wall_us());
            String::from_utf8(key.name(address.parse().ok()).to_vec()).unwrap()
        }

        /// Waits until all that was taken is stored and folded.
        fn settle(&self) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                all_stored(&self.host.node.batcher(MAIN).unwrap(), SOON).await.unwrap();
                let head = self.host.node.get(MAIN).unwrap().head();
                self.source.view.live().unwrap().caught_up(head, SOON).await.unwrap();
            });
        }
    }

    #[test]
    fn a_link_leads_where_the_log_says_and_each_visit_is_an_event() {
        let dir = tempfile::tempdir().unwrap();
        let mut thread = Thread::start(dir.path(), &[]);
        let created = r#"{"url":"http://example.com/a","chosen":"alias"}"#;
        for tag in ["link:abc", "link:health", "link:gone"] {
            thread.event("LinkCreated", tag, created);
        }
        thread.event("LinkDeleted", "link:gone", "{}");
        thread.settle();
        for _ in 0..3 {
            let (became, location) = thread.visit("abc");
            assert!(matches!(became, Redirected::Found), "{became:?}");
            assert_eq!(location, "http://example.com/a");
        }
        assert!(!thread.redirects.serves(b"health"), "a route stays a route");
        for (code, status) in [("other", 404), ("gone", 410)] {
            let Redirected::Refused(problem) = thread.visit(code).0 else { panic!("{code}") };
            assert_eq!(problem.kind.status, status);
            assert_eq!(problem.more[0].0, "error");
        }
        thread.settle();
        let name = thread.name_of("192.0.2.7");
        let expected = format!(r#"{{"visitor":"{name}","agent":"curl"}}"#);
        assert_eq!(thread.clicks("abc"), [&expected[..]; 3]);
        let head = thread.host.node.get(MAIN).unwrap().head();
        assert_eq!(head, 4 + 3, "only what led somewhere was recorded");
    }

    #[test]
    fn a_visitor_behind_a_trusted_proxy_is_who_the_proxy_says() {
        let dir = tempfile::tempdir().unwrap();
        for (flags, proxies) in [(&["--trusted-proxies", "192.0.2.0/24"][..], true), (&[], false)] {
            let mut thread = Thread::start(&dir.path().join(proxies.to_string()), flags);
            let created = r#"{"url":"http://example.com/a","chosen":"alias"}"#;
            thread.event("LinkCreated", "link:abc", created);
            thread.settle();
            for client in ["203.0.113.1", "203.0.113.2", "203.0.113.1"] {
                thread.visit_for("abc", client);
            }
            thread.settle();
            let data = |address: &str| {
                format!(r#"{{"visitor":"{}","agent":"curl"}}"#, thread.name_of(address))
            };
            let expected = if proxies {
                ["203.0.113.1", "203.0.113.2", "203.0.113.1"].map(data)
            } else {
                ["192.0.2.7"; 3].map(data)
            };
            assert_eq!(thread.clicks("abc"), expected);
        }
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
            assert!(matches!(thread.visit("abc").0, Redirected::Found));
            visits += 1;
            assert!(visits < 10_000_000, "nothing is shed");
        }
        let account = thread.host.node.account(MAIN).unwrap();
        assert_eq!(account.accepted.events + account.shed.events, visits + 1);
    }

    #[test]
    fn reserved_words_are_no_links_in_any_mix_of_cases() {
        let dir = tempfile::tempdir().unwrap();
        let redirects = Thread::start(dir.path(), &[]).redirects;
        use crate::faces;
        for word in faces::reserved_words().filter(|word| Code::parse(word.as_bytes()).is_some()) {
            let upper = word.to_ascii_uppercase();
            assert!(!redirects.serves(word.as_bytes()), "{word}");
            assert!(!redirects.serves(upper.as_bytes()), "{upper}");
        }
        for code in ["Yci", "0123456789", "healthy", "h", "HEALTHZ", "zzzzzzzzzz"] {
            assert!(!faces::is_reserved(code), "{code}");
            assert!(redirects.serves(code.as_bytes()), "{code}");
        }
    }
}
