//! The order of automatic codes: a counter, permuted under a key.
//!
//! Each length has its own keyed bijection of `[0, 62^k)`, so no two counts give the same code and
//! no code needs a retry. The construction is the generalised Feistel network of Black and Rogaway,
//! "Ciphers with Arbitrary Finite Domains" (CT-RSA 2002), on `a × b = 62^k`, `a = 62^⌈k/2⌉`, `b =
//! 62^⌊k/2⌋`: such a product needs no cycle walking. The round function is the finaliser of
//! SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, in Stafford's variant 13), reduced to the range
//! by a wide multiplication (Lemire, "Fast Random Integer Generation in an Interval", 2019).
//!
//! It hides from casual observers how many links exist and which code comes next. It is not a
//! cipher and keeps no secret: a patient observer with a few codes can compute the key. A log's
//! codes depend on its key permanently, so any change here is a format change
//! (`the_codes_of_a_key_never_change`).

use super::code::{CODES, Code, MAX_CODE_CHARS, first_of_length};
use wellspring_types::random::{STEP, mix};

/// Length of the first automatic codes in characters; shorter codes are reserved for aliases.
pub const MIN_AUTOMATIC_CHARS: usize = 3;

/// The number of automatic codes.
pub const AUTOMATIC_CODES: u64 = CODES - first_of_length(MIN_AUTOMATIC_CHARS);

const LENGTHS: usize = MAX_CODE_CHARS - MIN_AUTOMATIC_CHARS + 1;

/// Number of alternating rounds; even, so that both halves change equally often. Four are too few
/// because the smaller half of the shortest codes has only 62 values.
const ROUNDS: usize = 8;

/// The halves of a code's number, by length: `(a, b)`.
const HALVES: [(u64, u64); LENGTHS] = {
    let mut halves = [(0, 0); LENGTHS];
    let mut at = 0;
    while at < LENGTHS {
        let chars = (at + MIN_AUTOMATIC_CHARS) as u32;
        halves[at] = (62u64.pow(chars.div_ceil(2)), 62u64.pow(chars / 2));
        at += 1;
    }
    halves
};

/// The permutation of one log.
#[derive(Debug, Clone)]
pub struct Permutation {
    /// Round keys for each length, shortest first.
    keys: [[u64; ROUNDS]; LENGTHS],
}

/// The round function: maps the other half to a number below `range`.
#[inline]
fn round(half: u64, key: u64, range: u64) -> u64 {
    ((u128::from(mix(half ^ key)) * u128::from(range)) >> 64) as u64
}

/// `x + y` modulo `range`, both below it.
#[inline]
fn add(x: u64, y: u64, range: u64) -> u64 {
    debug_assert!(x < range && y < range);
    let sum = x + y;
    if sum >= range { sum - range } else { sum }
}

/// `x - y` modulo `range`, both below it.
#[inline]
fn subtract(x: u64, y: u64, range: u64) -> u64 {
    debug_assert!(x < range && y < range);
    if x >= y { x - y } else { x + range - y }
}

impl Permutation {
    /// The permutation under this key. Any 16 bytes work; they should be random.
    pub fn new(key: [u8; 16]) -> Permutation {
        let key = u128::from_le_bytes(key);
        let (low, high) = (key as u64, (key >> 64) as u64);
        let mut keys = [[0; ROUNDS]; LENGTHS];
        for (at, round_key) in keys.as_flattened_mut().iter_mut().enumerate() {
            // The steps of SplitMix64 from `low`, each whitened with `high`.
            let step = low.wrapping_add(STEP.wrapping_mul(at as u64 + 1));
            *round_key = mix(mix(step) ^ high);
        }
        Permutation { keys }
    }

    /// The `n`-th automatic code, counted from 0: first all codes of 3 characters, then all of 4,
    /// up to 10. `None` from [`AUTOMATIC_CODES`] on.
    pub fn code(&self, n: u64) -> Option<Code> {
        if n >= AUTOMATIC_CODES {
            return None;
        }
        let plain = Code::from_number(n + first_of_length(MIN_AUTOMATIC_CHARS))?;
        let (at, first) = place(plain)?;
        let (a, b) = HALVES[at];
        let inner = plain.number() - first;
        let (mut left, mut right) = (inner / b, inner % b);
        for pair in self.keys[at].chunks_exact(2) {
            left = add(left, round(right, pair[0], a), a);
            right = add(right, round(left, pair[1], b), b);
        }
        Code::from_number(first + left * b + right)
    }

    /// The counter of an automatic code: the inverse of [`Permutation::code`]. `None` for codes of
    /// fewer than 3 characters, which are never automatic.
    pub fn number(&self, code: Code) -> Option<u64> {
        let (at, first) = place(code)?;
        let (a, b) = HALVES[at];
        let inner = code.number() - first;
        let (mut left, mut right) = (inner / b, inner % b);
        for pair in self.keys[at].chunks_exact(2).rev() {
            right = subtract(right, round(left, pair[1], b), b);
            left = subtract(left, round(right, pair[0], a), a);
        }
        Some(first + left * b + right - first_of_length(MIN_AUTOMATIC_CHARS))
    }
}

/// The index of a code's length among the automatic lengths, and the first number of that length.
#[inline]
fn place(code: Code) -> Option<(usize, u64)> {
    let chars = code.len();
    let at = chars.checked_sub(MIN_AUTOMATIC_CHARS)?;
    Some((at, first_of_length(chars)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    const KEYS: [[u8; 16]; 4] = [
        [0; 16],
        [0xff; 16],
        *b"0123456789abcdef",
        [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ];

    fn texts(key: [u8; 16], numbers: std::ops::Range<u64>) -> Vec<String> {
        let permutation = Permutation::new(key);
        numbers.map(|n| permutation.code(n).expect("a code").to_string()).collect()
    }

    #[test]
    fn the_first_238328_codes_are_all_those_of_three_characters() {
        for key in KEYS {
            let permutation = Permutation::new(key);
            let mut seen = HashSet::new();
            for n in 0..62 * 62 * 62 {
                let code = permutation.code(n).expect("a code");
                assert_eq!(code.len(), 3);
                assert_eq!(permutation.number(code), Some(n));
                assert!(seen.insert(code), "{code} twice");
            }
            assert_eq!(permutation.code(62 * 62 * 62).expect("a code").len(), 4);
        }
    }

    #[test]
    fn the_codes_of_a_key_never_change() {
        assert_eq!(texts(*b"0123456789abcdef", 0..4), GOLDEN_3);
        assert_eq!(texts(*b"0123456789abcdef", 1_000_000_000_000..1_000_000_000_002), GOLDEN_7);
    }

    // Computed by an independent program written from the module's documentation.
    const GOLDEN_3: [&str; 4] = ["JSo", "CWU", "V7W", "7pN"];
    const GOLDEN_7: [&str; 2] = ["CwwtwbT", "PL0IKUI"];

    #[test]
    fn neighbours_look_unrelated() {
        for key in KEYS {
            for start in [0, 62 * 62 * 62, 10_000_000_000] {
                let texts = texts(key, start..start + 1000);
                let chars = texts[0].len();
                let alike = |keep: &dyn Fn(&str) -> String| {
                    texts.windows(2).filter(|pair| keep(&pair[0]) == keep(&pair[1])).count()
                };
                // Expected by chance: 0.26 pairs for three characters, almost none for longer
                // codes.
                assert!(alike(&|text| text[..chars - 1].to_owned()) <= 4);
                assert!(alike(&|text| text[1..].to_owned()) <= 4);
                // Expected by chance: 999 / 62 = 16 ± 4 pairs share the character at a given place.
                for at in 0..chars {
                    let same = alike(&|text| text[at..=at].to_owned());
                    assert!((1..=40).contains(&same), "{same} pairs alike at {at}");
                }
            }
        }
    }

    #[test]
    fn every_character_comes_about_equally_often_at_every_place() {
        for key in KEYS {
            let texts = texts(key, 0..6200);
            for at in 0..3 {
                let mut counts = [0f64; 128];
                texts.iter().for_each(|text| counts[usize::from(text.as_bytes()[at])] += 1.0);
                let used = counts.iter().filter(|&&count| count > 0.0);
                let square: f64 = used.map(|count| (count - 100.0).powi(2) / 100.0).sum();
                // Chi-square with 61 degrees of freedom exceeds 130 once in a million runs.
                assert!(square < 130.0, "{square} at {at}");
            }
        }
    }

    #[test]
    fn a_key_that_differs_in_one_bit_gives_another_order() {
        let plain = texts([0; 16], 0..1000);
        for bit in 0..128 {
            let other = texts((1u128 << bit).to_le_bytes(), 0..1000);
            let same = plain.iter().zip(&other).filter(|(a, b)| a == b).count();
            assert!(same <= 3, "{same} of 1000 codes stay when bit {bit} changes");
        }
    }

    #[test]
    fn there_is_nothing_beyond_the_last_code() {
        let permutation = Permutation::new(KEYS[2]);
        assert_eq!(permutation.code(AUTOMATIC_CODES - 1).expect("a code").len(), 10);
        assert_eq!(permutation.code(AUTOMATIC_CODES), None);
        assert_eq!(permutation.code(u64::MAX), None);
        assert_eq!(permutation.number(Code::parse(b"zz").expect("a code")), None);
        assert_eq!(permutation.number(Code::parse(b"0").expect("a code")), None);
    }

    proptest! {
        #[test]
        fn a_count_comes_back(key: [u8; 16], n in 0..AUTOMATIC_CODES, less in 0..60u32) {
            let permutation = Permutation::new(key);
            let n = n >> less;
            let code = permutation.code(n).expect("a code");
            prop_assert_eq!(permutation.number(code), Some(n));
            prop_assert_eq!(Some(code.len()), Code::from_number(n + first_of_length(3)).map(Code::len));
        }

        #[test]
        fn a_code_comes_back(key: [u8; 16], text in "[0-9A-Za-z]{3,10}") {
            let permutation = Permutation::new(key);
            let code = Code::parse(text.as_bytes()).expect("a code");
            let n = permutation.number(code).expect("an automatic code");
            prop_assert_eq!(permutation.code(n), Some(code));
        }
    }
}
