//! Base64 with padding (RFC 4648 §4).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0; 4];
        group[1..=chunk.len()].copy_from_slice(chunk);
        let group = u32::from_be_bytes(group);
        for at in 0..4 {
            let letter = ALPHABET[(group >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= chunk.len() { letter.into() } else { '=' });
        }
    }
    text
}

pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let letters = text.trim_end_matches('=');
    let padding = text.len() - letters.len();
    if !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in letters.as_bytes().chunks(4) {
        let mut group = 0u32;
        for &letter in chunk {
            let value = ALPHABET.iter().position(|known| *known == letter)?;
            group = group << 6 | value as u32;
        }
        group <<= 6 * (4 - chunk.len());
        let count = chunk.len() - 1;
        // The unused bits of the last letter must be zero.
        let spare = group & 0xff_ffff >> (8 * count);
        if spare != 0 {
            return None;
        }
        bytes.extend_from_slice(&group.to_be_bytes()[1..=count]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_read_back_as_written() {
        let known =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (bytes, text) in known {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
        for bad in ["Z", "Zg", "Zg=", "Zh==", "Zm9v====", "====", "Zg==Zg==", "Z===", "é==="] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
