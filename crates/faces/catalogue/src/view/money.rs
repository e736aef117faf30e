//! Prices: integers in a currency's smallest unit, and exact decimals as strings. Never binary
//! fractions.

use iso_currency::Flag;
use std::fmt;

/// The greatest price, in smallest units.
pub(crate) const MAX_PRICE_MINOR: u64 = 1_000_000_000_000;

/// A code that the table of the crate no longer has: items were priced in it before XCG replaced
/// it.
const RETIRED: &str = "ANG";
/// In use beside the code that the crate takes for its successor.
const STILL_IN_USE: &str = "VES";

/// A currency by its ISO 4217 code: no fund, metal or code for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Currency {
    code: [u8; 3],
    decimals: u8,
}

impl Currency {
    /// The US dollar.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) const USD: Currency = Currency { code: *b"USD", decimals: 2 };

    /// The currency of a code in upper case, also of one that is no longer in use: prices in it
    /// are in logs.
    pub(crate) fn known(code: &str) -> Option<Currency> {
        let bytes = code.as_bytes().try_into().ok()?;
        if code == RETIRED {
            return Some(Currency { code: bytes, decimals: 2 });
        }
        let listed = iso_currency::Currency::from_code(code)?;
        let is_money = |flag: &Flag| !matches!(flag, Flag::Fund | Flag::Special);
        let decimals = listed.exponent().filter(|_| listed.flags().iter().all(is_money))?;
        Some(Currency { code: bytes, decimals: u8::try_from(decimals).ok()? })
    }

    /// The currency of a code in upper case that is in use.
    pub(crate) fn in_use(code: &str) -> Option<Currency> {
        let listed = iso_currency::Currency::from_code(code)?;
        let is_superseded = |flag: &Flag| matches!(flag, Flag::Superseded(_));
        let is_old = code != STILL_IN_USE && listed.flags().iter().any(is_superseded);
        Currency::known(code).filter(|_| !is_old)
    }

    /// Its code.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.code).unwrap_or_default()
    }

    /// Number of its decimals.
    pub(crate) fn decimals(self) -> usize {
        usize::from(self.decimals)
    }
}

/// What is wrong with a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PriceFault {
    NoDecimal,
    Negative,
    TooManyDecimals(Currency),
    TooLarge,
}

impl fmt::Display for PriceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PriceFault::NoDecimal => f.write_str("must be a decimal such as 19.90"),
            PriceFault::Negative => f.write_str("must not be negative"),
            PriceFault::TooManyDecimals(currency) => {
                let decimals = currency.decimals();
                write!(f, "has more than the {decimals} decimals of {}", currency.as_str())
            }
            PriceFault::TooLarge => {
                write!(f, "must be at most {MAX_PRICE_MINOR} of the currency's smallest unit")
            }
        }
    }
}

/// Parses a price: digits, optionally a point and further digits.
pub(crate) fn parse_price(text: &str, currency: Currency) -> Result<u64, PriceFault> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !are_digits(whole) || !fraction.is_none_or(are_digits) {
        return Err(PriceFault::NoDecimal);
    }
    if digits.len() < text.len() {
        return Err(PriceFault::Negative);
    }
    let decimals = currency.decimals();
    let fraction = fraction.unwrap_or_default().trim_end_matches('0');
    if fraction.len() > decimals {
        return Err(PriceFault::TooManyDecimals(currency));
    }
    let zeros = std::iter::repeat_n(b'0', decimals - fraction.len());
    let mut minor = 0u64;
    for digit in whole.bytes().chain(fraction.bytes()).chain(zeros) {
        minor = minor * 10 + u64::from(digit - b'0');
        if minor > MAX_PRICE_MINOR {
            return Err(PriceFault::TooLarge);
        }
    }
    Ok(minor)
}

/// A price with all decimals of its currency: `19.90`.
pub(crate) fn push_price(out: &mut Vec<u8>, minor: u64, currency: Currency) {
    let decimals = currency.decimals();
    let unit = 10u64.pow(decimals as u32);
    out.extend_from_slice((minor / unit).to_string().as_bytes());
    if decimals > 0 {
        out.extend_from_slice(format!(".{:0decimals$}", minor % unit).as_bytes());
    }
}

/// A price without trailing zeros: `19.9`.
pub(crate) fn push_short_price(out: &mut Vec<u8>, minor: u64, currency: Currency) {
    push_price(out, minor, currency);
    if currency.decimals() > 0 {
        while out.last() == Some(&b'0') {
            out.pop();
        }
        if out.last() == Some(&b'.') {
            out.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn currency(code: &str) -> Currency {
        Currency::in_use(code).unwrap()
    }

    #[test]
    fn prices_are_exact_decimals() {
        let written = |minor, code| {
            let mut out = [Vec::new(), Vec::new()];
            push_price(&mut out[0], minor, currency(code));
            push_short_price(&mut out[1], minor, currency(code));
            out.map(|text| String::from_utf8(text).unwrap())
        };
        assert_eq!(written(1990, "USD"), ["19.90", "19.9"]);
        assert_eq!(written(2000, "EUR"), ["20.00", "20"]);
        assert_eq!(written(0, "EUR"), ["0.00", "0"]);
        assert_eq!(written(500, "JPY"), ["500", "500"]);
        assert_eq!(written(1005, "KWD"), ["1.005", "1.005"]);
    }

    #[test]
    fn codes_in_use_and_codes_in_logs() {
        for (code, decimals) in
            [("XCG", 2), ("EUR", 2), ("VES", 2), ("VED", 2), ("JPY", 0), ("KWD", 3), ("MRU", 2)]
        {
            assert_eq!(currency(code).decimals(), decimals, "{code}");
            assert_eq!(currency(code).as_str(), code);
        }
        for code in ["ANG", "BGN", "HRK"] {
            assert_eq!(Currency::in_use(code), None, "{code}");
            assert_eq!(Currency::known(code).map(Currency::decimals), Some(2), "{code}");
        }
    }

    #[test]
    fn bad_prices_are_told_apart() {
        let usd = currency("USD");
        for text in
            ["", ".", "1.", ".5", "1e3", "+1", " 1", "1,5", "--1", "-", "1.2.3", "0x1", "NaN"]
        {
            assert_eq!(parse_price(text, usd), Err(PriceFault::NoDecimal), "{text}");
        }
        assert_eq!(parse_price("-1", usd), Err(PriceFault::Negative));
        assert_eq!(parse_price("1.999", usd), Err(PriceFault::TooManyDecimals(usd)));
        assert_eq!(
            parse_price("1.5", currency("JPY")).unwrap_err().to_string(),
            "has more than the 0 decimals of JPY"
        );
        assert_eq!(parse_price("1.9900", usd), Ok(199));
        assert_eq!(parse_price("10000000000.01", usd), Err(PriceFault::TooLarge));
        assert_eq!(parse_price(&"9".repeat(400), usd), Err(PriceFault::TooLarge));
        for code in ["usd", "US", "ABC", "", "USD ", "XXX", "XAU", "CHE"] {
            assert_eq!(Currency::known(code), None, "{code}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(minor in 0..=MAX_PRICE_MINOR, code in prop::sample::select(vec!["USD", "JPY", "KWD"])) {
            let (mut long, mut short) = (Vec::new(), Vec::new());
            push_price(&mut long, minor, currency(code));
            push_short_price(&mut short, minor, currency(code));
            for text in [long, short] {
                prop_assert_eq!(parse_price(std::str::from_utf8(&text).unwrap(), currency(code)), Ok(minor));
            }
        }
    }
}
