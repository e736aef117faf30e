//! How figures are written in the sentences of the checks: three digits, a unit, thousands apart.

/// Nanoseconds for people, with three significant digits: `850 ns`, `1.52 ms`, `12.0 s`.
#[must_use]
pub fn duration(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        n if n < 999.5 => return format!("{ns:.0} ns"),
        n if n < 999.5e3 => (ns / 1e3, "µs"),
        n if n < 999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// A number with three significant digits, thousands apart: `0.853`, `12.3`, `1 234`.
#[must_use]
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        n if n < 0.000_5 => "0".to_owned(),
        n if n < 0.999_5 => format!("{value:.3}"),
        n if n < 9.995 => format!("{value:.2}"),
        n if n < 99.95 => format!("{value:.1}"),
        _ => thousands(&format!("{value:.0}")),
    }
}

/// A count, thousands apart: `12 345`.
#[must_use]
pub fn count(n: u64) -> String {
    thousands(&n.to_string())
}

/// A count with its noun in the right number: `1 request`, `12 345 requests`.
#[must_use]
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// A rate: `10 234/s`.
#[must_use]
pub fn rate(per_s: f64) -> String {
    format!("{}/s", three_digits(per_s))
}

/// A share of 1 as a percentage with as many digits as it needs: `97.2 %`, `0.013 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value.abs() {
        0.0 => "0 %".to_owned(),
        // Two digits, however small: what is not nothing is never called 0 %.
        n if n < 0.1 => format!("{value:.*} %", (1.0 - n.log10().floor()) as usize),
        n if n < 1.0 => format!("{value:.2} %"),
        n if n < 100.0 => format!("{value:.1} %"),
        _ => format!("{} %", thousands(&format!("{value:.0}"))),
    }
}

/// The name of a quantile: `p50`, `p99.9`.
#[must_use]
pub fn quantile(q: f64) -> String {
    // Rounded first, so that 0.999 × 100 is not written p99.90000000000001.
    format!("p{}", (q * 1e8).round() / 1e6)
}

fn thousands(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    format!("{sign}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_with_three_digits_and_a_unit() {
        assert_eq!(percent(0.000_004_3), "0.00043 %");
        assert_eq!(percent(0.0), "0 %");
        for (ns, text) in [
            (0.0, "0 ns"),
            (850.0, "850 ns"),
            (999.6, "1.00 µs"),
            (1_520_000.0, "1.52 ms"),
            (15_249.0, "15.2 µs"),
            (999_600_000.0, "1.00 s"),
            (12e9, "12.0 s"),
            (1234e9, "1 234 s"),
        ] {
            assert_eq!(duration(ns), text);
        }
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(count(123), "123");
        assert_eq!(rate(10_234.4), "10 234/s");
        assert_eq!(rate(0.5), "0.500/s");
        assert_eq!(percent(0.972), "97.2 %");
        assert_eq!(percent(0.000_13), "0.013 %");
        assert_eq!(percent(12.5), "1 250 %");
        assert_eq!(three_digits(-1234.0), "-1 234");
        assert_eq!(quantile(0.999), "p99.9");
        assert_eq!(quantile(0.5), "p50");
        assert_eq!(counted(1, "request", "requests"), "1 request");
        assert_eq!(counted(1000, "request", "requests"), "1 000 requests");
    }
}
