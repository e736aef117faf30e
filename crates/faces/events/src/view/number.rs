//! Numbers as JSON writes them: decimals of any length. Comparison is exact; addition is exact as
//! long as 128 bits hold the sum.

use std::cmp::Ordering;

/// Larger exponents are clamped to this, which makes no practical difference.
const MAX_EXPONENT: i64 = 1_000_000_000_000_000_000;
/// Maximum number of decimal places that a sum keeps exactly.
const MAX_SCALE: u32 = 64;
/// Maximum number of extra digits computed for an average before it is rounded.
const MAX_AVERAGE_DIGITS: u32 = 64;

/// One exact number: `0.digits × 10^magnitude`, in the canonical form that equal numbers share
/// (`1`, `1.0` and `10e-1` are equal).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Number {
    negative: bool,
    magnitude: i64,
    /// Without leading and trailing zeros; empty for zero.
    digits: String,
}

impl Number {
    /// Parses a JSON number.
    pub(super) fn parse(text: &str) -> Option<Number> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent_of(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        if whole.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let significant = digits.trim_start_matches('0');
        let leading = digits.len() - significant.len();
        let significant = significant.trim_end_matches('0');
        if significant.is_empty() {
            return Some(Number { negative: false, magnitude: 0, digits: String::new() });
        }
        let magnitude = whole.len() as i64 - leading as i64 + exponent;
        Some(Number { negative, magnitude, digits: significant.to_owned() })
    }

    /// Compares two JSON numbers by value, without allocating in the common case of integers.
    pub(super) fn compare(a: &str, b: &str) -> Option<Ordering> {
        if let (Ok(a), Ok(b)) = (a.parse::<i64>(), b.parse::<i64>()) {
            return Some(a.cmp(&b));
        }
        Some(Number::parse(a)?.cmp(&Number::parse(b)?))
    }

    /// The canonical spelling of equal numbers: plain digits where that is short, otherwise with an
    /// exponent, as ECMAScript prints numbers.
    pub(super) fn text(&self) -> String {
        let sign = if self.negative { "-" } else { "" };
        let (digits, count) = (self.digits.as_str(), self.digits.len() as i64);
        match self.magnitude {
            _ if count == 0 => "0".to_owned(),
            m @ 1..=21 if m >= count => {
                format!("{sign}{digits}{}", "0".repeat((m - count) as usize))
            }
            m @ 1..=21 => {
                let (whole, fraction) = digits.split_at(m as usize);
                format!("{sign}{whole}.{fraction}")
            }
            m @ -5..=0 => format!("{sign}0.{}{digits}", "0".repeat(m.unsigned_abs() as usize)),
            m => {
                let (first, rest) = digits.split_at(1);
                let dot = if rest.is_empty() { "" } else { "." };
                format!("{sign}{first}{dot}{rest}e{:+}", m - 1)
            }
        }
    }

    /// The number as `coefficient × 10^-scale`, if 128 bits and [`MAX_SCALE`] places hold it.
    fn scaled(&self) -> Option<(i128, u32)> {
        if self.digits.is_empty() {
            return Some((0, 0));
        }
        let digits: i128 = self.digits.parse().ok()?;
        let signed = if self.negative { -digits } else { digits };
        let shift = self.magnitude - self.digits.len() as i64;
        if shift >= 0 {
            let power = power_of_ten(u32::try_from(shift).ok()?)?;
            return Some((signed.checked_mul(power)?, 0));
        }
        let scale = u32::try_from(-shift).ok()?;
        (scale <= MAX_SCALE).then_some((signed, scale))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Number) -> Ordering {
        let sign = |n: &Number| match (n.digits.is_empty(), n.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let size = || (self.magnitude, &self.digits).cmp(&(other.magnitude, &other.digits));
        sign(self)
            .cmp(&sign(other))
            .then_with(|| if self.negative { size().reverse() } else { size() })
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Appends a prefix-free byte encoding that sorts like the numbers. `None` if `text` is not a JSON
/// number.
pub(super) fn push_sort_key(text: &str, out: &mut Vec<u8>) -> Option<()> {
    // Integers, the common case, need no parsing: their digits are the key's digits.
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    if unsigned.bytes().all(|b| b.is_ascii_digit())
        && !unsigned.is_empty()
        && !unsigned.starts_with('0')
    {
        let digits = unsigned.trim_end_matches('0');
        push_key_parts(unsigned.len() < text.len(), unsigned.len() as i64, digits, out);
        return Some(());
    }
    let Number { negative, magnitude, digits } = Number::parse(text)?;
    if digits.is_empty() {
        out.push(1);
    } else {
        push_key_parts(negative, magnitude, &digits, out);
    }
    Some(())
}

fn push_key_parts(negative: bool, magnitude: i64, digits: &str, out: &mut Vec<u8>) {
    out.push(if negative { 0 } else { 2 });
    let start = out.len();
    // Flipping the sign bit makes two's complement sort as unsigned bytes.
    out.extend_from_slice(&(magnitude ^ i64::MIN).to_be_bytes());
    out.extend_from_slice(digits.as_bytes());
    out.push(0);
    if negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Digits with an optional sign; clamped, because the data may contain an exponent of a million
/// digits.
fn exponent_of(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse::<i64>().unwrap_or(MAX_EXPONENT).min(MAX_EXPONENT);
    Some(if text.starts_with('-') { -size } else { size })
}

fn power_of_ten(exponent: u32) -> Option<i128> {
    10i128.checked_pow(exponent)
}

/// A running sum: an exact decimal in 128 bits (38 digits between the largest place and the
/// smallest, at most 64 of them after the point), and binary floating point from the first number
/// that does not fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Sum {
    /// `coefficient × 10^-scale`.
    Exact { coefficient: i128, scale: u32 },
    /// Rounded after every addition, in the order of the events.
    Rounded(f64),
}

impl Sum {
    pub(super) const ZERO: Sum = Sum::Exact { coefficient: 0, scale: 0 };

    /// Adds a JSON number. `false` if `text` is not one; then the sum is unchanged.
    pub(super) fn add(&mut self, text: &str) -> bool {
        let scaled = match text.parse::<i64>() {
            Ok(whole) => Some((i128::from(whole), 0)),
            Err(_) => match Number::parse(text) {
                Some(number) => number.scaled(),
                None => return false,
            },
        };
        if let Sum::Exact { coefficient, scale } = *self
            && let Some((term, term_scale)) = scaled
            && let Some(sum) = add_scaled(coefficient, scale, term, term_scale)
        {
            *self = sum;
            return true;
        }
        // The standard parser accepts every JSON number.
        let term = text.parse::<f64>().unwrap_or(f64::NAN);
        *self = Sum::Rounded(self.rounded() + term);
        true
    }

    /// Whether no addition has been rounded yet.
    pub(super) fn is_exact(&self) -> bool {
        matches!(self, Sum::Exact { .. })
    }

    fn rounded(self) -> f64 {
        match self {
            Sum::Exact { coefficient, scale } => {
                decimal_text(coefficient, scale).parse().unwrap_or(f64::NAN)
            }
            Sum::Rounded(value) => value,
        }
    }

    /// Whether JSON can represent it: false once floating point has overflowed.
    pub(super) fn is_finite(self) -> bool {
        matches!(self, Sum::Exact { .. }) || self.rounded().is_finite()
    }

    /// The sum as a JSON number.
    pub(super) fn text(self) -> String {
        match self {
            Sum::Exact { coefficient, scale } => decimal_text(coefficient, scale),
            Sum::Rounded(value) => float_text(value),
        }
    }

    /// The sum divided by `count` as a JSON number: exact if its decimal ends
    /// within 38 digits, otherwise the nearest binary floating-point number.
    pub(super) fn average_text(self, count: u64) -> String {
        let (coefficient, scale) = match self {
            Sum::Exact { coefficient, scale } => (coefficient, scale),
            Sum::Rounded(value) => return float_text(value / count as f64),
        };
        let divisor = i128::from(count.max(1));
        let (mut quotient, mut rest) = (coefficient / divisor, coefficient % divisor);
        let mut places = scale;
        while rest != 0 && places < scale + MAX_AVERAGE_DIGITS {
            let digit = rest * 10 / divisor;
            let Some(longer) = quotient.checked_mul(10).and_then(|q| q.checked_add(digit)) else {
                break;
            };
            (quotient, rest, places) = (longer, rest * 10 % divisor, places + 1);
        }
        let text = decimal_text(quotient, places);
        if rest == 0 { text } else { float_text(text.parse().unwrap_or(f64::NAN)) }
    }
}

fn add_scaled(a: i128, a_scale: u32, b: i128, b_scale: u32) -> Option<Sum> {
    let scale = a_scale.max(b_scale);
    let align = |value: i128, from: u32| match value {
        0 => Some(0),
        _ => value.checked_mul(power_of_ten(scale - from)?),
    };
    let coefficient = align(a, a_scale)?.checked_add(align(b, b_scale)?)?;
    Some(Sum::Exact { coefficient, scale })
}

/// `coefficient × 10^-scale` in plain digits, without trailing zeros.
fn decimal_text(coefficient: i128, scale: u32) -> String {
    let sign = if coefficient < 0 { "-" } else { "" };
    let scale = scale as usize;
    let digits = format!("{:0>width$}", coefficient.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}

/// The shortest decimal that reads back as `value`; `null` where JSON has no number for it.
fn float_text(value: f64) -> String {
    serde_json::to_string(&value).unwrap_or_else(|_| "null".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(terms: &[&str]) -> Sum {
        let mut sum = Sum::ZERO;
        for term in terms {
            assert!(sum.add(term), "{term}");
        }
        sum
    }

    #[test]
    fn sums_of_decimals_are_exact() {
        assert_eq!(sum(&["0.1", "0.2"]).text(), "0.3");
        assert_eq!(sum(&["0.5", "0.50", "1e0"]).text(), "2");
        assert_eq!(sum(&["-0.05", "-1"]).text(), "-1.05");
        assert_eq!(
            sum(&["9223372036854775807", "9223372036854775807"]).text(),
            "18446744073709551614"
        );
        assert_eq!(sum(&["1e30", "1", "-1E+30"]).text(), "1");
        assert_eq!(sum(&["-0", "-0.0e5"]).text(), "0");
        assert_eq!(sum(&["1e-64"]).text(), format!("0.{}1", "0".repeat(63)));
    }

    #[test]
    fn what_does_not_fit_is_rounded_and_overflow_is_told() {
        assert_eq!(sum(&["1e40", "1"]).text(), "1e+40");
        assert_eq!(sum(&["1e-65", "2e-65"]), Sum::Rounded(1e-65 + 2e-65));
        assert!(sum(&["1e308", "1"]).is_finite());
        assert!(!sum(&["1e308", "1e308"]).is_finite());
        assert!(!sum(&["1e999"]).is_finite());
        let max = i128::MAX.to_string();
        assert_eq!(sum(&[&max]).text(), max);
        assert_eq!(sum(&[&max, "1"]), Sum::Rounded(2f64.powi(127)));
    }

    #[test]
    fn averages_end_exactly_or_are_the_nearest_float() {
        assert_eq!(sum(&["0.1", "0.2"]).average_text(2), "0.15");
        assert_eq!(sum(&["6"]).average_text(3), "2");
        assert_eq!(sum(&["1"]).average_text(3), (1.0f64 / 3.0).to_string());
        assert_eq!(sum(&["-2"]).average_text(3), (-2.0f64 / 3.0).to_string());
        assert_eq!(sum(&["1"]).average_text(u64::MAX), float_text(1.0 / u64::MAX as f64));
    }

    #[test]
    fn equal_numbers_share_one_text() {
        for (text, same) in [
            ("1.0", "1"),
            ("10e-1", "1"),
            ("-0.0", "0"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("12e19", "120000000000000000000"),
            ("1.5e21", "1.5e+21"),
            ("-12.50", "-12.5"),
            ("1e99999999999999999999999", "1e+1000000000000000000"),
        ] {
            assert_eq!(Number::parse(text).unwrap().text(), same, "{text}");
        }
        for bad in ["", "-", ".5", "1e", "1e+-2", "x", "1.2.3", "NaN"] {
            assert_eq!(Number::parse(bad), None, "{bad}");
        }
    }

    fn any_number() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<i64>().prop_map(|n| n.to_string()),
            (-2000i32..2000, 0u32..4).prop_map(|(n, e)| format!("{n}e-{e}")),
            "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?",
        ]
    }

    proptest! {
        #[test]
        fn the_order_agrees_with_floats_and_with_the_sort_key(a in any_number(), b in any_number()) {
            let (x, y) = (Number::parse(&a).unwrap(), Number::parse(&b).unwrap());
            let order = x.cmp(&y);
            prop_assert_eq!(Number::compare(&a, &b), Some(order));
            let floats = a.parse::<f64>().unwrap().partial_cmp(&b.parse::<f64>().unwrap()).unwrap();
            prop_assert!(floats == Ordering::Equal || floats == order);
            let (mut i, mut j) = (Vec::new(), Vec::new());
            push_sort_key(&a, &mut i).unwrap();
            push_sort_key(&b, &mut j).unwrap();
            prop_assert_eq!(i.cmp(&j), order);
        }

        #[test]
        fn one_text_reads_back_as_the_same_number(a in any_number()) {
            let number = Number::parse(&a).unwrap();
            prop_assert_eq!(Number::parse(&number.text()), Some(number));
        }

        #[test]
        fn scaled_sums_agree_with_whole_ones(terms in prop::collection::vec(-10_000_000i64..10_000_000, 0..50)) {
            let texts: Vec<String> = terms.iter().map(|t| decimal_text(i128::from(*t), 3)).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let total: i128 = terms.iter().map(|t| i128::from(*t)).sum();
            prop_assert_eq!(sum(&texts).text(), decimal_text(total, 3));
        }
    }
}
