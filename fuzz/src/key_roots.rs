//! Arbitrary text as the roots of subject keys, also with the check of each line put right: roots
//! in order, or a refusal, never a panic.
use crate::crc32c;
use wellspring_subject_keys::KeyRoots;

pub fn run(text: &str) {
    let checked = text.lines().map(|line| format!("{line} {:08x}\n", crc32c(line.as_bytes())));
    for text in [text, &checked.collect::<String>()] {
        if let Ok(roots) = KeyRoots::parse(text) {
            let generations: Vec<u16> = roots.generations().collect();
            assert!(!generations.is_empty() && generations.is_sorted_by(|a, b| a < b));
            assert!(generations.len() <= text.lines().count());
        }
    }
}
