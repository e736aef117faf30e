//! Links as JSON.

use wellspring_host::clock::push_rfc3339;
use wellspring_host::wire::json::push_tags;
use wellspring_host::wire::json::{push_string, push_u64};
use wellspring_views::links::{Bucket, Code, Details, Stats, Status, TargetVerdict};

/// Appends the answer to the creation of a link: `{"created_at",…,"short_code","short_url",…}`.
pub(super) fn push_link(out: &mut Vec<u8>, link: &Details, base: &str) {
    out.extend_from_slice(b"{\"created_at\":\"");
    push_zoneless(out, link.created_at_us);
    out.extend_from_slice(b"\",\"original_url\":");
    push_string(out, &link.url);
    push_code(out, link.code, base);
    if let Some(moment_us) = link.expires_at_us {
        out.extend_from_slice(b",\"expires_at\":");
        push_moment(out, moment_us);
    }
    if !link.tags.is_empty() {
        push_tags(out, link.tags.iter().map(String::as_str));
    }
    out.push(b'}');
}

/// Appends a link with its clicks: `{"clicks","created_at","original_url","short_code",…}`.
pub(super) fn push_details(out: &mut Vec<u8>, link: &Details, base: &str) {
    out.extend_from_slice(b"{\"clicks\":");
    push_u64(out, link.clicks);
    out.extend_from_slice(b",\"created_at\":\"");
    push_zoneless(out, link.created_at_us);
    out.extend_from_slice(b"\",\"original_url\":");
    push_string(out, &link.url);
    push_code(out, link.code, base);
    let enabled: &[u8] = if link.status == Status::Enabled { b"true" } else { b"false" };
    out.extend_from_slice(b",\"enabled\":");
    out.extend_from_slice(enabled);
    if link.verdict == TargetVerdict::Refused {
        out.extend_from_slice(b",\"refused\":true");
    }
    out.extend_from_slice(b",\"expires_at\":");
    match link.expires_at_us {
        Some(moment_us) => push_moment(out, moment_us),
        None => out.extend_from_slice(b"null"),
    }
    push_tags(out, link.tags.iter().map(String::as_str));
    push_number(out, b",\"visitors\":", link.visitors);
    push_number(out, b",\"bots\":", link.bots);
    out.push(b'}');
}

/// Appends the statistics of a link's clicks.
pub(super) fn push_stats(out: &mut Vec<u8>, code: Code, bucket: Bucket, stats: &Stats) {
    out.extend_from_slice(b"{\"short_code\":");
    push_string(out, &code.as_text());
    push_number(out, b",\"clicks\":", stats.clicks);
    push_number(out, b",\"visitors\":", stats.visitors);
    push_number(out, b",\"bots\":", stats.bots);
    let bucket: &[u8] = match bucket {
        Bucket::Hour => b",\"bucket\":\"hour\",\"series\":[",
        Bucket::Day => b",\"bucket\":\"day\",\"series\":[",
    };
    out.extend_from_slice(bucket);
    for (i, point) in stats.series.iter().enumerate() {
        out.extend_from_slice(if i > 0 { b",{\"start\":\"" } else { b"{\"start\":\"" });
        push_rfc3339(out, point.start_us);
        // A bucket starts at a full second: ".000000Z" adds nothing to "Z".
        out.truncate(out.len() - ".000000Z".len());
        push_number(out, b"Z\",\"clicks\":", point.clicks);
        if let Some(visitors) = point.visitors {
            push_number(out, b",\"visitors\":", visitors);
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"referrers\":[");
    for (i, entry) in stats.referrers.iter().enumerate() {
        out.extend_from_slice(if i > 0 { b",{\"referrer\":" } else { b"{\"referrer\":" });
        match &entry.referrer {
            Some(host) => push_string(out, host),
            None => out.extend_from_slice(b"null"),
        }
        push_number(out, b",\"clicks\":", entry.clicks);
        if entry.excess > 0 {
            push_number(out, b",\"excess\":", entry.excess);
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"agents\":[");
    for (i, (agent, clicks)) in stats.agents.iter().enumerate() {
        out.extend_from_slice(if i > 0 { b",{\"agent\":" } else { b"{\"agent\":" });
        push_string(out, agent);
        push_number(out, b",\"clicks\":", *clicks);
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
}

/// The format of link shorteners: UTC, with microseconds, without a zone.
fn push_zoneless(out: &mut Vec<u8>, us: u64) {
    push_rfc3339(out, us);
    out.pop();
}

fn push_moment(out: &mut Vec<u8>, us: u64) {
    out.push(b'"');
    push_rfc3339(out, us);
    out.push(b'"');
}

fn push_code(out: &mut Vec<u8>, code: Code, base: &str) {
    let code = code.as_text();
    out.extend_from_slice(b",\"short_code\":");
    push_string(out, &code);
    out.extend_from_slice(b",\"short_url\":");
    push_string(out, &format!("{base}/{code}"));
}

fn push_number(out: &mut Vec<u8>, name: &[u8], number: u64) {
    out.extend_from_slice(name);
    push_u64(out, number);
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_views::links::{ReferrerClicks, SeriesPoint};

    fn link() -> Details {
        Details {
            code: Code::parse(b"Yci").unwrap(),
            url: "http://example.com/\"x\"".to_owned(),
            created_at_us: 1_795_225_406_952_770,
            created: 7,
            status: Status::Enabled,
            expires_at_us: None,
            verdict: TargetVerdict::Followed,
            tags: Vec::new(),
            clicks: 3,
            visitors: 2,
            bots: 1,
        }
    }

    fn written(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        push(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_new_link_is_written_as_its_clients_expect() {
        let plain = written(|out| push_link(out, &link(), "http://l:4000"));
        assert_eq!(
            plain,
            r#"{"created_at":"2026-11-21T01:43:26.952770","original_url":"http://example.com/\"x\"","short_code":"Yci","short_url":"http://l:4000/Yci"}"#
        );
        let tags = vec!["a".to_owned(), "b".to_owned()];
        let more = Details { expires_at_us: Some(1_798_761_600_000_000), tags, ..link() };
        let more = written(|out| push_link(out, &more, "http://l"));
        assert!(more.ends_with(r#","expires_at":"2027-01-01T00:00:00.000000Z","tags":["a","b"]}"#));
    }

    #[test]
    fn details_have_every_member() {
        let text = written(|out| push_details(out, &link(), "http://l"));
        assert!(text.starts_with(r#"{"clicks":3,"created_at":"2026-11-21T01:43:26.952770","#));
        let tail = r#","enabled":true,"expires_at":null,"tags":[],"visitors":2,"bots":1}"#;
        assert!(text.ends_with(tail), "{text}");
        let disabled = Details { status: Status::Disabled, ..link() };
        assert!(written(|out| push_details(out, &disabled, "")).contains("\"enabled\":false"));
    }

    #[test]
    fn stats_are_json() {
        let point = |start_us, visitors| SeriesPoint { start_us, clicks: 2, visitors };
        let referrer = |referrer: Option<&str>, excess| {
            let referrer = referrer.map(str::to_owned);
            ReferrerClicks { referrer, clicks: 2, excess }
        };
        let stats = Stats {
            clicks: 4,
            visitors: 3,
            bots: 1,
            series: vec![point(1_795_222_800_000_000, None), point(1_795_219_200_000_000, Some(1))],
            referrers: vec![referrer(Some("a.example"), 1), referrer(None, 0)],
            agents: vec![("Firefox", 3), ("Other", 1)],
        };
        let code = Code::parse(b"Yci").unwrap();
        assert_eq!(
            written(|out| push_stats(out, code, Bucket::Hour, &stats)),
            r#"{"short_code":"Yci","clicks":4,"visitors":3,"bots":1,"bucket":"hour","series":[{"start":"2026-11-21T01:00:00Z","clicks":2},{"start":"2026-11-21T00:00:00Z","clicks":2,"visitors":1}],"referrers":[{"referrer":"a.example","clicks":2,"excess":1},{"referrer":null,"clicks":2}],"agents":[{"agent":"Firefox","clicks":3},{"agent":"Other","clicks":1}]}"#
        );
        let none = Stats { series: vec![], referrers: vec![], agents: vec![], ..stats };
        let text = written(|out| push_stats(out, code, Bucket::Day, &none));
        assert!(text.ends_with(r#""bucket":"day","series":[],"referrers":[],"agents":[]}"#));
    }
}
