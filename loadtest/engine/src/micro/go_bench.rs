//! `go test -bench` output, as text or as `go test -json` writes it.
//!
//! The format is that of Go's "Benchmark data format" proposal (14313): lines of
//! a name, a number of iterations, and pairs of value and unit; `key: value`
//! lines before them; anything else in between.

use super::ImportError;
use super::go_names::{is_benchmark, shared_processors, shortened};
use super::report::{FORMAT, MicroBenchmark, MicroReport, Source, spread_over_repeats};
use crate::stats;
use std::path::Path;

/// Keys that Go itself writes, besides `pkg`. Others are taken for a program's own output.
const CONTEXT_KEYS: [&str; 3] = ["goos", "goarch", "cpu"];

/// All repeats of one benchmark.
struct Repeats {
    package: Option<String>,
    name: String,
    iterations: u64,
    count: usize,
    /// Values by unit, in the order of first appearance.
    values: Vec<(String, Vec<f64>)>,
}

#[derive(Default)]
struct Reading {
    context: Vec<(String, String)>,
    package: Option<String>,
    /// The name of a result whose figures follow on a later line, after the program's own output.
    pending: Option<String>,
    all: Vec<Repeats>,
    notes: Vec<String>,
}

/// Reads a file with the output of `go test -bench`.
///
/// # Errors
/// [`ImportError`] if it cannot be read, is not UTF-8, or has no result in it.
pub fn read_go_bench(path: &Path) -> Result<MicroReport, ImportError> {
    let bytes =
        std::fs::read(path).map_err(|error| ImportError::Unreadable(path.to_owned(), error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        ImportError::Nothing(format!(
            "{} is not UTF-8 (byte {at}); if PowerShell wrote it, write it again with `| Out-File -Encoding utf8`",
            path.display()
        ))
    })?;
    parse_go_bench(&text)
        .map_err(|error| ImportError::Nothing(format!("{}: {error}", path.display())))
}

/// Reads the output of `go test -bench`. Repeats of the same benchmark (`-count`)
/// become one; lines that are no results are ignored.
///
/// # Errors
/// [`ImportError::Nothing`] if there is no result in it.
pub fn parse_go_bench(text: &str) -> Result<MicroReport, ImportError> {
    let text = text.trim_start_matches('\u{feff}');
    let mut reading = Reading::default();
    let events = outputs_of_json(text);
    if events.is_empty() {
        for (at, line) in text.lines().enumerate() {
            reading.line(line, at + 1);
        }
    }
    for (package, output) in events {
        reading.package = package;
        reading.pending = None;
        for (at, line) in output.lines().enumerate() {
            reading.line(line, at + 1);
        }
    }
    reading.finish()
}

/// The output within `go test -json` events, put together by package; empty if it is none.
fn outputs_of_json(text: &str) -> Vec<(Option<String>, String)> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Event {
        #[serde(rename = "Action")]
        _action: String,
        package: Option<String>,
        output: Option<String>,
    }
    let mut outputs: Vec<(Option<String>, String)> = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let Ok(event) = serde_json::from_str::<Event>(line) else { continue };
        let output = event.output.unwrap_or_default();
        match outputs.iter_mut().find(|(package, _)| *package == event.package) {
            Some((_, there)) => there.push_str(&output),
            None => outputs.push((event.package, output)),
        }
    }
    outputs
}

impl Reading {
    fn line(&mut self, line: &str, number: usize) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(&first) = words.first() else { return };
        if is_benchmark(first) {
            if let Some(figures) = figures(&words[1..]) {
                self.result(first, &figures, line, number);
                self.pending = None;
            } else {
                // With -v the name also stands alone in a line before the result's.
                self.pending = Some(first.to_owned());
            }
        } else if let Some(name) = self.pending.clone()
            // A program may print numbers too: only a time or the like is taken for the result.
            && let Some(figures) = figures(&words)
            && figures.pairs.iter().any(|(_, unit)| unit.ends_with("/op"))
        {
            self.result(&name, &figures, line, number);
            self.pending = None;
        } else if let Some(value) = line.strip_prefix("pkg: ") {
            self.package = Some(value.trim().to_owned());
        } else if let Some((key, value)) = line.split_once(": ")
            && CONTEXT_KEYS.contains(&key)
        {
            let pair = (key.to_owned(), value.trim().to_owned());
            if !self.context.contains(&pair) {
                self.context.push(pair);
            }
        } else {
            self.event(line.trim_start());
        }
    }

    /// What Go says of benchmarks that have no result.
    fn event(&mut self, line: &str) {
        for (mark, what) in [("--- FAIL: ", "failed"), ("--- SKIP: ", "was skipped")] {
            let name = line.strip_prefix(mark).and_then(|rest| rest.split_whitespace().next());
            if let Some(name) = name.filter(|name| is_benchmark(name)) {
                self.note(format!("{name} {what} and has no figures."));
            }
        }
        if let Some(why) = line.strip_prefix("panic: ") {
            self.note(format!("The program panicked ({why}); what followed is missing."));
        }
    }

    fn note(&mut self, sentence: String) {
        if !self.notes.contains(&sentence) {
            self.notes.push(sentence);
        }
    }

    fn result(&mut self, name: &str, figures: &Figures<'_>, line: &str, number: usize) {
        if figures.cut_off {
            self.note(format!("Line {number} ends in the middle of a figure: {:?}.", line.trim()));
        }
        let place =
            self.all.iter().position(|there| there.name == name && there.package == self.package);
        let place = place.unwrap_or_else(|| {
            self.all.push(Repeats {
                package: self.package.clone(),
                name: name.to_owned(),
                iterations: 0,
                count: 0,
                values: Vec::new(),
            });
            self.all.len() - 1
        });
        let repeats = &mut self.all[place];
        repeats.count += 1;
        repeats.iterations = repeats.iterations.saturating_add(figures.iterations);
        for &(value, unit) in &figures.pairs {
            match repeats.values.iter_mut().find(|(there, _)| there == unit) {
                Some((_, values)) => values.push(value),
                None => repeats.values.push((unit.to_owned(), vec![value])),
            }
        }
    }

    fn finish(mut self) -> Result<MicroReport, ImportError> {
        if self.all.is_empty() {
            let mut why = "there is no benchmark result in it; make it with `go test -run '^$' -bench . -benchmem -count 10 | tee FILE`".to_owned();
            for note in &self.notes {
                why.push_str("\n  ");
                why.push_str(note);
            }
            return Err(ImportError::Nothing(why));
        }
        let shared = shared_processors(self.all.iter().map(|repeats| repeats.name.as_str()));
        if let Some(count) = shared {
            self.context.push(("GOMAXPROCS".into(), count.to_string()));
        }
        let several = self.all.iter().any(|repeats| repeats.package != self.all[0].package);
        if let (false, Some(package)) = (several, self.all[0].package.clone()) {
            self.context.push(("pkg".into(), package));
        }
        let mut benchmarks = Vec::with_capacity(self.all.len());
        for repeats in &self.all {
            let mut benchmark = repeats.summary(&shortened(&repeats.name, shared));
            benchmark.package = repeats.package.clone().filter(|_| several);
            benchmarks.push(benchmark);
        }
        Ok(MicroReport {
            format: FORMAT.into(),
            source: Source::GoBench,
            context: self.context,
            benchmarks,
            notes: self.notes,
        })
    }
}

impl Repeats {
    fn summary(&self, name: &str) -> MicroBenchmark {
        let mut benchmark = MicroBenchmark::named(name);
        benchmark.n = self.count;
        benchmark.iterations = Some(self.iterations);
        for (unit, values) in &self.values {
            let Some(middle) = stats::median(values) else { continue };
            match unit.as_str() {
                "ns/op" => {
                    benchmark.set_time(Some(middle));
                    benchmark.spread = spread_over_repeats(values);
                }
                "B/op" => benchmark.bytes_per_op = Some(middle),
                "allocs/op" => benchmark.allocs_per_op = Some(middle),
                // Go's MB are millions of bytes.
                "MB/s" => benchmark.bytes_per_s = Some(middle * 1e6),
                _ => benchmark.other.push((unit.clone(), middle)),
            }
        }
        benchmark
    }
}

struct Figures<'a> {
    iterations: u64,
    pairs: Vec<(f64, &'a str)>,
    cut_off: bool,
}

/// `1000  123 ns/op  0 B/op`: `None` if it is not that.
fn figures<'a>(words: &[&'a str]) -> Option<Figures<'a>> {
    let (iterations, rest) = words.split_first()?;
    let iterations = iterations.parse().ok()?;
    let mut pairs = Vec::new();
    let mut cut_off = false;
    for pair in rest.chunks(2) {
        let value = pair[0].parse::<f64>().ok().filter(|value| value.is_finite());
        match (value, pair.get(1)) {
            (Some(value), Some(unit)) => pairs.push((value, *unit)),
            // What a program prints into the line begins here, or the file ends.
            (Some(_), None) => cut_off = true,
            (None, _) => break,
        }
    }
    (!pairs.is_empty()).then_some(Figures { iterations, pairs, cut_off })
}

#[cfg(test)]
mod tests;
