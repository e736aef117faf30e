//! The Huffman code of HPACK (RFC 7541 appendix B).
//!
//! The code is canonical: within a length, codes count upwards in the order of
//! the symbols. So the lengths alone define it, and everything else is computed
//! from them when the program is compiled.

/// The symbol that ends a string; it may only appear, in part, as padding.
const END: u16 = 256;
const SHORTEST: u32 = 5;
const LONGEST: u32 = 30;

/// Length in bits of the code of each symbol.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// What decoding needs, made from [`LENGTHS`].
struct Code {
    /// The symbols in the order of their codes.
    symbols: [u16; 257],
    /// For each length: the first code of that length.
    first: [u32; LONGEST as usize + 1],
    /// For each length: where its symbols begin in `symbols`.
    from: [usize; LONGEST as usize + 1],
    /// For each length: how many codes it has.
    count: [u32; LONGEST as usize + 1],
    /// By the next eight bits: the symbol and length of a code that is no longer; length 0 if it
    /// is.
    short: [(u8, u8); 256],
}

static CODE: Code = Code::new();

impl Code {
    const fn new() -> Self {
        let mut code = Code {
            symbols: [0; 257],
            first: [0; LONGEST as usize + 1],
            from: [0; LONGEST as usize + 1],
            count: [0; LONGEST as usize + 1],
            short: [(0, 0); 256],
        };
        let (mut next, mut placed, mut length) = (0u32, 0usize, SHORTEST);
        while length <= LONGEST {
            code.first[length as usize] = next;
            code.from[length as usize] = placed;
            let mut symbol = 0;
            while symbol < LENGTHS.len() {
                if LENGTHS[symbol] as u32 == length {
                    code.symbols[placed] = symbol as u16;
                    if length <= 8 {
                        let low = next << (8 - length);
                        let mut at = low;
                        while at < low + (1 << (8 - length)) {
                            code.short[at as usize] = (symbol as u8, length as u8);
                            at += 1;
                        }
                    }
                    placed += 1;
                    next += 1;
                }
                symbol += 1;
            }
            code.count[length as usize] = next - code.first[length as usize];
            next <<= 1;
            length += 1;
        }
        code
    }

    /// The symbol whose code begins `bits`, and its length.
    #[inline]
    fn first_of(&self, bits: u32) -> (u16, u32) {
        let (symbol, length) = self.short[(bits >> 24) as usize];
        if length > 0 {
            return (u16::from(symbol), u32::from(length));
        }
        for length in 9..=LONGEST {
            let code = bits >> (32 - length);
            let beyond = code.wrapping_sub(self.first[length as usize]);
            if beyond < self.count[length as usize] {
                return (self.symbols[self.from[length as usize] + beyond as usize], length);
            }
        }
        // The code is complete: every 30 bits begin with a symbol.
        (END, LONGEST)
    }
}

/// Appends what `coded` stands for; `false` if it is not a string of this code
/// (RFC 7541 section 5.2: padding of up to seven ones, never the end symbol).
#[must_use]
pub(super) fn decode(coded: &[u8], plain: &mut Vec<u8>) -> bool {
    let mut rest = coded.iter();
    let (mut bits, mut have) = (0u64, 0u32);
    loop {
        while have <= 56
            && let Some(byte) = rest.next()
        {
            bits |= u64::from(*byte) << (56 - have);
            have += 8;
        }
        if have == 0 {
            return true;
        }
        // Beyond the input there are only ones, as in padding.
        let ahead = bits | u64::MAX.checked_shr(have).unwrap_or(0);
        let (symbol, length) = CODE.first_of(u32::try_from(ahead >> 32).expect("32 bits"));
        if length > have {
            return have < 8 && ahead == u64::MAX;
        }
        let Ok(byte) = u8::try_from(symbol) else { return false };
        plain.push(byte);
        bits <<= length;
        have -= length;
    }
}

/// Appends the code of `plain`.
#[cfg(test)]
pub(super) fn encode(plain: &[u8], coded: &mut Vec<u8>) {
    let (mut bits, mut have) = (0u64, 0u32);
    for byte in plain {
        let length = u32::from(LENGTHS[usize::from(*byte)]);
        let from = CODE.from[length as usize];
        let symbols = &CODE.symbols[from..from + CODE.count[length as usize] as usize];
        let beyond = symbols.iter().position(|symbol| *symbol == u16::from(*byte)).unwrap();
        let code = CODE.first[length as usize] + u32::try_from(beyond).unwrap();
        bits |= u64::from(code) << (64 - have - length);
        have += length;
        while have >= 8 {
            coded.push(u8::try_from(bits >> 56).unwrap());
            bits <<= 8;
            have -= 8;
        }
    }
    if have > 0 {
        coded.push(u8::try_from((bits | (u64::MAX >> have)) >> 56).unwrap());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(coded: &[u8]) -> Option<Vec<u8>> {
        let mut plain = Vec::new();
        decode(coded, &mut plain).then_some(plain)
    }

    /// Strings of RFC 7541 appendices C.4 and C.6.
    const KNOWN: [(&[u8], &str); 8] = [
        (b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff", "www.example.com"),
        (b"\xa8\xeb\x10\x64\x9c\xbf", "no-cache"),
        (b"\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f", "custom-key"),
        (b"\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf", "custom-value"),
        (b"\x64\x02", "302"),
        (
            b"\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff",
            "Mon, 21 Oct 2013 20:13:21 GMT",
        ),
        (
            b"\x9d\x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3",
            "https://www.example.com",
        ),
        (
            b"\x94\xe7\x82\x1d\xd7\xf2\xe6\xc7\xb3\x35\xdf\xdf\xcd\x5b\x39\x60\xd5\xaf\x27\x08\x7f\x36\x72\xc1\xab\x27\x0f\xb5\x29\x1f\x95\x87\x31\x60\x65\xc0\x03\xed\x4e\xe5\xb1\x06\x3d\x50\x07",
            "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
        ),
    ];

    #[test]
    fn the_strings_of_the_rfc_are_read_and_written() {
        for (coded, plain) in KNOWN {
            assert_eq!(decoded(coded).as_deref(), Some(plain.as_bytes()));
            let mut again = Vec::new();
            encode(plain.as_bytes(), &mut again);
            assert_eq!(again, coded);
        }
    }

    #[test]
    fn the_code_is_complete_and_has_the_ends_the_rfc_prints() {
        let kraft: u64 = LENGTHS.iter().map(|length| 1u64 << (30 - u32::from(*length))).sum();
        assert_eq!(kraft, 1 << 30);
        assert_eq!(CODE.first[5], 0);
        assert_eq!(CODE.first[30], 0x3fff_fffc);
        assert_eq!(CODE.symbols[256], END);
    }

    #[test]
    fn wrong_padding_and_the_end_symbol_are_refused() {
        for bad in [
            &b"\xff"[..],        // eight ones: more than seven bits of padding
            b"\xf1\xff",         // the same after a symbol's end
            b"\x00",             // a symbol, then padding of zeros
            b"\xff\xff\xff\xfc", // the end symbol itself, and beyond it
            b"\xff\xff\xff\xff",
        ] {
            assert_eq!(decoded(bad), None, "{bad:x?}");
        }
        assert_eq!(decoded(b"").as_deref(), Some(&b""[..]));
        assert_eq!(decoded(b"\x07").as_deref(), Some(&b"0"[..]));
    }

    proptest! {
        #[test]
        fn what_is_coded_is_decoded(plain in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut coded = Vec::new();
            encode(&plain, &mut coded);
            prop_assert_eq!(decoded(&coded), Some(plain));
        }

        #[test]
        fn there_is_one_way_to_code_a_string(coded in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(plain) = decoded(&coded) {
                let mut again = Vec::new();
                encode(&plain, &mut again);
                prop_assert_eq!(again, coded);
            }
        }
    }
}
