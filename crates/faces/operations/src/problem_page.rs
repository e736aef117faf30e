//! `GET /problems/{slug}`: the cause and remedy of a problem type, whether a retry helps, and an
//! example answer; `GET /problems`: all problem types. The JSON, the plain text, the HTML pages and
//! `docs/problems.md` are made from the same table.

use std::fmt::Write;
use std::sync::Arc;
use wellspring_host::http::contract::Segment;
use wellspring_host::http::{Answer, HTML, Host, Request, Response, TEXT};
use wellspring_host::wire::json::{push_list, push_string, push_u64};
use wellspring_host::wire::param::Values;
use wellspring_host::wire::problem::{self, Kind, Retry};

const TEXT_IN_UTF_8: &str = "text/plain; charset=utf-8";
const HTML_IN_UTF_8: &str = "text/html; charset=utf-8";

/// The name of a problem type.
pub(super) static SLUG: Segment<String> = Segment {
    name: "slug",
    what: "Name of the problem type: the last part of its URI.",
    values: Values::Text(None),
    read: |text| Ok(text.to_owned()),
};

/// Whether a retry helps, in a sentence.
fn retry_in_words(retry: Retry) -> String {
    match retry {
        Retry::No => "Retrying the same request does not help.".to_owned(),
        Retry::Same => "The same request may succeed later.".to_owned(),
        Retry::AfterReread => "Read the current state and decide again before retrying.".to_owned(),
        Retry::Seconds(seconds) => format!(
            "The same request may succeed later; Retry-After says when, usually after {seconds} s."
        ),
    }
}

/// `GET /problems/{slug}`: JSON, or for people plain text or a page.
pub(crate) async fn problem(host: Arc<Host>, request: Box<Request>) -> Answer {
    let slug = request.segment(&SLUG)?;
    let kind = host.routes.kinds().iter().find(|kind| kind.slug == slug);
    let absent = || {
        let detail = format!("{slug} is not a problem type; GET /problems lists all of them");
        problem::NOT_FOUND.because(detail)
    };
    let kind = *kind.ok_or_else(absent)?;
    let response = match request.wants {
        HTML => Response::text(HTML_IN_UTF_8, page(kind)),
        TEXT => Response::text(TEXT_IN_UTF_8, plain(kind)),
        _ => Response::json(200, page_json(kind)),
    };
    Ok(response.with("vary", "Accept".to_owned()))
}

/// `GET /problems`: all problem types, by name.
pub(crate) async fn index(host: Arc<Host>, request: Box<Request>) -> Answer {
    let kinds = by_name(host.routes.kinds());
    let response = match request.wants {
        HTML => Response::text(HTML_IN_UTF_8, index_page(&kinds)),
        TEXT => Response::text(TEXT_IN_UTF_8, index_plain(&kinds)),
        _ => Response::json(200, index_json(&kinds)),
    };
    Ok(response.with("vary", "Accept".to_owned()))
}

fn by_name(kinds: &[&'static Kind]) -> Vec<&'static Kind> {
    let mut kinds = kinds.to_vec();
    kinds.sort_unstable_by_key(|kind| kind.slug);
    kinds
}

fn path(kind: &Kind) -> String {
    format!("/problems/{}", kind.slug)
}

fn index_json(kinds: &[&Kind]) -> Vec<u8> {
    let mut out = b"{\"problems\":".to_vec();
    push_list(&mut out, kinds, |out, kind| {
        out.extend_from_slice(b"{\"type\":");
        push_string(out, &path(kind));
        out.extend_from_slice(b",\"status\":");
        push_u64(out, kind.status.into());
        out.extend_from_slice(b",\"title\":");
        push_string(out, kind.title);
        out.push(b'}');
    });
    out.push(b'}');
    out
}

fn index_plain(kinds: &[&Kind]) -> String {
    let line = |kind: &&Kind| format!("{} ({}): {}\n", path(kind), kind.status, kind.title);
    kinds.iter().map(line).collect()
}

fn index_page(kinds: &[&Kind]) -> String {
    let lines = kinds.iter().map(|kind| {
        let Kind { slug, status, title, .. } = kind;
        let title = escaped(title);
        format!("<li><a href=\"/problems/{slug}\"><code>{slug}</code></a>, {status}: {title}</li>")
    });
    framed("Problem types", &format!("<ul>{}</ul>", lines.collect::<String>()))
}

/// What the page of a problem type says, as JSON.
pub fn page_json(kind: &Kind) -> Vec<u8> {
    let mut out = b"{\"type\":".to_vec();
    push_string(&mut out, &path(kind));
    out.extend_from_slice(b",\"status\":");
    push_u64(&mut out, kind.status.into());
    for (name, text) in [
        ("title", kind.title),
        ("meaning", kind.meaning),
        ("remedy", kind.remedy),
        ("again", &retry_in_words(kind.retry)),
    ] {
        out.extend_from_slice(format!(",\"{name}\":").as_bytes());
        push_string(&mut out, text);
    }
    out.extend_from_slice(b",\"example\":");
    out.extend_from_slice(&kind.example_json());
    out.push(b'}');
    out
}

/// The example of an answer, one member per line, in the order of the answer.
fn example_in_lines(kind: &Kind) -> String {
    let example = String::from_utf8(kind.example_json()).unwrap_or_default();
    let (mut out, mut depth, mut in_text, mut escaped) = (String::new(), 0, false, false);
    for character in example.chars() {
        if in_text {
            in_text = escaped || character != '"';
            escaped = !escaped && character == '\\';
        } else {
            in_text = character == '"';
            depth += u32::from(character == '{');
        }
        let ends = !in_text && character == '}';
        if ends && depth == 1 {
            out.push('\n');
        }
        out.push(character);
        match character {
            '{' | ',' if !in_text && depth == 1 => out.push_str("\n  "),
            ':' | ',' if !in_text => out.push(' '),
            _ => {}
        }
        depth -= u32::from(ends);
    }
    out
}

fn plain(kind: &Kind) -> String {
    let Kind { slug, status, title, meaning, remedy, .. } = kind;
    format!(
        "{title} ({slug}, {status})\n\nCause: {meaning}\n\nRemedy: {remedy}\n\nRetry: {}\n\n\
         Example:\n\n{}\n",
        retry_in_words(kind.retry),
        example_in_lines(kind)
    )
}

fn page(kind: &Kind) -> String {
    let retry = retry_in_words(kind.retry);
    let example = example_in_lines(kind);
    let [title, meaning, remedy, retry, example] =
        [kind.title, kind.meaning, kind.remedy, &retry, &example].map(escaped);
    let content = format!(
        "<p><code>{}</code>, HTTP status {}</p><h2>Cause</h2><p>{meaning}</p>\
         <h2>Remedy</h2><p>{remedy}</p><h2>Retry</h2><p>{retry}</p>\
         <h2>Example</h2><pre>{example}</pre><p><a href=\"/problems\">All problem types</a></p>",
        kind.slug, kind.status
    );
    framed(&title, &content)
}

/// A page with a title and content, both already escaped.
fn framed(title: &str, content: &str) -> String {
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>\
         <meta name=viewport content=\"width=device-width\">\
         <style>body{{font:1rem/1.5 sans-serif;max-width:40rem;margin:2rem auto;padding:0 1rem}}\
         h2{{font-size:1rem;margin-bottom:0}}p{{margin-top:0}}\
         pre{{overflow-x:auto;background:#f4f4f4;padding:.5rem}}</style>\
         <h1>{title}</h1>{content}</html>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The page of the manual about all problem types, `docs/problems.md`.
pub fn manual(kinds: &[&'static Kind]) -> String {
    let mut out = "# Problem types\n\nEvery error is an `application/problem+json` document \
        (RFC 9457); its `type` is one of these. A running server explains them at `/problems` and \
        `/problems/{slug}`, each with an example.\n\n\
        This page is made from the server's tables; a test holds it against them.\n\n\
        | type | status | title | cause | remedy | retry |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for kind in by_name(kinds) {
        let Kind { slug, status, title, meaning, remedy, .. } = kind;
        let [meaning, remedy] = [meaning, remedy].map(|text| text.replace('|', "\\|"));
        let retry = retry_in_words(kind.retry);
        let row = format!("| `{slug}` | {status} | {title} | {meaning} | {remedy} | {retry} |");
        let _ = writeln!(out, "{row}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_kind_is_explained_in_every_form() {
        for kind in problem::ALL {
            let read: Value = serde_json::from_slice(&page_json(kind)).unwrap();
            assert_eq!(
                (read["meaning"].as_str(), read["remedy"].as_str()),
                (Some(kind.meaning), Some(kind.remedy))
            );
            assert_eq!(read["example"]["detail"], kind.example);
            let (plain, page) = (plain(kind), page(kind));
            for text in [kind.title, kind.meaning, kind.remedy, &retry_in_words(kind.retry)] {
                assert!(plain.contains(text) && page.contains(&escaped(text)), "{text}");
            }
            let example = example_in_lines(kind);
            assert_eq!(serde_json::from_str::<Value>(&example).unwrap(), read["example"]);
            assert!(plain.contains(&example) && page.contains(&escaped(&example)), "{page}");
        }
    }

    #[test]
    fn every_kind_is_listed_in_every_form() {
        let read: Value = serde_json::from_slice(&index_json(problem::ALL)).unwrap();
        let listed = read["problems"].as_array().unwrap();
        assert_eq!(listed.len(), problem::ALL.len());
        let (plain, page) = (index_plain(problem::ALL), index_page(problem::ALL));
        for (kind, listed) in problem::ALL.iter().zip(listed) {
            let path = path(kind);
            assert_eq!(
                (&listed["type"], &listed["title"]),
                (&path.as_str().into(), &kind.title.into())
            );
            assert!(plain.contains(&format!("{path} (")), "{path}");
            assert!(page.contains(&format!("<a href=\"{path}\">")), "{path}");
        }
    }

    #[test]
    fn an_example_has_a_line_for_each_member() {
        let lines = example_in_lines(&problem::CONDITION_FAILED);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines[..2], ["{", r#"  "type": "/problems/append-condition-failed","#]);
        let conflict =
            r#"  "conflict": {"position": 42, "clause": "failIfEventsMatch", "item": 0},"#;
        assert_eq!(lines[5], conflict, "{lines:?}");
    }

    #[test]
    fn a_page_holds_no_markup_but_its_own() {
        let kind = Kind { slug: "x", status: 400, title: "<b>&\"", ..problem::INVALID };
        assert!(page(&kind).contains("<h1>&lt;b&gt;&amp;&quot;</h1>"));
    }
}
