//! A consumer as its operator defines it, as JSON: what `PUT` takes, what is stored, what is shown.

use crate::view::read_moment;
use wellspring_consumers::{Backoff, Definition, DefinitionFault, FailureRule, OrderKey};
use wellspring_host::wire::json::{
    Cursor, ReadResult, missing, once, push_string, push_u64, read_text, rule, unknown,
};
use wellspring_json::{push_query, read_query};
use wellspring_types::{Position, Query, limits};

/// Longest time of a definition, in ms: a day.
pub(super) const MAX_MS: u64 = 86_400_000;
/// Most deliveries held at a time.
const MAX_IN_FLIGHT: u64 = 100_000;
/// Most keys open at a time. Scanning stops there, and open keys go on.
const MAX_OPEN_KEYS: usize = 100_000;

/// A consumer's query and terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConsumerDefinition {
    /// The events that it delivers.
    pub(super) query: Query,
    pub(super) terms: Definition,
}

/// Where a consumer begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum StartAt {
    /// With the first event.
    #[default]
    Beginning,
    /// With what is appended from now on.
    Now,
    /// After a position.
    After(Position),
    /// With the first event that was recorded at this time or later, µs since 1970 UTC.
    Since(u64),
}

const KNOWN: &str = "query, key, from, hold_ms, max_hold_ms, max_in_flight, run, max_tries, \
                     backoff_ms, on_failure";

/// Reads a definition: a client's, or a stored one.
pub(super) fn read_definition(
    cursor: &mut Cursor<'_>,
) -> ReadResult<(ConsumerDefinition, Option<StartAt>)> {
    let start = cursor.at();
    let (mut query, mut key, mut from, mut backoff, mut on_failure) =
        (None, None, None, None, None);
    let (mut hold_ms, mut max_hold_ms, mut max_in_flight) = (None, None, None);
    let (mut run, mut max_tries) = (None, None);
    cursor.object(|name, value| {
        let at = value.at();
        match name {
            "query" => once(&mut query, at, read_query(value)?),
            "key" => once(&mut key, at, read_order_key(value)?),
            "from" => once(&mut from, at, read_start(value)?),
            "hold_ms" => once(&mut hold_ms, at, read_number(value, 100, MAX_MS)?),
            "max_hold_ms" => once(&mut max_hold_ms, at, read_number(value, 100, MAX_MS)?),
            "max_in_flight" => once(&mut max_in_flight, at, read_number(value, 1, MAX_IN_FLIGHT)?),
            "run" => once(&mut run, at, read_number(value, 1, Definition::MAX_RUN.into())?),
            "max_tries" => once(&mut max_tries, at, read_number(value, 1, 255)?),
            "backoff_ms" => once(&mut backoff, at, read_backoff(value)?),
            "on_failure" => once(&mut on_failure, at, read_failure_rule(value)?),
            _ => unknown(at, KNOWN),
        }
    })?;
    let Some(query) = query else { return missing("query", start) };
    let hold_ms = hold_ms.unwrap_or(30_000);
    let (first_ms, most_ms) = backoff.unwrap_or((1_000, 60_000));
    let terms = Definition {
        key: key.unwrap_or(OrderKey::None),
        hold_us: hold_ms * 1_000,
        max_hold_us: max_hold_ms.unwrap_or(600_000.max(hold_ms)) * 1_000,
        max_in_flight: max_in_flight.unwrap_or(1_000) as usize,
        run: run.unwrap_or(1) as u8,
        max_tries: max_tries.unwrap_or(8) as u8,
        backoff: Backoff { first_us: first_ms * 1_000, most_us: most_ms * 1_000 },
        on_failure: on_failure.unwrap_or(FailureRule::ParkKey),
        max_open_keys: MAX_OPEN_KEYS,
    };
    match terms.check() {
        Ok(()) => Ok((ConsumerDefinition { query, terms }, from)),
        Err(DefinitionFault::MaxHold) => rule(start, "max_hold_ms must be at least hold_ms"),
        Err(fault) => unreachable!("{fault:?}: each field was checked"),
    }
}

/// A number of a field within limits.
fn read_number(value: &mut Cursor<'_>, least: u64, most: u64) -> ReadResult<u64> {
    let at = value.at();
    match value.u64()? {
        number if (least..=most).contains(&number) => Ok(number),
        _ => rule(at, format!("must be from {least} to {most}")),
    }
}

fn read_order_key(value: &mut Cursor<'_>) -> ReadResult<OrderKey> {
    const RULE: &str = "must be \"none\", \"all\" or {\"tag\": name}";
    let at = value.at();
    if value.next_is(b'"') {
        return match &*value.string()? {
            "none" => Ok(OrderKey::None),
            "all" => Ok(OrderKey::All),
            _ => rule(at, RULE),
        };
    }
    if !value.next_is(b'{') {
        return rule(at, RULE);
    }
    let mut tag = None;
    value.object(|name, value| {
        let at = value.at();
        match name {
            "tag" => once(&mut tag, at, read_text(value, limits::MAX_TAG_BYTES - 1)?),
            _ => unknown(at, "tag"),
        }
    })?;
    let Some(tag) = tag else { return missing("tag", at) };
    Ok(OrderKey::Tag(tag.into()))
}

/// A place in the log: where a consumer begins, or is moved to.
pub(super) fn read_start(value: &mut Cursor<'_>) -> ReadResult<StartAt> {
    const RULE: &str = "must be \"beginning\", \"now\", a position or a time";
    let at = value.at();
    if !value.next_is(b'"') {
        return match value.u64() {
            Ok(position) => Ok(StartAt::After(position)),
            Err(_) => rule(at, RULE),
        };
    }
    let raw = std::str::from_utf8(value.raw()?).unwrap_or_default();
    match raw {
        "\"beginning\"" => Ok(StartAt::Beginning),
        "\"now\"" => Ok(StartAt::Now),
        time => match read_moment(&mut Cursor::of_text(time)) {
            Ok(time_us) => Ok(StartAt::Since(time_us)),
            Err(_) => rule(at, RULE),
        },
    }
}

/// `[first, most]`.
fn read_backoff(value: &mut Cursor<'_>) -> ReadResult<(u64, u64)> {
    let at = value.at();
    let mut pauses_ms = Vec::with_capacity(2);
    value.array(|_, value| {
        let at = value.at();
        if pauses_ms.len() == 2 {
            return rule(at, "must have two numbers");
        }
        pauses_ms.push(read_number(value, 0, MAX_MS)?);
        Ok(())
    })?;
    match pauses_ms[..] {
        [first, most] if first <= most => Ok((first, most)),
        _ => rule(at, "must be the first pause and the longest one, [1000,60000] say"),
    }
}

fn read_failure_rule(value: &mut Cursor<'_>) -> ReadResult<FailureRule> {
    let at = value.at();
    match &*value.string()? {
        "park-key" => Ok(FailureRule::ParkKey),
        "park-event" => Ok(FailureRule::ParkEvent),
        "stop" => Ok(FailureRule::Stop),
        _ => rule(at, "must be \"park-key\", \"park-event\" or \"stop\""),
    }
}

/// Appends a definition with all of its fields.
pub(super) fn push_definition(out: &mut Vec<u8>, definition: &ConsumerDefinition) {
    let terms = &definition.terms;
    out.extend_from_slice(b"{\"query\":");
    push_query(out, &definition.query);
    out.extend_from_slice(b",\"key\":");
    match &terms.key {
        OrderKey::None => out.extend_from_slice(b"\"none\""),
        OrderKey::All => out.extend_from_slice(b"\"all\""),
        OrderKey::Tag(tag) => {
            out.extend_from_slice(b"{\"tag\":");
            push_string(out, tag);
            out.push(b'}');
        }
    }
    let numbers = [
        ("hold_ms", terms.hold_us / 1_000),
        ("max_hold_ms", terms.max_hold_us / 1_000),
        ("max_in_flight", terms.max_in_flight as u64),
        ("run", terms.run.into()),
        ("max_tries", terms.max_tries.into()),
    ];
    for (name, number) in numbers {
        out.push(b',');
        push_string(out, name);
        out.push(b':');
        push_u64(out, number);
    }
    out.extend_from_slice(b",\"backoff_ms\":[");
    push_u64(out, terms.backoff.first_us / 1_000);
    out.push(b',');
    push_u64(out, terms.backoff.most_us / 1_000);
    out.extend_from_slice(match terms.on_failure {
        FailureRule::ParkKey => b"],\"on_failure\":\"park-key\"}",
        FailureRule::ParkEvent => b"],\"on_failure\":\"park-event\"}",
        FailureRule::Stop => b"],\"on_failure\":\"stop\"}",
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_host::wire::json::document;

    fn read(text: &str) -> Result<(ConsumerDefinition, Option<StartAt>), String> {
        document(text.as_bytes(), read_definition).map_err(|fault| format!("{fault:?}"))
    }

    #[test]
    fn what_is_written_is_read_again() {
        for text in [
            r#"{"query":{}}"#,
            r#"{"query":{"items":[{"types":["A"],"tags":["b:1"]}]},"key":"all","run":100}"#,
            r#"{"query":{},"key":{"tag":"a\"b"},"hold_ms":100,"max_hold_ms":100,"max_tries":255,
                "backoff_ms":[0,0],"on_failure":"park-event","max_in_flight":1}"#,
            r#"{"query":{},"hold_ms":86400000,"on_failure":"stop"}"#,
        ] {
            let (definition, _) = read(text).expect(text);
            let mut out = Vec::new();
            push_definition(&mut out, &definition);
            let again = read(std::str::from_utf8(&out).unwrap()).expect("its own");
            assert_eq!(again, (definition, None));
        }
    }

    #[test]
    fn a_start_is_a_word_a_position_or_a_time() {
        let start = |from: &str| read(&format!(r#"{{"query":{{}},"from":{from}}}"#)).map(|d| d.1);
        assert_eq!(start(r#""beginning""#), Ok(Some(StartAt::Beginning)));
        assert_eq!(start(r#""now""#), Ok(Some(StartAt::Now)));
        assert_eq!(start("7"), Ok(Some(StartAt::After(7))));
        let time = start(r#""1970-01-01T00:00:01Z""#);
        assert_eq!(time, Ok(Some(StartAt::Since(1_000_000))));
        for wrong in ["-1", "\"tomorrow\"", "{}", "null", "\"7\""] {
            assert!(start(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_are_named() {
        for (field, named) in [
            (r#""run":101"#, "1 to 100"),
            (r#""hold_ms":5"#, "100 to"),
            (r#""hold_ms":200,"max_hold_ms":100"#, "at least hold_ms"),
            (r#""max_tries":0"#, "1 to 255"),
            (r#""backoff_ms":[2,1]"#, "first pause"),
            (r#""backoff_ms":[1,2,3]"#, "two numbers"),
            (r#""key":"some""#, "none"),
            (r#""key":{"tag":""}"#, "tag"),
            (r#""on_failure":"ignore""#, "park-key"),
            (r#""worker":1"#, "max_tries"),
        ] {
            let fault = read(&format!(r#"{{"query":{{}},{field}}}"#)).expect_err(field);
            assert!(fault.contains(named), "{field}: {fault}");
        }
        assert!(read("{}").is_err());
    }
}
