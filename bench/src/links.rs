//! Links under the load tester's closed loop: redirects with their click recorded beside `POST /e`,
//! and links made beside durable appends, each against the same server in the same run.

use crate::{
    flags::{Flags, Outcome},
    http1::{HttpConnection, number_after},
    ingest::{BODY, row},
    ingest_account::Account,
    links_view::LinksView,
    load_tester::{LoadTester, Told, Until},
    machine,
    row::{Row, Sink},
};
use std::{ops::RangeInclusive, time::Duration};

/// Links that `many` follows: their aliases are the numbers from 1 on.
const MANY: u64 = 10_000;
/// The alias that `redirect` follows.
pub(crate) const ONE: &str = "one";
/// How long folding may go on after the last answer.
const FOLDS_WITHIN: Duration = Duration::from_secs(60);

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// `POST /e`.
    Events,
    /// One link.
    Redirect,
    /// Any of [`MANY`] links.
    Many,
    /// A new link to the same URL each time, as the original's load test asks for.
    Create,
    /// A durable append of one event as large as a new link's.
    Append,
}

impl std::str::FromStr for What {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "events" => Ok(Self::Events),
            "redirect" => Ok(Self::Redirect),
            "many" => Ok(Self::Many),
            "create" => Ok(Self::Create),
            "append" => Ok(Self::Append),
            _ => Err(()),
        }
    }
}

impl What {
    /// The load tester's flags, the path, and what is answered.
    fn request(self) -> (Vec<&'static str>, String, u16) {
        match self {
            Self::Events => (vec!["-m", "POST", "-d", BODY], "/e".into(), 202),
            Self::Redirect => (vec![], format!("/{ONE}"), 302),
            Self::Many => (vec!["--template"], format!("/{{{{random:1..{MANY}}}}}"), 302),
            Self::Create => {
                let body = r#"{"url":"http://example.com/test"}"#;
                (vec!["-m", "POST", "-d", body], "/api/urls".into(), 201)
            }
            Self::Append => {
                let body = r#"{"events":[{"type":"LinkCreated2","tags":["other:Yci"],"data":{"url":"http://example.com/test","number":1000,"chosen":"automatic"}}]}"#;
                (vec!["-m", "POST", "-d", body], "/v1/append".into(), 200)
            }
        }
    }

    /// Fails unless the server has exactly these answers' events since `before`.
    fn check(
        self,
        after: &Account,
        answered: RangeInclusive<u64>,
        before: &Account,
    ) -> Outcome<()> {
        match self {
            Self::Events | Self::Redirect | Self::Many => {
                after.must_have_grown_by(answered, before)
            }
            Self::Create | Self::Append => after.head_must_have_grown_by(answered, before),
        }
    }
}

/// `wsbench links`: one run against one running server.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let what: What = flags.required("what")?;
    let sink = Sink::from_flags("links", "wellspring", &mut flags)?;
    let Told { address, bench, server_pid, connections, seconds, warmup } =
        Told::from_flags(flags)?;
    make_links(&address)?;
    let server_cpu = || machine::cpu_of(server_pid).ok_or("the server is gone");
    // What was accepted and not yet stored, or stored and not yet folded, is work the server still
    // owes.
    let settled = || -> Outcome<Account> {
        let account = Account::settled(&address)?;
        LinksView::folded(&address, FOLDS_WITHIN)?;
        Ok(account)
    };
    let (request, path, status) = what.request();
    let url = format!("http://{address}{path}");
    let client = LoadTester { bench: &bench, request: &request, url: &url, status, connections };

    let before_probe = settled()?;
    let probe = client.probe(warmup)?;
    let before = settled()?;
    what.check(&before, probe.answered..=probe.answered + connections, &before_probe)?;

    let clicks = clicks(&address)?;
    let cpu = server_cpu()?;
    let seen = client.load(Until::filled(&probe, seconds), warmup)?;
    let after = settled()?;
    let spent = server_cpu()?.saturating_sub(cpu);
    what.check(&after, seen.answered..=seen.answered, &before)?;
    let counted = self::clicks(&address)? - clicks;
    let expected = if what == What::Redirect { seen.answered } else { 0 };
    if counted != expected {
        return Err(format!("not trusted: {counted} clicks are counted, not {expected}").into());
    }
    sink.put(&Row {
        size: before.head,
        server_us: Some(spent.as_secs_f64() * 1e6 / seen.answered as f64),
        ..row(&sink, connections, &seen)
    })
}

/// The clicks of the one link.
fn clicks(address: &str) -> Outcome<u64> {
    let mut answer = Vec::new();
    HttpConnection::open(address)?.call("GET", &format!("/api/urls/{ONE}"), "", None, |part| {
        answer.extend_from_slice(part);
    })?;
    number_after(&answer, "clicks").ok_or_else(|| "the link tells no clicks".into())
}

/// Makes the links that are followed, unless they are there.
pub(crate) fn make_links(address: &str) -> Outcome<()> {
    let mut connection = HttpConnection::open(address)?;
    if connection.call("GET", &format!("/api/urls/{ONE}"), "", None, |_| {})? == 200 {
        return Ok(());
    }
    let line = |alias: &str| {
        format!("{{\"url\":\"http://example.com/page/{alias}\",\"alias\":\"{alias}\"}}\n")
    };
    // The last one without an alias: the first such link brings an event of its own.
    let mut body: String = (1..=MANY).map(|number| line(&number.to_string())).collect();
    body += &line(ONE);
    body += "{\"url\":\"http://example.com/test\"}\n";
    let mut answer = Vec::new();
    let body = Some(("application/x-ndjson", body.as_bytes()));
    let status = connection
        .call_with("POST", "/api/urls", "", body, |part| answer.extend_from_slice(part))?;
    match status {
        201 => Ok(()),
        _ => Err(format!("links: {status}: {}", String::from_utf8_lossy(&answer)).into()),
    }
}
