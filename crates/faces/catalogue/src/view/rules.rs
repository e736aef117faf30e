//! The rules for names, descriptions, amounts and stocks. Decisions refuse violations, and the fold
//! ignores foreign events with them.

/// Longest name of an item or a topic, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 300;
/// Longest description, in bytes.
pub(crate) const MAX_DESCRIPTION_BYTES: usize = 16 << 10;
/// Longest SKU, in bytes.
pub(crate) const MAX_SKU_BYTES: usize = 64;
/// The greatest stock of an item, and the greatest change of one.
pub(crate) const MAX_STOCK: u32 = 1_000_000_000;
/// Most items, and most topics: ids are 32 bits wide.
pub(crate) const MAX_ITEMS: usize = 100_000_000;
/// Most topics.
pub(crate) const MAX_TOPICS: usize = 10_000;

/// The fault of a name, if any.
pub(crate) fn name_fault(name: &str) -> Option<String> {
    match () {
        () if name.trim().is_empty() => Some("must not be empty".to_owned()),
        () if name.len() > MAX_NAME_BYTES => Some(format!("is longer than {MAX_NAME_BYTES} bytes")),
        () if name.chars().any(char::is_control) => Some("contains a control character".to_owned()),
        () => None,
    }
}

/// The fault of a description, if any.
pub(crate) fn description_fault(description: &str) -> Option<String> {
    let is_bad = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    match () {
        () if description.len() > MAX_DESCRIPTION_BYTES => {
            Some(format!("is longer than {MAX_DESCRIPTION_BYTES} bytes"))
        }
        () if description.chars().any(is_bad) => Some("contains a control character".to_owned()),
        () => None,
    }
}

/// The fault of a SKU, if any. SKUs are used in tags and paths.
pub(crate) fn sku_fault(sku: &str) -> Option<String> {
    let is_fine = |b: u8| b.is_ascii_alphanumeric() || b"-_.:+".contains(&b);
    let fits = (1..=MAX_SKU_BYTES).contains(&sku.len()) && sku.bytes().all(is_fine);
    (!fits).then(|| format!("must be 1 to {MAX_SKU_BYTES} letters, digits or any of - _ . : +"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_may_not_be_are_told() {
        assert_eq!(name_fault("Cooking for the Impatient"), None);
        for bad in ["", "  ", "a\nb", &"a".repeat(301)] {
            assert!(name_fault(bad).is_some(), "{bad:?}");
        }
        assert_eq!(description_fault("two\nlines"), None);
        assert!(description_fault("\u{0}").is_some());
        assert!(description_fault(&"a".repeat(MAX_DESCRIPTION_BYTES + 1)).is_some());
        assert_eq!(sku_fault("A-1_b.c:d+e"), None);
        for bad in ["", "a b", "ä", "a/b", &"a".repeat(65)] {
            assert!(sku_fault(bad).is_some(), "{bad:?}");
        }
    }
}
