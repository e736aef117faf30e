//! Figures as people read them: three significant digits, with units.

use super::figures::Metric;

/// What is printed where there is no figure.
pub const NOTHING: &str = "–";

/// A duration with the unit that fits: `812 ns`, `12.3 µs`, `1.25 ms`, `2.50 s`.
pub fn duration(ns: f64) -> String {
    for (unit, length) in [("ns", 1.0), ("µs", 1e3), ("ms", 1e6)] {
        // 999.6 would be rounded to 1 000 of a unit when the next one fits better.
        if ns < 999.5 * length {
            return format!("{} {unit}", three_digits(ns / length));
        }
    }
    format!("{} s", three_digits(ns / 1e9))
}

/// A rate: `12 346/s`, `123/s`, `1.25/s`.
pub fn rate(per_s: f64) -> String {
    if per_s >= 999.5 { format!("{}/s", grouped(per_s)) } else { three_digits(per_s) + "/s" }
}

/// A whole number with its thousands apart: `1 234 567`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates, as intended
pub fn grouped(value: f64) -> String {
    let digits = (value.round().max(0.0) as u64).to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A number of at least 0 to three significant digits, without an exponent
/// between a millionth and a billion.
pub fn three_digits(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value if value >= 0.01 || value == 0.0 => {
            let text = format!("{value:.2}");
            if value == 0.0 { "0".into() } else { text }
        }
        value => format!("{value:.2e}"),
    }
}

/// A share as per cent: `0 %`, `0.012 %`, `12.3 %`.
pub fn share(share: f64) -> String {
    let percent = share * 100.0;
    let text = if percent > 0.0 && percent < 0.01 {
        format!("{percent:.4}").trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        three_digits(percent)
    };
    format!("{text} %")
}

/// How many decimals go with a change of this many per cent.
pub fn decimals(percent: f64) -> usize {
    usize::from(percent.abs() < 9.95)
}

/// A signed number with a true minus sign; 0 has no sign.
pub fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let zero = text.chars().all(|digit| matches!(digit, '0' | '.'));
    let sign = match value {
        _ if zero => "",
        value if value < 0.0 => "−",
        _ => "+",
    };
    format!("{sign}{text}")
}

/// A change given as log ratio, in per cent: `+12 %`, `−3.4 %`; from double on as a factor: `×
/// 2.31`.
pub fn change(log_ratio: f64) -> String {
    let ratio = log_ratio.exp();
    if ratio >= 2.0 {
        return format!("× {}", factor(ratio));
    }
    let percent = (ratio - 1.0) * 100.0;
    format!("{} %", signed(percent, decimals(percent)))
}

/// A factor of at least 1, with an end to its digits: few runs allow anything.
pub fn factor(ratio: f64) -> String {
    if ratio < 999.5 { three_digits(ratio) } else { "over 1 000".into() }
}

/// A range of changes given as log ratios: `−9.8…+9.8 %`, or with a factor where
/// the upper end is tenfold or more: `−95 %…× 18.2`.
pub fn change_range(low: f64, high: f64, decimals: usize) -> String {
    let percent = |log: f64| signed((log.exp() - 1.0) * 100.0, decimals);
    if high.exp() < 10.0 {
        format!("{}…{} %", percent(low), percent(high))
    } else {
        let low = if low.exp() < 10.0 {
            format!("{} %", percent(low))
        } else {
            format!("× {}", factor(low.exp()))
        };
        format!("{low}…× {}", factor(high.exp()))
    }
}

/// A p value: `< 0.001`, `0.012`, `0.35`.
pub fn p_value(p: f64) -> String {
    match p {
        p if p < 0.001 => "< 0.001".into(),
        p if p < 0.1 => format!("{p:.3}"),
        p => format!("{p:.2}"),
    }
}

/// The value of a metric in its unit.
pub fn of_metric(metric: Metric, value: Option<f64>) -> String {
    match (metric, value) {
        (_, None) => NOTHING.into(),
        (Metric::Throughput, Some(value)) => rate(value),
        (Metric::FailureShare, Some(value)) => share(value),
        (_, Some(value)) => duration(value),
    }
}

/// `1 run`, `2 runs`.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{} {}", count, if count == 1 { one } else { many })
}

/// Text from a file or a server without characters that could command a terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        let durations = [0.5, 812.0, 12_345.0, 999_600.0, 1_254_000.0, 2.5e9, 123e9];
        let told: Vec<String> = durations.iter().map(|&ns| duration(ns)).collect();
        assert_eq!(told, ["0.50 ns", "812 ns", "12.3 µs", "1.00 ms", "1.25 ms", "2.50 s", "123 s"]);
        assert_eq!(
            [rate(1_234_567.4), rate(12.34), rate(999.4)],
            ["1 234 567/s", "12.3/s", "999/s"]
        );
        assert_eq!([share(0.0), share(0.123), share(0.000_012)], ["0 %", "12.3 %", "0.0012 %"]);
        let changes = [0.12, -0.034, 0.0, 1.5].map(|share: f64| change(share.ln_1p()));
        assert_eq!(changes, ["+12 %", "−3.4 %", "0.0 %", "× 2.50"]);
        assert_eq!(change_range(-0.1, 0.1, 1), "−9.5…+10.5 %");
        assert_eq!(change_range(-3.0, 2.9, 0), "−95 %…× 18.2");
        assert_eq!(change_range(3.0, 90.0, 0), "× 20.1…× over 1 000");
        assert_eq!([p_value(0.0), p_value(0.0123), p_value(0.354)], ["< 0.001", "0.012", "0.35"]);
        assert_eq!(clean("a\u{1b}[31m\nb"), "a\u{fffd}[31m\u{fffd}b");
    }
}
