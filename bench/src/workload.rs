//! The events and conditions sent. One value per request is written anew in place, so that making a
//! request costs the client no allocation after the first.

use crate::proto::{AppendCondition, AppendRequest, Event, Query, QueryItem};
use std::fmt::Write as _;

/// The eight everyday event types.
const TYPES: [&str; 8] = [
    "OrderPlaced",
    "OrderPaid",
    "OrderPacked",
    "OrderShipped",
    "OrderDelivered",
    "OrderReturned",
    "OrderRefunded",
    "OrderClosed",
];

/// A type that only a handful of events have, however long the log grows, and never together with a
/// `common:` tag.
pub(crate) const RARE_TYPE: &str = "AuditRequested";

/// What one request of the throughput measurement asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// No condition.
    Plain,
    /// A condition on this event's own unique tag, after the last head the client saw.
    Conditional,
    /// A condition on one fixed tag after one fixed position, as UmaDB's own benchmark asks.
    ConditionalFixed,
}

impl std::str::FromStr for Mode {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "plain" => Ok(Self::Plain),
            "conditional" => Ok(Self::Conditional),
            "conditional-fixed" => Ok(Self::ConditionalFixed),
            _ => Err(()),
        }
    }
}

/// A stream of single-event requests that never repeats a key.
pub(crate) struct Orders {
    run: u64,
    next: u64,
    payload: usize,
    mode: Mode,
    fixed_after: u64,
}

impl Orders {
    /// Keys are unique as long as `run` is.
    pub(crate) fn new(run: u64, payload: usize, mode: Mode, fixed_after: u64) -> Self {
        Self { run, next: 0, payload, mode, fixed_after }
    }

    /// Writes the next request. `seen_head` is the highest position any answer has told so far.
    pub(crate) fn write_next(&mut self, request: &mut AppendRequest, seen_head: u64) {
        let number = self.next;
        self.next += 1;
        request.events.resize_with(1, Event::default);
        let event = &mut request.events[0];
        rewrite(&mut event.event_type, format_args!("{}", TYPES[(number % 8) as usize]));
        event.tags.resize_with(3, String::new);
        rewrite(&mut event.tags[0], format_args!("order:{:x}-{number}", self.run));
        rewrite(&mut event.tags[1], format_args!("customer:{}", number % 10_007));
        rewrite(&mut event.tags[2], format_args!("region:{}", number % 32));
        write_payload(&mut event.data, number, self.payload);
        match self.mode {
            Mode::Plain => request.condition = None,
            Mode::Conditional => {
                let item = condition_item(&mut request.condition, Some(seen_head));
                item.types.clear();
                item.tags.resize_with(1, String::new);
                rewrite(&mut item.tags[0], format_args!("order:{:x}-{number}", self.run));
            }
            Mode::ConditionalFixed => {
                let item = condition_item(&mut request.condition, Some(self.fixed_after));
                item.types.clear();
                item.tags.resize_with(1, String::new);
                rewrite(&mut item.tags[0], format_args!("common:0"));
            }
        }
    }
}

/// Writes event number `index` of the standing data set: a unique `key:` tag, one of four `common:`
/// tags (two different ones never meet), and a `customer:` tag shared by every `customers`-th
/// event.
pub(crate) fn write_standing(event: &mut Event, index: u64, customers: u64, payload: usize) {
    event.tags.resize_with(3, String::new);
    rewrite(&mut event.tags[0], format_args!("key:{index}"));
    if is_rare(index) {
        rewrite(&mut event.event_type, format_args!("{RARE_TYPE}"));
        rewrite(&mut event.tags[1], format_args!("audited"));
    } else {
        rewrite(&mut event.event_type, format_args!("{}", TYPES[(index % 8) as usize]));
        rewrite(&mut event.tags[1], format_args!("common:{}", index % 4));
    }
    rewrite(&mut event.tags[2], format_args!("customer:{}", index % customers));
    write_payload(&mut event.data, index, payload);
}

/// Two per power of two: 20 among the first thousand, 46 among ten million, spread over the whole
/// log.
fn is_rare(index: u64) -> bool {
    index.is_power_of_two() || (index.is_multiple_of(3) && (index / 3).is_power_of_two())
}

/// A JSON object of about `size` bytes (never under 90).
fn write_payload(data: &mut Vec<u8>, number: u64, size: usize) {
    use std::io::Write as _;
    const PADDING: [u8; 64] = *b"the quick brown fox jumps over the lazy dog and runs home again ";
    data.clear();
    write!(
        data,
        r#"{{"number":{number},"sku":"SKU-{:05}","quantity":{},"price":{},"note":""#,
        number % 99_991,
        number % 9 + 1,
        number % 5000 + 99
    )
    .expect("a Vec grows as needed");
    while data.len() + 2 < size {
        let rest = (size - 2 - data.len()).min(PADDING.len());
        data.extend_from_slice(&PADDING[..rest]);
    }
    data.extend_from_slice(b"\"}");
}

/// The single query item of a condition, made if absent.
pub(crate) fn condition_item(
    condition: &mut Option<AppendCondition>,
    after: Option<u64>,
) -> &mut QueryItem {
    let condition = condition.get_or_insert_default();
    condition.after = after;
    let query = condition.fail_if_events_match.get_or_insert_with(Query::default);
    query.items.resize_with(1, QueryItem::default);
    &mut query.items[0]
}

/// Replaces a string's content and keeps its memory.
pub(crate) fn rewrite(text: &mut String, content: std::fmt::Arguments<'_>) {
    text.clear();
    text.write_fmt(content).expect("a String grows as needed");
}

/// Writes the request as the body of `POST /v1/append`. Nothing in a workload needs JSON escapes.
pub(crate) fn write_json(request: &AppendRequest, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"events\":[");
    for (index, event) in request.events.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(event.event_type.as_bytes());
        out.extend_from_slice(b"\",\"tags\":");
        write_strings(&event.tags, out);
        out.extend_from_slice(b",\"data\":");
        out.extend_from_slice(&event.data);
        out.push(b'}');
    }
    out.push(b']');
    if let Some(condition) = &request.condition {
        out.extend_from_slice(b",\"condition\":{\"failIfEventsMatch\":{\"items\":[");
        let items = condition.fail_if_events_match.iter().flat_map(|query| &query.items);
        for (index, item) in items.enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.push(b'{');
            if !item.types.is_empty() {
                out.extend_from_slice(b"\"types\":");
                write_strings(&item.types, out);
            }
            if !item.tags.is_empty() {
                out.extend_from_slice(if item.types.is_empty() {
                    b"\"tags\":"
                } else {
                    b",\"tags\":"
                });
                write_strings(&item.tags, out);
            }
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
        if let Some(after) = condition.after {
            use std::io::Write as _;
            write!(out, ",\"after\":{after}").expect("a Vec grows as needed");
        }
        out.push(b'}');
    }
    out.push(b'}');
}

fn write_strings(strings: &[String], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, text) in strings.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_is_json_and_says_the_same() {
        let mut request = AppendRequest::default();
        let mut orders = Orders::new(7, 200, Mode::Conditional, 0);
        orders.write_next(&mut request, 41);
        condition_item(&mut request.condition, Some(41)).types.push("T".into());
        let mut body = Vec::new();
        write_json(&request, &mut body);
        let value: serde_json::Value = serde_json::from_slice(&body).expect("valid JSON");
        assert_eq!(value["events"][0]["tags"][0], "order:7-0");
        assert_eq!(value["condition"]["after"], 41);
        assert_eq!(value["condition"]["failIfEventsMatch"]["items"][0]["types"][0], "T");
        assert_eq!(request.events[0].data.len(), 200);
    }

    #[test]
    fn rare_events_are_few_and_never_common() {
        let rare: Vec<u64> = (0..1_000_000).filter(|&index| is_rare(index)).collect();
        assert!((30..60).contains(&rare.len()), "{}", rare.len());
        let mut event = Event::default();
        write_standing(&mut event, rare[3], 10, 200);
        assert!(event.tags.iter().all(|tag| !tag.starts_with("common:")));
    }
}
