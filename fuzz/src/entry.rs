//! Arbitrary bytes as an entry of a shared log, and with their checksums put right: refused or
//! read, never a panic; what is read has no other form; the rule takes it in any state, and its
//! head never goes back.
use crate::crc32c;
use wellspring_log::shared::entry::{Claim, ClusterId, ENTRY_HEADER_BYTES, Entry};
use wellspring_log::shared::rule::Rule;

/// The same bytes with the header and checksums an entry has.
fn sealed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let (header, body) = bytes.split_at_mut_checked(ENTRY_HEADER_BYTES)?;
    header[0..4].copy_from_slice(&wellspring_log::shared::entry::ENTRY_MAGIC.to_le_bytes());
    header[8] = 1;
    header[9] %= 7;
    header[56..60].copy_from_slice(&(body.len() as u32).to_le_bytes());
    header[60..64].copy_from_slice(&crc32c(body).to_le_bytes());
    let crc = crc32c(&header[8..]);
    header[4..8].copy_from_slice(&crc.to_le_bytes());
    Some(bytes)
}

fn judge(rule: &mut Rule, bytes: &[u8]) {
    let (epoch, head) = (rule.epoch(), rule.head());
    let entry = Entry::decode(bytes);
    let verdict = rule.judge(bytes.into());
    assert_eq!(entry.is_ok(), verdict.is_ok());
    if let Ok(entry) = entry {
        assert_eq!(entry.encode(), bytes);
    }
    assert!(rule.epoch() >= epoch && rule.head() >= head);
}

pub fn run(bytes: &[u8]) {
    let mut rule = Rule::default();
    judge(&mut rule, &Entry::Founded { cluster: ClusterId([1; 16]), log: "main" }.encode());
    judge(&mut rule, &Entry::Claim(Claim { epoch: 1, node: "a", start: 1, url: "" }).encode());
    judge(&mut rule, bytes);
    for piece in bytes.chunks(200) {
        if let Some(entry) = sealed(piece) {
            judge(&mut rule, &entry);
        }
    }
}
