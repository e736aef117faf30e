//! The naive fold: the rules of each event type applied to the whole history, with maps.

use super::journal::Entry;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use wellspring_face_links::view::event::Key;
use wellspring_face_links::view::{Code, MAX_TAG_BYTES, MAX_TAGS, Status, agent, url};
use wellspring_types::Position;
use wellspring_types::moment::MAX_TIME_US;

pub(crate) const HOUR_US: u64 = 3_600_000_000;
pub(crate) const DAY_US: u64 = 24 * HOUR_US;
/// Up to this many referrers, and visitors of a day, are counted exactly.
pub(crate) const EXACT: usize = 64;

#[derive(Debug, Clone)]
pub(crate) struct Click {
    pub(crate) at_us: u64,
    /// `None` if the member is not a hash.
    pub(crate) visitor: Option<u64>,
    pub(crate) agent: &'static str,
    pub(crate) referrer: Option<String>,
    pub(crate) bot: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) code: Code,
    pub(crate) url: String,
    pub(crate) created_at_us: u64,
    pub(crate) created: Position,
    pub(crate) status: Status,
    pub(crate) expires_at_us: Option<u64>,
    pub(crate) tags: Vec<String>,
    pub(crate) clicks: Vec<Click>,
}

/// The complete state.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) key: Option<Key>,
    /// In creation order.
    pub(crate) links: Vec<Link>,
    pub(crate) of_code: HashMap<Code, usize>,
}

impl Oracle {
    pub(crate) fn of(entries: &[Entry]) -> Oracle {
        let mut oracle = Oracle::default();
        entries.iter().for_each(|entry| oracle.fold(entry));
        oracle
    }

    pub(crate) fn link(&self, code: Code) -> Option<&Link> {
        Some(&self.links[*self.of_code.get(&code)?])
    }

    pub(crate) fn fold(&mut self, entry: &Entry) {
        let event = &entry.event;
        let data: Option<Value> = serde_json::from_slice(&event.data).ok();
        let code = |prefix: &str| {
            let texts = event.tags.iter().filter_map(|tag| tag.strip_prefix(prefix));
            texts.filter_map(|text| Code::check(text.as_bytes()).ok()).next()
        };
        match (event.event_type.as_str(), data) {
            ("LinksOpened", data) if event.tags.iter().any(|tag| tag == "links") => {
                let rubbish = || Sha256::digest(&event.data)[..16].try_into().expect("16 bytes");
                let key = || data.as_ref().and_then(opening_key).unwrap_or_else(rubbish);
                self.key.get_or_insert_with(key);
            }
            ("LinkCreated", Some(data)) => {
                _ = code("link:").and_then(|c| self.create(entry, c, &data))
            }
            ("LinkChanged", Some(data)) => {
                _ = code("link:").and_then(|c| self.change(entry, c, &data))
            }
            ("LinkDeleted", _) => {
                let at = code("link:").and_then(|code| self.of_code.get(&code));
                at.into_iter().for_each(|&at| self.links[at].status = Status::Deleted);
            }
            ("LinkClicked", Some(data)) => {
                _ = code("clicked:").and_then(|c| self.click(entry, c, &data))
            }
            _ => {}
        }
    }

    fn create(&mut self, entry: &Entry, code: Code, data: &Value) -> Option<()> {
        let url = target(data.get("url")?.as_str()?, entry.position)?;
        let chosen = data.get("chosen")?.as_str()?;
        let known = ["automatic", "alias", "deterministic"].contains(&chosen);
        optional_number(data.get("number"))?;
        let expires_at_us = ends(optional_number(data.get("expires_at"))?)?;
        let tags = data.get("tags").map_or(Some(Vec::new()), link_tags)?;
        if !known || self.of_code.contains_key(&code) {
            return None;
        }
        self.of_code.insert(code, self.links.len());
        self.links.push(Link {
            code,
            url,
            created_at_us: entry.at_us,
            created: entry.position,
            status: Status::Enabled,
            expires_at_us,
            tags,
            clicks: Vec::new(),
        });
        Some(())
    }

    fn change(&mut self, entry: &Entry, code: Code, data: &Value) -> Option<()> {
        let at = *self.of_code.get(&code)?;
        let mut link = self.links[at].clone();
        if link.status == Status::Deleted || !data.is_object() {
            return None;
        }
        if let Some(url) = given(data, "url") {
            link.url = target(url.as_str()?, entry.position)?;
        }
        if let Some(enabled) = given(data, "enabled") {
            link.status = if enabled.as_bool()? { Status::Enabled } else { Status::Disabled };
        }
        if let Some(expires) = data.get("expires_at") {
            link.expires_at_us = ends(optional_number(Some(expires))?)?;
        }
        if let Some(tags) = given(data, "tags") {
            link.tags = link_tags(tags)?;
        }
        self.links[at] = link;
        Some(())
    }

    fn click(&mut self, entry: &Entry, code: Code, data: &Value) -> Option<()> {
        let at = *self.of_code.get(&code)?;
        let visitor = data.get("visitor")?.as_str()?;
        let digits = visitor.len() == 16 && visitor.chars().all(|c| c.is_ascii_hexdigit());
        let named = data.get("agent")?.as_str()?;
        let referrer = match given(data, "referrer") {
            Some(host) => Some(host.as_str()?.to_owned()).filter(|host| host.len() <= 100),
            None => None,
        };
        let click = Click {
            at_us: entry.at_us,
            visitor: u64::from_str_radix(visitor, 16).ok().filter(|_| digits),
            agent: agent::FAMILIES.iter().find(|&&family| family == named).unwrap_or(&"Other"),
            referrer,
            bot: data.get("bot").map_or(Some(false), Value::as_bool)?,
        };
        self.links[at].clicks.push(click);
        Some(())
    }
}

/// A target, or where the sealed one is.
fn target(url: &str, position: Position) -> Option<String> {
    match url {
        "sealed:" => Some(format!("sealed:{position}")),
        _ => url::kept(url).ok().map(|_| url.to_owned()),
    }
}

/// A member that is present and not `null`.
fn given<'a>(data: &'a Value, member: &str) -> Option<&'a Value> {
    data.get(member).filter(|value| !value.is_null())
}

/// `None` if it is not a number, `Some(None)` if it is absent.
fn optional_number(value: Option<&Value>) -> Option<Option<u64>> {
    match value {
        None | Some(Value::Null) => Some(None),
        Some(value) => value.as_u64().map(Some),
    }
}

/// `None` if there is a time that RFC 3339 cannot represent.
fn ends(expires_at_us: Option<u64>) -> Option<Option<u64>> {
    (expires_at_us.unwrap_or(0) <= MAX_TIME_US).then_some(expires_at_us)
}

fn link_tags(value: &Value) -> Option<Vec<String>> {
    let tags: Option<Vec<String>> =
        value.as_array()?.iter().map(|tag| tag.as_str().map(str::to_owned)).collect();
    let tags = tags?;
    let fine = |tag: &String| {
        !tag.is_empty() && tag.len() <= MAX_TAG_BYTES && !tag.chars().any(char::is_control)
    };
    let different: BTreeSet<&String> = tags.iter().collect();
    let few = tags.len() <= MAX_TAGS && different.len() == tags.len();
    (few && tags.iter().all(fine)).then_some(tags)
}

fn opening_key(data: &Value) -> Option<Key> {
    let hex = data.get("key")?.as_str()?;
    let digits: Option<Vec<u8>> =
        hex.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len() == 32)?;
    let mut key = [0; 16];
    for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    Some(key)
}

impl Link {
    /// Clicks by bucket.
    pub(crate) fn series(&self, width_us: u64) -> BTreeMap<u64, Vec<&Click>> {
        let mut series = BTreeMap::<u64, Vec<&Click>>::new();
        for click in &self.clicks {
            series.entry(click.at_us / width_us * width_us).or_default().push(click);
        }
        series
    }
}

/// Number of distinct visitors, without bots.
pub(crate) fn visitors(clicks: &[&Click]) -> usize {
    let people = clicks.iter().filter(|click| !click.bot);
    people.filter_map(|click| click.visitor).collect::<BTreeSet<u64>>().len()
}
