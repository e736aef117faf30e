//! `GET /problems/{slug}`: what a kind of problem means, what to do about it, and whether the same
//! request may be tried again. One table for JSON, plain text and HTML; and `GET /problems`, the list of
//! all kinds.

use std::sync::Arc;
use wellspring_host::http::contract::Segment;
use wellspring_host::http::{Answer, HTML, Host, Request, Response, TEXT};
use wellspring_host::wire::json::{push_list, push_string, push_u64};
use wellspring_host::wire::param::Values;
use wellspring_host::wire::problem::{self, Kind, Retry};

const TEXT_IN_UTF_8: &str = "text/plain; charset=utf-8";
const HTML_IN_UTF_8: &str = "text/html; charset=utf-8";

/// The name of a problem.
pub(super) static SLUG: Segment<&'static Kind> = Segment {
    name: "slug",
    what: "Name of the problem: the last part of its type.",
    values: Values::Text(None),
    read: |text| {
        let kind = problem::ALL.iter().find(|kind| kind.slug == text);
        let absent = || problem::NOT_FOUND.because(format!("{text} is not a problem's name"));
        kind.copied().ok_or_else(absent)
    },
};

/// What is said of a kind besides its title.
struct Explanation {
    slug: &'static str,
    /// What has happened, and what has not.
    meaning: &'static str,
    /// What a client, or who runs the server, can do.
    remedy: &'static str,
}

macro_rules! explanations {
    ($($slug:literal $meaning:literal $remedy:literal;)*) => {
        static EXPLANATIONS: &[Explanation] =
            &[$(Explanation { slug: $slug, meaning: $meaning, remedy: $remedy }),*];
    };
}

explanations! {
    "malformed-json" "The body is not JSON, or a text in it is not UTF-8. Nothing was done." "Look at the line and column that detail names. A text needs quotes; NDJSON needs its own content type, application/x-ndjson.";
    "bad-request" "The request line, a header or a parameter cannot be understood. Nothing was done." "Correct what detail names; GET /openapi.json lists the parameters of each route.";
    "tls-required" "Plain HTTP came to a port that speaks TLS." "Use https:// in the address.";
    "url-required" "A link was to be made without a URL." "Send {\"url\":\"https://…\"}.";
    "bad-url" "The URL is not http or https, holds a user, a control character or a backslash, or is too long." "Correct the URL; detail says what is wrong with it.";
    "host-refused" "The settings of this server do not let links lead to that host." "Use another host. Who runs the server changes --link-allow-hosts and --link-deny-hosts.";
    "own-host" "A link to the shortener itself would go round in a circle." "Let the link lead to where the other one does.";
    "bad-code" "A code is 1 to 10 letters and digits; this is something else." "Look the code up again; it may have been cut or have a sign behind it.";
    "malformed-credentials" "The headers with credentials cannot be read, or there are two of them." "Send one of Authorization: Bearer, Authorization: Basic and X-API-Key, once.";
    "unauthenticated" "Credentials are missing, wrong, have ended or were revoked. Which of these is not told." "Log in (POST /auth/token, wellspring login), or use an API key that has not ended.";
    "forbidden" "The credentials count, but not for this." "Use those of an account with the role that detail names, or ask an admin for it.";
    "wrong-password" "The password that was sent as the current one is not it. Nothing was changed." "Send the right one, or have an admin set a new one.";
    "foreign-page" "A page of another site asked, and this server does not answer such pages." "Name the page's origin in --cors-origins if it may use the server.";
    "foreign-host" "The server was asked under a name that is not its own, as a page does whose name was made to mean this machine." "Use the address the server listens on, localhost, or a name in its settings.";
    "link-refused" "The link is there, but the settings of this server let no link lead where it leads. No click was counted." "Who made it changes its URL; who runs the server changes --link-allow-hosts, --link-deny-hosts or --own-hosts and starts it again.";
    "system-log" "The log system holds accounts and the audit; only the server writes it." "Append to another log. Accounts are changed under /v1/accounts and /v1/keys.";
    "account-not-found" "There is no account of this name; there may have been." "GET /v1/accounts lists those there are.";
    "key-not-found" "There is no API key of this id, or it is another account's." "GET /v1/keys lists one's own. It is the id that is asked for, not the secret.";
    "link-not-found" "No link has this code." "Look the code up again.";
    "not-found" "No route has this path, or what it names is not there." "GET /openapi.json lists the routes.";
    "log-not-found" "There is no log of this name." "Make it with PUT /v1/logs/{log}, or correct the name; GET /v1/logs lists those there are.";
    "method-not-allowed" "The path is right, the method is not." "Use one of those in the header Allow.";
    "not-acceptable" "The answer cannot be given in any form that Accept names." "Accept one of the types that detail lists.";
    "request-timeout" "The head of the request came too slowly, and the connection was closed. Nothing was done." "Try again on a new connection. Who runs the server sets --header-timeout-ms.";
    "body-timeout" "The body came too slowly. Of a bulk, what durable_lines says is kept." "Try again, with the same key or ids. Who runs the server sets --body-timeout-ms.";
    "append-condition-failed" "An event in the log matches the condition: what was decided on has changed. Nothing was appended." "Read what matches up to conflict.position, decide again, and append with the new after.";
    "lease-lost" "The lease has expired, or another client holds it by now. Nothing was appended." "Take the lease again, read what happened meanwhile, and decide again.";
    "lease-held" "Another client holds the lease." "Try again later, or wait for it with wait_ms.";
    "event-id-reused" "An event with this id is in the log, and it is a different one. Nothing was appended." "Use a new id for a new event; a retry must send the event as it was.";
    "no-accounts" "The server has no accounts, so there is none to log in to or to change." "Nothing is needed to use it. POST /v1/accounts makes the first account.";
    "no-token" "The request shows a password or a key, and neither ends by logging out." "Send the token that is to end, or {\"everywhere\":true} for all of the account's.";
    "account-exists" "There is an account of this name. Nothing was changed." "Choose another name, or change that account.";
    "account-disabled" "The account is disabled, so no key can be made for it." "Enable it first.";
    "last-admin" "Without this account no one could manage the others. Nothing was changed." "Make another enabled admin of everything with a password first.";
    "too-many-accounts" "There are as many accounts as there may be." "Delete those of no use.";
    "too-many-keys" "There are as many API keys as there may be, of this account or in all." "Revoke those of no use.";
    "key-ended" "The key was revoked or has expired, so nothing can take its place." "Make a new one with POST /v1/keys.";
    "import-changed" "This content was imported before, and differs now from what the log holds of it. Nothing after the line was added." "Import what is new from a file of its own, or all of it as something new under a label (--again).";
    "codes-taken" "The first 64 codes that this URL asks for are those of other links. Nothing was made." "Choose an alias, or leave deterministic out.";
    "alias-taken" "A link has, or had, this alias." "Choose another; a code is never given twice.";
    "link-disabled" "The link is there and was disabled." "Who made it can enable it again.";
    "link-expired" "The time of the link is over." "Who made it can set another end.";
    "link-deleted" "The link was deleted. Its code is not given again." "Nothing brings it back; make another.";
    "too-large" "The body, an event or a query is larger than its limit. Nothing of it was done." "Make it smaller, or cut it into several; limit says how large it may be, and GET /openapi.json what else there is.";
    "url-too-long" "The request line is longer than the server reads." "Send a query in a body: POST /v1/query.";
    "unsupported-media-type" "The content type, or how the body is encoded, is not known on this route." "Send application/json, or application/x-ndjson where a bulk is taken, without Content-Encoding.";
    "expectation-failed" "Expect holds something other than 100-continue." "Leave the header out.";
    "invalid" "The body is understood, and a value in it breaks a rule. Nothing was done." "Correct the field that the problem names.";
    "idempotency-key-reused" "The key was used for another request. Nothing was done." "Use a new key for a new request; a retry must send the same body.";
    "alias-reserved" "The alias is a path of the server itself." "Choose another.";
    "too-many-logins" "Passwords were wrong too often, or too many are being verified at once." "Wait as long as Retry-After says. Tokens and API keys are not held up.";
    "too-many-requests" "Requests come faster than one client may send them." "Wait as long as Retry-After says, and send fewer.";
    "too-many-bytes" "Bodies and answers of one client are more bytes a second than it may have." "Wait as long as Retry-After says.";
    "reads-too-costly" "The reads of one client have taken more of the server's time than it may have." "Wait as long as Retry-After says; ask narrower queries, and follow with a subscription instead of asking again.";
    "too-many-subscriptions" "One client has as many subscriptions as it may." "End some, or share one.";
    "too-many-long-reads" "One client has as many long reads under way as it may." "Wait for one to end; ask narrower queries.";
    "too-much-memory" "Bodies and queries of one client, and answers that it has not read, take as much memory as they may." "Read what was asked for; send smaller bodies, fewer at a time.";
    "too-many-links" "One client has made as many links in a minute as it may." "Wait as long as Retry-After says.";
    "too-many-leases" "There are as many leases as there may be." "End those of no use, or wait until some have expired.";
    "ingest-full" "What is waiting to be stored takes all the memory it may. The event was not accepted." "Wait as long as Retry-After says, and send it again.";
    "headers-too-large" "The head of the request is longer, or has more headers, than the server reads." "Send fewer and shorter headers.";
    "corrupt" "Bytes on disk are not what was written. No wrong or short answer is given instead." "Do not append. Run wellspring verify on the data folder, and restore it from a backup.";
    "damaged" "Reads have met bytes on disk that are not what was written." "Run wellspring verify on the data folder, and restore it from a backup.";
    "main-deleted" "The log main was deleted, and with it everything that is answered from it." "Make it again, empty, with PUT /v1/logs/main; the next start does so, too.";
    "storage-failure" "The device or the system failed while something was read or written." "Try again; if it stays, look at the server's log and at the device.";
    "outcome-unknown" "The device failed while the append was being written: it may be durable or not." "Send the same again with the same Idempotency-Key or event ids: it is appended once, and the answer says so.";
    "internal" "The server failed in a way that was not foreseen." "Try again. The request's id (X-Request-Id) is in the server's log; please report it.";
    "codes-exhausted" "Every code of every length is taken." "Use aliases.";
    "too-costly" "The request would take longer than one may." "Ask several narrower queries. Who runs the server sets --max-fold-ms.";
    "overloaded" "The server has as much to do, or to remember, as it may. Nothing was done." "Wait as long as Retry-After says.";
    "too-many-waiters" "As many requests wait for this as may." "Wait as long as Retry-After says, or use a subscription.";
    "too-many-connections" "There are as many connections as there may be, in all or from one address." "Keep connections and use them again; close those that are idle.";
    "view-not-ready" "The view is being made from the log's events and does not answer yet." "Wait; GET /v1/views says how far it is.";
    "not-yet" "The position that was asked for did not come within the time." "Ask again, or wait longer with wait_ms.";
    "storage-unavailable" "The system refused for a moment, before anything was written. Nothing was done." "Wait as long as Retry-After says.";
    "storage-full" "The device has no room left. Nothing of this was stored; what was accepted before is kept." "Make room; the server goes on by itself.";
    "log-closed" "After a failure of the device the log takes no appends; it can be read." "Look at the server's log and at the device, then start the server anew.";
    "shutting-down" "The server is stopping." "Try again; the next one takes it.";
    "needs-http-1.1" "The answer is a stream, and HTTP/1.0 cannot tell its end from a failure." "Use HTTP/1.1 or HTTP/2.";
}

fn explanation(kind: &Kind) -> (&'static str, &'static str) {
    let found = EXPLANATIONS.iter().find(|explained| explained.slug == kind.slug);
    found.map_or((kind.title, ""), |explained| (explained.meaning, explained.remedy))
}

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
pub(crate) async fn problem(_host: Arc<Host>, request: Box<Request>) -> Answer {
    let kind = request.segment(&SLUG)?;
    let response = match request.wants {
        HTML => Response::text(HTML_IN_UTF_8, page(kind)),
        TEXT => Response::text(TEXT_IN_UTF_8, plain(kind)),
        _ => Response::json(200, json(kind)),
    };
    Ok(response.with("vary", "Accept".to_owned()))
}

/// `GET /problems`: all kinds, by name.
pub(crate) async fn index(_host: Arc<Host>, request: Box<Request>) -> Answer {
    let mut kinds = problem::ALL.to_vec();
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
    let (meaning, remedy) = explanation(kind);
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
    let (meaning, remedy) = explanation(kind);
    let retry = retry_in_words(kind.retry);
    format!("{} ({}, {})\n\n{meaning}\n\n{remedy}\n\n{retry}\n", kind.title, kind.slug, kind.status)
}

fn page(kind: &Kind) -> String {
    let (meaning, remedy) = explanation(kind);
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
    fn every_kind_is_explained_once_in_every_form() {
        for kind in problem::ALL {
            let found = EXPLANATIONS.iter().filter(|explained| explained.slug == kind.slug);
            assert_eq!(found.count(), 1, "{} has to stand in the table, once", kind.slug);
            let (meaning, remedy) = explanation(kind);
            for text in [meaning, remedy] {
                assert!(text.ends_with('.') && text.len() > 10, "{}: {text}", kind.slug);
            }
            let read: serde_json::Value = serde_json::from_slice(&json(kind)).unwrap();
            assert_eq!(
                (read["meaning"].as_str(), read["remedy"].as_str()),
                (Some(meaning), Some(remedy))
            );
            assert!(plain(kind).contains(remedy) && page(kind).contains(&escaped(remedy)));
        }
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
        let kind = Kind { slug: "x", status: 400, title: "<b>&\"", retry: Retry::No };
        assert!(page(&kind).contains("<h1>&lt;b&gt;&amp;&quot;</h1>"));
    }
}
