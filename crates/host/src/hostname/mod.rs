//! Host names as people write them in a URL: which can be looked up, and the one form in which
//! browsers look them up and two of them are compared.
//!
//! A browser maps a name first (WHATWG URL standard, "domain to ASCII"; Unicode TS 46, without
//! transitional processing): `ｅxample.com`, `EXAMPLE.com` and `example。com` all reach
//! `example.com`. The crate `idna` does the same here, so a list of hosts cannot be walked around.

mod list;

pub use list::{HostList, HostListFault};

// Addresses are data: nothing of `net` that opens a socket is used here.
use core::net::{Ipv4Addr, Ipv6Addr};
use idna::AsciiDenyList;
use std::borrow::Cow;
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
    /// Characters that are fine, and do not make a name together.
    Name,
    /// It looks like an address, and is not one in the usual form.
    Address,
}

impl fmt::Display for HostFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostFault::Empty => write!(f, "has no host; write one, as in http://example.com/"),
            HostFault::TooLong => write!(
                f,
                "has a host of more than {MAX_HOST_BYTES} bytes in its xn-- form, which no name server knows"
            ),
            HostFault::Label => write!(
                f,
                "has a host with an empty part, or with one of over {MAX_LABEL_BYTES} bytes in its xn-- form, between its dots"
            ),
            HostFault::Character('%') => {
                write!(f, "has an escape (%) in its host; write the character itself")
            }
            HostFault::Character(found) => {
                f.write_str("has ")?;
                put_letter(f, *found)?;
                f.write_str(" in its host; a host has letters and digits of any script, '-', '.' and '_'")
            }
            HostFault::Name => f.write_str(
                "has a host that no browser looks up: one of its parts begins with a mark, mixes directions of writing, or has an xn-- form that stands for no name",
            ),
            HostFault::Address => write!(
                f,
                "has a host like an IP address that is not valid; write it as 192.0.2.1 or [2001:db8::1]"
            ),
        }
    }
}

/// Writes a character so that a person can tell which it is.
fn put_letter(f: &mut fmt::Formatter<'_>, letter: char) -> fmt::Result {
    let code = u32::from(letter);
    match letter {
        ' '..='~' => write!(f, "'{letter}'"),
        _ if letter.is_alphanumeric() => write!(f, "'{letter}' (U+{code:04X})"),
        _ => write!(f, "U+{code:04X}"),
    }
}

impl std::error::Error for HostFault {}

/// Tells whether `host` can be looked up: a name (a dot may end it), an IPv4 address in dotted
/// form, or an IPv6 address in brackets.
///
/// # Errors
/// [`HostFault`], the first that is found.
pub fn check(host: &str) -> Result<(), HostFault> {
    ascii(host).map(drop)
}

/// A host as browsers look it up: in lower case, labels outside ASCII in Punycode, a dot at the end
/// if there is one. An IPv6 address is as it is.
///
/// # Errors
/// [`HostFault`], the first that is found.
pub fn ascii(host: &str) -> Result<Cow<'_, str>, HostFault> {
    if let Some(address) = host.strip_prefix('[') {
        let parsed = address.strip_suffix(']').and_then(|text| text.parse::<Ipv6Addr>().ok());
        return parsed.map(|_| host.into()).ok_or(HostFault::Address);
    }
    let is_taken = |found: char| found.is_ascii_alphanumeric() || matches!(found, '-' | '.' | '_');
    if let Some(found) = host.chars().find(|found| found.is_ascii() && !is_taken(*found)) {
        return Err(HostFault::Character(found));
    }
    let looked_up = looked_up(host).ok_or_else(|| fault_of(host))?;
    // Some characters stand for several, which may be of those that are not taken.
    if !looked_up.chars().all(is_taken) {
        return Err(fault_of(host));
    }
    check_name(looked_up.strip_suffix('.').unwrap_or(&looked_up))?;
    Ok(looked_up)
}

/// What a browser makes of a name.
fn looked_up(name: &str) -> Option<Cow<'_, str>> {
    idna::domain_to_ascii_cow(name.as_bytes(), AsciiDenyList::URL).ok()
}

/// The first character that is at fault by itself.
fn fault_of(host: &str) -> HostFault {
    let mut text = [0; 4];
    let mut foreign = host.chars().filter(|letter| !letter.is_ascii());
    let is_wrong = |letter: &char| {
        // Marks are fine behind a letter.
        let alone = looked_up(letter.encode_utf8(&mut text)).is_some();
        !alone && looked_up(&format!("a{letter}")).is_none()
    };
    foreign.find(is_wrong).map_or(HostFault::Name, HostFault::Character)
}

/// Checks a name in ASCII, without a dot at its end.
fn check_name(name: &str) -> Result<(), HostFault> {
    if name.is_empty() {
        return Err(HostFault::Empty);
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

/// Whether an event may name this host: one that [`check`] takes, or that earlier versions took
/// and no browser looks up. A link that was once there stays.
pub fn is_kept(host: &str) -> bool {
    let name = host.strip_suffix('.').unwrap_or(host);
    let was_taken = |letter: char| {
        let of_ascii = letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_');
        of_ascii || !letter.is_ascii() && letter.is_alphanumeric()
    };
    check(host).is_ok() || check_name(name).is_ok() && name.chars().all(was_taken)
}

/// Whether browsers take a name with this last part for an IPv4 address (WHATWG URL, "ends in a
/// number").
fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    let digits = label.bytes().all(|byte| byte.is_ascii_digit());
    digits || hex.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The form of a host in which it is compared: as browsers look it up, without a dot at the end; an
/// IPv6 address as RFC 5952 writes it, in brackets, or as the IPv4 address it maps.
///
/// A host that [`check`] refuses gives its lower case, which is no other host's form.
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
    let form = looked_up(host).unwrap_or_else(|| host.to_lowercase().into());
    form.strip_suffix('.').unwrap_or(&form).to_owned()
}

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
            ("℀.example", Character('℀')),
            ("１２７.1", Address),
            ("\u{bbe}.example", Name),
            ("aא.example", Name),
            ("xn--a.example", Name),
            ("xn--0.pt", Name),
            ("\u{ad}", Empty),
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

    #[test]
    fn names_of_all_scripts_are_looked_up_as_browsers_do() {
        for (host, form) in [
            // Of the test names of ICANN, and others with marks that join the letter before.
            ("உதாரணம்.பரிட்சை", "xn--zkc6cc5bi7f6e.xn--hlcj6aya9esc7a"),
            ("ไทยแลนด์.ไทย", "xn--l3cfg9ap1osa4e.xn--o3cw4h"),
            ("उदाहरण.परीक्षा", "xn--p1b6ci4b4b3a.xn--11b5bs3a9aj6g"),
            ("مثال.إختبار", "xn--mgbh0fb.xn--kgbechtv"),
            ("παράδειγμα.δοκιμή", "xn--hxajbheg2az3al.xn--jxalpdlp"),
            ("faß.de", "xn--fa-hia.de"),
            ("Bücher.EXAMPLE.", "xn--bcher-kva.example."),
            ("ｅxample。com", "example.com"),
            ("\u{212a}elvin.example", "kelvin.example"),
            ("exam\u{ad}ple.com", "example.com"),
            ("１２７.0.0.1", "127.0.0.1"),
            ("☃.example", "xn--n3h.example"),
            // A joiner where a script needs it.
            ("क्\u{200d}ष.example", "xn--11b2ezcw70k.example"),
            ("نامه\u{200c}ای.com", "xn--mgba3gch31f060k.com"),
            ("a--b.example", "a--b.example"),
            ("-a-.example", "-a-.example"),
        ] {
            assert_eq!(ascii(host).as_deref(), Ok(form), "{host}");
        }
    }

    #[test]
    fn what_is_told_shows_the_letter() {
        for (host, told) in [
            ("a b", "has ' ' in its host;"),
            ("℀.example", "has U+2100 in its host;"),
            ("a\u{378}.example", "has U+0378 in its host;"),
        ] {
            let fault = check(host).expect_err(host).to_string();
            assert!(fault.starts_with(told), "{fault}");
            assert!(!fault.contains("\\u{"), "{fault}");
        }
    }

    #[test]
    fn what_earlier_versions_took_is_kept_and_nothing_else() {
        for host in ["\u{bbe}.example", "aא.example", "xn--a.example", "ﾃｽﾄ.jp", "bücher.de"]
        {
            assert!(is_kept(host), "{host}");
        }
        let long = "я".repeat(30);
        for host in [&*long, "example.com", "ｅxample.com"] {
            assert!(is_kept(host), "{host}");
        }
        for host in ["", "a b", "a%62", "a!", "2130706433", "a..b", "aא.1", "[::1", "℀.example"]
        {
            assert!(!is_kept(host), "{host}");
        }
        assert_eq!(canonical("Aא.example"), "aא.example");
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

    proptest! {
        #[test]
        fn no_host_panics_and_the_form_is_its_own(host in "\\PC{0,80}") {
            let form = canonical(&host);
            if check(&host).is_ok() {
                prop_assert!(form.is_ascii());
                prop_assert!(is_kept(&host));
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
