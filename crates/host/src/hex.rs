//! Keys as hexadecimal digits, for the files they are kept in.

use zeroize::Zeroizing;

/// The digits of a byte, in small letters.
pub fn of_byte(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)])
}

/// Appends the digits of bytes.
pub fn push(out: &mut String, bytes: &[u8]) {
    out.extend(bytes.iter().flat_map(|&byte| of_byte(byte)).map(char::from));
}

/// The digits of bytes.
pub fn digits(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 * bytes.len());
    push(&mut out, bytes);
    out
}

/// Reads a key of 256 bits; `None`: it is not 64 digits.
pub fn read_key(digits: &str) -> Option<Zeroizing<[u8; 32]>> {
    // A sign would be taken for part of a number.
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut key = Zeroizing::new([0; 32]);
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(key)
}

/// Reads bytes that are no secret; `None`: these are not twice as many digits.
pub fn read<const N: usize>(digits: &str) -> Option<[u8; N]> {
    if digits.len() != 2 * N || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut key = [0; 32];
        key.iter_mut().zip(0u8..).for_each(|(byte, n)| *byte = n.wrapping_mul(37));
        let mut digits = String::new();
        push(&mut digits, &key);
        assert!(digits.starts_with("00254a6f"), "{digits}");
        assert_eq!(*read_key(&digits).unwrap(), key);
        assert_eq!(*read_key(&digits.to_uppercase()).unwrap(), key);
        let ends_in = |end: &str| format!("{}{end}", &digits[..64 - end.len()]);
        for bad in ["", &digits[1..], &format!("{digits}0"), &ends_in("g"), &ends_in("ü")] {
            assert!(read_key(bad).is_none(), "{bad}");
        }
        assert!(read_key(&"+1".repeat(32)).is_none());
    }
}
