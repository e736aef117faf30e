//! Figures as they are written: the text keeps the precision that a number would lose.
//!
//! | written | stands for |
//! |---|---|
//! | `12.3 ms` | 12.25 … 12.35 ms: half of the last digit on each side |
//! | `2,124` | 2,123.5 … 2,124.5: commas and underscores part thousands |
//! | `430,000` | 429,500 … 430,500: three zeros at the end are taken as rounded to thousands, six to millions |
//! | `38K`, `1.11B` | 37,500 … 38,500; K, M and B are thousand, million and billion |
//! | `~355` | 5% to either side, or the rounding if that is more |
//! | `1,200 ±50 ms` | 1,150 … 1,250 ms: as given |
//!
//! Being generous here is on purpose: a check trips only if no value a figure may stand for
//! satisfies it.

use crate::check::ratios::{Claimed, Interval};
use crate::invalid::Invalid;

/// The units of times, each with its length in nanoseconds.
const TIMES: [(&str, f64); 10] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("sec", 1e9),
    ("seconds", 1e9),
    ("m", 60e9),
    ("min", 60e9),
];

/// Units that mean "a second" after a rate.
const RATES: [&str; 9] =
    ["", "/s", "req/s", "requests/s", "ops/s", "ops/sec", "op/s", "msg/s", "rps"];

/// A written figure: what it may stand for, and the step between neighbouring figures written like
/// it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// As written.
    pub text: String,
    /// All it may stand for: nanoseconds, events a second, or a count.
    pub value: Interval,
    /// The distance to the next figure that would be written otherwise, in the same unit.
    pub step: f64,
}

/// A number and what follows it.
struct Number<'a> {
    value: f64,
    half: f64,
    unit: &'a str,
}

impl Cell {
    /// A time: a number with a unit.
    ///
    /// # Errors
    /// In words, what is wrong with the text.
    pub fn time(text: &str) -> Result<Self, Invalid> {
        let number = number(text)?;
        let unit = number.unit.to_lowercase();
        let scale = TIMES.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale);
        match scale {
            Some(scale) => Ok(number.cell(text, scale)),
            None if unit.is_empty() => {
                Err(format!("the time {text:?} needs its unit: ns, us, ms or s").into())
            }
            None => {
                Err(format!("the time {text:?} has the unknown unit {unit:?}; use ns, us, ms or s")
                    .into())
            }
        }
    }

    /// A rate: a number, with `/s`, `req/s` or `ops/sec` if you like.
    ///
    /// # Errors
    /// In words, what is wrong with the text.
    pub fn rate(text: &str) -> Result<Self, Invalid> {
        let number = number(text)?;
        if RATES.contains(&number.unit.to_lowercase().as_str()) {
            return Ok(number.cell(text, 1.0));
        }
        Err(format!(
            "the rate {text:?} has the unknown unit {:?}; use /s, req/s or none",
            number.unit
        )
        .into())
    }

    /// A count, exact unless written with `K`, `~` or `±`.
    ///
    /// # Errors
    /// In words, what is wrong with the text.
    pub fn count(text: &str) -> Result<Self, Invalid> {
        let parsed = number(text)?;
        if !parsed.unit.is_empty() {
            return Err(format!("the count {text:?} must be a plain number").into());
        }
        let plain = text.chars().all(|c| c.is_ascii_digit() || c == ',' || c == '_');
        Ok(if plain {
            Cell { text: text.to_owned(), value: Interval::exact(parsed.value), step: 1.0 }
        } else {
            parsed.cell(text, 1.0)
        })
    }
}

/// A claimed ratio: `5.1x`, `+409%`, `24%`. A leading sign is for people and not read.
///
/// # Errors
/// In words, what is wrong with the text.
pub(super) fn claimed(text: &str) -> Result<Claimed, Invalid> {
    let bare = text.trim().trim_start_matches(['+', '-', '−']);
    let number = number(bare)?;
    let cell = number.cell(text, 1.0);
    match number.unit.to_lowercase().as_str() {
        "x" | "×" | "times" => Ok(Claimed::Factor(cell.value)),
        "%" => Ok(Claimed::Share(cell.value.times(0.01))),
        _ => {
            Err(format!("the ratio {text:?} must end with x or %, for example 5.1x or 24%").into())
        }
    }
}

impl Number<'_> {
    fn cell(&self, text: &str, scale: f64) -> Cell {
        let low = (self.value - self.half).max(0.0);
        let value = Interval { low, high: self.value + self.half }.times(scale);
        Cell { text: text.trim().to_owned(), value, step: 2.0 * self.half * scale }
    }
}

fn number(text: &str) -> Result<Number<'_>, Invalid> {
    let trimmed = text.trim();
    let about = trimmed.strip_prefix('~');
    let rest = about.unwrap_or(trimmed).trim_start();
    let end = rest.find(|c: char| !(c.is_ascii_digit() || ".,_".contains(c))).unwrap_or(rest.len());
    let (digits, rest) = rest.split_at(end);
    let plain: String = digits.chars().filter(|c| !",_".contains(*c)).collect();
    let value: f64 = plain.parse().map_err(|_| format!("{text:?} does not begin with a number"))?;
    let last_digit = match plain.split_once('.') {
        Some((_, decimals)) => 10f64.powi(-i32::try_from(decimals.len()).unwrap_or(0)),
        None => 1000f64.powi(thousands_of_zeros(&plain)),
    };
    let (scale, rest) = magnitude(rest.trim_start());
    let (half, rest) = match rest.strip_prefix('±') {
        Some(given) => play(given.trim_start(), text)?,
        None => (last_digit / 2.0, rest),
    };
    let about = about.map_or(0.0, |_| value * 0.05);
    Ok(Number { value: value * scale, half: half.max(about) * scale, unit: rest.trim() })
}

/// The number after `±`, and what follows it.
fn play<'a>(given: &'a str, text: &str) -> Result<(f64, &'a str), Invalid> {
    let end =
        given.find(|c: char| !(c.is_ascii_digit() || ".,_".contains(c))).unwrap_or(given.len());
    let plain: String = given[..end].chars().filter(|c| !",_".contains(*c)).collect();
    let half = plain.parse().map_err(|_| format!("{text:?} needs a number after ±"))?;
    Ok((half, given[end..].trim_start()))
}

/// Groups of three zeros at the end of a whole number, at most all but its first digits.
fn thousands_of_zeros(digits: &str) -> i32 {
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() { 0 } else { ((digits.len() - significant.len()) / 3) as i32 }
}

fn magnitude(rest: &str) -> (f64, &str) {
    // Only a capital, or a k that stands alone: `ms` and `m` are units.
    for (letter, scale) in [('K', 1e3), ('k', 1e3), ('M', 1e6), ('B', 1e9)] {
        if let Some(after) = rest.strip_prefix(letter) {
            return (scale, after.trim_start());
        }
    }
    (1.0, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(value: Interval, low: f64, high: f64) {
        let play = high.abs() * 1e-9;
        assert!((value.low - low).abs() <= play && (value.high - high).abs() <= play, "{value:?}");
    }

    #[test]
    fn the_written_precision_is_kept() {
        near(Cell::time("12.3 ms").unwrap().value, 12.25e6, 12.35e6);
        near(Cell::time("357μs").unwrap().value, 356.5e3, 357.5e3);
        near(Cell::time("1.526589204s").unwrap().value, 1_526_589_203.5, 1_526_589_204.5);
        near(Cell::time("1,200 ±50 ms").unwrap().value, 1_150e6, 1_250e6);
        near(Cell::time("6.77 seconds").unwrap().value, 6.765e9, 6.775e9);
        near(Cell::rate("2,124 ops/sec").unwrap().value, 2_123.5, 2_124.5);
        near(Cell::rate("~355").unwrap().value, 355.0 * 0.95, 355.0 * 1.05);
        near(Cell::rate("~24/s").unwrap().value, 24.0 * 0.95, 24.0 * 1.05);
        near(Cell::rate("430,000").unwrap().value, 429_500.0, 430_500.0);
        near(Cell::rate("634K req/s").unwrap().value, 633_500.0, 634_500.0);
        near(Cell::rate("1.11B msg/s").unwrap().value, 1.105e9, 1.115e9);
        near(Cell::rate("100").unwrap().value, 99.5, 100.5);
        near(Cell::count("50,000").unwrap().value, 50_000.0, 50_000.0);
        assert_eq!(Cell::time("4ms").unwrap().step, 1e6);
        assert_eq!(Cell::rate("0").unwrap().value.low, 0.0, "never below nothing");
    }

    #[test]
    fn claims_are_factors_or_shares() {
        assert!(
            matches!(claimed("5.1x").unwrap(), Claimed::Factor(i) if (i.low - 5.05).abs() < 1e-9)
        );
        assert!(
            matches!(claimed("+1,779%").unwrap(), Claimed::Share(i) if (i.high - 17.795).abs() < 1e-9)
        );
        assert!(
            matches!(claimed("−73 %").unwrap(), Claimed::Share(i) if (i.low - 0.725).abs() < 1e-9)
        );
        assert!(claimed("5.1").unwrap_err().to_string().contains("must end with x or %"));
    }

    #[test]
    fn errors_quote_the_text_and_say_what_to_write() {
        assert!(Cell::time("12.3").unwrap_err().to_string().contains("\"12.3\" needs its unit"));
        assert!(
            Cell::time("12 furlongs")
                .unwrap_err()
                .to_string()
                .contains("unknown unit \"furlongs\"")
        );
        assert!(
            Cell::time("fast").unwrap_err().to_string().contains("does not begin with a number")
        );
        assert!(Cell::rate("12 ms").unwrap_err().to_string().contains("unknown unit \"ms\""));
        assert!(Cell::count("12 users").unwrap_err().to_string().contains("plain number"));
        assert!(Cell::time("5 ± ms").unwrap_err().to_string().contains("number after ±"));
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader(text in ".{0,16}") {
            let _ = (Cell::time(&text), Cell::rate(&text), Cell::count(&text), claimed(&text));
        }

        #[test]
        fn a_figure_contains_what_it_was_rounded_from(value in 0.01f64..1e6, digits in 0usize..4) {
            let cell = Cell::time(&format!("{value:.digits$} ms")).unwrap().value;
            prop_assert!(cell.low <= value * 1e6 * (1.0 + 1e-12) && value * 1e6 <= cell.high * (1.0 + 1e-12), "{cell:?}");
        }
    }
}
