//! Durations, lists and ranges as people write them on a command line.

use wellspring_load::invalid::Invalid;

pub(crate) use wellspring_readable::duration::{duration_ms, duration_us};

/// A time limit: at least 1 ms.
pub(crate) fn limit_ms(text: &str) -> Result<u64, Invalid> {
    match duration_ms(text)? {
        0 => Err("the time limit must be at least 1ms".into()),
        ms => Ok(ms),
    }
}

/// A whole number from 1 on: `500`, `10k`, `2M`.
pub(crate) fn many(text: &str) -> Result<u64, Invalid> {
    let (digits, factor) = match text.trim().strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => match text.trim().strip_suffix('M') {
            Some(digits) => (digits, 1_000_000),
            None => (text.trim(), 1),
        },
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("{text:?} is not a whole number like 500, 10k or 2M"))?;
    match number.checked_mul(factor) {
        None | Some(0) => Err("the number must be from 1 to 10^18".into()),
        Some(number) => Ok(number),
    }
}

/// How many connections, users or threads: a whole number from 1 to a million.
pub(crate) fn crowd(text: &str) -> Result<u32, Invalid> {
    let number = many(text)?;
    u32::try_from(number).ok().filter(|number| *number <= 1_000_000).ok_or_else(|| {
        Invalid::new(format!("{number} are more than the 1,000,000 that are allowed"))
    })
}

/// `10ms..50ms`, or one duration for both ends.
pub(crate) fn think_us(text: &str) -> Result<(u64, u64), Invalid> {
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    let (low, high) = (duration_us(low)?, duration_us(high)?);
    if low > high {
        return Err(format!("{text:?}: the first is longer than the second").into());
    }
    Ok((low, high))
}

/// Requests a second: `500`, `2.5`, `10k`, `500/s`.
pub(crate) fn rate_per_s(text: &str) -> Result<f64, Invalid> {
    let bare = text.trim().trim_end_matches("/s");
    let (number, factor) = match bare.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1e3),
        None => (bare, 1.0),
    };
    let rate: f64 =
        number.parse().map_err(|_| format!("{text:?} is not a rate like 500 or 10k"))?;
    let rate = rate * factor;
    if !(0.001..=1e7).contains(&rate) {
        return Err("the rate must be at least 0.001 and at most 10 million a second".into());
    }
    Ok(rate)
}

/// `NAME=VALUE`.
pub(crate) fn pair(text: &str) -> Result<(String, String), Invalid> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| format!("{text:?} is not of the form NAME=VALUE"))?;
    if name.is_empty() {
        return Err(format!("{text:?} has no name before the =").into());
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// `Name: value`.
pub(crate) fn header(text: &str) -> Result<(String, String), Invalid> {
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| "a header is written 'Name: value'; the colon is missing".to_owned())?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_pairs_are_read_as_people_write_them() {
        assert_eq!((many("10k"), many("2M"), crowd("16")), (Ok(10_000), Ok(2_000_000), Ok(16)));
        assert!(limit_ms("0").is_err() && crowd("2M").is_err() && crowd("abc").is_err());
        assert!(many("0").is_err() && many("99999999999999999999").is_err());
        assert_eq!(think_us("10ms..50ms"), Ok((10_000, 50_000)));
        assert_eq!(think_us("20ms"), Ok((20_000, 20_000)));
        assert_eq!(rate_per_s("10k/s"), Ok(10_000.0));
        assert_eq!(header("X-A:  b:c "), Ok(("X-A".into(), "b:c".into())));
        assert_eq!(pair("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(think_us("50ms..10ms").is_err());
        for wrong in ["0", "-1", "x", "NaN", "inf", "1e8", "20000k", "1e-9"] {
            assert!(rate_per_s(wrong).is_err(), "{wrong}");
        }
    }
}
