//! Durations as people write them on a command line.

/// Milliseconds from `500ms`, `10s`, `2m`, `1h` or a bare number of seconds.
///
/// # Errors
/// A sentence: it is none, longer than 30 days, or finer than a millisecond.
pub fn duration_ms(text: &str) -> Result<u64, String> {
    let us = duration_us(text)?;
    if us % 1000 != 0 {
        return Err(format!("{text:?} is finer than a millisecond"));
    }
    Ok(us / 1000)
}

/// Microseconds from the same, and from `50us`.
///
/// # Errors
/// A sentence: it is none, or longer than 30 days.
pub fn duration_us(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim() {
        "us" | "µs" => 1.0,
        "ms" => 1e3,
        "s" | "" => 1e6,
        "m" | "min" => 60e6,
        "h" => 3600e6,
        other => return Err(format!("{other:?} is not a unit of time; use us, ms, s, m or h")),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("{text:?} is not a duration like 500ms or 10s"))?;
    let us = number * factor;
    if us > 30.0 * 86_400e6 {
        return Err(format!("{text:?} is longer than 30 days"));
    }
    Ok(us.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(duration_ms("10"), Ok(10_000));
        assert_eq!(duration_ms("1.5s"), Ok(1_500));
        assert_eq!(duration_ms("2m"), Ok(120_000));
        assert_eq!(duration_us("50us"), Ok(50));
        for wrong in ["", "x", "10 days", "-1s", "9999h"] {
            assert!(duration_us(wrong).is_err(), "{wrong}");
        }
        assert!(duration_ms("50us").is_err());
    }
}
