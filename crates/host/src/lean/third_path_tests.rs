//! What a third fast path takes, and that both stacks say the same of a fast path: content, status
//! and headers but for those that frame the answer.

use super::both_stacks::{BothStacks, SentRequest};
use crate::fast::{
    Claim, Factory, FastPath, FastRequest, FastRoute, Form, Head, Outcome, Seat, Shape,
    TicketState, Varies, Word, erase,
};
use crate::ingest;
use crate::testing;
use crate::wire::problem::{self, Problem};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

/// `GET /tally/{word}`: how often the word has been asked for, and who asks.
#[derive(Default)]
struct Tally(HashMap<Vec<u8>, u64>);

impl FastPath for Tally {
    type Order = String;
    type Ticket = Infallible;

    fn route(&self) -> FastRoute {
        FastRoute { method: "GET", path: "/tally/{word}" }
    }

    fn forms(&self) -> Vec<Form> {
        let headers = vec![("cache-control", "no-store".to_owned())];
        vec![Form { status: 200, content_type: "text/plain", headers, varies: Varies::Content }]
    }

    fn claim(&mut self, method: &str, target: &str) -> Option<Claim> {
        let word = target.strip_prefix("/tally/").filter(|_| method == "GET")?;
        let is_word = (1..=8).contains(&word.len()) && word.chars().all(char::is_alphanumeric);
        let shape = Shape::Bare(Some(Word { at: "/tally/".len(), most: 8 }));
        is_word.then_some(Claim { role: None, log: None, shape })
    }

    fn understand(&mut self, head: &Head<'_>) -> Result<String, Box<Problem>> {
        let agent = head.headers.get("user-agent").unwrap_or_default();
        Ok(String::from_utf8_lossy(agent).into_owned())
    }

    fn answer(
        &mut self,
        agent: &String,
        asked: FastRequest<'_>,
        content: &mut Vec<u8>,
    ) -> Outcome<Infallible> {
        if asked.word == b"never" {
            return Outcome::Refused(problem::NOT_FOUND.because("this is never counted"));
        }
        let count = self.0.entry(asked.word.to_vec()).or_default();
        *count += 1;
        let client = asked.client.map(|client| client.to_string()).unwrap_or_default();
        content.extend_from_slice(format!("{count} {agent} {client}").as_bytes());
        Outcome::Reply(0)
    }

    fn settled(&mut self, ticket: &Infallible) -> TicketState {
        match *ticket {}
    }

    fn render(&self, problem: Box<Problem>) -> Box<Problem> {
        problem.with("tally", "true".to_owned())
    }
}

#[test]
fn both_stacks_say_the_same_of_a_third_path() {
    let dir = tempfile::tempdir().unwrap();
    let host = testing::host(dir.path(), &[]);
    let tally: Factory = Arc::new(|_: &Seat| erase(Tally::default()));
    let mut stacks = BothStacks::new(&host, &[ingest::fast_path(host.ingest()), tally]);
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
        (202, sent("POST", "/e", &[], "{}")),
    ] {
        let (lean, general) = stacks.ask(&sent);
        assert_eq!(lean, general, "{} {}", sent.method, sent.target);
        assert_eq!(lean.0, status, "{} {}: {}", sent.method, sent.target, lean.2);
    }
    assert_eq!(stacks.prompt(1), 4);
    let (lean, _) = stacks.ask(&sent("GET", "/tally/ab", &[], ""));
    assert_eq!(lean.2, "4 a 192.0.2.1");
}
