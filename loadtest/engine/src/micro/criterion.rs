//! Criterion's folder, `target/criterion`: one folder a benchmark, in it `new`
//! with `estimates.json`, `benchmark.json` and `sample.json`.
//!
//! The layout is that of Criterion 0.3 to 0.7 with its default measurement, wall
//! time in nanoseconds.

use super::ImportError;
use super::report::{Basis, FORMAT, MicroBenchmark, MicroReport, Source, Spread};
use crate::invalid::Invalid;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// Folders within folders that are searched: group, function, value, and room for a project around
/// it.
const DEEPEST: usize = 8;

#[derive(Deserialize)]
struct Estimates {
    median: Estimate,
}

#[derive(Deserialize)]
struct Estimate {
    point_estimate: f64,
    confidence_interval: ConfidenceInterval,
}

#[derive(Deserialize)]
struct ConfidenceInterval {
    confidence_level: f64,
    lower_bound: f64,
    upper_bound: f64,
}

#[derive(Deserialize)]
struct Benchmark {
    full_id: String,
    throughput: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Sample {
    iters: Vec<f64>,
}

/// Reads a folder that Criterion wrote: `target/criterion`, one benchmark's
/// folder in it, or the project's (then `target/criterion` in it is read).
///
/// # Errors
/// [`ImportError`] if the folder cannot be read or holds no benchmark.
pub fn read_criterion(folder: &Path) -> Result<MicroReport, ImportError> {
    let inner = folder.join("target").join("criterion");
    let root = if inner.is_dir() { inner } else { folder.to_owned() };
    let mut found = Vec::new();
    find_results(&root, DEEPEST, &mut found)
        .map_err(|error| ImportError::Unreadable(root.clone(), error))?;
    found.sort();
    let (mut benchmarks, mut notes) = (Vec::new(), Vec::new());
    for result in &found {
        match read_one(&root, result) {
            Ok(benchmark) => benchmarks.push(benchmark),
            Err(why) => notes.push(format!("{} is left out: {why}.", result.display())),
        }
    }
    if benchmarks.is_empty() {
        let mut why = format!(
            "there is no benchmark (*/new/estimates.json) in {}; run `cargo bench` and give its target/criterion",
            root.display()
        );
        for note in notes {
            why.push_str("\n  ");
            why.push_str(&note);
        }
        return Err(ImportError::Nothing(why));
    }
    let (format, source) = (FORMAT.into(), Source::Criterion);
    Ok(MicroReport { format, source, context: Vec::new(), benchmarks, notes })
}

/// Collects all folders `new` with estimates in them. Links are not followed.
fn find_results(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            continue;
        }
        let path = entry.path();
        if entry.file_name() == "new" && path.join("estimates.json").is_file() {
            found.push(path);
        } else if depth > 0 {
            find_results(&path, depth - 1, found)?;
        }
    }
    Ok(())
}

fn read_one(root: &Path, result: &Path) -> Result<MicroBenchmark, Invalid> {
    let Estimates { median } = read_json(&result.join("estimates.json"))?;
    let ConfidenceInterval { confidence_level, lower_bound, upper_bound } =
        median.confidence_interval;
    for (name, value) in [
        ("median.point_estimate", median.point_estimate),
        ("median.confidence_interval.lower_bound", lower_bound),
        ("median.confidence_interval.upper_bound", upper_bound),
    ] {
        if !value.is_finite() || value < 0.0 {
            return Err(format!("estimates.json: {name} is {value}, not a time").into());
        }
    }
    // Both of these may be missing or of another version: the time is known without them.
    let about: Option<Benchmark> = read_json(&result.join("benchmark.json")).ok();
    let sample: Option<Sample> = read_json(&result.join("sample.json")).ok();
    let name = match &about {
        Some(about) => about.full_id.clone(),
        None => name_by_folder(root, result),
    };
    let mut benchmark = MicroBenchmark::named(&name);
    benchmark.set_time(Some(median.point_estimate));
    benchmark.n = sample.as_ref().map_or(1, |sample| sample.iters.len().max(1));
    benchmark.iterations = sample.map(|sample| whole(sample.iters.iter().sum()));
    benchmark.spread = Some(Spread {
        low_ns: lower_bound,
        high_ns: upper_bound,
        basis: Basis::SamplesOfOneRun { confidence: confidence_level },
    });
    if let Some(throughput) = about.and_then(|about| about.throughput) {
        set_throughput(&mut benchmark, &throughput);
    }
    Ok(benchmark)
}

/// `{"Bytes": 64}`, `{"Elements": 100}` and their like: so many by each operation.
fn set_throughput(benchmark: &mut MicroBenchmark, throughput: &serde_json::Value) {
    let Some(rate) = benchmark.ops_per_s else { return };
    let Some(fields) = throughput.as_object() else { return };
    for (kind, value) in fields {
        // `ElementsAndBytes` has both within.
        if value.is_object() {
            set_throughput(benchmark, value);
        }
        let Some(count) = value.as_f64() else { continue };
        match kind.to_ascii_lowercase().as_str() {
            "bytes" | "bytesdecimal" => benchmark.bytes_per_s = Some(rate * count),
            other => benchmark.other.push((format!("{other}/s"), rate * count)),
        }
    }
}

fn name_by_folder(root: &Path, result: &Path) -> String {
    let folder = result.parent().unwrap_or(result);
    let name = folder.strip_prefix(root).unwrap_or(folder).display().to_string();
    if name.is_empty() {
        folder.file_name().map_or(name, |last| last.to_string_lossy().into_owned())
    } else {
        name
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Invalid> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| Invalid::new(format!("{name}: {error}")))
}

fn whole(count: f64) -> u64 {
    count.round() as u64
}

#[cfg(test)]
mod tests;
