//! Runs the examples under `examples/` as a reader would.

use crate::server::Server;
use std::path::Path;
use std::process::Command;

#[test]
fn the_seven_examples_run_and_hold() {
    let server = Server::start();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut scripts: Vec<_> = std::fs::read_dir(&dir)
        .expect("examples/")
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.ends_with(".py") && name.starts_with(|first: char| first.is_ascii_digit())
        })
        .collect();
    scripts.sort();
    assert_eq!(scripts.len(), 7, "{scripts:?}");
    for script in scripts {
        let output = Command::new("python3")
            .arg(&script)
            .env("WELLSPRING_URL", server.url())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .expect("python3 is installed");
        assert!(
            output.status.success(),
            "{}\n{}{}",
            script.display(),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
