//! Arbitrary text as a scenario and as what scenarios are made of: refused or
//! read, never a panic; what an import writes is a scenario.
use std::path::Path;
use wellspring_load::curl;
use wellspring_load::scenario::{Options, Scenario};

fn loads(text: &str) -> bool {
    let options = Options { environment: |_| None, ..Options::default() };
    Scenario::parse(text, Path::new("/nonexistent/fuzz.toml"), &options).is_ok()
}

pub fn run(text: &str) {
    let _ = loads(text);
    if let Ok(made) = curl::scenario(text, &|_| Err("no files here".into())) {
        assert!(loads(&made), "an import wrote what cannot be loaded:\n{made}");
    }
}
