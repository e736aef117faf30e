//! Bytes as hexadecimal digits.

/// The digits of a byte, in small letters.
#[must_use]
pub fn of_byte(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)])
}

/// Appends the digits of bytes.
pub fn push(out: &mut String, bytes: &[u8]) {
    out.extend(bytes.iter().flat_map(|&byte| of_byte(byte)).map(char::from));
}

/// The digits of bytes.
#[must_use]
pub fn digits(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 * bytes.len());
    push(&mut out, bytes);
    out
}

/// Reads digits into bytes, which may be kept where they are wiped; `None`: these are not twice as
/// many digits.
#[must_use]
pub fn read_into(digits: &str, bytes: &mut [u8]) -> Option<()> {
    // A sign would be taken for part of a number.
    if digits.len() != 2 * bytes.len() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(())
}

/// Reads bytes that are no secret; `None`: these are not twice as many digits.
#[must_use]
pub fn read<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    read_into(digits, &mut bytes).map(|()| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut key = [0; 32];
        key.iter_mut().zip(0u8..).for_each(|(byte, n)| *byte = n.wrapping_mul(37));
        let digits = digits(&key);
        assert!(digits.starts_with("00254a6f"), "{digits}");
        assert_eq!(read(&digits), Some(key));
        assert_eq!(read(&digits.to_uppercase()), Some(key));
        let ends_in = |end: &str| format!("{}{end}", &digits[..64 - end.len()]);
        for bad in ["", &digits[1..], &format!("{digits}0"), &ends_in("g"), &ends_in("ü")] {
            assert_eq!(read::<32>(bad), None, "{bad}");
        }
        assert_eq!(read::<32>(&"+1".repeat(32)), None);
    }
}
