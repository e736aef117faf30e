//! Requests of a link shortener's clients, and checks of the answers.

use crate::client::{Answer, Client};
use serde_json::{Value, json};
use std::io;

/// A reason for a refusal: the status and the last part of the problem's type.
pub type Reason = (u16, &'static str);

pub const NOT_FOUND: Reason = (404, "link-not-found");
pub const DISABLED: Reason = (410, "link-disabled");
pub const EXPIRED: Reason = (410, "link-expired");
pub const DELETED: Reason = (410, "link-deleted");
pub const TAKEN: Reason = (409, "alias-taken");

/// A query parameter for a long wait: other tests use the disk too.
pub const PATIENTLY: &str = "wait_ms=30000";

/// Asserts a problem for this reason, including the member that clients of shorteners read; returns
/// it.
#[track_caller]
pub fn refused(answer: &Answer, (status, slug): Reason) -> Value {
    let problem = answer.problem(status);
    assert_eq!(problem["type"], format!("/problems/{slug}"), "{problem}");
    let expected = match slug {
        "url-required" => "URL is a required field",
        "link-not-found" => "URL not found",
        _ => problem["detail"].as_str().unwrap(),
    };
    assert_eq!(problem["error"], expected, "{problem}");
    problem
}

/// Creates a link; returns its answer.
#[track_caller]
pub fn create(client: &mut Client, body: &Value) -> Value {
    client.post("/api/urls", body).unwrap().expect(201)
}

/// Creates a link to a URL; returns its code.
#[track_caller]
pub fn shorten(client: &mut Client, url: &str) -> String {
    code_of(&create(client, &json!({"url": url})))
}

#[track_caller]
pub fn code_of(link: &Value) -> String {
    link["short_code"].as_str().unwrap_or_else(|| panic!("{link}")).to_owned()
}

/// Requests the target of a code.
pub fn follow(client: &mut Client, code: &str) -> io::Result<Answer> {
    client.get(&format!("/{code}"))
}

/// Asserts that an answer redirects to `url`, with the headers of every redirect, also for `HEAD`.
#[track_caller]
pub fn leads_to(answer: &Answer, url: &str) {
    assert_eq!(answer.status, 302, "{}", String::from_utf8_lossy(&answer.body));
    assert_eq!(answer.header("location"), Some(url));
    assert_eq!(answer.header("cache-control"), Some("private, no-store"));
    assert!(answer.header("referrer-policy").is_some_and(|policy| !policy.is_empty()));
    assert!(answer.body.is_empty());
}

/// Follows a code and asserts that it leads to `url`.
#[track_caller]
pub fn click(client: &mut Client, code: &str, url: &str) {
    let answer = follow(client, code).unwrap();
    leads_to(&answer, url);
    assert_eq!(answer.header("content-length"), Some("0"));
}

/// Status and headers of a `HEAD` request.
pub fn head_of(client: &mut Client, path: &str) -> io::Result<Answer> {
    client.send(format!("HEAD {path} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes())?;
    let (status, headers) = client.head()?;
    Ok(Answer { status, headers, body: Vec::new() })
}

/// A link with its clicks.
#[track_caller]
pub fn details(client: &mut Client, code: &str) -> Value {
    client.get(&format!("/api/urls/{code}?{PATIENTLY}")).unwrap().expect(200)
}

/// The clicks of a link.
#[track_caller]
pub fn clicks(client: &mut Client, code: &str) -> u64 {
    details(client, code)["clicks"].as_u64().expect("a number")
}

/// Changes a link; returns its details.
#[track_caller]
pub fn change(client: &mut Client, code: &str, change: &Value) -> Value {
    send_change(client, code, change).expect(200)
}

pub fn send_change(client: &mut Client, code: &str, change: &Value) -> Answer {
    let headers = [("Content-Type", "application/json")];
    let path = format!("/api/urls/{code}");
    client.call("PATCH", &path, &headers, change.to_string().as_bytes()).unwrap()
}

pub fn delete(client: &mut Client, code: &str) -> Answer {
    client.call("DELETE", &format!("/api/urls/{code}"), &[], b"").unwrap()
}

/// Creates the links of these lines.
pub fn bulk(client: &mut Client, lines: &str, headers: &[(&str, &str)]) -> Answer {
    let headers = [&[("Content-Type", "application/x-ndjson")], headers].concat();
    client.call("POST", "/api/urls", &headers, lines.as_bytes()).unwrap()
}

/// Every page of a list, as answered.
#[track_caller]
pub fn pages(client: &mut Client, query: &str) -> Vec<String> {
    let mut pages: Vec<String> = Vec::new();
    let mut query = format!("{PATIENTLY}&{query}");
    loop {
        assert!(pages.len() < 1000, "the list never ends: {query}");
        let answer = client.get(&format!("/api/urls?{query}")).unwrap();
        let page = answer.expect(200);
        pages.push(answer.text());
        if page["next"].is_null() {
            return pages;
        }
        let others = query.split('&').filter(|pair| !pair.starts_with("after="));
        let others: Vec<&str> = others.filter(|pair| !pair.is_empty()).collect();
        let next = format!("after={}", page["next"].to_string().trim_matches('"'));
        query = [&others[..], &[&next]].concat().join("&");
    }
}

/// The links of a list in the order of its pages.
#[track_caller]
pub fn listed(client: &mut Client, query: &str) -> Vec<Value> {
    let pages = pages(client, query);
    let pages = pages.iter().map(|page| serde_json::from_str::<Value>(page).unwrap());
    pages.flat_map(|page| page["links"].as_array().unwrap().clone()).collect()
}

/// The codes of a list in the order of its pages.
#[track_caller]
pub fn codes(client: &mut Client, query: &str) -> Vec<String> {
    listed(client, query).iter().map(code_of).collect()
}
