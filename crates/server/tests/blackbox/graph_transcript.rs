//! The transcript in `docs/graph.md`: every line is asked of a server, in order, and every answer that is shown is
//! compared. `…` in it stands for anything.

use crate::client::Answer;
use crate::server::Server;
use serde_json::Value;
use std::mem::take;
use std::path::Path;

/// A command, and the answer that the page shows.
#[derive(Default)]
struct Step {
    command: String,
    shown: String,
}

/// The steps of all blocks of `sh`.
fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for block in page.split("```sh\n").skip(1) {
        let block = block.split("```").next().expect("an end");
        let mut step = Step::default();
        for line in block.lines() {
            let is_within_quotes = step.command.matches('\'').count() % 2 == 1;
            if is_within_quotes {
                step.command = format!("{}\n{line}", step.command);
            } else if let Some(shown) = line.strip_prefix("# ") {
                step.shown.push_str(shown);
            } else {
                steps.push(take(&mut step));
                line.clone_into(&mut step.command);
            }
        }
        steps.push(step);
    }
    steps.retain(|step| step.command.starts_with("curl "));
    steps
}

/// The words of a command: apart, or within single quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (index, part) in command.split('\'').enumerate() {
        if index % 2 == 1 {
            words.last_mut().expect("a word").push_str(part);
            continue;
        }
        let mut between = part.split_whitespace().peekable();
        if part.starts_with(char::is_whitespace) {
            words.push(String::new());
        }
        while let Some(word) = between.next() {
            words.last_mut().expect("a word").push_str(word);
            if between.peek().is_some() || part.ends_with(char::is_whitespace) {
                words.push(String::new());
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Asks what `curl` would.
fn ask(server: &Server, command: &str, transaction: &str) -> Answer {
    let (mut method, mut path, mut content) = (None, None, None);
    let mut headers = Vec::new();
    let mut words = words(command).into_iter().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value");
        match word.as_str() {
            "-i" => {}
            "-X" => method = Some(value()),
            "-d" => content = Some(value()),
            "-H" => {
                let header = value();
                let (name, value) = header.split_once(": ").expect("a header");
                headers.push((name.to_owned(), value.to_owned()));
            }
            target => {
                let target = target.replace("$TX", transaction);
                path = Some(target.strip_prefix("localhost:4000").expect("a target").to_owned());
            }
        }
    }
    let default = if content.is_some() { "POST" } else { "GET" };
    let (method, path) = (method.unwrap_or_else(|| default.to_owned()), path.expect("a target"));
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let content = content.unwrap_or_default();
    server.client().call(&method, &path, &headers, content.as_bytes()).unwrap()
}

/// Whether an answer is what is shown.
fn is_shown(shown: &Value, found: &Value) -> bool {
    match (shown, found) {
        (Value::String(shown), Value::String(found)) => match shown.split_once('…') {
            Some((begin, end)) => found.starts_with(begin) && found.ends_with(end),
            None => shown == found,
        },
        (Value::Array(shown), Value::Array(found)) => {
            shown.len() == found.len() && shown.iter().zip(found).all(|(s, f)| is_shown(s, f))
        }
        (Value::Object(shown), Value::Object(found)) => {
            let are_all = shown.len() == found.len() || shown.contains_key("…");
            let is = |(name, value): (&String, &Value)| {
                name == "…" || found.get(name).is_some_and(|found| is_shown(value, found))
            };
            are_all && shown.iter().all(is)
        }
        _ => shown == found,
    }
}

#[test]
fn the_page_on_graphs_shows_what_is_answered() {
    let server = Server::start();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/graph.md");
    let steps = steps(&std::fs::read_to_string(page).expect("the page"));
    let mut transaction = String::new();
    for Step { command, shown } in &steps {
        let answer = ask(&server, command, &transaction);
        let (status, shown) = match shown.split_once(' ').map(|(word, rest)| (word.parse(), rest)) {
            Some((Ok(status), rest)) => (status, rest),
            _ => (200, shown.as_str()),
        };
        let text = answer.text().replace("//test/", "//localhost:4000/");
        assert_eq!(answer.status, status, "{command}\n{text}");
        if let Some((_, path)) = answer.header("location").and_then(|url| url.split_once("/db/")) {
            transaction = format!("localhost:4000/db/{path}");
        }
        let found: Value = serde_json::from_str(&text).unwrap();
        let shown: Value =
            serde_json::from_str(shown).unwrap_or_else(|e| panic!("{command}\n{shown}: {e}"));
        assert!(is_shown(&shown, &found), "{command}\nshown: {shown}\nfound: {text}");
    }
    assert!(steps.len() >= 15, "{} steps", steps.len());
}
