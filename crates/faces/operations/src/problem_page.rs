//! `GET /problems/{slug}`: what a kind of problem means, what to do about it, and whether the same
//! request may be tried again. One table for JSON, plain text and HTML; and `GET /problems`, the
//! list of all kinds.

use std::sync::Arc;
use wellspring_host::http::contract::Segment;
use wellspring_host::http::{Answer, HTML, Host, Request, Response, TEXT};
use wellspring_host::wire::json::{push_list, push_string, push_u64};
use wellspring_host::wire::param::Values;
use wellspring_host::wire::problem::{self, Kind, Retry};

const TEXT_IN_UTF_8: &str = "text/plain; charset=utf-8";
const HTML_IN_UTF_8: &str = "text/html; charset=utf-8";

/// The name of a problem.
pub(super) static SLUG: Segment<String> = Segment {
    name: "slug",
    what: "Name of the problem: the last part of its type.",
    values: Values::Text(None),
    read: |text| Ok(text.to_owned()),
};

/// Whether trying again helps, in a sentence.
fn retry_in_words(retry: Retry) -> String {
    match retry {
        Retry::No => "Sending the same again does not help.".to_owned(),
        Retry::Same => "The same request may succeed later.".to_owned(),
        Retry::AfterReread => "Read again and decide again before trying again.".to_owned(),
        Retry::Seconds(seconds) => format!(
            "The same request may succeed later; Retry-After says when, as a rule after {seconds} s."
        ),
    }
}

/// `GET /problems/{slug}`: JSON, or for people plain text or a page.
pub(crate) async fn problem(host: Arc<Host>, request: Box<Request>) -> Answer {
    let slug = request.segment(&SLUG)?;
    let kind = host.routes.kinds().iter().find(|kind| kind.slug == slug);
    let absent = || problem::NOT_FOUND.because(format!("{slug} is not a problem's name"));
    let kind = *kind.ok_or_else(absent)?;
    let response = match request.wants {
        HTML => Response::text(HTML_IN_UTF_8, page(kind)),
        TEXT => Response::text(TEXT_IN_UTF_8, plain(kind)),
        _ => Response::json(200, json(kind)),
    };
    Ok(response.with("vary", "Accept".to_owned()))
}

/// `GET /problems`: all kinds, by name.
pub(crate) async fn index(host: Arc<Host>, request: Box<Request>) -> Answer {
    let mut kinds = host.routes.kinds().to_vec();
    kinds.sort_unstable_by_key(|kind| kind.slug);
    let response = match request.wants {
        HTML => Response::text(HTML_IN_UTF_8, index_page(&kinds)),
        TEXT => Response::text(TEXT_IN_UTF_8, index_plain(&kinds)),
        _ => Response::json(200, index_json(&kinds)),
    };
    Ok(response.with("vary", "Accept".to_owned()))
}

fn index_json(kinds: &[&Kind]) -> Vec<u8> {
    let mut out = b"{\"problems\":".to_vec();
    push_list(&mut out, kinds, |out, kind| {
        out.extend_from_slice(b"{\"type\":\"/problems/");
        out.extend_from_slice(kind.slug.as_bytes());
        out.extend_from_slice(b"\",\"status\":");
        push_u64(out, kind.status.into());
        out.extend_from_slice(b",\"title\":");
        push_string(out, kind.title);
        out.push(b'}');
    });
    out.push(b'}');
    out
}

fn index_plain(kinds: &[&Kind]) -> String {
    let lines = kinds.iter();
    lines
        .map(|kind| format!("/problems/{} ({}): {}\n", kind.slug, kind.status, kind.title))
        .collect()
}

fn index_page(kinds: &[&Kind]) -> String {
    let lines = kinds.iter().map(|kind| {
        let Kind { slug, status, title, .. } = kind;
        let title = escaped(title);
        format!("<li><a href=\"/problems/{slug}\"><code>{slug}</code></a>, {status}: {title}</li>")
    });
    framed("Problem types", &format!("<ul>{}</ul>", lines.collect::<String>()))
}

fn json(kind: &Kind) -> Vec<u8> {
    let Kind { meaning, remedy, .. } = kind;
    let mut out = b"{\"type\":\"/problems/".to_vec();
    out.extend_from_slice(kind.slug.as_bytes());
    out.extend_from_slice(b"\",\"status\":");
    push_u64(&mut out, kind.status.into());
    for (name, text) in [
        ("title", kind.title),
        ("meaning", meaning),
        ("remedy", remedy),
        ("again", &retry_in_words(kind.retry)),
    ] {
        out.extend_from_slice(format!(",\"{name}\":").as_bytes());
        push_string(&mut out, text);
    }
    out.push(b'}');
    out
}

fn plain(kind: &Kind) -> String {
    let Kind { meaning, remedy, .. } = kind;
    let retry = retry_in_words(kind.retry);
    format!("{} ({}, {})\n\n{meaning}\n\n{remedy}\n\n{retry}\n", kind.title, kind.slug, kind.status)
}

fn page(kind: &Kind) -> String {
    let Kind { meaning, remedy, .. } = kind;
    let [title, meaning, remedy, retry] =
        [kind.title, meaning, remedy, &retry_in_words(kind.retry)].map(escaped);
    let content = format!(
        "<p><code>{}</code>, HTTP status {}</p><p>{meaning}</p><p>{remedy}</p><p>{retry}</p>\
         <p><a href=\"/problems\">All problem types</a></p>",
        kind.slug, kind.status
    );
    framed(&title, &content)
}

/// A page of a title and what stands below it, both escaped.
fn framed(title: &str, content: &str) -> String {
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>\
         <meta name=viewport content=\"width=device-width\">\
         <style>body{{font:1rem/1.5 sans-serif;max-width:40rem;margin:2rem auto;padding:0 1rem}}</style>\
         <h1>{title}</h1>{content}</html>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_explained_in_every_form() {
        let kind = &problem::INVALID;
        let read: serde_json::Value = serde_json::from_slice(&json(kind)).unwrap();
        assert_eq!(
            (read["meaning"].as_str(), read["remedy"].as_str()),
            (Some(kind.meaning), Some(kind.remedy))
        );
        assert!(plain(kind).contains(kind.remedy) && page(kind).contains(&escaped(kind.remedy)));
    }

    #[test]
    fn every_kind_is_listed_in_every_form() {
        let read: serde_json::Value = serde_json::from_slice(&index_json(problem::ALL)).unwrap();
        let listed = read["problems"].as_array().unwrap();
        assert_eq!(listed.len(), problem::ALL.len());
        let (plain, page) = (index_plain(problem::ALL), index_page(problem::ALL));
        for (kind, listed) in problem::ALL.iter().zip(listed) {
            let path = format!("/problems/{}", kind.slug);
            assert_eq!(
                (&listed["type"], &listed["title"]),
                (&path.clone().into(), &kind.title.into())
            );
            assert!(plain.contains(&format!("{path} (")), "{path}");
            assert!(page.contains(&format!("<a href=\"{path}\">")), "{path}");
        }
    }

    #[test]
    fn a_page_holds_no_markup_but_its_own() {
        let kind = Kind { slug: "x", status: 400, title: "<b>&\"", ..problem::INVALID };
        assert!(page(&kind).contains("<h1>&lt;b&gt;&amp;&quot;</h1>"));
    }
}
