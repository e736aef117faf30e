//! Arbitrary text as a scenario and as what scenarios are made of: refused or
//! read, never a panic; what an import writes is a scenario.
use std::path::Path;
use wellspring_load::scenario::{Options, Scenario};
use wellspring_load_tools::scenarios::{HarOptions, curl, har, openapi};

fn loads(text: &str) -> bool {
    let options = Options { environment: |_| None, ..Options::default() };
    Scenario::parse(text, Path::new("/nonexistent/fuzz.toml"), &options).is_ok()
}

pub fn run(text: &str) {
    let _ = loads(text);
    let imported = [
        curl(text, &|_| Err("no files here".to_owned())).ok(),
        har(text, &HarOptions { static_assets: true }).ok(),
        openapi(text).ok(),
    ];
    for made in imported.into_iter().flatten() {
        assert!(loads(&made), "an import wrote what cannot be loaded:\n{made}");
    }
}
