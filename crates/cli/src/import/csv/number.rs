//! Decides which texts are numbers.

/// Integers up to here are themselves in every reader of JSON: 2^53 - 1.
const MAX_EXACT: f64 = 9_007_199_254_740_991.0;

/// Whether a text is a number as JSON writes it, so that reading and writing the number gives
/// this text again. So `1e5`, `1.10`, `007`, `-0`, and integers beyond 2^53 are texts.
pub(super) fn is_printed_number(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    // Most numbers are of this kind.
    if (1..16).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit) {
        return digits[0] != b'0' || text == "0";
    }
    if !is_json_number(text) || text == "-0" {
        return false;
    }
    let Ok(number) = text.parse::<f64>() else { return false };
    let size = number.abs();
    if size > MAX_EXACT {
        return false;
    }
    // As ECMAScript, and with it most writers of JSON.
    text == if size >= 1e-6 { format!("{number}") } else { format!("{number:e}") }
}

/// Whether a text is, exactly as written, a JSON number.
pub(super) fn is_json_number(text: &str) -> bool {
    let bytes = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut at = digits(0);
    if at == 0 || (at > 1 && bytes[0] == b'0') {
        return false;
    }
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return false;
        }
        at += 1 + fraction;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        if exponent == 0 {
            return false;
        }
        at += 1 + sign + exponent;
    }
    at == bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_what_json_would_print() {
        for number in [
            "0",
            "7",
            "-4",
            "10",
            "123456789012345",
            "9007199254740991",
            "-9007199254740991",
            "1.5",
            "-0.25",
            "0.1",
            "19.99",
            "0.001",
            "1.5e-7",
            "123456789.125",
        ] {
            assert!(is_printed_number(number), "{number}");
            let value: serde_json::Value = serde_json::from_str(number).unwrap();
            assert_eq!(value.to_string(), number);
        }
        for text in [
            "",
            "-",
            "-0",
            "00",
            "007",
            "-07",
            "1.0",
            "1.10",
            "1e5",
            "1E+5",
            "12345e67",
            "1e999999",
            "5e22",
            "1e+21",
            "9007199254740992",
            "9007199254740993",
            "12345678901234567890",
            "NaN",
            "Infinity",
            "inf",
            "nan",
            "-inf",
            "+1",
            "1.",
            ".5",
            "0x10",
            "1 ",
            " 1",
            "1,5",
            "true",
            "0.1000000000000000055511151231257827",
            "1_000",
            "1.5e-07",
            "0.0000001",
            "-0.0",
            "0.0",
        ] {
            assert!(!is_printed_number(text), "{text}");
        }
    }

    #[test]
    fn a_json_number_is_what_json_allows() {
        for number in
            ["0", "-0", "10", "1.50", "1e5", "1E+5", "-2.5e-10", "12345678901234567890123"]
        {
            assert!(
                is_json_number(number) && serde_json::from_str::<f64>(number).is_ok(),
                "{number}"
            );
        }
        for text in ["007", "NaN", "+1", "1.", ".5", "1e", "1e+", "-", "1 ", "00", "true", ""] {
            assert!(!is_json_number(text), "{text}");
        }
    }
}
