//! Bodies of many lines, statements of a graph, and leases: what a node could execute twice.

use super::{TrialClient, WriteAnswer, read};

use crate::history::{Kind, Outcome};
use crate::http::{Answer, Failure, Request};

use serde_json::json;
use std::time::Duration;

/// What the lines of a bulk make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lines {
    Events,
    Links,
    Items,
}

impl Lines {
    fn path(self) -> &'static str {
        match self {
            Lines::Events => "/v1/append",
            Lines::Links => "/api/urls",
            Lines::Items => "/v1/catalogue/items",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Lines::Events => "events",
            Lines::Links => "links",
            Lines::Items => "items",
        }
    }

    /// A line that shows in the log as the `line`-th of the bulk with this number.
    fn line(self, number: u64, line: u64) -> String {
        let line = match self {
            Lines::Events => json!({"type": "Lined", "data": {"n": number, "line": line}}),
            Lines::Links => json!({ "url": format!("https://lines.example/{number}/{line}") }),
            Lines::Items => {
                json!({"sku": format!("lines-{number}-{line}"), "name": "x", "topic": "Lines", "price": "1.00"})
            }
        };
        line.to_string() + "\n"
    }
}

pub(super) fn run(mut client: TrialClient<'_>) {
    while !client.world.has_ended() {
        let lines = client.dice.one(&[Lines::Events, Lines::Links, Lines::Items]);
        let count = match lines {
            Lines::Events => client.dice.between(500, 4_000),
            Lines::Links | Lines::Items => client.dice.between(100, 800),
        };
        bulk(&mut client, lines, count);
        // A bulk is worth many other requests.
        (0..20).for_each(|_| client.pause());
    }
}

fn bulk(client: &mut TrialClient<'_>, lines: Lines, count: u64) {
    let node = client.any_node();
    let number = client.world.history.number();
    let body: String = (0..count).map(|line| lines.line(number, line)).collect();
    let mut request = Request::post(lines.path(), &serde_json::Value::Null);
    request.headers = vec![("Content-Type", "application/x-ndjson".to_owned())];
    request.body = body.into_bytes();
    request.wait = Duration::from_secs(30);
    // Items are recognized by their SKUs.
    let has_key = lines != Lines::Items && client.dice.percent(50);
    if has_key {
        request = request.header("Idempotency-Key", format!("bulk-{number}"));
    }
    let mut line = client.line(Kind::Bulk, node);
    (line.key, line.new, line.old) = (lines.name().to_owned(), number, count);
    let tries = if has_key { 4 } else { 1 };
    for tried in 1..=tries {
        let node = if tried == 1 { node } else { client.any_node() };
        let answer = client.ask(node, &request);
        (line.outcome, line.position, line.told) = told(&answer, has_key);
        if line.outcome == Outcome::Done {
            break;
        }
        std::thread::sleep(Duration::from_millis(client.dice.between(20, 200)));
    }
    line.end_ns = client.world.history.now();
    client.world.history.add(line);
}

/// The outcome of a bulk, and how many of its lines are stored as far as the answer says so.
fn told(answer: &Result<Answer, Failure>, has_key: bool) -> (Outcome, Option<u64>, String) {
    let answer = match answer {
        Ok(answer) => answer,
        Err(Failure::NotSent(why)) if !has_key => return (Outcome::Refused, Some(0), why.clone()),
        Err(failure) => return (Outcome::Unknown, None, failure.to_string()),
    };
    let (json, problem) = (answer.json(), answer.problem());
    let text = format!("{} {problem}", answer.status);
    match answer.status {
        200..=299 => (Outcome::Done, json["lines"].as_u64(), String::new()),
        // An earlier attempt may have stored more.
        _ if has_key || problem == "outcome-unknown" || problem == "not-yet" => {
            (Outcome::Unknown, None, text)
        }
        _ => (Outcome::Refused, Some(json["durable_lines"].as_u64().unwrap_or(0)), text),
    }
}

/// A client that creates nodes with unique properties.
pub(super) fn statements(mut client: TrialClient<'_>) {
    while !client.world.has_ended() {
        let node = client.any_node();
        let number = client.world.history.number();
        let parameters = json!({ "n": format!("statement-{number}.") });
        let statement = json!({"statement": "CREATE (:Stated {n: $n})", "parameters": parameters});
        let body = json!({ "statements": [statement] });
        let mut line = client.line(Kind::Statement, node);
        line.new = number;
        let answer = client.ask(node, &Request::post("/db/main/tx/commit", &body));
        let told = match answer {
            // Faults of statements are results. This one has none but of the log.
            Ok(answer) if answer.status == 200 && answer.json()["errors"] != json!([]) => {
                WriteAnswer::Unknown(answer.json()["errors"].to_string())
            }
            Ok(answer) => read(answer),
            Err(Failure::NotSent(why)) => WriteAnswer::Refused(why),
            Err(Failure::NoAnswer(why)) => WriteAnswer::Unknown(why),
        };
        client.note(line, told);
        client.pause();
    }
}

/// A client that takes a lease again and again.
pub(super) fn leases(mut client: TrialClient<'_>) {
    while !client.world.has_ended() {
        let node = client.any_node();
        let mut line = client.line(Kind::Lease, node);
        let told = client.write(node, &Request::post("/v1/leases/trial", &json!({"ttl_ms": 200})));
        if let WriteAnswer::Done(answer) = &told {
            line.new = answer.json()["token"].as_u64().unwrap_or(0);
        }
        client.note(line, told);
        client.pause();
    }
}
