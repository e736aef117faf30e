//! Durations as people write them.

use crate::invalid::Invalid;

/// The units, smallest first, in microseconds. `ms` stands before `s` and `m`.
const UNITS: [(&str, f64); 5] = [("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 60e6), ("h", 3600e6)];
/// The longest duration: a year.
const MOST_US: f64 = 365.0 * 24.0 * 3600e6;

/// A duration in microseconds: `50ms`, `1.5s`, `2m`, `0`.
pub(crate) fn duration_us(text: &str) -> Result<u64, Invalid> {
    let text = text.trim();
    if text == "0" {
        return Ok(0);
    }
    let unit = UNITS.iter().find_map(|(unit, us)| {
        let number = text.strip_suffix(unit)?.trim_end();
        number.ends_with(|c: char| c.is_ascii_digit()).then_some((number, us))
    });
    let value = unit.and_then(|(number, us)| {
        let plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        number.parse::<f64>().ok().filter(|_| plain).map(|n| n * us)
    });
    match value {
        Some(us) if us <= MOST_US => Ok(us.round() as u64),
        Some(_) => Err(format!("{text:?} is longer than a year").into()),
        None => {
            Err(format!("expected a duration like \"50ms\", \"1.5s\" or \"2m\", found {text:?}")
                .into())
        }
    }
}

/// A range of durations in microseconds: `10ms..50ms`, or one alone for both ends.
pub(crate) fn range_us(text: &str) -> Result<(u64, u64), Invalid> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let range = (duration_us(first)?, duration_us(last)?);
    if range.0 > range.1 {
        return Err(format!("{text:?}: the first duration is above the last").into());
    }
    Ok(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_told_apart() {
        assert_eq!(duration_us("50ms"), Ok(50_000));
        assert_eq!(duration_us("7us"), Ok(7));
        assert_eq!(duration_us("1.5 s"), Ok(1_500_000));
        assert_eq!(duration_us("2m"), Ok(120_000_000));
        assert_eq!(duration_us("1h"), Ok(3_600_000_000));
        assert_eq!(duration_us("0"), Ok(0));
        assert_eq!(range_us("10ms..50ms"), Ok((10_000, 50_000)));
        assert_eq!(range_us("1s"), Ok((1_000_000, 1_000_000)));
        for bad in ["", "5", "ms", "-1s", "1e3s", "nans", "1.2.3s", "99999h", "s..ms"] {
            assert!(duration_us(bad).is_err(), "{bad}");
        }
        assert!(range_us("5s..1s").unwrap_err().to_string().contains("above"));
    }
}
