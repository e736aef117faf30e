//! How numbers are written: the same in every report, finding and message.
//!
//! A figure has three significant digits and the unit that keeps it short (`119 µs`, `1.24 ms`).
//! Thousands are grouped by a comma (`12,345`), a percentage has no space (`2.9%`), and a share is
//! `0%` or `100%` only where it is exactly that. Nothing is computed from what these functions
//! return: ratios and changes take the raw values (check C15).

/// Written where a figure cannot be had.
pub const NOT_AVAILABLE: &str = "n/a";

/// A whole number: `12,345`.
pub fn count(number: impl TryInto<u64>) -> String {
    group(&whole(number).to_string())
}

/// A whole number with its noun: `1 request`, `12,345 requests`.
pub fn counted(number: impl TryInto<u64>, one: &str, many: &str) -> String {
    let number = whole(number);
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

fn whole(number: impl TryInto<u64>) -> u64 {
    number.try_into().unwrap_or(u64::MAX)
}

/// Three significant digits, as a plain decimal: `0.0123`, `1.24`, `12.4`, `124`, `12,400`.
#[must_use]
pub fn significant(value: f64) -> String {
    if !value.is_finite() {
        return NOT_AVAILABLE.to_owned();
    }
    // Without its sign, which −0 has and no reader expects.
    let value = if value == 0.0 { 0.0 } else { value };
    group(&format!("{value:.*}", decimals_for_three_digits(value)))
}

/// How many decimals show three significant digits of `value`, its rounding up to the next power of
/// ten included.
fn decimals_for_three_digits(value: f64) -> usize {
    let magnitude = value.abs();
    if magnitude < 1e-9 {
        return 0;
    }
    let enough = |decimals: &usize| (magnitude * 10f64.powi(*decimals as i32)).round() >= 100.0;
    (0..12).find(enough).unwrap_or(12)
}

/// A duration in nanoseconds: `119 ns`, `8.12 ns`, `119 µs`, `1.24 ms`, `12.4 s`.
#[must_use]
pub fn duration(ns: f64) -> String {
    if ns.abs() < 1_000.0 && ns.fract() == 0.0 {
        return format!("{ns} ns");
    }
    in_units(ns, &[("ns", 1e3), ("µs", 1e3), ("ms", 1e3), ("s", f64::INFINITY)])
}

/// A number of bytes in binary units: `812 B`, `1.24 MiB`.
#[must_use]
pub fn bytes(bytes: f64) -> String {
    if bytes.abs() < 1_024.0 && bytes.fract() == 0.0 {
        return format!("{} B", group(&bytes.to_string()));
    }
    let units = ["B", "KiB", "MiB", "GiB"].map(|unit| (unit, 1_024.0));
    in_units(bytes, &[&units[..], &[("TiB", f64::INFINITY)]].concat())
}

/// `value` in the first of `units` in which it rounds to less than one of the next unit. Each unit
/// stands with how many of it make one of the next.
fn in_units(mut value: f64, units: &[(&str, f64)]) -> String {
    if !value.is_finite() {
        return NOT_AVAILABLE.to_owned();
    }
    for (unit, next) in units {
        // 999.6 would be written 1,000: that is the next unit's 1.00.
        if value.abs() < next - 0.5 {
            return format!("{} {unit}", significant(value));
        }
        value /= next;
    }
    NOT_AVAILABLE.to_owned()
}

/// A length of time in nanoseconds: as [`duration`] up to two minutes, then `2 min 5 s`,
/// `1 h 2 min`.
#[must_use]
pub fn elapsed(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match seconds {
        0..=119 => duration(ns as f64),
        120..=3_599 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

/// A rate: `12,345/s`, `81.2/s`. In a column that names the unit, [`significant`] writes it.
#[must_use]
pub fn rate(per_s: f64) -> String {
    format!("{}/s", significant(per_s))
}

/// `part` of `whole` as a percentage with two or more digits: `0.42%`.
#[must_use]
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return NOT_AVAILABLE.to_owned();
    }
    if part == 0 {
        return "0%".to_owned();
    }
    if part == whole {
        return "100%".to_owned();
    }
    let percent = part as f64 / whole as f64 * 100.0;
    if percent < 0.0001 {
        return "<0.0001%".to_owned();
    }
    if percent > 99.9999 && part < whole {
        return ">99.9999%".to_owned();
    }
    // As many decimals as keep two digits of the distance to the nearer end.
    let distance = if part < whole { percent.min(100.0 - percent) } else { percent };
    let decimals = (0..6).find(|d| (distance * 10f64.powi(*d)).round() >= 10.0).unwrap_or(6);
    group(&format!("{percent:.*}%", decimals.max(1) as usize))
}

/// A share of 1 as a percentage with as many digits as it needs: `97.2%`, `0.013%`.
#[must_use]
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    group(&match value.abs() {
        _ if !value.is_finite() => NOT_AVAILABLE.to_owned(),
        0.0 => "0%".to_owned(),
        // Two digits, however small: what is not nothing is never called 0%.
        n if n < 0.1 => format!("{value:.*}%", (1.0 - n.log10().floor()) as usize),
        n if n < 1.0 => format!("{value:.2}%"),
        n if n < 100.0 => format!("{value:.1}%"),
        _ => format!("{value:.0}%"),
    })
}

/// A change to `ratio` times the value before, as a percentage: `+12%`, `−3.4%`; from double on as
/// a factor: `2.31×`.
#[must_use]
pub fn change(ratio: f64) -> String {
    if !ratio.is_finite() {
        return NOT_AVAILABLE.to_owned();
    }
    if ratio >= 2.0 {
        return factor(ratio);
    }
    let percent = (ratio - 1.0) * 100.0;
    format!("{}%", signed(percent, decimals(percent)))
}

/// A range of changes given as ratios: `−9.8…+9.8%`, or with a factor where the upper end is
/// tenfold or more: `−95%…18.2×`.
#[must_use]
pub fn change_range(low: f64, high: f64, decimals: usize) -> String {
    let percent = |ratio: f64| signed((ratio - 1.0) * 100.0, decimals);
    let end = |ratio: f64| {
        if ratio < 10.0 { format!("{}%", percent(ratio)) } else { factor(ratio) }
    };
    if high < 10.0 {
        format!("{}…{}%", percent(low), percent(high))
    } else {
        format!("{}…{}", end(low), end(high))
    }
}

/// How many decimals go with a change of this many per cent.
#[must_use]
pub fn decimals(percent: f64) -> usize {
    usize::from(percent.abs() < 9.95)
}

/// A signed number with a true minus sign; 0 has no sign.
#[must_use]
pub fn signed(value: f64, decimals: usize) -> String {
    let text = group(&format!("{:.decimals$}", value.abs()));
    let zero = text.chars().all(|digit| matches!(digit, '0' | '.'));
    let sign = match value {
        _ if zero => "",
        value if value < 0.0 => "−",
        _ => "+",
    };
    format!("{sign}{text}")
}

/// A factor, with an end to its digits: `1.24×`, `over 10,000×`.
#[must_use]
pub fn factor(ratio: f64) -> String {
    if ratio.is_finite() && ratio >= 9_999.5 {
        return "over 10,000×".to_owned();
    }
    if ratio.is_finite() { format!("{}×", significant(ratio)) } else { NOT_AVAILABLE.to_owned() }
}

/// A p value: `< 0.001`, `0.012`, `0.35`.
#[must_use]
pub fn p_value(p: f64) -> String {
    match p {
        p if p < 0.001 => "< 0.001".into(),
        p if p < 0.1 => format!("{p:.3}"),
        p => format!("{p:.2}"),
    }
}

/// A quantile's name: `p50`, `p99.9`.
#[must_use]
pub fn quantile_name(q: f64) -> String {
    // Rounded first, so that 0.999 × 100 is not written p99.90000000000001.
    format!("p{}", (q * 1e8).round() / 1e6)
}

/// A duration or `n/a`.
#[must_use]
pub fn optional_duration(ns: Option<u64>) -> String {
    optional_mean(ns.map(|ns| ns as f64))
}

/// A mean duration or `n/a`.
#[must_use]
pub fn optional_mean(ns: Option<f64>) -> String {
    ns.map_or_else(|| NOT_AVAILABLE.to_owned(), duration)
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

/// Puts a comma between every three digits left of the point.
fn group(text: &str) -> String {
    let start = text.len() - text.trim_start_matches('-').len();
    let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
    let mut out = String::with_capacity(text.len() + digits / 3);
    for (at, c) in text.char_indices() {
        let left = (start + digits).saturating_sub(at);
        if at > start && left > 0 && left.is_multiple_of(3) {
            out.push(',');
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
            (0.0, "0 ns"),
            (7.0, "7 ns"),
            (0.5, "0.500 ns"),
            (8.123, "8.12 ns"),
            (999.0, "999 ns"),
            (999.6, "1.00 µs"),
            (1_000.0, "1.00 µs"),
            (119_400.0, "119 µs"),
            (999_499.0, "999 µs"),
            (999_500.0, "1.00 ms"),
            (1_237_000.0, "1.24 ms"),
            (9_999_000.0, "10.0 ms"),
            (12_345_678_901.0, "12.3 s"),
            (3_600_000_000_000.0, "3,600 s"),
            (f64::NAN, "n/a"),
            (f64::INFINITY, "n/a"),
        ] {
            assert_eq!(duration(ns), text, "{ns}");
        }
        assert_eq!(elapsed(10_000_000_000), "10.0 s");
        assert_eq!(elapsed(125_000_000_000), "2 min 5 s");
        assert_eq!(elapsed(3_725_000_000_000), "1 h 2 min");
    }

    #[test]
    fn counts_rates_and_bytes_are_grouped() {
        assert_eq!([0_u64, 999, 1_234_567].map(count), ["0", "999", "1,234,567"]);
        assert_eq!(count(3_usize), "3");
        assert_eq!(counted(1, "error", "errors"), "1 error");
        assert_eq!(counted(1_000, "error", "errors"), "1,000 errors");
        let rates = [12_345.4, 999.6, 81.23, 0.5, 0.0].map(rate);
        assert_eq!(rates, ["12,345/s", "1,000/s", "81.2/s", "0.500/s", "0/s"]);
        assert_eq!([significant(-1234.0), significant(-0.0)], ["-1,234", "0"]);
        let sizes = [0.0, 1_023.0, 1_023.9, 1_300_000.0, 1_048_570.0].map(bytes);
        assert_eq!(sizes, ["0 B", "1,023 B", "1.00 KiB", "1.24 MiB", "1.00 MiB"]);
    }

    #[test]
    fn a_share_says_nothing_or_everything_only_when_it_is_so() {
        assert_eq!(share(0, 10), "0%");
        assert_eq!(share(10, 10), "100%");
        assert_eq!(share(0, 0), "n/a");
        assert_eq!(share(42, 10_000), "0.42%");
        assert_eq!(share(1, 3), "33.3%");
        assert_eq!(share(99_997, 100_000), "99.9970%");
        assert_eq!(share(1, 1_000_000_000), "<0.0001%");
        assert_eq!(share(999_999_999, 1_000_000_000), ">99.9999%");
        let shares = [0.0, 0.000_004_3, 0.000_13, 0.972, 12.5, f64::NAN].map(percent);
        assert_eq!(shares, ["0%", "0.00043%", "0.013%", "97.2%", "1,250%", "n/a"]);
    }

    #[test]
    fn changes_and_factors_are_named_right() {
        let changes = [1.12, 0.966, 1.0001, 2.5, f64::INFINITY].map(change);
        assert_eq!(changes, ["+12%", "−3.4%", "0.0%", "2.50×", "n/a"]);
        assert_eq!(change_range(0.905, 1.105, 1), "−9.5…+10.5%");
        assert_eq!(change_range(0.05, 18.17, 0), "−95%…18.2×");
        assert_eq!(change_range(20.09, 1e39, 0), "20.1×…over 10,000×");
        assert_eq!([factor(1.24), factor(1_240.0)], ["1.24×", "1,240×"]);
        assert_eq!([p_value(0.0), p_value(0.0123), p_value(0.354)], ["< 0.001", "0.012", "0.35"]);
    }

    #[test]
    fn the_date_is_the_date() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59:59 UTC"),
            (1_795_246_308, "2026-11-21 07:31:48 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(timestamp(seconds * 1_000_000), text);
        }
    }

    proptest! {
        #[test]
        fn a_duration_read_back_is_within_half_a_per_cent(ns in 1u64..3_600_000_000_000) {
            let text = duration(ns as f64);
            let (number, unit) = text.rsplit_once(' ').unwrap();
            let size = match unit { "ns" => 1.0, "µs" => 1e3, "ms" => 1e6, "s" => 1e9, _ => panic!("{unit}") };
            let read: f64 = number.replace(',', "").parse().unwrap();
            prop_assert!((read * size / ns as f64 - 1.0).abs() <= 0.00501, "{ns}: {text}");
            prop_assert!(unit == "ns" || unit == "s" || number.len() == 4 || number.len() == 3, "{text}");
        }
    }
}
