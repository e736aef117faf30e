//! A decoder of the chunked transfer coding (RFC 9112, section 7.1).
//!
//! Strict where leniency would let two readers of the same bytes see different messages: every line
//! ends with CRLF, a size consists of hexadecimal digits only, a trailer is `name:value`.
//! Extensions and trailers are discarded, and their size is bounded.

/// Most hexadecimal digits of a size: a 64-bit number.
const SIZE_DIGITS: u8 = 16;

/// Why the rest of a chunked body cannot be decoded. The framing is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkFault {
    /// The bytes are not valid chunks.
    Malformed,
    /// Extensions and trailers together are too long.
    TooLong,
}

/// The result of decoding a stretch of input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    /// Bytes of input consumed, at least one if there was any.
    pub(crate) used: usize,
    /// The part of the body in them.
    pub(crate) data: &'a [u8],
    /// Whether the body ends here.
    pub(crate) end: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In a size, after this many digits.
    Size {
        value: u64,
        digits: u8,
    },
    /// White space after a size: only an extension or the line's end may follow.
    SizeSpace {
        value: u64,
    },
    Extension {
        value: u64,
    },
    SizeLf {
        value: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    LastLf,
    End,
}

/// A chunked body being decoded.
#[derive(Debug)]
pub(crate) struct Chunked {
    state: State,
    /// Remaining allowance for extensions and trailers, in bytes.
    allowance: usize,
}

impl Chunked {
    /// A body whose extensions and trailers may take `allowance` bytes together.
    pub(crate) fn new(allowance: usize) -> Chunked {
        Chunked { state: State::Size { value: 0, digits: 0 }, allowance }
    }

    /// Decodes up to the next piece of the body, its end or the end of `input`.
    ///
    /// # Errors
    /// [`ChunkFault`]: the rest cannot be understood.
    pub(crate) fn next<'a>(&mut self, input: &'a [u8]) -> Result<Piece<'a>, ChunkFault> {
        for (at, &byte) in input.iter().enumerate() {
            if let State::Data { left } = self.state {
                let rest = &input[at..];
                let length = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
                let left = left - length as u64;
                self.state = if left == 0 { State::DataCr } else { State::Data { left } };
                return Ok(Piece { used: at + length, data: &rest[..length], end: false });
            }
            self.state = self.step(byte)?;
            if self.state == State::End {
                return Ok(Piece { used: at + 1, data: &[], end: true });
            }
        }
        Ok(Piece { used: input.len(), data: &[], end: false })
    }

    /// The state after a byte that is not data.
    fn step(&mut self, byte: u8) -> Result<State, ChunkFault> {
        use State::*;
        Ok(match (self.state, byte) {
            (Size { value, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F')
                if digits < SIZE_DIGITS =>
            {
                let digit = (byte as char).to_digit(16).unwrap_or_default();
                Size { value: value << 4 | u64::from(digit), digits: digits + 1 }
            }
            (Size { value, digits: 1.. } | SizeSpace { value }, b' ' | b'\t') => {
                self.spend()?;
                SizeSpace { value }
            }
            (Size { value, digits: 1.. } | SizeSpace { value }, b';') => Extension { value },
            (Size { value, digits: 1.. } | SizeSpace { value } | Extension { value }, b'\r') => {
                SizeLf { value }
            }
            (Extension { value }, b'\t' | b' '..=b'~' | 0x80..) => {
                self.spend()?;
                Extension { value }
            }
            (SizeLf { value: 0 }, b'\n') => TrailerStart,
            (SizeLf { value }, b'\n') => Data { left: value },
            (DataCr, b'\r') => DataLf,
            (DataLf, b'\n') => Size { value: 0, digits: 0 },
            (TrailerStart, b'\r') => LastLf,
            (LastLf, b'\n') => End,
            (TrailerStart | TrailerName, byte) if is_token(byte) => {
                self.spend()?;
                TrailerName
            }
            (TrailerName, b':') => TrailerValue,
            (TrailerValue, b'\t' | b' '..=b'~' | 0x80..) => {
                self.spend()?;
                TrailerValue
            }
            (TrailerValue, b'\r') => TrailerLf,
            (TrailerLf, b'\n') => TrailerStart,
            _ => return Err(ChunkFault::Malformed),
        })
    }

    fn spend(&mut self) -> Result<(), ChunkFault> {
        self.allowance = self.allowance.checked_sub(1).ok_or(ChunkFault::TooLong)?;
        Ok(())
    }
}

/// Whether a byte is allowed in a field name.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes `input` in pieces of `step` bytes: the body and the remaining input.
    fn decode(input: &[u8], step: usize) -> Result<Option<(Vec<u8>, usize)>, ChunkFault> {
        let (mut chunked, mut body) = (Chunked::new(40), Vec::new());
        let (mut at, mut seen) = (0, 0);
        while at < input.len() {
            seen = if at >= seen { (seen + step).min(input.len()) } else { seen };
            let piece = chunked.next(&input[at..seen])?;
            body.extend_from_slice(piece.data);
            at += piece.used;
            if piece.end {
                return Ok(Some((body, input.len() - at)));
            }
        }
        Ok(None)
    }

    #[test]
    fn a_body_is_the_same_at_every_split() {
        let input =
            b"5;a=b\r\nhello\r\n1 ; x\r\n \r\n00B\r\nwide world!\r\n0\r\nX-Sum: 1\r\n\r\nPOST";
        for step in 1..=input.len() {
            let body = decode(input, step).unwrap().unwrap();
            assert_eq!(body, (b"hello wide world!".to_vec(), 4), "step {step}");
        }
    }

    #[test]
    fn what_is_cut_off_is_incomplete_and_never_an_end() {
        let input = b"3\r\nabc\r\n0\r\nT: v\r\n\r\n";
        for length in 0..input.len() {
            assert_eq!(decode(&input[..length], 1), Ok(None), "{length}");
        }
    }

    #[test]
    fn what_another_reader_could_read_otherwise_is_refused() {
        let bad: [&[u8]; 20] = [
            b"\r\n",
            b";x\r\n",
            b" 5\r\nhello\r\n",
            b"0x5\r\nhello\r\n",
            b"+5\r\nhello\r\n",
            b"-1\r\n",
            b"5\nhello\r\n",
            b"5\r\nhello\n0\r\n\r\n",
            b"5\r\nhelloX\r\n",
            b"5;a\nb\r\nhello\r\n",
            b"5;a\rb\r\nhello\r\n",
            b"5;a\0b\r\nhello\r\n",
            b"5 5\r\nhello\r\n",
            b"00000000000000005\r\nhello\r\n",
            b"10000000000000000\r\n",
            b"0\r\n folded\r\n\r\n",
            b"0\r\nno colon\r\n\r\n",
            b"0\r\nX: a\n\r\n",
            b"0\r\nX: a\rb\r\n\r\n",
            b"0\r\n\n",
        ];
        for input in bad {
            for step in [1, input.len()] {
                let text = String::from_utf8_lossy(input);
                assert_eq!(decode(input, step), Err(ChunkFault::Malformed), "{text:?}");
            }
        }
    }

    #[test]
    fn extensions_and_trailers_are_bounded_together() {
        let input = format!("1;{}\r\nx\r\n0\r\nT:{}\r\n\r\n", "e".repeat(20), "v".repeat(19));
        assert_eq!(decode(input.as_bytes(), 1), Ok(Some((b"x".to_vec(), 0))));
        let input = format!("1;{}\r\nx\r\n0\r\nT:{}\r\n\r\n", "e".repeat(20), "v".repeat(20));
        assert_eq!(decode(input.as_bytes(), 7), Err(ChunkFault::TooLong));
    }

    #[test]
    fn the_largest_size_is_read_and_not_believed() {
        let mut chunked = Chunked::new(0);
        let piece = chunked.next(b"ffffffffffffffff\r\nabc").unwrap();
        assert_eq!((piece.data, piece.end), (&b"abc"[..], false));
    }
}
