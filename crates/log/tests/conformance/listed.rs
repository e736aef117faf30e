//! The list of tests equals the documented one.

use std::collections::BTreeSet;
use wellspring_log_conformance::{suite, table};

#[test]
fn the_table_in_the_documentation_is_the_list() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/conformance.md");
    let text = std::fs::read_to_string(path).unwrap();
    let listed = table();
    assert!(text.contains(&listed), "docs/conformance.md has to say:\n{listed}");
}

#[test]
fn no_name_stands_twice() {
    let names: BTreeSet<_> = suite().iter().map(|test| (test.group, test.name)).collect();
    assert_eq!(names.len(), suite().len());
}
