//! Parses expiry times.

use crate::argument_error::ArgumentError;
use wellspring_host::clock::parse_rfc3339;

/// When something expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Never,
    /// Seconds from now.
    In(u64),
    /// At a moment, as it was written.
    At(String),
}

/// Reads `90d`, `12h`, `never`, a date or a moment.
pub(crate) fn end(text: &str) -> Result<End, ArgumentError> {
    if text == "never" {
        return Ok(End::Never);
    }
    match seconds(text) {
        Ok(0) => Err("it must be later than now".into()),
        Ok(seconds) => Ok(End::In(seconds)),
        Err(_) if parse_rfc3339(text).is_some() => Ok(End::At(text.to_owned())),
        Err(_) => Err(format!(
            "{text:?} is neither a time like 90d, 12h, 30m or 45s, nor a date like 2027-01-31 or a moment like \
             2027-01-31T12:00:00Z, nor never"
        ).into()),
    }
}

/// Reads a number of days, hours, minutes or seconds, as seconds.
pub(crate) fn seconds(text: &str) -> Result<u64, ArgumentError> {
    let wrong = || ArgumentError::new(format!("{text:?} is not a time like 90d, 12h, 30m or 45s"));
    let (digits, unit) = text.split_at(text.len() - text.chars().last().map_or(0, char::len_utf8));
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>());
    let seconds = number.and_then(Result::ok).and_then(|number| number.checked_mul(factor));
    // A hundred years, as on the server.
    seconds.filter(|&seconds| seconds <= 3_155_760_000).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_spans_moments_or_never() {
        assert_eq!(end("90d"), Ok(End::In(90 * 86_400)));
        assert_eq!(
            (end("1s"), end("2m"), end("3h")),
            (Ok(End::In(1)), Ok(End::In(120)), Ok(End::In(10_800)))
        );
        assert_eq!(end("2027-01-31"), Ok(End::At("2027-01-31".into())));
        assert_eq!(
            end("2027-01-31T12:00:00+01:00"),
            Ok(End::At("2027-01-31T12:00:00+01:00".into()))
        );
        assert_eq!(end("never"), Ok(End::Never));
        for bad in
            ["", "0d", "d", "-1d", "+1d", "90", "1.5h", "soon", "1ä", "99999999999d", "2027-13-01"]
        {
            assert!(end(bad).is_err(), "{bad}");
        }
        assert_eq!(seconds("0s"), Ok(0));
    }
}
