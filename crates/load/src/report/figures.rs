//! How numbers are written, the same in every report.
//!
//! Durations have three significant digits and the unit that keeps them short
//! (`119 µs`, `1.24 ms`); digits are grouped by a space (`12 345`); shares never
//! round to 0 % or 100 % when they are not. Nothing is computed from what these
//! functions return: ratios and changes take the raw values (check C15).

use crate::histogram::Histogram;

/// Written where a figure cannot be had.
pub const NOT_AVAILABLE: &str = "n/a";

/// The quantiles reports list, in rising order.
pub const QUANTILES: [f64; 7] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// A whole number with its digits grouped: `12 345`.
#[must_use]
pub fn count(number: u64) -> String {
    group(&number.to_string())
}

/// A whole number with the right word behind it: `1 request`, `2 requests`.
#[must_use]
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Three significant digits, as a plain decimal: `0.0123`, `1.24`, `12.4`, `124`, `12 400` as it
/// is.
#[must_use]
pub fn significant(value: f64) -> String {
    if !value.is_finite() {
        return NOT_AVAILABLE.to_owned();
    }
    let text = format!("{value:.*}", decimals_for_three_digits(value));
    group(&text)
}

/// How many decimals show three significant digits of `value`, its rounding up to the next power of
/// ten included.
fn decimals_for_three_digits(value: f64) -> usize {
    let magnitude = value.abs();
    if magnitude < 1e-9 {
        return 0;
    }
    (0..12)
        .find(|decimals| {
            let scale = 10f64.powi(*decimals as i32);
            (magnitude * scale).round() >= 100.0
        })
        .unwrap_or(12)
}

/// A duration in nanoseconds: `119 ns`, `119 µs`, `1.24 ms`, `12.4 s`.
#[must_use]
pub fn duration(ns: u64) -> String {
    if ns < 1_000 { format!("{ns} ns") } else { mean_duration(ns as f64) }
}

/// A duration that need not be a whole number of nanoseconds, such as a mean: `8.12 ns`, `1.24 ms`.
#[must_use]
pub fn mean_duration(ns: f64) -> String {
    if !ns.is_finite() {
        return NOT_AVAILABLE.to_owned();
    }
    if ns == 0.0 {
        return "0 ns".to_owned();
    }
    let units = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6)];
    for (unit, size) in units {
        let value = ns / size;
        // 999.6 would be written 1000: that is the next unit's 1.00.
        if value.abs() < 999.5 {
            return format!("{} {unit}", significant(value));
        }
    }
    format!("{} s", significant(ns / 1e9))
}

/// A length of time for people, in nanoseconds: as [`duration`] up to two minutes, then `2 min 5
/// s`, `1 h 2 min`.
#[must_use]
pub fn elapsed(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match seconds {
        0..=119 => duration(ns),
        120..=3_599 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

/// A rate: `12 345/s`, `81.2/s`.
#[must_use]
pub fn rate(per_s: f64) -> String {
    format!("{}/s", bare_rate(per_s))
}

/// A rate without its unit, for columns that name it.
#[must_use]
pub fn bare_rate(per_s: f64) -> String {
    if !per_s.is_finite() {
        return NOT_AVAILABLE.to_owned();
    }
    if per_s == 0.0 { "0".to_owned() } else { significant(per_s) }
}

/// A number of bytes in binary units: `812 B`, `1.24 MiB`.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    if bytes < 1_024 { format!("{bytes} B") } else { mean_bytes(bytes as f64) }
}

/// A number of bytes that need not be whole, such as a rate of them.
#[must_use]
pub fn mean_bytes(bytes: f64) -> String {
    if !bytes.is_finite() {
        return NOT_AVAILABLE.to_owned();
    }
    if bytes == 0.0 {
        return "0 B".to_owned();
    }
    let mut value = bytes;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1_023.5 {
            return format!("{} {unit}", significant(value));
        }
        value /= 1_024.0;
    }
    format!("{} TiB", significant(value))
}

/// `part` of `whole` in per cent, two or more digits: `0.42 %`. Says `0 %` and `100 %` only where
/// it is exactly that.
#[must_use]
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return NOT_AVAILABLE.to_owned();
    }
    if part == 0 {
        return "0 %".to_owned();
    }
    if part == whole {
        return "100 %".to_owned();
    }
    let percent = part as f64 / whole as f64 * 100.0;
    if percent < 0.0001 {
        return "<0.0001 %".to_owned();
    }
    if percent > 99.9999 && part < whole {
        return ">99.9999 %".to_owned();
    }
    // As many decimals as keep two digits of the distance to the nearer end.
    let distance = if part < whole { percent.min(100.0 - percent) } else { percent };
    let decimals = (0..6).find(|d| (distance * 10f64.powi(*d)).round() >= 10.0).unwrap_or(6);
    group(&format!("{percent:.*} %", decimals.max(1) as usize))
}

/// A share from 0 to 1 in per cent, one decimal: `43.1 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1} %", share * 100.0) } else { NOT_AVAILABLE.to_owned() }
}

/// How much `new` differs from `old`, both raw: `+12.3 %`, `−3.1 %`.
#[must_use]
pub fn change(new: f64, old: f64) -> String {
    let change = (new / old - 1.0) * 100.0;
    if !change.is_finite() {
        return NOT_AVAILABLE.to_owned();
    }
    let text = group(&format!("{:.1} %", change.abs()));
    match (text.as_str(), change > 0.0) {
        ("0.0 %", _) => "±0.0 %".to_owned(),
        (_, true) => format!("+{text}"),
        (_, false) => format!("−{text}"),
    }
}

/// `new` over `old`, both raw: `1.24×`.
#[must_use]
pub fn ratio(new: f64, old: f64) -> String {
    let ratio = new / old;
    if ratio.is_finite() { format!("{}×", bare_rate(ratio)) } else { NOT_AVAILABLE.to_owned() }
}

/// Names how the rate `new_per_s` compares with `old_per_s`: `speed-up 1.90×`
/// where it is higher, `slower 1.90×` where it is lower (then old over new),
/// `equal` where the two digits behind the point would say 1.00.
#[must_use]
pub fn pace(new_per_s: f64, old_per_s: f64) -> String {
    let ratio = new_per_s / old_per_s;
    if !ratio.is_finite() || ratio <= 0.0 {
        return NOT_AVAILABLE.to_owned();
    }
    if (ratio.max(1.0 / ratio) - 1.0) < 0.005 {
        return "equal".to_owned();
    }
    if ratio > 1.0 {
        format!("speed-up {}×", significant(ratio))
    } else {
        format!("slower {}×", significant(1.0 / ratio))
    }
}

/// As [`pace`] for two durations, of which the shorter is the faster.
#[must_use]
pub fn pace_of_durations(new_ns: f64, old_ns: f64) -> String {
    pace(1.0 / new_ns, 1.0 / old_ns)
}

/// A quantile's name: `p50`, `p99.9`.
#[must_use]
pub fn quantile_name(q: f64) -> String {
    let text = format!("{:.4}", q * 100.0);
    format!("p{}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// How many values in all quantile `q` needs before it may be printed (check C4).
#[must_use]
pub fn values_needed(q: f64) -> u64 {
    if q >= 1.0 {
        return 0;
    }
    // The same hair of tolerance as `Histogram::quantile_supported`.
    ((10.0 - 1e-6) / (1.0 - q)).ceil() as u64
}

/// A quantile as printed, or why it is not: `1.24 ms`, `n/a (needs 812 more)`.
#[must_use]
pub fn quantile(histogram: &Histogram, q: f64) -> String {
    match histogram.printable_quantile_ns(q) {
        Some(ns) => duration(ns),
        None => {
            let more = values_needed(q).saturating_sub(histogram.count());
            format!("{NOT_AVAILABLE} (needs {} more)", count(more))
        }
    }
}

/// A quantile as printed in a narrow cell: `1.24 ms` or `n/a`.
#[must_use]
pub fn short_quantile(histogram: &Histogram, q: f64) -> String {
    histogram.printable_quantile_ns(q).map_or_else(|| NOT_AVAILABLE.to_owned(), duration)
}

/// A duration or `n/a`.
#[must_use]
pub fn optional_duration(ns: Option<u64>) -> String {
    ns.map_or_else(|| NOT_AVAILABLE.to_owned(), duration)
}

/// A mean duration or `n/a`.
#[must_use]
pub fn optional_mean(ns: Option<f64>) -> String {
    ns.map_or_else(|| NOT_AVAILABLE.to_owned(), mean_duration)
}

/// A point in time: `2026-11-21 07:31:48 UTC`. The date by the method of
/// H. Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`.
#[must_use]
pub fn timestamp(unix_us: u64) -> String {
    let seconds = unix_us / 1_000_000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

/// Text from outside made harmless for a terminal or a page: control characters
/// and the marks that turn the direction of writing become `\u{fffd}`.
#[must_use]
pub fn visible(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if hidden(c) { '\u{fffd}' } else { c }).collect()
}

/// Puts a space between every three digits left of the point.
fn group(text: &str) -> String {
    let digits = text.trim_start_matches('-').bytes().take_while(u8::is_ascii_digit).count();
    let start = text.len() - text.trim_start_matches('-').len();
    let mut out = String::with_capacity(text.len() + digits / 3);
    for (at, c) in text.char_indices() {
        let left = (start + digits).saturating_sub(at);
        if at > start && left > 0 && left.is_multiple_of(3) {
            out.push(' ');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_have_three_digits_and_the_shortest_unit() {
        for (ns, text) in [
            (0, "0 ns"),
            (7, "7 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (119_400, "119 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (1_237_000, "1.24 ms"),
            (9_999_000, "10.0 ms"),
            (12_345_678_901, "12.3 s"),
            (3_600_000_000_000, "3 600 s"),
        ] {
            assert_eq!(duration(ns), text, "{ns}");
        }
        assert_eq!(mean_duration(8.123), "8.12 ns");
        assert_eq!(mean_duration(f64::NAN), "n/a");
        assert_eq!(elapsed(10_000_000_000), "10.0 s");
        assert_eq!(elapsed(125_000_000_000), "2 min 5 s");
        assert_eq!(elapsed(3_725_000_000_000), "1 h 2 min");
    }

    #[test]
    fn counts_rates_and_bytes_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(counted(1, "error", "errors"), "1 error");
        assert_eq!(counted(1_000, "error", "errors"), "1 000 errors");
        assert_eq!(rate(12_345.4), "12 345/s");
        assert_eq!(rate(999.6), "1 000/s");
        assert_eq!(rate(81.23), "81.2/s");
        assert_eq!(rate(0.0), "0/s");
        assert_eq!(bytes(1_023), "1023 B");
        assert_eq!(bytes(1_300_000), "1.24 MiB");
        assert_eq!(bytes(1_048_570), "1.00 MiB");
    }

    #[test]
    fn a_share_says_nothing_or_everything_only_when_it_is_so() {
        assert_eq!(share(0, 10), "0 %");
        assert_eq!(share(10, 10), "100 %");
        assert_eq!(share(0, 0), "n/a");
        assert_eq!(share(42, 10_000), "0.42 %");
        assert_eq!(share(1, 3), "33.3 %");
        assert_eq!(share(99_997, 100_000), "99.9970 %");
        assert_eq!(share(1, 1_000_000_000), "<0.0001 %");
        assert_eq!(share(999_999_999, 1_000_000_000), ">99.9999 %");
    }

    #[test]
    fn changes_ratios_and_paces_are_named_right() {
        assert_eq!(change(112.34, 100.0), "+12.3 %");
        assert_eq!(change(96.9, 100.0), "−3.1 %");
        assert_eq!(change(100.01, 100.0), "±0.0 %");
        assert_eq!(change(1.0, 0.0), "n/a");
        assert_eq!(ratio(124.0, 100.0), "1.24×");
        assert_eq!(pace(190.0, 100.0), "speed-up 1.90×");
        assert_eq!(pace(100.0, 190.0), "slower 1.90×");
        assert_eq!(pace(100.0, 100.3), "equal");
        assert_eq!(pace(0.0, 1.0), "n/a");
        assert_eq!(pace_of_durations(1.0, 2.0), "speed-up 2.00×");
    }

    #[test]
    fn what_is_missing_for_a_quantile_is_told() {
        let mut histogram = Histogram::new();
        histogram.record_n(1_240_000, 1_000);
        assert_eq!(quantile(&histogram, 0.99), "1.24 ms");
        assert_eq!(quantile(&histogram, 0.999), "n/a (needs 9 000 more)");
        assert_eq!(short_quantile(&histogram, 0.999), "n/a");
        assert_eq!(quantile_name(0.5), "p50");
        assert_eq!(quantile_name(0.999), "p99.9");
        assert_eq!(quantile_name(0.9999), "p99.99");
    }

    #[test]
    fn the_date_is_the_date() {
        assert_eq!(timestamp(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(timestamp(951_782_400_000_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(timestamp(1_795_246_308_000_000), "2026-11-21 07:31:48 UTC");
    }

    #[test]
    fn escape_sequences_do_not_reach_a_terminal() {
        assert_eq!(visible("a\x1b[2Jb\nc\u{202e}d µ"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d µ");
    }

    proptest! {
        #[test]
        fn a_duration_read_back_is_within_half_a_per_cent(ns in 1u64..3_600_000_000_000) {
            let text = duration(ns);
            let (number, unit) = text.rsplit_once(' ').unwrap();
            let size = match unit { "ns" => 1.0, "µs" => 1e3, "ms" => 1e6, "s" => 1e9, _ => panic!("{unit}") };
            let read: f64 = number.replace(' ', "").parse().unwrap();
            prop_assert!((read * size / ns as f64 - 1.0).abs() <= 0.00501, "{ns}: {text}");
            prop_assert!(unit == "ns" || unit == "s" || number.len() == 4 || number.len() == 3, "{text}");
        }

        #[test]
        fn the_number_needed_is_the_first_that_suffices(q in prop::sample::select(QUANTILES.to_vec())) {
            let mut histogram = Histogram::new();
            histogram.record_n(1, values_needed(q) - 1);
            prop_assert!(!histogram.quantile_supported(q));
            histogram.record(1);
            prop_assert!(histogram.quantile_supported(q));
        }
    }
}
