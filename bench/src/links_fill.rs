//! Makes a log with many links, and with clicks on some of them: the links in bulk, the clicks as
//! the events that a redirect records, through `POST /e`.

use crate::{
    flags::{Flags, Outcome},
    http1::HttpConnection,
    ingest_account::Account,
    links::{ONE, make_links},
    row::Sink,
};
use std::{fmt::Write as _, time::Instant};

/// Links in a request.
const BULK_LINES: u64 = 10_000;
/// Clicks in a request at most.
const CLICK_LINES: u64 = 10_000;
const AGENTS: [&str; 4] = ["Chrome", "Firefox", "Safari", "curl"];

/// `wsbench links-fill`: `--links` new links; clicks on the oldest `--clicked` links, `--each` on
/// each; with `--one true` all clicks on the link that `wsbench links` follows.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let sink = Sink::from_flags("links-fill", "wellspring", &mut flags)?;
    let address: String = flags.required("address")?;
    let links: u64 = flags.or("links", 0)?;
    let clicked: u64 = flags.or("clicked", 0)?;
    let each: u64 = flags.or("each", 10)?;
    let one = flags.or("one", false)?;
    flags.finish()?;
    let mut connection = HttpConnection::open(&address)?;
    if links > 0 {
        let started = Instant::now();
        for first in (0..links).step_by(BULK_LINES as usize) {
            make(&mut connection, first..links.min(first + BULK_LINES))?;
        }
        let rate = links as f64 / started.elapsed().as_secs_f64();
        let mut row = sink.row("links in bulk, 1 client", rate, "links/s");
        (row.size, row.samples) = (links, links);
        sink.put(&row)?;
    }
    if clicked > 0 {
        let codes = if one {
            make_links(&address)?;
            vec![ONE.to_owned(); usize::try_from(clicked)?]
        } else {
            oldest(&mut connection, clicked)?
        };
        let before = Account::settled(&address)?;
        let started = Instant::now();
        for (at, code) in (0..).zip(&codes) {
            click(&mut connection, code, at, each)?;
        }
        let clicks = clicked * each;
        Account::settled(&address)?.must_have_grown_by(clicks..=clicks, &before)?;
        let rate = clicks as f64 / started.elapsed().as_secs_f64();
        let mut row = sink.row(&format!("clicks, {each} a link, 1 client"), rate, "events/s");
        (row.size, row.samples) = (before.head + clicks, clicks);
        sink.put(&row)?;
    }
    Ok(())
}

fn make(connection: &mut HttpConnection, numbers: std::ops::Range<u64>) -> Outcome<()> {
    let count = numbers.end - numbers.start;
    let mut body = String::new();
    for number in numbers {
        // 40 characters, about as long as people's are without their query.
        writeln!(body, r#"{{"url":"https://www.example.com/shop/item/{number:09}"}}"#)?;
    }
    let mut answer = Vec::new();
    let body = Some(("application/x-ndjson", body.as_bytes()));
    let status = connection
        .call_with("POST", "/api/urls", "", body, |part| answer.extend_from_slice(part))?;
    let created = crate::http1::number_after(&answer, "created");
    if status == 201 && created == Some(count) {
        return Ok(());
    }
    answer.truncate(2000);
    Err(format!("{count} links: {status}: {}", String::from_utf8_lossy(&answer)).into())
}

/// The codes of the oldest links.
fn oldest(connection: &mut HttpConnection, count: u64) -> Outcome<Vec<String>> {
    let (mut codes, mut after) = (Vec::new(), String::new());
    while (codes.len() as u64) < count {
        let mut answer = Vec::new();
        let path = format!("/api/urls?limit=1000&order=asc{after}");
        let status =
            connection.call("GET", &path, "", None, |part| answer.extend_from_slice(part))?;
        if status != 200 {
            return Err(format!("{path} answered {status}").into());
        }
        let page: serde_json::Value = serde_json::from_slice(&answer)?;
        let links = page["links"].as_array().ok_or("a list without links")?;
        codes
            .extend(links.iter().filter_map(|link| link["short_code"].as_str().map(str::to_owned)));
        if page["next"].is_null() && (codes.len() as u64) < count {
            return Err(format!("there are only {} links", codes.len()).into());
        }
        after = format!("&after={}", page["next"]);
    }
    codes.truncate(usize::try_from(count)?);
    Ok(codes)
}

/// Clicks on a link: every one by another visitor, from one of seven sites or none, with one of
/// four agents.
fn click(connection: &mut HttpConnection, code: &str, at: u64, each: u64) -> Outcome<()> {
    let path = format!("/e?type=LinkClicked&tag=clicked:{code}");
    for first in (0..each).step_by(CLICK_LINES as usize) {
        let count = (each - first).min(CLICK_LINES);
        let mut body = String::new();
        for n in first..first + count {
            // A mixing of the numbers (D. Knuth's multiplicative constant): visitors are spread
            // over all 64 bits.
            let visitor = (at << 32 | n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let agent = AGENTS[(visitor >> 40) as usize % AGENTS.len()];
            write!(body, r#"{{"visitor":"{visitor:016x}","agent":"{agent}""#)?;
            match visitor >> 48 & 7 {
                0 => {}
                site => write!(body, r#","referrer":"site{site}.example""#)?,
            }
            body += "}\n";
        }
        let mut answer = Vec::new();
        let body = Some(("application/x-ndjson", body.as_bytes()));
        let status =
            connection.call_with("POST", &path, "", body, |part| answer.extend_from_slice(part))?;
        if status != 202 {
            let answer = String::from_utf8_lossy(&answer);
            return Err(format!("{count} clicks: {status}: {answer}").into());
        }
    }
    Ok(())
}
