//! Host names as people write them in a URL: which are plausible, and the one
//! form in which two of them are compared.
//!
//! A browser maps a name before it looks it up (WHATWG URL standard, "host
//! parsing"; Unicode TS 46): `ｅxample.com`, `EXAMPLE.com.` and `ex%61mple.com`
//! all reach `example.com`, and `http://2130706433/` reaches 127.0.0.1. A list of
//! hosts that compares text can be walked around with each of these. So a name
//! that would be mapped by more than its case is refused here, with advice; what
//! is left needs lower case and Punycode only.

// Addresses are data: nothing of `net` that opens a socket is used in this crate.
use core::net::{Ipv4Addr, Ipv6Addr};
use std::fmt;

/// Most bytes of a host name, without a dot at its end (RFC 1035).
pub const MAX_HOST_BYTES: usize = 253;
/// Most bytes between two dots of a host name (RFC 1035).
pub const MAX_LABEL_BYTES: usize = 63;

/// Why a text is no host name that a link may lead to.
#[derive(Debug, Copy, Clone, Eq, PartialEq)]
pub enum HostFault {
    /// There is none.
    Empty,
    /// More than [`MAX_HOST_BYTES`].
    TooLong,
    /// Nothing, or more than [`MAX_LABEL_BYTES`], between two dots.
    Label,
    /// A character that no host name holds.
    Character(char),
    /// A character that browsers would replace by another.
    Replaced(char),
    /// It looks like an address, and is not one in the usual form.
    Address,
}

impl fmt::Display for HostFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostFault::Empty => write!(f, "has no host; write one, as in http://example.com/"),
            HostFault::TooLong => write!(
                f,
                "has a host of more than {MAX_HOST_BYTES} bytes, which no name server knows"
            ),
            HostFault::Label => write!(
                f,
                "has a host with an empty part or one of over {MAX_LABEL_BYTES} bytes between its dots"
            ),
            HostFault::Character('%') => {
                write!(f, "has an escape (%) in its host; write the character itself")
            }
            HostFault::Character(found) => write!(
                f,
                "has {found:?} in its host; a host has letters, digits, '-', '.' and '_' (others: write its xn-- form)"
            ),
            HostFault::Replaced(found) => write!(
                f,
                "has {found:?} in its host, which browsers replace by another character; write that one, or the xn-- form"
            ),
            HostFault::Address => write!(
                f,
                "has a host like an IP address that is not valid; write it as 192.0.2.1 or [2001:db8::1]"
            ),
        }
    }
}

impl std::error::Error for HostFault {}

/// Tells whether `host` is plausible: a name (a dot may end it), an IPv4 address
/// in dotted form, or an IPv6 address in brackets.
///
/// # Errors
/// [`HostFault`], the first that is found.
pub fn check(host: &str) -> Result<(), HostFault> {
    if let Some(address) = host.strip_prefix('[') {
        let parsed = address.strip_suffix(']').and_then(|text| text.parse::<Ipv6Addr>().ok());
        return parsed.map(|_| ()).ok_or(HostFault::Address);
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    if name.is_empty() {
        return Err(HostFault::Empty);
    }
    for found in name.chars() {
        if !(found.is_ascii_alphanumeric() || matches!(found, '-' | '.' | '_')) {
            check_foreign(found)?;
        }
    }
    if name.len() > MAX_HOST_BYTES {
        return Err(HostFault::TooLong);
    }
    if name.split('.').any(|label| label.is_empty() || label.len() > MAX_LABEL_BYTES) {
        return Err(HostFault::Label);
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    if is_number(last) && name.parse::<Ipv4Addr>().is_err() {
        return Err(HostFault::Address);
    }
    Ok(())
}

/// A character outside ASCII must be a letter or digit that is left as it is.
fn check_foreign(found: char) -> Result<(), HostFault> {
    if found.is_ascii() || !found.is_alphanumeric() {
        return Err(HostFault::Character(found));
    }
    let inside = REPLACED.partition_point(|&bound| bound <= u32::from(found)) % 2 == 1;
    if inside { Err(HostFault::Replaced(found)) } else { Ok(()) }
}

/// Whether browsers take a name with this last part for an IPv4 address (WHATWG URL, "ends in a
/// number").
fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    let digits = label.bytes().all(|byte| byte.is_ascii_digit());
    digits || hex.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The form of a plausible host in which it is compared: lower case, labels
/// outside ASCII in Punycode, no dot at the end; an IPv6 address as RFC 5952
/// writes it, in brackets, or as the IPv4 address it maps.
///
/// A host that [`check`] refuses gives some text too, which is of no use.
pub fn canonical(host: &str) -> String {
    if let Some(address) = host.strip_prefix('[') {
        let address = address.strip_suffix(']').unwrap_or(address);
        return match address.parse::<Ipv6Addr>() {
            Ok(address) => match address.to_ipv4_mapped() {
                Some(mapped) => mapped.to_string(),
                None => format!("[{address}]"),
            },
            Err(_) => host.to_ascii_lowercase(),
        };
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let mut out = String::with_capacity(name.len() + 8);
    for label in name.split('.') {
        if !out.is_empty() {
            out.push('.');
        }
        if label.is_ascii() {
            out.extend(label.bytes().map(|byte| char::from(byte.to_ascii_lowercase())));
        } else {
            let lower: Vec<char> = label.chars().flat_map(char::to_lowercase).collect();
            push_punycode(&lower, &mut out);
        }
    }
    out
}

/// Appends a label as `xn--` and Punycode: RFC 3492, section 6.3, with its parameters.
fn push_punycode(label: &[char], out: &mut String) {
    const SKEW: u32 = 38;
    const DAMP: u32 = 700;
    const TMIN: u32 = 1;
    const TMAX: u32 = 26;
    const BASE: u32 = 36;
    out.push_str("xn--");
    let basic = label.iter().filter(|letter| letter.is_ascii()).count() as u32;
    out.extend(label.iter().filter(|letter| letter.is_ascii()));
    if basic > 0 {
        out.push('-');
    }
    let (mut next, mut delta, mut bias, mut handled) = (128u32, 0u32, 72u32, basic);
    // The digits a-z, then 0-9: those of base 36 turned by ten.
    let digit = |value: u32| char::from_digit((value + 10) % BASE, BASE).unwrap_or('a');
    // A label has at most 63 bytes when it is plausible; the wrapping is for those that are not.
    while (handled as usize) < label.len() {
        let later = label.iter().map(|&letter| u32::from(letter)).filter(|&code| code >= next);
        let least = later.min().unwrap_or(next);
        delta = delta.wrapping_add((least - next).wrapping_mul(handled + 1));
        next = least;
        for code in label.iter().map(|&letter| u32::from(letter)) {
            delta = delta.wrapping_add(u32::from(code < next));
            if code != next {
                continue;
            }
            let mut rest = delta;
            let mut weight = BASE;
            loop {
                let threshold = weight.saturating_sub(bias).clamp(TMIN, TMAX);
                if rest < threshold {
                    break;
                }
                out.push(digit(threshold + (rest - threshold) % (BASE - threshold)));
                rest = (rest - threshold) / (BASE - threshold);
                weight += BASE;
            }
            out.push(digit(rest));
            delta /= if handled == basic { DAMP } else { 2 };
            delta += delta / (handled + 1);
            let mut steps = 0;
            while delta > ((BASE - TMIN) * TMAX) / 2 {
                delta /= BASE - TMIN;
                steps += BASE;
            }
            bias = steps + (BASE - TMIN + 1) * delta / (delta + SKEW);
            delta = 0;
            handled += 1;
        }
        delta = delta.wrapping_add(1);
        next += 1;
    }
}

/// Letters and digits outside ASCII that browsers replace, join with the one
/// before, or drop: each pair is a range, its end excluded. From the Unicode
/// character database (14.0, and two ranges of 16 and 17): every letter, mark and
/// number whose lower case is not its own NFKC form, that is the second of a
/// canonical composition, or that is a filler.
#[rustfmt::skip]
const REPLACED: &[u32] = &[
    0xaa, 0xbf, 0x130, 0x131, 0x132, 0x134, 0x13f, 0x141, 0x149, 0x14a, 0x17f, 0x180, 0x1c4, 0x1cd, 0x1f1,
    0x1f4, 0x2b0, 0x2b9, 0x2e0, 0x2e5, 0x300, 0x305, 0x306, 0x30d, 0x30f, 0x310, 0x311, 0x312, 0x313, 0x315,
    0x31b, 0x31c, 0x323, 0x329, 0x32d, 0x32f, 0x330, 0x332, 0x338, 0x339, 0x340, 0x346, 0x374, 0x375, 0x37a,
    0x37b, 0x3d0, 0x3d7, 0x3f0, 0x3f3, 0x3f5, 0x3f6, 0x3f9, 0x3fa, 0x587, 0x588, 0x653, 0x656, 0x675, 0x679,
    0x93c, 0x93d, 0x958, 0x960, 0x9be, 0x9bf, 0x9d7, 0x9e0, 0xa33, 0xa34, 0xa36, 0xa37, 0xa59, 0xa5c, 0xa5e,
    0xa5f, 0xb3e, 0xb3f, 0xb56, 0xb5e, 0xbbe, 0xbbf, 0xbd7, 0xbd8, 0xc56, 0xc57, 0xcc2, 0xcc3, 0xcd5, 0xcd7,
    0xd3e, 0xd3f, 0xd57, 0xd58, 0xdca, 0xdd0, 0xddf, 0xde0, 0xe33, 0xe34, 0xeb3, 0xeb4, 0xedc, 0xede, 0xf43,
    0xf44, 0xf4d, 0xf4e, 0xf52, 0xf53, 0xf57, 0xf58, 0xf5c, 0xf5d, 0xf69, 0xf6a, 0xf73, 0xf74, 0xf75, 0xf7a,
    0xf81, 0xf82, 0xf93, 0xf94, 0xf9d, 0xf9e, 0xfa2, 0xfa3, 0xfa7, 0xfa8, 0xfac, 0xfad, 0xfb9, 0xfba,
    0x102e, 0x102f, 0x10fc, 0x10fd, 0x115f, 0x1176, 0x11a8, 0x11c3, 0x1b35, 0x1b36, 0x1d2c, 0x1d2f, 0x1d30,
    0x1d3b, 0x1d3c, 0x1d4e, 0x1d4f, 0x1d6b, 0x1d78, 0x1d79, 0x1d9b, 0x1dc0, 0x1e9a, 0x1e9c, 0x1e9e, 0x1e9f,
    0x1f71, 0x1f72, 0x1f73, 0x1f74, 0x1f75, 0x1f76, 0x1f77, 0x1f78, 0x1f79, 0x1f7a, 0x1f7b, 0x1f7c, 0x1f7d,
    0x1f7e, 0x1fbb, 0x1fbc, 0x1fbe, 0x1fbf, 0x1fc9, 0x1fca, 0x1fcb, 0x1fcc, 0x1fd3, 0x1fd4, 0x1fdb, 0x1fdc,
    0x1fe3, 0x1fe4, 0x1feb, 0x1fec, 0x1ff9, 0x1ffa, 0x1ffb, 0x1ffc, 0x2070, 0x209d, 0x2102, 0x2125, 0x2128,
    0x212b, 0x212c, 0x2132, 0x2133, 0x214a, 0x2150, 0x2180, 0x2189, 0x24eb, 0x2c7c, 0x2c7e, 0x2d6f, 0x2d70,
    0x3038, 0x303b, 0x3099, 0x309b, 0x309f, 0x30a0, 0x30ff, 0x3100, 0x3131, 0x3196, 0x3220, 0x322a, 0x3251,
    0x32c0, 0xa69c, 0xa69e, 0xa770, 0xa771, 0xa7f1, 0xa7f5, 0xa7f8, 0xa7fa, 0xab5c, 0xab60, 0xab69, 0xab6a,
    0xf900, 0xfa0e, 0xfa10, 0xfa11, 0xfa12, 0xfa13, 0xfa15, 0xfa1f, 0xfa20, 0xfa21, 0xfa22, 0xfa23, 0xfa25,
    0xfa27, 0xfa2a, 0xfb1e, 0xfb1f, 0xfdfc, 0xfe70, 0xfe73, 0xfe74, 0xffdd, 0x10781, 0x107bb, 0x110ba,
    0x110bb, 0x11127, 0x11128, 0x1133e, 0x1133f, 0x11357, 0x11358, 0x114b0, 0x114b1, 0x114ba, 0x114bb,
    0x114bd, 0x114be, 0x115af, 0x115b0, 0x11930, 0x11931, 0x1ccf0, 0x1ccfa, 0x1d400, 0x1d800, 0x1ee00,
    0x1f10b, 0x1fbf0, 0x1fbfa, 0x2f800, 0x2fa1e,
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plausible_hosts() {
        for host in [
            "example.com",
            "EXAMPLE.com.",
            "localhost",
            "a_b.example",
            "xn--bcher-kva.de",
            "bücher.de",
            "例え.jp",
            "россия.рф",
            "127.0.0.1",
            "[::1]",
            "[::ffff:1.2.3.4]",
            "1.example",
            "3com.com",
            "ΣΊΣΥΦΟΣ.gr",
            "straße.de",
            "한국.kr",
            "-a.b",
        ] {
            assert_eq!(check(host), Ok(()), "{host}");
        }
    }

    #[test]
    fn implausible_hosts() {
        use HostFault::*;
        for (host, fault) in [
            ("", Empty),
            (".", Empty),
            ("a..b", Label),
            (".a", Label),
            ("a b", Character(' ')),
            ("a%62", Character('%')),
            ("a!", Character('!')),
            ("ex\u{200d}ample.com", Character('\u{200d}')),
            ("example。com", Character('。')),
            ("ｅxample.com", Replaced('ｅ')),
            ("\u{212a}elvin.example", Replaced('\u{212a}')),
            ("ſtore.example", Replaced('ſ')),
            ("①.example", Replaced('①')),
            ("ª.example", Replaced('ª')),
            ("İ.example", Replaced('İ')),
            ("exam\u{3164}ple.com", Replaced('\u{3164}')),
            ("\u{1d41a}.example", Replaced('\u{1d41a}')),
            ("ﾃｽﾄ.jp", Replaced('ﾃ')),
            ("2130706433", Address),
            ("0x7f.1", Address),
            ("127.1", Address),
            ("0177.0.0.1", Address),
            ("1.2.3.256", Address),
            ("example.0x1F", Address),
            ("[::1", Address),
            ("[]", Address),
            ("[fe80::1%25eth0]", Address),
            ("[127.0.0.1]", Address),
        ] {
            assert_eq!(check(host), Err(fault), "{host}");
            assert!(fault.to_string().starts_with("has "), "{fault}");
        }
        assert_eq!(check(&"a".repeat(64)), Err(Label));
        assert_eq!(check(&"a.".repeat(127)), Ok(()), "253 bytes and a dot at the end");
        assert_eq!(check(&"a.".repeat(128)), Err(TooLong));
    }

    /// The Punycode is that of Python's codec.
    #[test]
    fn hosts_are_compared_in_one_form() {
        for (host, form) in [
            ("EXAMPLE.com.", "example.com"),
            ("BÜCHER.de", "xn--bcher-kva.de"),
            ("XN--Bcher-KVA.de", "xn--bcher-kva.de"),
            ("例え.jp", "xn--r8jz45g.jp"),
            ("münchen-ost.example", "xn--mnchen-ost-9db.example"),
            ("他们为什么不说中文.cn", "xn--ihqwcrb4cv8a8dqg056pqjye.cn"),
            ("почемужеонинеговорятпорусски", "xn--b1abfaaepdrnnbgefbadotcwatmq2g4l"),
            ("[0:0:0:0:0:0:0:1]", "[::1]"),
            ("[2001:DB8::1]", "[2001:db8::1]"),
            ("[::ffff:1.2.3.4]", "1.2.3.4"),
        ] {
            assert_eq!(canonical(host), form);
        }
    }

    #[test]
    fn the_table_is_in_order() {
        assert!(REPLACED.is_sorted_by(|a, b| a < b));
        assert_eq!(REPLACED.len() % 2, 0);
    }

    proptest! {
        #[test]
        fn no_host_panics_and_the_form_is_its_own(host in "\\PC{0,80}") {
            let form = canonical(&host);
            if check(&host).is_ok() {
                prop_assert!(form.is_ascii());
                prop_assert_eq!(canonical(&form), form);
            }
        }

        #[test]
        fn case_makes_no_difference(host in "[a-zA-Z0-9äöüÄÖÜж例-]{1,20}\\.example") {
            prop_assert_eq!(canonical(&host), canonical(&host.to_uppercase()));
            prop_assert_eq!(canonical(&host), canonical(&host.to_lowercase()));
        }
    }
}
