//! From a folder of result files to summaries, one file at a time.

use super::series::{Entry, History, Skipped, Standing, Summary};
use super::{Options, series};
use std::path::{Path, PathBuf};
use wellspring_load::compare::{Figures, Metric, comparable_settings, machine};
use wellspring_load::result::Report;
use wellspring_load::stats;

/// Why there is no history.
#[derive(Debug)]
pub enum HistoryError {
    /// The folder could not be read.
    Folder(PathBuf, std::io::Error),
    /// Nothing in the folder could be used; the files and why not.
    Nothing(PathBuf, Vec<Skipped>),
}

impl std::fmt::Display for HistoryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HistoryError::Folder(path, error) => {
                write!(f, "the folder {} could not be read: {error}", path.display())
            }
            HistoryError::Nothing(path, skipped) if skipped.is_empty() => write!(
                f,
                "there is no result file (*.json) in {}; write some with `wellspring bench … --json FILE`",
                path.display()
            ),
            HistoryError::Nothing(path, skipped) => {
                write!(f, "no file in {} is a usable result file:", path.display())?;
                for Skipped { file, reason } in skipped {
                    write!(f, "\n  {file}: {reason}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for HistoryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            HistoryError::Folder(_, error) => Some(error),
            HistoryError::Nothing(..) => None,
        }
    }
}

/// Reads every `*.json` of a folder (not of the folders within), whatever the
/// order of their names. A file that cannot be used is skipped and named.
///
/// # Errors
/// [`HistoryError`] if the folder cannot be read or holds nothing that can be used.
pub fn read_folder(folder: &Path, options: &Options) -> Result<History, HistoryError> {
    let unreadable = |error| HistoryError::Folder(folder.to_owned(), error);
    let mut names: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_json = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("json"));
        if is_json && path.is_file() {
            names.push(path);
        }
    }
    names.sort();
    let (mut files, mut skipped, mut summaries) = (0, Vec::new(), Vec::new());
    for path in names {
        let file =
            path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        match summaries_of(&path, &file) {
            Ok(of_file) => {
                files += 1;
                summaries.extend(of_file);
            }
            Err(reason) => skipped.push(Skipped { file, reason }),
        }
    }
    if summaries.is_empty() {
        return Err(HistoryError::Nothing(folder.to_owned(), skipped));
    }
    Ok(series::History::of(files, skipped, summaries, options))
}

fn summaries_of(path: &Path, file: &str) -> Result<Vec<Summary>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let report = Report::from_json(&text).map_err(|error| error.to_string())?;
    let summaries = summarise(file, &report);
    if summaries.is_empty() {
        return Err("no step has a run that came to its end".into());
    }
    Ok(summaries)
}

/// The steps of one report without their histograms; steps without a finished run are left out.
#[must_use]
pub fn summarise(file: &str, report: &Report) -> Vec<Summary> {
    let environment = &report.environment;
    let mut summaries = Vec::new();
    for step in &report.steps {
        let figures: Vec<Figures> = step.runs.iter().filter_map(Figures::of).collect();
        if figures.is_empty() {
            continue;
        }
        let middle = |metric| {
            let values: Option<Vec<f64>> = figures.iter().map(|run| run.get(metric)).collect();
            values.and_then(|values| stats::geometric_mean(&values))
        };
        let settings = comparable_settings(&step.settings);
        summaries.push(Summary {
            workload: step.settings.workload.clone(),
            step: step.name.clone(),
            settings: settings.into_iter().map(|(what, value)| (what.to_owned(), value)).collect(),
            entry: Entry {
                file: file.to_owned(),
                started_unix_us: report.started_unix_us,
                git_revision: environment.git_revision.clone(),
                target: environment.target.clone(),
                runs: figures.len(),
                throughput_per_s: middle(Metric::Throughput),
                p50_ns: middle(Metric::P50),
                p99_ns: middle(Metric::P99),
                standing: Standing::of(report.verdict.as_ref()),
                change_log_ratio: None,
                verdict: None,
                machine_changes: Vec::new(),
                figures,
                machine: machine(environment),
            },
        });
    }
    summaries
}
