//! The transcript in `docs/graph.md`: every request is sent to a server, in order, and every answer
//! shown is compared. `…` stands for anything.

use crate::server::Server;
use crate::transcript::{Step, ask, status_of, steps};
use serde_json::Value;

/// Whether an answer matches what is shown.
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
    let steps = steps("graph.md");
    let mut transaction = String::new();
    for Step { command, shown } in &steps {
        let answer = ask(&server, command, ("$TX", &transaction));
        let shown: String = shown.concat();
        let (status, shown) = status_of(&shown);
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
