//! A third fast path, and the equality of both stacks for a fast path: content, status and headers
//! except those that frame the answer.

use super::both_stacks::{BothStacks, SentRequest};
use crate::declare::routes;
use crate::fast::{
    Claim, Factory, FastAnswer, FastPath, FastRequest, FastRoute, Form, FormContent, Head,
    ServingThread, Shape, TicketState, Varying, Word, erase,
};
use crate::http::connection;
use crate::http::face::{Face, ServedRoute};
use crate::http::{Answer, Host, Request, TEXT, fast};
use crate::ingest;
use crate::settings::NoSettings;
use crate::setup::SetupError;
use crate::testing;
use crate::wire::problem::{self, Problem};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// `GET /tally/{word}`: counts the requests for the word and names the caller. A `{word}` in
/// capitals is not counted, has an `ETag`, and gives 304 to a client that has it.
#[derive(Default)]
struct Tally(HashMap<Vec<u8>, u64>);

/// Its forms, by their places.
const COUNTED: usize = 0;
const LOOKED_AT: usize = 1;
const UNCHANGED: usize = 2;
const NEVER_ASKED: usize = 3;

/// What a head asks for, whatever the word.
struct TallyOrder {
    agent: String,
    has: Option<Vec<u8>>,
}

impl FastPath for Tally {
    type Params = TallyOrder;
    type Ticket = Infallible;

    fn route(&self) -> FastRoute {
        FastRoute { method: "GET", path: "/tally/{word}" }
    }

    fn forms(&self) -> Vec<Form> {
        let form = |status, content_type, varying_headers, content| {
            let headers = vec![("cache-control", "no-store".to_owned())];
            Form { status, content_type, headers, varying_headers, content }
        };
        let versioned: &[&str] = &["etag", "wellspring-position"];
        vec![
            form(200, "text/plain", &[], FormContent::Varying),
            form(200, "text/plain", versioned, FormContent::Varying),
            form(304, "", versioned, FormContent::Fixed(b"")),
            form(204, "", &[], FormContent::Fixed(b"")),
        ]
    }

    fn claim(&mut self, method: &str, target: &str) -> Option<Claim> {
        let word = target.strip_prefix("/tally/").filter(|_| method == "GET")?;
        let is_word = (1..=8).contains(&word.len()) && word.chars().all(char::is_alphanumeric);
        let shape = Shape::Bare(Some(Word { at: "/tally/".len(), most: 8 }));
        is_word.then_some(Claim { role: None, log: None, shape })
    }

    fn understand(&mut self, head: &Head<'_>) -> Result<Option<TallyOrder>, Box<Problem>> {
        let agent = head.headers.get("user-agent").unwrap_or_default();
        let agent = String::from_utf8_lossy(agent).into_owned();
        Ok(Some(TallyOrder { agent, has: head.headers.get("if-none-match").map(<[u8]>::to_vec) }))
    }

    fn answer(
        &mut self,
        order: &TallyOrder,
        asked: FastRequest<'_>,
        varying: &mut Varying,
    ) -> FastAnswer<Infallible> {
        if asked.word == b"never" {
            return FastAnswer::Refused(problem::NOT_FOUND.because("this is never counted"));
        }
        if asked.word[0].is_ascii_uppercase() {
            return self.look(order, asked.word, varying);
        }
        let count = self.0.entry(asked.word.to_vec()).or_default();
        *count += 1;
        let client = asked.client.map(|client| client.to_string()).unwrap_or_default();
        let text = format!("{count} {} {client}", order.agent);
        varying.content().extend_from_slice(text.as_bytes());
        FastAnswer::Reply(COUNTED)
    }

    fn settled(&mut self, ticket: &Infallible, _: &mut Varying) -> TicketState {
        match *ticket {}
    }

    fn render(&self, problem: Box<Problem>) -> Box<Problem> {
        problem.with("tally", "true".to_owned())
    }
}

impl Tally {
    /// The answer to a word that is not counted.
    fn look(
        &self,
        order: &TallyOrder,
        word: &[u8],
        varying: &mut Varying,
    ) -> FastAnswer<Infallible> {
        let Some(count) = self.0.get(&word.to_ascii_lowercase()) else {
            return FastAnswer::Reply(NEVER_ASKED);
        };
        let etag = format!("\"{count}\"");
        varying.header(|out| out.extend_from_slice(etag.as_bytes()));
        varying.header(|out| out.extend_from_slice(b"17"));
        if order.has.as_deref() == Some(etag.as_bytes()) {
            return FastAnswer::Reply(UNCHANGED);
        }
        varying.content().extend_from_slice(format!("{count} so far").as_bytes());
        FastAnswer::Reply(LOOKED_AT)
    }
}

fn tally() -> Factory {
    Arc::new(|_: &ServingThread| erase(Tally::default()))
}

/// A face with that path.
struct Tallies(Arc<Host>);

impl Face for Tallies {
    const NAME: &'static str = "tallies";
    type Settings = NoSettings;
    const ROUTES: &'static [ServedRoute<Tallies>] = routes! { |face| face;
        GET "/tally/{word}" Main Public show: "A tally." => [200 TEXT "", 204, 304];
    };

    fn open(_: NoSettings, host: &Arc<Host>) -> Result<Tallies, SetupError> {
        Ok(Tallies(Arc::clone(host)))
    }

    fn fast_paths(&self) -> Vec<Factory> {
        vec![tally()]
    }
}

async fn show(face: Arc<Tallies>, mut request: Box<Request>) -> Answer {
    let target = request.uri.path().to_owned();
    Ok(fast::serve(&face.0, &mut request, &target).await)
}

/// A position in the path's own answer is sent once, without the head of the route's log.
#[test]
fn the_general_stack_frames_what_a_path_says() {
    let dir = tempfile::tempdir().unwrap();
    let server = testing::server::<Tallies>(dir.path(), &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answers = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        for (word, headers) in
            [("ab", ""), ("AB", ""), ("AB", "If-None-Match: \"1\"\r\n"), ("C", "")]
        {
            let head = format!("GET /tally/{word} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
            client.write_all(head.as_bytes()).await.unwrap();
        }
        client.shutdown().await.unwrap();
        connection::serve(stream, None, Default::default(), server).await;
        let mut answers = String::new();
        client.read_to_string(&mut answers).await.unwrap();
        answers.to_ascii_lowercase()
    });
    let mut each: Vec<_> = answers.split("http/1.1 ").skip(1).collect();
    let position = |answer: &str| answer.matches("wellspring-position: ").count();
    assert!(each.iter().map(|answer| &answer[..3]).eq(["200", "200", "304", "204"]), "{answers}");
    assert_eq!(each.iter().map(|answer| position(answer)).collect::<Vec<_>>(), [0, 1, 1, 0]);
    assert!(each[1].contains("wellspring-position: 17\r\n"), "{answers}");
    for without in each.split_off(2) {
        assert!(!without.contains("content-length") && without.ends_with("\r\n\r\n"), "{answers}");
    }
    assert!(each[1].contains("content-length: 8\r\n") && each[1].ends_with("\r\n\r\n1 so far"));
}

#[test]
fn both_stacks_say_the_same_of_a_third_path() {
    let dir = tempfile::tempdir().unwrap();
    let host = testing::host(dir.path(), &[]);
    let mut stacks = BothStacks::new(&host, &[ingest::fast_path(host.ingest()), tally()]);
    let sent = |method, target, more: &[(&'static str, &'static str)], content| SentRequest {
        method,
        target,
        headers: more.to_vec(),
        content,
    };
    for (status, sent) in [
        (200, sent("GET", "/tally/ab", &[], "")),
        (200, sent("GET", "/tally/ab", &[], "")),
        (200, sent("GET", "/tally/c", &[], "")),
        (200, sent("GET", "/tally/ab", &[("X-Other", "b")], "")),
        (404, sent("GET", "/tally/never", &[], "")),
        (200, sent("GET", "/tally/AB", &[], "")),
        (200, sent("GET", "/tally/AB", &[("If-None-Match", "\"2\"")], "")),
        (304, sent("GET", "/tally/AB", &[("If-None-Match", "\"3\"")], "")),
        (304, sent("GET", "/tally/AB", &[("If-None-Match", "\"3\"")], "")),
        (200, sent("GET", "/tally/ab", &[], "")),
        (204, sent("GET", "/tally/D", &[], "")),
        (202, sent("POST", "/e", &[], "{}")),
    ] {
        let (lean, general) = stacks.ask(&sent);
        assert_eq!(lean, general, "{} {}", sent.method, sent.target);
        assert_eq!(lean.0, status, "{} {}: {}", sent.method, sent.target, lean.2);
    }
    assert_eq!(stacks.prompt(1), 5);
    let (lean, _) = stacks.ask(&sent("GET", "/tally/ab", &[], ""));
    assert_eq!(lean.2, "5 a 192.0.2.1");
    let (lean, _) = stacks.ask(&sent("GET", "/tally/AB", &[], ""));
    let headers = [
        ("cache-control", "no-store"),
        ("content-type", "text/plain"),
        ("etag", "\"5\""),
        ("wellspring-position", "17"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    assert_eq!(lean, (200, headers, "5 so far".to_owned()));
}
