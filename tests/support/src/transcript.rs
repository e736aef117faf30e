//! Pages that show commands and their answers: every command is run, in order. `…` in a shown
//! answer stands for anything.

use crate::client::{Answer, Client};
use crate::server::Server;
use std::mem::take;
use std::net::SocketAddr;
use std::path::Path;

/// The server of a page that needs one server.
const ALONE: &str = "localhost:4000";
/// The nodes of a page that needs three.
pub const NODES: [&str; 3] = ["localhost:4001", "localhost:4002", "localhost:4003"];

/// A command, and the lines of the answer that the page shows, without their `# `.
#[derive(Default)]
pub struct Step {
    pub command: String,
    pub shown: Vec<String>,
}

/// The requests to the one server of a page of `docs`.
pub fn steps(page: &str) -> Vec<Step> {
    let mut steps = commands(page);
    let is_for_nodes = |command: &str| NODES.iter().any(|node| command.contains(node));
    steps.retain(|step| step.command.starts_with("curl ") && !is_for_nodes(&step.command));
    steps
}

/// The commands of all `sh` blocks on a page of `docs`.
pub fn commands(page: &str) -> Vec<Step> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let page = std::fs::read_to_string(page).expect("the page");
    let mut steps = Vec::new();
    for block in page.split("```sh\n").skip(1) {
        let block = block.split("```").next().expect("an end");
        let mut step = Step::default();
        for line in block.lines() {
            let is_within_quotes = step.command.matches('\'').count() % 2 == 1;
            if is_within_quotes {
                step.command = format!("{}\n{line}", step.command);
            } else if let Some(shown) = line.strip_prefix("# ") {
                step.shown.push(shown.to_owned());
            } else {
                steps.push(take(&mut step));
                line.clone_into(&mut step.command);
            }
        }
        steps.push(step);
    }
    steps
}

/// The words of a command, separated by spaces or in single quotes.
pub fn words(command: &str) -> Vec<String> {
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

/// Sends the request that `curl` would, with a value in place of a variable.
pub fn ask(server: &Server, command: &str, variable: (&str, &str)) -> Answer {
    ask_at((ALONE, server.address), command, variable)
}

/// The same, to a server that the page calls something else.
pub fn ask_at(
    (name, address): (&str, SocketAddr),
    command: &str,
    (variable, replacement): (&str, &str),
) -> Answer {
    let (mut method, mut path, mut content) = (None, None, None);
    let mut headers = Vec::new();
    let mut words = words(command).into_iter().skip(1);
    while let Some(word) = words.next() {
        let mut next = || words.next().expect("a value");
        match word.as_str() {
            "-i" => {}
            "-X" => method = Some(next()),
            "-d" => content = Some(next()),
            "-H" => {
                let header = next();
                let (name, value) = header.split_once(": ").expect("a header");
                headers.push((name.to_owned(), value.replace(variable, replacement)));
            }
            target => {
                let target = target.replace(variable, replacement);
                path = Some(target.strip_prefix(name).expect("a target").to_owned());
            }
        }
    }
    let default = if content.is_some() { "POST" } else { "GET" };
    let (method, path) = (method.unwrap_or_else(|| default.to_owned()), path.expect("a target"));
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let content = content.unwrap_or_default();
    let mut client = Client::connect(address).expect("the server accepts");
    client.call(&method, &path, &headers, content.as_bytes()).unwrap()
}

/// The status shown first, or 200, and the text that follows.
pub fn status_of(shown: &str) -> (u16, &str) {
    let (word, rest) = shown.split_once(' ').unwrap_or((shown, ""));
    match word.parse() {
        Ok(status) if word.len() == 3 => (status, rest),
        _ => (200, shown),
    }
}

/// Whether a text matches what is shown.
pub fn is_shown(shown: &str, found: &str) -> bool {
    let mut pieces = shown.split('…');
    let Some(mut rest) = pieces.next().and_then(|first| found.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

/// Whether a line shows a header.
fn is_header(line: &str) -> bool {
    line.split_once(": ")
        .is_some_and(|(name, _)| name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-'))
}

/// Asserts that an answer is what is shown, byte for byte except for the ends of lines; with `-i`
/// some headers are shown first.
#[track_caller]
pub fn compare(Step { command, shown }: &Step, answer: &Answer) {
    let text = answer.text();
    let (status, first) = shown.first().map_or((200, ""), |line| status_of(line));
    assert_eq!(answer.status, status, "{command}\n{text}");
    let mut content = String::new();
    for line in std::iter::once(first).chain(shown.iter().skip(1).map(String::as_str)) {
        match line.split_once(": ") {
            Some((name, value)) if command.starts_with("curl -i ") && is_header(line) => {
                let found = answer.header(name).unwrap_or_default();
                assert!(
                    is_shown(value, found),
                    "{command}\n{name}: {value} is shown, {found} is found"
                );
            }
            _ => content.push_str(line.trim_start()),
        }
    }
    assert!(is_shown(&content, &text), "{command}\nshown: {content}\nfound: {text}");
}

#[test]
fn what_is_shown_is_compared_byte_for_byte() {
    for (shown, found) in
        [("a…c…e", "abcde"), ("…", ""), ("…", "x"), ("ab", "ab"), ("a…", "ab"), ("…b…b", "abb")]
    {
        assert!(is_shown(shown, found), "{shown} {found}");
    }
    for (shown, found) in [("ab", "abc"), ("a…c", "ab"), ("", "a"), ("a…a", "a"), ("…b…b", "ab")]
    {
        assert!(!is_shown(shown, found), "{shown} {found}");
    }
}
