//! Which trace a request belongs to: the header `traceparent` of W3C Trace Context
//! (<https://www.w3.org/TR/trace-context/>), read as strictly as it says, and ids of our own.

use hyper::HeaderMap;
use std::cell::Cell;

/// Longest `tracestate` that is passed on, in bytes: the least that the standard requires.
const STATE_BYTES: usize = 512;

/// The trace that a request says it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) trace_id: u128,
    /// The caller's span.
    pub(super) span_id: u64,
    /// Whether the caller records the trace.
    pub(super) sampled: bool,
    /// The vendors' own data, from `tracestate`.
    pub(super) state: String,
}

impl Parent {
    /// Reads the parent from the headers of a request; `None`: there is none, or it is malformed.
    pub(super) fn of(headers: &HeaderMap) -> Option<Parent> {
        let mut values = headers.get_all("traceparent").iter();
        let value = values.next()?.to_str().ok()?;
        if values.next().is_some() {
            return None;
        }
        let mut parent = Parent::parse(value)?;
        let states = headers.get_all("tracestate").iter();
        let states: Vec<&str> = states.filter_map(|state| state.to_str().ok()).collect();
        parent.state = states.join(",");
        if parent.state.len() > STATE_BYTES {
            parent.state.clear();
        }
        Some(parent)
    }

    fn parse(value: &str) -> Option<Parent> {
        let (head, rest) = value.split_at_checked(55)?;
        let mut fields = head.split('-');
        let mut field = |digits: usize| fields.next().filter(|field| field.len() == digits);
        let version = hex(field(2)?)?;
        let (trace_id, span_id, flags) = (hex(field(32)?)?, hex(field(16)?)?, hex(field(2)?)?);
        // Later versions may add fields, version 0 has no others, and version 255 is invalid.
        let follows = rest.is_empty() || (version > 0 && rest.starts_with('-'));
        if version == 0xff || trace_id == 0 || span_id == 0 || !follows {
            return None;
        }
        let sampled = flags & 1 == 1;
        Some(Parent { trace_id, span_id: span_id as u64, sampled, state: String::new() })
    }
}

/// A number in lower-case hexadecimal digits, 32 at most.
fn hex(digits: &str) -> Option<u128> {
    digits.bytes().try_fold(0, |number, byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(digit))
    })
}

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// A pseudo-random number; good enough for ids, not for keys (SplitMix64).
pub(super) fn next_random() -> u64 {
    let mut state = STATE.get();
    while state == 0 {
        // Without a random seed threads could draw the same ids; the address of a local differs at
        // least.
        let seed = crate::random::bytes().map(u64::from_le_bytes);
        state = seed.unwrap_or(&raw const state as u64);
    }
    state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set(state);
    let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// An id of a span: not 0, which means none.
pub(super) fn new_span_id() -> u64 {
    next_random() | 1
}

/// An id of a trace.
pub(super) fn new_trace_id() -> u128 {
    u128::from(next_random()) << 64 | u128::from(next_random()) | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_parent_is_read() {
        let parent = Parent::parse(VALID).unwrap();
        assert_eq!(parent.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!((parent.span_id, parent.sampled), (0x00f0_67aa_0ba9_02b7, true));
        assert!(!Parent::parse(&VALID.replace("-01", "-00")).unwrap().sampled);
        assert!(Parent::parse(&VALID.replace("-01", "-03")).unwrap().sampled);
        let later = format!("{}-more", VALID.replacen("00", "cc", 1));
        assert!(Parent::parse(&later).is_some(), "a later version may say more");
    }

    #[test]
    fn what_is_no_parent_is_none() {
        for bad in [
            "",
            "00",
            &VALID[..54],
            &format!("{VALID}-more"),
            &VALID.to_uppercase(),
            &VALID.replacen("00", "ff", 1),
            &VALID.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &VALID.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &VALID.replace('-', "_"),
            &VALID.replacen("00-", "0-0", 1),
            &format!("{}x", VALID.replacen("00", "cc", 1)),
        ] {
            assert_eq!(Parent::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn headers_say_it_once_and_a_long_state_is_not_passed_on() {
        let mut headers = HeaderMap::new();
        assert_eq!(Parent::of(&headers), None);
        headers.append("traceparent", VALID.parse().unwrap());
        headers.append("tracestate", "a=1".parse().unwrap());
        headers.append("tracestate", "b=2".parse().unwrap());
        assert_eq!(Parent::of(&headers).unwrap().state, "a=1,b=2");
        headers.append("tracestate", "x".repeat(600).parse().unwrap());
        assert_eq!(Parent::of(&headers).unwrap().state, "");
        headers.append("traceparent", VALID.parse().unwrap());
        assert_eq!(Parent::of(&headers), None);
    }

    #[test]
    fn ids_differ() {
        let ids: std::collections::HashSet<u64> = (0..10_000).map(|_| new_span_id()).collect();
        assert!(ids.len() > 9_990 && !ids.contains(&0));
    }

    proptest! {
        #[test]
        fn any_text_is_a_parent_or_none(text in "(00|cc|ff)-[0-9a-g]{30,33}-[0-9a-f]{15,17}-[0-9a-f]{1,3}.{0,3}") {
            if let Some(parent) = Parent::parse(&text) {
                prop_assert!(parent.trace_id != 0 && parent.span_id != 0);
            }
        }
    }
}
