//! Results over time: series, what changed from one to the next, and lasting changes.

use super::{FORMAT, Grouping, Options};
use serde::{Deserialize, Serialize};
use wellspring_load::compare::{
    CONFIDENCE, Figures, Metric, Options as Comparing, Verdict, compare_neighbours,
};
use wellspring_load::result::Verdict as Trust;
use wellspring_load::stats;

/// A folder of results over time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct History {
    /// Always [`FORMAT`].
    pub format: String,
    /// Files that were read.
    pub files: usize,
    /// Files that were not, and why.
    pub skipped: Vec<Skipped>,
    /// The series, in the order of their first result.
    pub series: Vec<Series>,
}

/// A file that is not in the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Its name within the folder.
    pub file: String,
    /// Why it was left out.
    pub reason: String,
}

/// The same step of the same workload with the same load, over time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Series {
    /// What is sent, for people.
    pub workload: String,
    /// Name of the step.
    pub step: String,
    /// The settings that all entries share, as names and values.
    pub settings: Vec<(String, String)>,
    /// The targets asked, each once. More than one may mean that several servers are mixed.
    pub targets: Vec<String>,
    /// The results in order of time.
    pub entries: Vec<Entry>,
    /// Lasting changes, in order of time.
    pub changes: Vec<Change>,
}

/// One result file's figures for one series.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Name of the file within the folder.
    pub file: String,
    /// When the report was begun, microseconds since 1970 UTC.
    pub started_unix_us: u64,
    /// Git revision, as recorded.
    pub git_revision: Option<String>,
    /// Host asked.
    pub target: String,
    /// Runs that came to their end.
    pub runs: usize,
    /// Geometric mean over the runs; `None` if there is none or one is 0.
    pub throughput_per_s: Option<f64>,
    /// The same of the median latency, nanoseconds.
    pub p50_ns: Option<f64>,
    /// The same of the 99th percentile, nanoseconds.
    pub p99_ns: Option<f64>,
    /// What the report said of itself.
    pub standing: Standing,
    /// ln(this / the one before) of throughput, in open loop of p99.
    pub change_log_ratio: Option<f64>,
    /// Whether that is more than chance, by the runs of both, adjusted (Holm) over
    /// all neighbours of the series; `None` for the first.
    pub verdict: Option<Verdict>,
    /// What is not as for the one before: machine, kernel, client, as `what: a → b`.
    pub machine_changes: Vec<String>,
    /// The runs themselves, only while the history is made.
    #[serde(skip)]
    pub(super) figures: Vec<Figures>,
    #[serde(skip)]
    pub(super) machine: Vec<(&'static str, String)>,
}

/// What a report said of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// TRUSTED.
    Trusted,
    /// USE WITH CARE.
    UseWithCare,
    /// NOT MEASURABLE: shown, but no changes are sought in it.
    NotMeasurable,
    /// Nothing: the checks had not been applied.
    Unchecked,
}

impl Standing {
    pub(super) fn of(verdict: Option<&Trust>) -> Self {
        match verdict {
            Some(Trust::Trusted) => Standing::Trusted,
            Some(Trust::UseWithCare(_)) => Standing::UseWithCare,
            Some(Trust::NotMeasurable(_)) => Standing::NotMeasurable,
            None => Standing::Unchecked,
        }
    }

    /// As written in reports.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Standing::Trusted => "trusted",
            Standing::UseWithCare => "with care",
            Standing::NotMeasurable => "not measurable",
            Standing::Unchecked => "unchecked",
        }
    }
}

/// A lasting change between two results that follow each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// What changed.
    pub metric: Metric,
    /// Index of the last entry as it was before.
    pub before: usize,
    /// Index of the first entry as it was after.
    pub after: usize,
    /// Revision of the entry before, as recorded.
    pub revision_before: Option<String>,
    /// Revision of the entry after.
    pub revision_after: Option<String>,
    /// ln(median after / median before), over all entries up to the neighbouring changes.
    pub log_ratio: f64,
    /// 1 − p: of shuffled series, the share in which no place looks as much like a change.
    pub confidence: f64,
}

/// One step of one report, ready to be put into its series.
#[derive(Clone, Debug)]
pub struct Summary {
    /// What is sent, for people.
    pub workload: String,
    /// Name of the step.
    pub step: String,
    /// The settings that must be equal within a series.
    pub settings: Vec<(String, String)>,
    /// Its figures.
    pub entry: Entry,
}

impl History {
    /// Groups summaries into series, orders them by time and looks for changes.
    /// A summary of the same step with the same begin as another one is a copy of
    /// it and becomes a skipped file.
    #[must_use]
    pub fn of(
        files: usize,
        mut skipped: Vec<Skipped>,
        mut summaries: Vec<Summary>,
        options: &Options,
    ) -> History {
        summaries.sort_by_key(|summary| summary.entry.started_unix_us);
        let mut series: Vec<Series> = Vec::new();
        for summary in summaries {
            let Summary { workload, step, settings, entry } = summary;
            let fits = |there: &&mut Series| {
                there.step == step
                    && there.settings == settings
                    && (options.grouping == Grouping::Workload
                        || there.targets.contains(&entry.target))
            };
            if let Some(there) = series.iter_mut().find(fits) {
                let same = |other: &&Entry| other.started_unix_us == entry.started_unix_us;
                if let Some(original) = there.entries.iter().find(same) {
                    let reason = format!("the same measurement as {}", original.file);
                    if !skipped.iter().any(|skipped| skipped.file == entry.file) {
                        skipped.push(Skipped { file: entry.file, reason });
                    }
                    continue;
                }
                if !there.targets.contains(&entry.target) {
                    there.targets.push(entry.target.clone());
                }
                there.entries.push(entry);
            } else {
                let targets = vec![entry.target.clone()];
                let (entries, changes) = (vec![entry], Vec::new());
                series.push(Series { workload, step, settings, targets, entries, changes });
            }
        }
        for one in &mut series {
            one.compare_neighbours(options.detection.seed);
            one.find_changes(&options.detection);
        }
        History { format: FORMAT.into(), files, skipped, series }
    }
}

impl Series {
    /// The metric that leads: in open loop throughput is only what was offered.
    #[must_use]
    pub fn lead(&self) -> Metric {
        let open = |(what, value): &(String, String)| what == "load" && value.starts_with("open");
        let open = self.settings.iter().any(open);
        if open { Metric::P99 } else { Metric::Throughput }
    }

    fn compare_neighbours(&mut self, seed: u64) {
        let lead = self.lead();
        let options = Comparing { seed, ..Comparing::default() };
        let figures: Vec<&[Figures]> =
            self.entries.iter().map(|entry| entry.figures.as_slice()).collect();
        let compared = compare_neighbours(lead, &figures, &options);
        for (at, metric) in compared.iter().enumerate() {
            let (before, after) = self.entries.split_at_mut(at + 1);
            let (before, after) = (&before[at], &mut after[0]);
            after.change_log_ratio = metric.effect.map(|effect| effect.estimate);
            after.verdict = Some(metric.verdict);
            after.machine_changes = before
                .machine
                .iter()
                .zip(&after.machine)
                .filter(|(then, now)| then != now)
                .map(|((what, then), (_, now))| format!("{what}: {then} → {now}"))
                .collect();
        }
    }

    fn find_changes(&mut self, how: &stats::Detection) {
        let mut changes = Vec::new();
        for metric in [Metric::Throughput, Metric::P50, Metric::P99] {
            let (places, logs): (Vec<usize>, Vec<f64>) = self
                .entries
                .iter()
                .enumerate()
                .filter(|(_, entry)| entry.standing != Standing::NotMeasurable)
                .filter_map(|(at, entry)| Some((at, entry.get(metric)?.ln())))
                .unzip();
            for found in stats::change_points(&logs, how) {
                let (before, after) = (places[found.at - 1], places[found.at]);
                changes.push(Change {
                    metric,
                    before,
                    after,
                    revision_before: self.entries[before].git_revision.clone(),
                    revision_after: self.entries[after].git_revision.clone(),
                    log_ratio: found.median_after - found.median_before,
                    confidence: 1.0 - found.p,
                });
            }
        }
        changes.sort_by_key(|change| (change.after, change.metric));
        self.changes = changes;
    }
}

impl Entry {
    /// The value of a metric; `None` for those a history does not keep.
    #[must_use]
    pub fn get(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Throughput => self.throughput_per_s,
            Metric::P50 => self.p50_ns,
            Metric::P99 => self.p99_ns,
            Metric::Mean | Metric::P90 | Metric::P95 | Metric::FailureShare => None,
        }
    }

    /// Whether the change from the entry before was called.
    #[must_use]
    pub fn changed(&self) -> bool {
        matches!(self.verdict, Some(Verdict::Faster | Verdict::Slower))
    }
}

/// The confidence of [`Entry::verdict`], for texts.
pub(super) const VERDICT_CONFIDENCE: f64 = CONFIDENCE;
