//! The transcript in `docs/catalogue.md`: every request is sent to a server, in order, and every
//! answer shown is compared byte for byte. With `-i` some headers are shown first. `…` stands for
//! anything.

use crate::client::Answer;
use crate::server::Server;
use crate::transcript::{Step, ask, status_of, steps};

/// Whether a text matches what is shown.
fn is_shown(shown: &str, found: &str) -> bool {
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

#[track_caller]
fn compare(Step { command, shown }: &Step, answer: &Answer) {
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
fn the_page_on_the_catalogue_shows_what_is_answered() {
    let server = Server::start();
    let steps = steps("catalogue.md");
    let mut etag = String::new();
    for step in &steps {
        let answer = ask(&server, &step.command, ("$ETAG", &etag));
        compare(step, &answer);
        if step.command == "curl -i localhost:4000/lookup/2" {
            answer.header("etag").expect("a tag").clone_into(&mut etag);
        }
    }
    assert!(steps.len() >= 30, "{} steps", steps.len());
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
