//! Numbers as 7-bit groups, lowest first, with the high bit set on all but the last byte; and
//! ascending lists of numbers as gaps.

/// Appends a number: 1 byte below 128, at most 10.
pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a number at `at` and advances `at`; `None` if it is malformed.
pub(super) fn take(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Appends strictly ascending numbers: the first unchanged, then each gap minus one.
pub(super) fn put_ascending(out: &mut Vec<u8>, values: &[u32]) {
    debug_assert!(values.is_sorted_by(|a, b| a < b), "numbers ascend strictly");
    let mut previous = None;
    for &value in values {
        put(out, u64::from(previous.map_or(value, |previous: u32| value - previous - 1)));
        previous = Some(value);
    }
}

/// Reads `count` strictly ascending numbers below `limit` into `out`, which it clears; `None` if
/// they are malformed.
pub(super) fn take_ascending(
    bytes: &[u8],
    at: &mut usize,
    count: usize,
    limit: u32,
    out: &mut Vec<u32>,
) -> Option<()> {
    out.clear();
    let mut least = 0u64;
    for _ in 0..count {
        let value = least.checked_add(take(bytes, at)?)?;
        if value >= u64::from(limit) {
            return None;
        }
        out.push(value as u32);
        least = value + 1;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_read_back(values in prop::collection::vec(any::<u64>().prop_map(|v| v >> (v % 64)), 0..50)) {
            let mut bytes = Vec::new();
            values.iter().for_each(|&value| put(&mut bytes, value));
            let mut at = 0;
            for &value in &values {
                prop_assert_eq!(take(&bytes, &mut at), Some(value));
            }
            prop_assert_eq!(take(&bytes, &mut at), None);
        }

        #[test]
        fn ascending_lists_read_back(values in prop::collection::btree_set(any::<u32>(), 0..200)) {
            let values: Vec<u32> = values.into_iter().filter(|&v| v < u32::MAX).collect();
            let (mut bytes, mut out, mut at) = (Vec::new(), Vec::new(), 0);
            put_ascending(&mut bytes, &values);
            prop_assert!(take_ascending(&bytes, &mut at, values.len(), u32::MAX, &mut out).is_some());
            prop_assert_eq!(&out, &values);
            prop_assert_eq!(at, bytes.len());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), count in 0usize..20) {
            let mut out = Vec::new();
            if take_ascending(&bytes, &mut 0, count, 1000, &mut out).is_some() {
                prop_assert!(out.is_sorted() && out.iter().all(|&v| v < 1000));
            }
        }
    }
}
