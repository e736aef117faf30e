//! The load tester against servers of known behaviour. A process of its own, so
//! that no other test runs beside it and spoils its times.

use wellspring_load::selftest::{Extent, Options, Verdict, render_text, run_all};

#[test]
fn the_self_test_passes() {
    // `SELF_TEST_ONLY=faults cargo test -p wellspring-load --test selftest` runs a part, with
    // `SELF_TEST_LONG=1` as long as `bench self-test --long`.
    let only = std::env::var("SELF_TEST_ONLY").unwrap_or_default();
    let long = std::env::var_os("SELF_TEST_LONG").is_some();
    let extent = if long { Extent::Long } else { Extent::Short };
    let options = Options { only, extent, ..Options::default() };
    let outcomes =
        run_all(&options, &mut |outcome| println!("{} took {} ms", outcome.name, outcome.took_ms));
    let text = render_text(&outcomes);
    println!("{text}");
    assert_ne!(Verdict::of(&outcomes), Verdict::Failed, "\n{text}");
    assert!(!outcomes.is_empty());
}
