//! The A/A promise: of 100 comparisons of a server with itself at most 8 are called
//! different in *anything*, on recorded runs and on simulated ones with noise that
//! lasts and a machine that drifts. And what is there is found.

use super::*;
use crate::stats::SplitMix64;

/// 104 runs of one server; the file says how they were recorded.
const RECORDED: &str = include_str!("same_server.csv");

fn recorded() -> Vec<Figures> {
    let rows = RECORDED.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| {
        let cells: Vec<f64> = row.split(',').map(|cell| cell.parse().expect("a number")).collect();
        let [order, started_s, requests, duration_us, mean, p50, p90, p95, p99, errors] =
            cells[..].try_into().expect("ten columns");
        Figures {
            started_unix_us: (started_s * 1e6 + order) as u64,
            measured_ns: (duration_us * 1e3) as u64,
            open_loop: false,
            throughput_per_s: requests * 1e6 / duration_us,
            mean_ns: Some(mean * 1e3),
            p50_ns: Some(p50 * 1e3),
            p90_ns: Some(p90 * 1e3),
            p95_ns: Some(p95 * 1e3),
            p99_ns: Some(p99 * 1e3),
            failure_share: Some(errors / requests),
        }
    })
    .collect()
}

/// What a simulated machine does to the logarithm of its speed from run to run.
#[derive(Clone, Copy)]
struct Machine {
    /// Standard deviation of the noise that lasts.
    lasting: f64,
    /// How much of it lasts until the next run (AR(1)).
    memory: f64,
    /// Change from the first run to the last.
    drift: f64,
    /// Standard deviation of what each quantile adds of its own.
    own: f64,
}

impl Machine {
    fn runs(self, count: usize, random: &mut SplitMix64) -> Vec<Figures> {
        let fresh = (1.0 - self.memory * self.memory).sqrt();
        let mut state = random.normal();
        (0..count)
            .map(|at| {
                state = self.memory * state + fresh * random.normal();
                let drift = self.drift * at as f64 / count as f64;
                let speed = (self.lasting * state + drift).exp();
                let mut time = |ns: f64| Some(ns / speed * (self.own * random.normal()).exp());
                Figures {
                    started_unix_us: 1 + at as u64,
                    throughput_per_s: 50_000.0 * speed,
                    mean_ns: time(300e3),
                    p50_ns: time(250e3),
                    p90_ns: time(500e3),
                    p95_ns: time(700e3),
                    p99_ns: time(1e6),
                    failure_share: Some(0.0),
                    ..Figures::default()
                }
            })
            .collect()
    }
}

const DRIFTING: Machine = Machine { lasting: 0.10, memory: 0.6, drift: -0.85, own: 0.05 };

/// Deals runs, in their order of time, to both sides.
fn dealt(runs: &[Figures], order: &[Side]) -> (Vec<Figures>, Vec<Figures>) {
    let of = |side| {
        let own = runs.iter().zip(order).filter(move |(_, at)| **at == side);
        own.map(|(run, _)| run.clone()).collect()
    };
    (of(Side::A), of(Side::B))
}

fn compared(runs: &[Figures], design: Design, seed: u64) -> StepComparison {
    let half = runs.len() / 2;
    let order = match design {
        Design::Paired => abba(half),
        Design::Separate => [vec![Side::A; half], vec![Side::B; half]].concat(),
    };
    let (a, b) = dealt(runs, &order);
    let options = Options { seed, resamples: 300, ..Options::default() };
    compare_figures("same", &a, &b, design, &options)
}

/// How many of 100 comparisons call anything different.
fn alarms(mut runs: impl FnMut(u64) -> Vec<Figures>, design: Design) -> usize {
    (0..100).filter(|&seed| compared(&runs(seed), design, seed).any_difference()).count()
}

/// Windows of the recording: 8 to 24 runs from anywhere.
fn window(all: &[Figures], seed: u64) -> Vec<Figures> {
    let mut random = SplitMix64::new(seed);
    let length = 2 * (4 + random.index(9));
    let from = random.index(all.len() - length + 1);
    all[from..from + length].to_vec()
}

#[test]
fn recorded_runs_of_one_server_are_not_called_different() {
    let all = recorded();
    assert_eq!(all.len(), 104);
    let called = alarms(|seed| window(&all, seed), Design::Paired);
    assert!(called <= 8, "{called} of 100");
    // The promise is not kept by calling nothing: of the same recording, one half
    // after the other, many windows differ. That is why such comparisons are warned of.
    let called = alarms(|seed| window(&all, seed), Design::Separate);
    assert!(called >= 20, "{called} of 100");
}

#[test]
fn simulated_runs_of_a_drifting_machine_are_not_called_different() {
    for (pairs, first_seed) in [(6, 0), (10, 1_000)] {
        let mut random = SplitMix64::new(first_seed);
        let called = alarms(|_| DRIFTING.runs(2 * pairs, &mut random), Design::Paired);
        assert!(called <= 8, "{called} of 100 with {pairs} pairs");
    }
    let mut random = SplitMix64::new(7);
    let called = alarms(|_| DRIFTING.runs(20, &mut random), Design::Separate);
    assert!(called >= 80, "{called} of 100");
}

#[test]
fn endpoints_of_one_server_are_not_called_different() {
    let mut random = SplitMix64::new(99);
    let called = (0..100)
        .filter(|&seed| {
            let mut side_by_side = Sides::default();
            for name in ["", "a", "b", "c"] {
                let (a, b) = dealt(&DRIFTING.runs(16, &mut random), &abba(8));
                if name.is_empty() {
                    (side_by_side.a, side_by_side.b) = (a, b);
                } else {
                    side_by_side.endpoints.push(sides::Endpoint { name: name.into(), a, b });
                }
            }
            let options = Options { seed, resamples: 300, ..Options::default() };
            let mut steps = [measured("same", side_by_side, Design::Paired, &options)];
            conclude(&mut steps);
            assert_eq!(steps[0].endpoints.len(), 3);
            steps[0].any_difference()
        })
        .count();
    assert!(called <= 8, "{called} of 100");
}

#[test]
fn independent_runs_not_in_turns_are_not_called_different() {
    let steady = Machine { lasting: 0.08, memory: 0.0, drift: 0.0, own: 0.05 };
    let mut random = SplitMix64::new(21);
    let called = alarms(|_| steady.runs(16, &mut random), Design::Separate);
    assert!(called <= 8, "{called} of 100");
}

#[test]
fn neighbours_in_a_history_of_one_server_are_not_called_different() {
    let steady = Machine { lasting: 0.08, memory: 0.0, drift: 0.0, own: 0.05 };
    let mut random = SplitMix64::new(42);
    let options = Options { resamples: 300, ..Options::default() };
    let mut called = 0;
    for _ in 0..100 {
        let runs = steady.runs(50, &mut random);
        let series: Vec<&[Figures]> = runs.chunks(5).collect();
        let compared = compare_neighbours(Metric::Throughput, &series, &options);
        assert_eq!(compared.len(), 9);
        called += usize::from(compared.iter().any(|c| c.verdict != Verdict::NoDifferenceSeen));
    }
    assert!(called <= 8, "{called} of 100");
}

#[test]
fn a_server_that_is_faster_by_15_percent_is_found_in_spite_of_drift() {
    let machine = Machine { lasting: 0.08, memory: 0.6, drift: -0.3, own: 0.05 };
    let mut random = SplitMix64::new(3);
    let mut found = 0;
    for seed in 0..100 {
        let mut runs = machine.runs(24, &mut random);
        for (run, side) in runs.iter_mut().zip(abba(12)) {
            if side == Side::B {
                run.throughput_per_s *= 1.15;
                for time in [&mut run.mean_ns, &mut run.p50_ns, &mut run.p99_ns] {
                    *time = time.map(|ns| ns / 1.15);
                }
            }
        }
        let compared = compared(&runs, Design::Paired, seed);
        let throughput = compared.metric(Metric::Throughput).unwrap();
        assert_ne!(throughput.verdict, Verdict::Slower);
        found += usize::from(throughput.verdict == Verdict::Faster);
    }
    assert!(found >= 80, "{found} of 100");
}
