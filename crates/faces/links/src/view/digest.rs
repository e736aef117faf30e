//! Deterministic codes: a URL always has the same candidate codes in the same order.

use super::code::{ALPHABET, Code, MAX_CODE_CHARS};
use sha2::{Digest, Sha256};

/// Length of a URL's first candidate code.
const MIN_CHARS: usize = 7;

/// The candidate codes of `url`, best first, as an endless sequence. The caller takes the first
/// that is free or already leads to this URL.
///
/// They are the first 7, 8, 9 and 10 base-62 digits of a number, lowest digit first; the number is
/// the first 16 bytes, big-endian, of SHA-256 of the URL's bytes. The next four come likewise from
/// SHA-256 of that digest followed by a round number (1, 2, … as 8 bytes, big-endian). With n
/// existing links, one new URL in 62^7 / n misses its first code: one in 3.5 million with a million
/// links.
///
/// Clients rely on the codes, so nothing here may change.
pub(super) fn candidates(url: &str) -> impl Iterator<Item = Code> {
    let first: [u8; 32] = Sha256::digest(url.as_bytes()).into();
    (0u64..).flat_map(move |round| {
        let digest = match round {
            0 => first,
            _ => Sha256::new_with_prefix(first).chain_update(round.to_be_bytes()).finalize().into(),
        };
        let text = digits(digest);
        (MIN_CHARS..=MAX_CODE_CHARS).filter_map(move |chars| Code::parse(&text[..chars]))
    })
}

/// The ten lowest base-62 digits of a digest's first 16 bytes, lowest first. Uniform to one part in
/// 2^68.
fn digits(digest: [u8; 32]) -> [u8; MAX_CODE_CHARS] {
    let mut number =
        digest[..16].iter().fold(0, |number: u128, &byte| number << 8 | u128::from(byte));
    [(); MAX_CODE_CHARS].map(|()| {
        let digit = (number % 62) as usize;
        number /= 62;
        ALPHABET[digit]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn texts(url: &str, count: usize) -> Vec<String> {
        candidates(url).take(count).map(|code| code.to_string()).collect()
    }

    /// Expected values come from a separate program.
    #[test]
    fn the_codes_of_a_url_never_change() {
        assert_eq!(
            texts("https://example.com/", 9),
            [
                "zYLT4u6",
                "zYLT4u6E",
                "zYLT4u6EH",
                "zYLT4u6EHY",
                "5hhZ2ei",
                "5hhZ2eia",
                "5hhZ2eia6",
                "5hhZ2eia6n",
                "8mcMg2R"
            ]
        );
    }

    #[test]
    fn lengths_go_round_from_seven_to_ten() {
        let lengths: Vec<usize> = candidates("http://h/").take(12).map(Code::len).collect();
        assert_eq!(lengths, [7, 8, 9, 10, 7, 8, 9, 10, 7, 8, 9, 10]);
    }

    #[test]
    fn ten_thousand_urls_have_ten_thousand_first_codes() {
        // By chance, two of them collide in one of 70,000 such tests; these do not.
        let first: HashSet<Code> = (0..10_000)
            .filter_map(|n| candidates(&format!("https://example.com/{n}")).next())
            .collect();
        assert_eq!(first.len(), 10_000);
    }

    proptest! {
        #[test]
        fn there_is_always_another(url in "\\PC{0,40}") {
            let codes: HashSet<Code> = candidates(&url).take(400).collect();
            prop_assert!(codes.len() >= 399);
            prop_assert_eq!(texts(&url, 8), texts(&url, 8));
        }
    }
}
