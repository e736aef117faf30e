//! Samples of the main figures since the start of the server, in bounded memory: whenever there are
//! too many, every other one is dropped and the next are taken half as often.
//!
//! Counters and histograms are kept as they are, growing from 0, never as differences: so dropping
//! a sample loses resolution and nothing else.

use wellspring_host::stats::family::Family;

/// Most samples kept: with two seconds between them, half an hour; then an hour at four seconds …
const MOST: usize = 900;
/// Time between two samples at first, in µs.
const FIRST_STEP_US: u64 = 2_000_000;

/// Routes that read events.
const READS: &[&str] = &[
    "GET /v1/events",
    "GET /v1/events/{position}",
    "GET /v1/events/by-id/{uuid}",
    "POST /v1/query",
    "POST /v1/project",
    "GET /v1/catalogue/items/{item}",
    "GET /lookup/{item}",
    "GET /read",
    "POST /read",
    "POST /project",
];
const APPENDS: &[&str] = &["POST /v1/append", "POST /append"];
const REDIRECTS: &[&str] = &["GET /{code}"];
const GRAPH: &[&str] = &["POST /db/{log}/tx/commit", "POST /db/{log}/tx"];

/// Every route that is named here, as the figures name it; the server tests that it has them.
pub fn sampled_routes() -> impl Iterator<Item = &'static str> {
    DURATIONS.iter().flat_map(|(_, routes)| *routes).copied()
}

/// How a figure is made of the families.
pub(crate) enum Source {
    /// The sum of a family over its series, except those of the log `system`.
    Sum(&'static str),
    /// The requests of these routes.
    Requests(&'static [&'static str]),
}

/// A figure that is sampled.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) source: Source,
    /// Whether it only grows, so that a reader is shown its growth in a second.
    pub(crate) is_counter: bool,
}

const fn counter(name: &'static str, source: Source) -> Figure {
    Figure { name, source, is_counter: true }
}

const fn gauge(name: &'static str, family: &'static str) -> Figure {
    Figure { name, source: Source::Sum(family), is_counter: false }
}

/// The figures, in the order of a sample's values.
pub(crate) const FIGURES: &[Figure] = &[
    counter("events", Source::Sum("wellspring_log_events_total")),
    counter("appends", Source::Sum("wellspring_log_appends_total")),
    counter("conflicts", Source::Sum("wellspring_log_conflicts_total")),
    counter("ingested", Source::Sum("wellspring_ingest_accepted_events_total")),
    counter("reads", Source::Requests(READS)),
    counter("redirects", Source::Requests(REDIRECTS)),
    counter("statements", Source::Sum("wellspring_graph_statements_total")),
    counter("refused", Source::Sum("wellspring_refused_total")),
    counter("cpu_seconds", Source::Sum("process_cpu_seconds_total")),
    gauge("stored_events", "wellspring_log_head"),
    gauge("memory_bytes", "process_resident_memory_bytes"),
    gauge("disk_bytes", "wellspring_log_disk_bytes"),
    gauge("device_free_bytes", "wellspring_device_free_bytes"),
    gauge("connections", "wellspring_connections"),
    gauge("subscribers", "wellspring_subscribers"),
    gauge("view_lag_events", "wellspring_view_lag_events"),
];

/// Durations that are sampled, with their routes.
pub(crate) const DURATIONS: &[(&str, &[&str])] =
    &[("append", APPENDS), ("read", READS), ("redirect", REDIRECTS), ("graph", GRAPH)];

/// The figures at one moment.
#[derive(Clone)]
pub(crate) struct Sample {
    pub(crate) at_us: u64,
    /// In the order of [`FIGURES`].
    pub(crate) values: Vec<f64>,
    /// For each of [`DURATIONS`], how many requests took how long so far: an upper bound in s, the
    /// last one infinite, and a count.
    pub(crate) durations: Vec<Vec<(f64, u64)>>,
}

/// All samples, oldest first.
pub(crate) struct Samples {
    taken: Vec<Sample>,
    step_us: u64,
}

impl Samples {
    /// None yet.
    pub(crate) fn new() -> Samples {
        Samples { taken: Vec::new(), step_us: FIRST_STEP_US }
    }

    /// Whether it is time for another sample. The caller's clock ticks about once a second, so half
    /// a second early is on time.
    pub(crate) fn is_due(&self, now_us: u64) -> bool {
        let last_us = self.taken.last().map(|sample| sample.at_us);
        // A clock that was set back begins a new series rather than none for hours.
        last_us.is_none_or(|last_us| now_us + 500_000 >= last_us + self.step_us || now_us < last_us)
    }

    /// Adds the figures of now.
    pub(crate) fn push(&mut self, sample: Sample) {
        if self.taken.last().is_some_and(|last| last.at_us > sample.at_us) {
            self.taken.clear();
        }
        self.taken.push(sample);
        if self.taken.len() > MOST {
            let mut index = 0;
            self.taken.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.step_us *= 2;
        }
        debug_assert!(self.taken.is_sorted_by_key(|sample| sample.at_us));
    }

    /// The samples, oldest first.
    pub(crate) fn taken(&self) -> &[Sample] {
        &self.taken
    }
}

/// The figures of now, as a sample.
pub(crate) fn sample(at_us: u64, families: &[Family]) -> Sample {
    let family = |name: &str| families.iter().find(|family| family.name == name);
    let of_routes = |name: &'static str, routes: &'static [&'static str]| {
        (family(name), move |label: &str, value: &str| label != "route" || routes.contains(&value))
    };
    let value = |figure: &Figure| match figure.source {
        Source::Sum(name) => family(name)
            .map_or(0.0, |family| family.sum(|label, value| label != "log" || value != "system")),
        Source::Requests(routes) => {
            let (family, is_of) = of_routes("wellspring_requests_total", routes);
            family.map_or(0.0, |family| family.sum(is_of))
        }
    };
    let counts = |(_, routes): &(&str, &'static [&'static str])| {
        let (family, is_of) = of_routes("wellspring_request_duration_seconds", routes);
        family.map_or_else(Vec::new, |family| family.counts(is_of))
    };
    Sample {
        at_us,
        values: FIGURES.iter().map(value).collect(),
        durations: DURATIONS.iter().map(counts).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64, events: f64) -> Sample {
        let mut values = vec![0.0; FIGURES.len()];
        values[0] = events;
        Sample { at_us: second * 1_000_000, values, durations: vec![Vec::new(); DURATIONS.len()] }
    }

    #[test]
    fn a_day_of_samples_stays_small_and_begins_at_the_start() {
        let mut samples = Samples::new();
        for second in 0..86_400_u64 {
            if samples.is_due(second * 1_000_000) {
                samples.push(at(second, second as f64));
            }
            assert!(samples.taken().len() <= MOST);
        }
        let (first, last) = (&samples.taken()[0], samples.taken().last().unwrap());
        assert_eq!(first.at_us, 0);
        assert!(last.at_us > 86_000 * 1_000_000, "{}", last.at_us);
        assert!(samples.taken().len() > MOST / 2 - 1);
        assert!(samples.taken().iter().all(|of| of.values[0] == (of.at_us / 1_000_000) as f64));
    }

    #[test]
    fn a_clock_that_was_set_back_begins_anew() {
        let mut samples = Samples::new();
        samples.push(at(100, 1.0));
        assert!(!samples.is_due(101_000_000));
        assert!(samples.is_due(50_000_000));
        samples.push(at(50, 2.0));
        assert_eq!(samples.taken().len(), 1);
    }

    #[test]
    fn figures_are_sums_over_the_logs_of_users() {
        use wellspring_host::stats::family::Kind;
        let per_log = [("main".to_owned(), 3_u64), ("b".to_owned(), 4), ("system".to_owned(), 90)];
        let family =
            Family::of_each(Kind::Counter, "wellspring_log_events_total", "x", "log", per_log);
        let requests = [("POST /v1/query".to_owned(), 5_u64), ("GET /health".to_owned(), 70)];
        let requests =
            Family::of_each(Kind::Counter, "wellspring_requests_total", "x", "route", requests);
        let sample = sample(1, &[family, requests]);
        let value = |name| sample.values[FIGURES.iter().position(|of| of.name == name).unwrap()];
        assert_eq!((value("events"), value("reads"), value("redirects")), (7.0, 5.0, 0.0));
    }
}
