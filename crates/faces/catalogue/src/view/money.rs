//! Prices: integers in a currency's smallest unit, and exact decimals as strings. Never binary
//! fractions.

use std::fmt;

/// The greatest price, in smallest units.
pub(crate) const MAX_PRICE_MINOR: u64 = 1_000_000_000_000;

/// The ISO 4217 codes in use (list one of 2024, without funds and metals).
const CODES: &str = "\
AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY \
COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR \
IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR \
MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD \
SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD \
XOF XPF YER ZAR ZMW ZWG";
/// Those without decimals.
const WHOLE: &str = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF";
/// Those with three decimals.
const THOUSANDTHS: &str = "BHD IQD JOD KWD LYD OMR TND";

/// A currency by its ISO 4217 code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Currency([u8; 3]);

impl Currency {
    /// The US dollar.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) const USD: Currency = Currency(*b"USD");

    /// The currency of a code in upper case.
    pub(crate) fn parse(code: &str) -> Option<Currency> {
        let is_known = CODES.split(' ').any(|known| known == code);
        is_known.then(|| code.as_bytes().try_into().ok().map(Currency))?
    }

    /// Its code.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Number of its decimals.
    pub(crate) fn decimals(self) -> usize {
        let is_in = |codes: &str| codes.split(' ').any(|code| code == self.as_str());
        match () {
            () if is_in(WHOLE) => 0,
            () if is_in(THOUSANDTHS) => 3,
            () => 2,
        }
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
        Currency::parse(code).unwrap()
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
        for code in ["usd", "US", "ABC", "", "USD ", "XXX"] {
            assert_eq!(Currency::parse(code), None, "{code}");
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
