//! The events of links: how they are written and read. A log may hold such events from any source
//! (restored from an export, or of an earlier version), so an event with invalid content yields no
//! fact.

use super::Code;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use wellspring_host::view::contract::{event, json};
use wellspring_types::{Event, Position};

/// The first event: it fixes the order of automatic codes.
pub const OPENED: &str = "LinksOpened";
/// A link was created.
pub const CREATED: &str = "LinkCreated";
/// A link was changed.
pub const CHANGED: &str = "LinkChanged";
/// A link was deleted permanently.
pub const DELETED: &str = "LinkDeleted";
/// A create with an idempotency key found its link existing. Changes nothing; preserves the answer
/// for retries.
pub const FOUND: &str = "LinkFound";
/// A link was followed.
pub const CLICKED: &str = "LinkClicked";
/// The event types that this view folds or answers from.
pub const TYPES: [&str; 6] = [OPENED, CREATED, CHANGED, DELETED, FOUND, CLICKED];
/// Tag of [`OPENED`].
pub const OPENED_TAG: &str = "links";
/// Prefix of the code in a tag of a link's own events.
pub const LINK_TAG: &str = "link:";
/// Prefix of the code in a click's tag. Differs from [`LINK_TAG`] because a condition on a link
/// must not match its clicks.
pub const CLICKED_TAG: &str = "clicked:";
/// Prefix of a link's tag in the tags of [`CREATED`].
pub const TAG_TAG: &str = "link-tag:";
/// The URL of a link that is sealed for a data subject: the event's sealed part has its URL and its
/// tags. The fold puts the event's position behind it.
pub const SEALED: &str = "sealed:";

/// Where the sealed target of a folded link is; `None` if its URL is clear.
pub fn sealed_at(url: &str) -> Option<Position> {
    url.strip_prefix(SEALED)?.parse().ok()
}

/// Key of the permutation of automatic codes.
pub type Key = [u8; 16];

/// How a code was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CodeOrigin {
    Automatic,
    Alias,
    Deterministic,
}

#[derive(Serialize, Deserialize)]
struct OpenedData<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
}

/// Data of [`CREATED`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CreatedData<'a> {
    #[serde(borrow)]
    pub(super) url: Cow<'a, str>,
    /// The counter value of an automatic code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) number: Option<u64>,
    pub(super) chosen: CodeOrigin,
    #[serde(default, rename = "expires_at", skip_serializing_if = "Option::is_none")]
    pub(super) expires_at_us: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) max_clicks: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tags: Vec<String>,
}

/// Data of [`CHANGED`]: absent members stay unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChangedData<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) enabled: Option<bool>,
    /// `null`: never.
    #[serde(
        default,
        rename = "expires_at",
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) expires_at_us: Option<Option<u64>>,
    /// `null`: any number.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub(super) max_clicks: Option<Option<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tags: Option<Vec<String>>,
}

/// Distinguishes a `null` member from an absent one.
fn given<'de, D, T>(from: D) -> Result<Option<Option<T>>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(from).map(Some)
}

/// Data of [`CLICKED`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClickedData<'a> {
    /// Hash of the visitor, 16 hexadecimal digits.
    #[serde(borrow)]
    pub(super) visitor: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) agent: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) referrer: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) bot: bool,
}

/// The content of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fact<'a> {
    Opened(Key),
    Created(Code, CreatedData<'a>),
    Changed(Code, ChangedData<'a>),
    Deleted(Code),
    Clicked(Code, ClickedData<'a>),
}

impl<'a> Fact<'a> {
    /// The fact recorded by an event with this type, tags and data; `None` if it records none.
    pub(super) fn of<'t>(
        event_type: &str,
        mut tags: impl Iterator<Item = &'t str>,
        data: &'a [u8],
    ) -> Option<Fact<'a>> {
        let mut code =
            |prefix: &str| tags.find_map(|tag| Code::parse(tag.strip_prefix(prefix)?.as_bytes()));
        match event_type {
            CLICKED => {
                let code = code(CLICKED_TAG)?;
                let click = plain_click(data).or_else(|| serde_json::from_slice(data).ok())?;
                Some(Fact::Clicked(code, click))
            }
            CREATED => Some(Fact::Created(code(LINK_TAG)?, serde_json::from_slice(data).ok()?)),
            CHANGED => Some(Fact::Changed(code(LINK_TAG)?, serde_json::from_slice(data).ok()?)),
            DELETED => Some(Fact::Deleted(code(LINK_TAG)?)),
            OPENED => tags.any(|tag| tag == OPENED_TAG).then(|| Fact::Opened(opened_key(data))),
            _ => None,
        }
    }

    /// The event that records the fact.
    pub(super) fn to_event(&self) -> Event {
        let link = |code: &Code| format!("{LINK_TAG}{code}");
        let (event_type, tags, data) = match self {
            Fact::Opened(key) => {
                let key = format!("{:032x}", u128::from_be_bytes(*key)).into();
                (OPENED, vec![OPENED_TAG.to_owned()], json(&OpenedData { key }))
            }
            Fact::Created(code, created) => {
                let own = created.tags.iter().map(|tag| format!("{TAG_TAG}{tag}"));
                (CREATED, std::iter::once(link(code)).chain(own).collect(), json(created))
            }
            Fact::Changed(code, changed) => (CHANGED, vec![link(code)], json(changed)),
            Fact::Deleted(code) => (DELETED, vec![link(code)], b"{}".to_vec()),
            Fact::Clicked(code, clicked) => {
                (CLICKED, vec![format!("{CLICKED_TAG}{code}")], json(clicked))
            }
        };
        event(event_type, tags, data)
    }
}

/// Reads a click exactly as [`Fact::to_event`] writes it, without escapes and without a copy.
/// Nearly all events are such clicks; any other spelling is left to the general JSON reader.
fn plain_click(data: &[u8]) -> Option<ClickedData<'_>> {
    let rest = std::str::from_utf8(data).ok()?.strip_prefix(r#"{"visitor":""#)?;
    let (visitor, rest) = plain_text(rest)?;
    let (agent, rest) = plain_text(rest.strip_prefix(r#","agent":""#)?)?;
    let (referrer, rest) = match rest.strip_prefix(r#","referrer":""#) {
        Some(rest) => plain_text(rest).map(|(host, rest)| (Some(host.into()), rest))?,
        None => (None, rest),
    };
    let (bot, rest) = match rest.strip_prefix(r#","bot":true"#) {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    (rest == "}").then(|| ClickedData {
        visitor: visitor.into(),
        agent: agent.into(),
        referrer,
        bot,
    })
}

/// The text up to its closing quotation mark and the rest, if no character in it is escaped or
/// needs escaping.
fn plain_text(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20))?;
    (text.as_bytes()[end] == b'"').then(|| (&text[..end], &text[end + 1..]))
}

/// The key in [`OPENED`]. Invalid data is turned into a key (the first half of its SHA-256), so the
/// first such event opens the links whatever it holds, and fold and append condition agree on which
/// event that is.
fn opened_key(data: &[u8]) -> Key {
    let read = || {
        let data: OpenedData<'_> = serde_json::from_slice(data).ok()?;
        parse_key(&data.key)
    };
    read().unwrap_or_else(|| {
        let digest: [u8; 32] = Sha256::digest(data).into();
        *digest.first_chunk().expect("32 bytes")
    })
}

fn parse_key(hex: &str) -> Option<Key> {
    let digits = hex.len() == 32 && hex.bytes().all(|b| b.is_ascii_hexdigit());
    u128::from_str_radix(hex, 16).ok().filter(|_| digits).map(u128::to_be_bytes)
}

/// The hash in a click.
pub(super) fn parse_visitor(hex: &str) -> Option<u64> {
    let digits = hex.len() == 16 && hex.bytes().all(|b| b.is_ascii_hexdigit());
    u64::from_str_radix(hex, 16).ok().filter(|_| digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(fact: &Fact<'_>) {
        let event = fact.to_event();
        event.as_ref().check().unwrap();
        let tags = event.tags.iter().map(String::as_str);
        assert_eq!(Fact::of(&event.event_type, tags, &event.data).as_ref(), Some(fact));
    }

    #[test]
    fn facts_are_written_and_read() {
        let code = Code::parse(b"Yci").unwrap();
        round(&Fact::Opened(*b"0123456789abcdef"));
        round(&Fact::Deleted(code));
        round(&Fact::Created(
            code,
            CreatedData {
                url: "http://example.com/\"ü\"".into(),
                number: Some(7),
                chosen: CodeOrigin::Automatic,
                expires_at_us: Some(9),
                max_clicks: Some(3),
                tags: vec!["a".into(), "b c".into()],
            },
        ));
        for expires_at_us in [None, Some(None), Some(Some(7))] {
            let enabled = Some(false);
            round(&Fact::Changed(
                code,
                ChangedData {
                    enabled,
                    expires_at_us,
                    max_clicks: expires_at_us.map(|us| us.map(|us| us as u32)),
                    ..ChangedData::default()
                },
            ));
        }
        round(&Fact::Clicked(
            code,
            ClickedData {
                visitor: "0123456789abcdef".into(),
                agent: "Firefox".into(),
                referrer: Some("example.com".into()),
                bot: true,
            },
        ));
    }

    #[test]
    fn a_click_is_read_quickly_only_if_it_is_read_right() {
        let texts = ["", "Firefox", "é", "a\"b", "\\", "\u{1}", "\u{7f}", "}"];
        let click = |visitor: &'static str, agent: &'static str, referrer, bot| ClickedData {
            visitor: visitor.into(),
            agent: agent.into(),
            referrer,
            bot,
        };
        let mut quick = 0;
        for (visitor, agent) in texts.iter().flat_map(|v| texts.iter().map(move |a| (v, a))) {
            for host in texts.map(Some).into_iter().chain([None]) {
                for bot in [false, true] {
                    let click = click(visitor, agent, host.map(Cow::Borrowed), bot);
                    let data = json(&click);
                    let found = plain_click(&data);
                    quick += usize::from(found.is_some());
                    assert!(found.is_none_or(|found| found == click));
                }
            }
        }
        // Those without an escape: five of the texts, and no referrer.
        assert_eq!(quick, 5 * 5 * 6 * 2);
        for no_json in [
            r#"{"visitor":"0","agent":"x","bot":true,"referrer":"h"}"#,
            r#"{"visitor":"0","agent":"x"} "#,
            r#"{"visitor":"0","agent":"x""#,
            r#"{"visitor":"0","agent":"x","bot":false}"#,
            "{\"visitor\":\"0\",\"agent\":\"\n\"}",
        ] {
            assert_eq!(plain_click(no_json.as_bytes()), None, "{no_json}");
        }
        assert_eq!(plain_click(b"{\"visitor\":\"0\",\"agent\":\"\xff\"}"), None);
    }

    #[test]
    fn what_makes_no_sense_is_no_fact() {
        let of = |event_type, tag: &'static str, data: &'static str| {
            Fact::of(event_type, [tag].into_iter(), data.as_bytes())
        };
        assert_eq!(of(CREATED, "link:Yci", "{}"), None);
        assert_eq!(of(CREATED, "link:Y-i", r#"{"url":"http://a","chosen":"alias"}"#), None);
        assert_eq!(of(CLICKED, "link:Yci", r#"{"visitor":"0","agent":"x"}"#), None);
        assert_eq!(of(OPENED, "linked", r#"{"key":"0123456789abcdef0123456789abcdef"}"#), None);
        assert_eq!(of("Other", "link:Yci", "{}"), None);
        assert!(of(DELETED, "link:Yci", "rubbish").is_some());
        // Type and tag alone say that links are open, whatever the key.
        for rubbish in [r#"{"key":"+123456789abcdef0123456789abcdef"}"#, "", "{}"] {
            assert!(
                matches!(of(OPENED, "links", rubbish), Some(Fact::Opened(key)) if key != [0; 16])
            );
        }
    }
}
