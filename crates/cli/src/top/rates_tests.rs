//! Tests of the rates between two samples.

use super::rates::{Figures, between};
use super::sample::{Intake, Log, Sample, UNBOUNDED, View};
use wellspring_readable::prometheus::Page;

/// A sample after `seconds`, with these answers of `GET /x` (status, count) and latencies
/// (upper bound in µs, cumulative count).
pub(super) fn sample(seconds: u64, statuses: &[(u16, u64)], within_us: &[(u64, u64)]) -> Sample {
    let mut sample = Sample { at_ns: seconds * 1_000_000_000, ..Sample::default() };
    let route = sample.routes.entry("GET /x".to_owned()).or_default();
    route.statuses.extend(statuses.iter().copied());
    route.within_us.extend(within_us.iter().copied());
    route.sum_s = within_us.last().map_or(0.0, |(_, count)| *count as f64 * 0.002);
    sample
}

fn with_log(mut sample: Sample, log: Log) -> Sample {
    sample.logs.insert("main".to_owned(), log);
    sample
}

fn about(left: f64, right: f64) {
    assert!((left - right).abs() < 1e-6 * right.abs().max(1.0), "{left} is not {right}");
}

#[test]
fn requests_and_errors_are_differences_over_the_real_interval() {
    let before = sample(10, &[(200, 100), (401, 1), (404, 5)], &[]);
    let now = sample(12, &[(200, 300), (401, 3), (404, 11), (429, 2), (503, 4), (0, 2)], &[]);
    let Figures { interval_s, restarted, server, routes, .. } = between(&before, &now);
    about(interval_s, 2.0);
    assert!(!restarted);
    assert_eq!(routes.len(), 1);
    for answers in [&server.answers, &routes[0].answers] {
        about(answers.requests_per_s, 108.0);
        about(answers.client_errors_per_s, 5.0);
        about(answers.refusals_per_s, 2.0);
        about(answers.server_errors_per_s, 2.0);
        assert_eq!(answers.latency, None, "nothing was timed");
    }
}

#[test]
fn quantiles_are_of_the_interval_alone() {
    // Long ago a thousand slow answers; now 90 within 1 ms and 10 up to 5 ms.
    let bounds = |fast, slow, all| [(1_000, fast), (5_000, slow), (10_000, all), (UNBOUNDED, all)];
    let before = sample(0, &[(200, 1000)], &bounds(0, 0, 1000));
    let now = sample(1, &[(200, 1100)], &bounds(90, 100, 1100));
    let latency = between(&before, &now).server.answers.latency.unwrap();
    about(latency.p50.about_us, 1_000.0 * 50.0 / 90.0);
    about(latency.p90.about_us, 1_000.0);
    about(latency.p99.about_us, 1_000.0 + 4_000.0 * 9.0 / 10.0);
    assert_eq!((latency.p50.at_most_us, latency.p99.at_most_us), (Some(1_000), Some(5_000)));
    about(latency.mean_us, 2_000.0);
}

#[test]
fn above_the_highest_bound_only_that_is_said() {
    let now = sample(1, &[(200, 10)], &[(1_000, 9), (5_000, 9), (UNBOUNDED, 10)]);
    let latency = between(&sample(0, &[], &[]), &now).routes[0].answers.latency.clone().unwrap();
    assert_eq!((latency.p99.at_most_us, latency.p90.at_most_us), (None, Some(1_000)));
    about(latency.p99.about_us, 5_000.0);
}

#[test]
fn a_restarted_server_counts_from_nothing() {
    let before = with_log(
        sample(0, &[(200, 500)], &[(1_000, 500), (UNBOUNDED, 500)]),
        Log { epoch: 1, events: 900, batches: 90, ..Log::default() },
    );
    let now = with_log(
        sample(2, &[(200, 20)], &[(1_000, 20), (UNBOUNDED, 20)]),
        Log { epoch: 2, events: 8, batches: 2, barrier_us: 500, ..Log::default() },
    );
    let figures = between(&before, &now);
    assert!(figures.restarted);
    about(figures.server.answers.requests_per_s, 10.0);
    let log = &figures.logs[0];
    about(log.events_per_s, 4.0);
    assert_eq!((log.events_per_batch, log.barrier_us), (Some(4.0), Some(250.0)));
    // A server that is already further than the one before it is known by its logs.
    let further = with_log(sample(2, &[(200, 600)], &[]), Log { epoch: 2, ..Log::default() });
    assert!(between(&before, &further).restarted);
}

#[test]
fn a_log_created_again_counts_from_zero_and_the_others_continue() {
    let before = with_log(
        sample(0, &[(200, 5)], &[]),
        Log { epoch: 1, events: 900, appends: 9, ..Log::default() },
    );
    let anew = Log { epoch: 1, events: 3, appends: 30, ..Log::default() };
    let figures = between(&before, &with_log(sample(1, &[(200, 7)], &[]), anew));
    assert!(!figures.restarted);
    about(figures.server.answers.requests_per_s, 2.0);
    about(figures.logs[0].events_per_s, 3.0);
    about(figures.logs[0].appends_per_s, 30.0);
}

#[test]
fn a_log_has_batches_barriers_and_an_intake() {
    let earlier = Log { events: 100, batches: 10, accepted_events: 50, ..Log::default() };
    let later = Log {
        events: 300,
        batches: 30,
        batch_bytes: 40_000,
        barrier_us: 10_000,
        barriers_within_us: [(100, 5), (300, 20), (UNBOUNDED, 20)].into(),
        accepted_events: 250,
        shed_events: 2,
        in_flight_events: 7,
        partitions: 3,
        storage_full: 1,
        ..Log::default()
    };
    let mut now = with_log(sample(2, &[], &[]), later);
    now.intake = Some(Intake { overflow: "shed".to_owned(), partition_bytes: 100 });
    let log = between(&with_log(sample(0, &[], &[]), earlier.clone()), &now).logs.remove(0);
    about(log.events_per_s, 100.0);
    assert_eq!((log.events_per_batch, log.barrier_us), (Some(10.0), Some(500.0)));
    assert_eq!(log.bytes_per_batch, Some(2_000.0));
    assert_eq!(log.barrier_p99.unwrap().at_most_us, Some(300));
    about(log.barrier_share, 0.005);
    about(log.ingest.accepted_per_s, 100.0);
    about(log.ingest.shed_per_s, 1.0);
    assert_eq!((log.ingest.in_flight_events, log.ingest.room_bytes), (7, Some(300)));
    assert!(log.ingest.storage_full);
    // At rest there is nothing to take a mean of.
    let idle = with_log(sample(2, &[], &[]), earlier.clone());
    let log = between(&with_log(sample(0, &[], &[]), earlier), &idle).logs.remove(0);
    assert_eq!((log.events_per_batch, log.barrier_us), (None, None));
}

#[test]
fn a_view_folds_and_never_backwards() {
    let at = |seconds, position| {
        let mut sample = sample(seconds, &[], &[]);
        let state = Some("live".to_owned());
        let view = View { position, lag_events: 3, lag_us: 2_500_000, answers: 1, state };
        sample.views.insert(("main".to_owned(), "links".to_owned()), view);
        sample
    };
    let view = between(&at(0, 100), &at(2, 500)).views.remove(0);
    about(view.folded_per_s, 200.0);
    assert_eq!((view.position, view.lag_events, view.answers), (500, 3, true));
    about(view.lag_s, 2.5);
    about(between(&at(0, 100), &at(2, 5)).views[0].folded_per_s, 0.0);
    about(between(&sample(0, &[], &[]), &at(2, 5)).views[0].folded_per_s, 0.0);
}

#[test]
fn a_sample_against_itself_is_still() {
    let sample = Sample::read(5, include_str!("metrics.txt")).unwrap();
    let figures = between(&sample, &sample);
    assert!(!figures.restarted && figures.interval_s > 0.0);
    about(figures.server.answers.requests_per_s, 0.0);
    assert!(figures.logs.iter().all(|log| log.events_per_s == 0.0));
    assert!(Page::parse("").is_ok(), "an empty page has no figures");
}
