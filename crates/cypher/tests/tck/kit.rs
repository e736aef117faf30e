//! Locates the kit's scenarios.

use super::gherkin::{Scenario, scenarios};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A scenario and its location.
pub(crate) struct Case {
    /// Folder, feature, name: `clauses/match/Match1 [3] …`
    pub(crate) name: String,
    /// The folder: `clauses/match`
    pub(crate) folder: String,
    pub(crate) scenario: Scenario,
}

/// Finds the kit by asking Cargo, which downloads the package if no build has needed it before.
pub(crate) fn folder() -> PathBuf {
    let metadata = metadata(&["--offline"]).or_else(|_| metadata(&[]));
    let metadata = metadata.unwrap_or_else(|problem| panic!("cargo metadata: {problem}"));
    let packages = metadata["packages"].as_array().expect("metadata lists packages");
    let package = packages
        .iter()
        .find(|package| package["name"] == "open-cypher")
        .expect("the kit's package");
    let manifest = package["manifest_path"].as_str().expect("a package has a manifest");
    let vendor = Path::new(manifest).with_file_name("spec").join("vendor");
    let mut versions = std::fs::read_dir(&vendor).expect("the kit is in the package");
    let version =
        versions.next().expect("a version of the kit").expect("a folder that can be read");
    version.path().join("tck")
}

fn metadata(more: &[&str]) -> Result<serde_json::Value, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--locked", "--format-version", "1"])
        .args(more)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// The scenarios below a folder, in order.
pub(crate) fn cases(features: &Path) -> Vec<Case> {
    let mut files = Vec::new();
    collect(features, &mut files);
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a feature that can be read");
        let place = file.strip_prefix(features).expect("below the features").with_extension("");
        let folder = place.parent().unwrap_or(Path::new("")).display().to_string();
        for scenario in scenarios(&text) {
            let name = format!("{} {}", place.display(), scenario.name);
            cases.push(Case { name, folder: folder.clone(), scenario });
        }
    }
    cases
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder that can be read") {
        let path = entry.expect("an entry that can be read").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "feature") {
            files.push(path);
        }
    }
}
