//! Links as JSON. What a client gets that makes a link is written by hand: it is on the path of
//! bulks.

use super::sealed::DisclosedLink;
use crate::view::{Bucket, Code, Stats, Status, TargetVerdict};
use serde::Serialize;
use serde_json::{Map, Value};
use wellspring_host::clock::push_rfc3339;
use wellspring_host::wire::json::{Rfc3339, push_string, push_tags, push_u64};

/// Appends the answer to the creation of a link: `{"created_at",…,"short_code","short_url",…}`.
pub(super) fn push_link(out: &mut Vec<u8>, link: &DisclosedLink, base: &str) {
    let (disclosed, link) = (link, &link.details);
    out.extend_from_slice(b"{\"created_at\":\"");
    push_zoneless(out, link.created_at_us);
    out.extend_from_slice(b"\",\"original_url\":");
    match disclosed.url() {
        Some(url) => push_string(out, url),
        None => out.extend_from_slice(b"null"),
    }
    push_code(out, link.code, base);
    if let Some(moment_us) = link.expires_at_us {
        out.extend_from_slice(b",\"expires_at\":");
        push_moment(out, moment_us);
    }
    if let Some(most) = link.max_clicks {
        out.extend_from_slice(b",\"max_clicks\":");
        push_u64(out, most.into());
    }
    if !link.tags.is_empty() {
        push_tags(out, link.tags.iter().map(String::as_str));
    }
    if let Some((member, value)) = disclosed.member() {
        out.extend_from_slice(format!(",\"{member}\":{value}").as_bytes());
    }
    out.push(b'}');
}

/// A link with its clicks.
#[derive(Serialize)]
pub(super) struct DetailsDocument<'a> {
    clicks: u64,
    created_at: String,
    original_url: Option<&'a str>,
    short_code: String,
    short_url: String,
    enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<bool>,
    expires_at: Option<Rfc3339>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_clicks: Option<u32>,
    tags: &'a [String],
    visitors: u64,
    bots: u64,
    /// What a sealed link says of that.
    #[serde(flatten)]
    more: Map<String, Value>,
}

impl<'a> DetailsDocument<'a> {
    /// That of a link whose short URL begins with `base`.
    pub(super) fn of(link: &'a DisclosedLink, base: &str) -> DetailsDocument<'a> {
        let (disclosed, link) = (link, &link.details);
        let short_code = link.code.as_text().to_string();
        DetailsDocument {
            clicks: link.clicks,
            created_at: zoneless(link.created_at_us),
            original_url: disclosed.url(),
            short_url: format!("{base}/{short_code}"),
            short_code,
            enabled: link.status == Status::Enabled,
            refused: (link.verdict == TargetVerdict::Refused).then_some(true),
            expires_at: link.expires_at_us.map(Rfc3339),
            max_clicks: link.max_clicks,
            tags: &link.tags,
            visitors: link.visitors,
            bots: link.bots,
            more: disclosed.member().into_iter().collect(),
        }
    }
}

/// What is known of a link's clicks.
#[derive(Serialize)]
pub(super) struct StatsDocument<'a> {
    short_code: String,
    clicks: u64,
    visitors: u64,
    bots: u64,
    bucket: &'static str,
    series: Vec<SeriesDocument>,
    referrers: Vec<ReferrerDocument<'a>>,
    agents: Vec<AgentDocument<'a>>,
}

/// The clicks of an hour or a day.
#[derive(Serialize)]
struct SeriesDocument {
    start: String,
    clicks: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    visitors: Option<u64>,
}

/// The clicks that a host referred.
#[derive(Serialize)]
struct ReferrerDocument<'a> {
    referrer: Option<&'a str>,
    clicks: u64,
    /// By how much they may be too many, if at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    excess: Option<u64>,
}

/// The clicks of a family of user agents.
#[derive(Serialize)]
struct AgentDocument<'a> {
    agent: &'a str,
    clicks: u64,
}

impl<'a> StatsDocument<'a> {
    /// Those of a link.
    pub(super) fn of(code: Code, bucket: Bucket, stats: &'a Stats) -> StatsDocument<'a> {
        let series = stats.series.iter().map(|point| SeriesDocument {
            start: whole_second(point.start_us),
            clicks: point.clicks,
            visitors: point.visitors,
        });
        let referrers = stats.referrers.iter().map(|entry| ReferrerDocument {
            referrer: entry.referrer.as_deref(),
            clicks: entry.clicks,
            excess: Some(entry.excess).filter(|&excess| excess > 0),
        });
        let agents = stats.agents.iter();
        StatsDocument {
            short_code: code.as_text().to_string(),
            clicks: stats.clicks,
            visitors: stats.visitors,
            bots: stats.bots,
            bucket: match bucket {
                Bucket::Hour => "hour",
                Bucket::Day => "day",
            },
            series: series.collect(),
            referrers: referrers.collect(),
            agents: agents.map(|&(agent, clicks)| AgentDocument { agent, clicks }).collect(),
        }
    }
}

/// A moment without its fraction: a bucket begins with a second, and ".000000Z" says no more than
/// "Z".
fn whole_second(us: u64) -> String {
    let mut text = zoneless(us);
    text.truncate(text.len() - ".000000".len());
    text + "Z"
}

/// As the clients of link shorteners know it: UTC, with microseconds, without a zone.
fn zoneless(us: u64) -> String {
    let mut text = Vec::with_capacity(27);
    push_zoneless(&mut text, us);
    String::from_utf8_lossy(&text).into_owned()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Details, ReferrerClicks, SeriesPoint};
    use wellspring_subject_keys::Closed;

    fn clear(details: Details) -> DisclosedLink {
        DisclosedLink { details, subject: None, closed: None }
    }

    fn link() -> Details {
        Details {
            code: Code::parse(b"Yci").unwrap(),
            url: "http://example.com/\"x\"".to_owned(),
            created_at_us: 1_795_225_406_952_770,
            created: 7,
            status: Status::Enabled,
            expires_at_us: None,
            max_clicks: None,
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

    fn json(document: &impl Serialize) -> String {
        String::from_utf8(wellspring_host::wire::json::to_json(document)).unwrap()
    }

    #[test]
    fn a_new_link_is_written_as_its_clients_expect() {
        let plain = written(|out| push_link(out, &clear(link()), "http://l:4000"));
        assert_eq!(
            plain,
            r#"{"created_at":"2026-11-21T01:43:26.952770","original_url":"http://example.com/\"x\"","short_code":"Yci","short_url":"http://l:4000/Yci"}"#
        );
        let tags = vec!["a".to_owned(), "b".to_owned()];
        let more = Details { expires_at_us: Some(1_798_761_600_000_000), tags, ..link() };
        let more = written(|out| push_link(out, &clear(more), "http://l"));
        assert!(more.ends_with(r#","expires_at":"2027-01-01T00:00:00.000000Z","tags":["a","b"]}"#));
    }

    #[test]
    fn details_have_every_member() {
        let text = json(&DetailsDocument::of(&clear(link()), "http://l"));
        assert!(text.starts_with(r#"{"clicks":3,"created_at":"2026-11-21T01:43:26.952770","#));
        let tail = r#","enabled":true,"expires_at":null,"tags":[],"visitors":2,"bots":1}"#;
        assert!(text.ends_with(tail), "{text}");
        let disabled = Details { status: Status::Disabled, ..link() };
        let disabled = json(&DetailsDocument::of(&clear(disabled), ""));
        assert!(disabled.contains("\"enabled\":false") && !disabled.contains("refused"));
        let refused = Details { verdict: TargetVerdict::Refused, ..link() };
        let refused = json(&DetailsDocument::of(&clear(refused), ""));
        assert!(refused.contains(r#""enabled":true,"refused":true,"expires_at"#));
        for (closed, mark) in [
            (Closed::Withdrawn, r#","withheld":true}"#),
            (Closed::Erased, r#","erased":true}"#),
            (Closed::Unavailable, r#","unavailable":true}"#),
        ] {
            let closed = DisclosedLink { closed: Some(closed), ..clear(link()) };
            let made = written(|out| push_link(out, &closed, "http://l"));
            for text in [json(&DetailsDocument::of(&closed, "http://l")), made] {
                assert!(text.ends_with(mark) && text.contains(r#""original_url":null"#), "{text}");
            }
        }
        let opened = DisclosedLink { subject: Some("a:\"1".into()), ..clear(link()) };
        let opened = json(&DetailsDocument::of(&opened, ""));
        assert!(opened.ends_with(r#","subject":"a:\"1"}"#), "{opened}");
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
            json(&StatsDocument::of(code, Bucket::Hour, &stats)),
            r#"{"short_code":"Yci","clicks":4,"visitors":3,"bots":1,"bucket":"hour","series":[{"start":"2026-11-21T01:00:00Z","clicks":2},{"start":"2026-11-21T00:00:00Z","clicks":2,"visitors":1}],"referrers":[{"referrer":"a.example","clicks":2,"excess":1},{"referrer":null,"clicks":2}],"agents":[{"agent":"Firefox","clicks":3},{"agent":"Other","clicks":1}]}"#
        );
        let none = Stats { series: vec![], referrers: vec![], agents: vec![], ..stats };
        let text = json(&StatsDocument::of(code, Bucket::Day, &none));
        assert!(text.ends_with(r#""bucket":"day","series":[],"referrers":[],"agents":[]}"#));
    }
}
