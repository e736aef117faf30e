//! Pages that show commands and their answers: every command is run against a server, in order. `…`
//! in a shown answer stands for anything.

use crate::client::Answer;
use crate::server::Server;
use std::mem::take;
use std::path::Path;

/// A command, and the lines of the answer that the page shows, without their `# `.
#[derive(Default)]
pub struct Step {
    pub command: String,
    pub shown: Vec<String>,
}

/// The commands of all `sh` blocks on a page of `docs`.
pub fn steps(page: &str) -> Vec<Step> {
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
    steps.retain(|step| step.command.starts_with("curl "));
    steps
}

/// The words of a command, separated by spaces or in single quotes.
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

/// Sends the request that `curl` would, with a value in place of a variable.
pub fn ask(server: &Server, command: &str, (variable, replacement): (&str, &str)) -> Answer {
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

/// The status shown first, or 200, and the text that follows.
pub fn status_of(shown: &str) -> (u16, &str) {
    let (word, rest) = shown.split_once(' ').unwrap_or((shown, ""));
    match word.parse() {
        Ok(status) if word.len() == 3 => (status, rest),
        _ => (200, shown),
    }
}
