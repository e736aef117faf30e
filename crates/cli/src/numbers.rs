//! Formats numbers and amounts for messages.

use wellspring_host::clock::push_rfc3339;

/// A number of things: `1 event`, `252,484 events`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// A number with its digits in groups of three: `252,484`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes for people: `31.1 MB`.
pub(crate) fn megabytes(bytes: u64) -> String {
    if bytes < 100_000 {
        return format!("{} bytes", grouped(bytes));
    }
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// The rate per second; `None` for work of less than a second, whose rate is meaningless.
pub(crate) fn rate(number: u64, seconds: f64) -> Option<u64> {
    (seconds >= 1.0).then(|| (number as f64 / seconds) as u64)
}

/// A moment, µs since 1970 UTC, as RFC 3339 has it.
pub(crate) fn moment(us: u64) -> String {
    let mut text = Vec::new();
    push_rfc3339(&mut text, us);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noun_agrees_with_its_number() {
        let indexes = [0, 1, 2, 1_000].map(|number| counted(number, "index", "indexes"));
        assert_eq!(indexes, ["0 indexes", "1 index", "2 indexes", "1,000 indexes"]);
    }

    #[test]
    fn work_of_less_than_a_second_has_no_rate() {
        assert_eq!((rate(136, 0.999), rate(136, 1.0), rate(3, 2.0)), (None, Some(136), Some(1)));
    }

    #[test]
    fn digits_are_grouped_and_bytes_have_a_unit() {
        let texts = [0, 12, 999, 1000, 252_484, 1_000_000].map(grouped);
        assert_eq!(texts, ["0", "12", "999", "1,000", "252,484", "1,000,000"]);
        assert_eq!(megabytes(31_053_850), "31.1 MB");
        assert_eq!(megabytes(1500), "1,500 bytes");
    }
}
