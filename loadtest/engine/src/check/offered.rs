//! C6, offered against achieved: in open loop, whether the load asked for was really offered.
//!
//! - *Schedule*: requests due ÷ (rate × time) must be within 1% (and four standard
//!   deviations of a Poisson count, or two requests).
//! - *Never sent*: due, but no connection became free before draining ended.
//! - *Lateness*: its p99 must be under 10% of the median service time. Above, the
//!   check says whose fault it was, by the first of these that holds:
//!   1. the client's: a worker did not look at its sockets for at least half as long,
//!      or worked for more than 80% of the time (a spinning worker works always, so
//!      that is not held against it), or waited for a processor as long;
//!   2. the server's: at least one request in a hundred found every connection taken when
//!      it was due (in files that do not count this: connections were busy for 90% of the
//!      time, or some answer took at least half as long as the lateness);
//!   3. otherwise the client's, for nothing else is left: a free connection was there.
//!
//! Where the server was slow, response times (due to last byte) contain the waiting and
//! stay right, which is worth a note. Where the client was late they measure the client:
//! care, and from a whole median service time on, stop.

use super::figures::{Figures, StepFinding};
use crate::numbers::{count, counted, duration, percent, rate};
use crate::plan::{Arrivals, Load};

/// The largest p99 of the lateness, as a share of the median service time.
const LATENESS_SHARE: f64 = 0.1;

/// The share of requests beyond p99: if fewer waited for a connection, they are not what made p99
/// late.
const BEYOND_P99: f64 = 0.01;

/// Whose fault lateness was, with the evidence.
enum Fault {
    Client(String),
    Server(String),
}

pub(super) fn judge(figures: &Figures<'_>) -> StepFinding {
    let Load::Open { rate_per_s, arrivals } = figures.settings().load else {
        return StepFinding::not_checked(
            "Offered against achieved load applies to open loop; this was closed loop.",
        );
    };
    let open: Vec<_> = figures.step.runs.iter().filter_map(|run| run.open_loop.as_ref()).collect();
    if open.len() < figures.step.runs.len() || figures.measured_ns == 0.0 {
        return StepFinding::not_checked("The counts of due and sent requests are missing.");
    }
    let due: u64 = open.iter().map(|open| open.due).sum();
    let sent: u64 = open.iter().map(|open| open.sent).sum();
    let mut found = Vec::new();
    found.extend(schedule(figures, rate_per_s, arrivals, due));
    found.extend(never_sent(figures, due));
    found.extend(lateness(figures));
    let achieved = sent as f64 * 1e9 / figures.measured_ns;
    let lateness_p99 =
        figures.total.lateness.as_ref().and_then(|lateness| lateness.quantile_ns(0.99));
    let Some(lateness_p99) = lateness_p99 else {
        return StepFinding::worst(
            found,
            StepFinding::not_checked("The distribution of the lateness is missing."),
        );
    };
    let passed = StepFinding::passed(format!(
        "{} offered, {} sent; p99 of the lateness is {}.",
        rate(rate_per_s),
        rate(achieved),
        duration(lateness_p99 as f64)
    ));
    StepFinding::worst(found, passed)
}

fn schedule(
    figures: &Figures<'_>,
    rate_per_s: f64,
    arrivals: Arrivals,
    due: u64,
) -> Option<StepFinding> {
    let expected = rate_per_s * figures.measured_ns / 1e9;
    let chance = match arrivals {
        Arrivals::Constant => 2.0 * figures.step.runs.len() as f64,
        Arrivals::Poisson => 4.0 * expected.sqrt() + 2.0,
    };
    let off = (due as f64 - expected).abs();
    (off > chance.max(expected * 0.01)).then(|| {
        StepFinding::care(format!(
            "{} asks for {} in the measured time, but {} were due: the schedule itself was off by {}.",
            rate(rate_per_s),
            counted(expected.round() as u64, "request", "requests"),
            count(due),
            percent(off / expected.max(1.0))
        ))
    })
}

fn never_sent(figures: &Figures<'_>, due: u64) -> Option<StepFinding> {
    (figures.never_sent > 0).then(|| {
        let share = figures.never_sent as f64 / due.max(1) as f64;
        StepFinding::care(format!(
            "{} of {} due were never sent ({}), for none of {} became free: the rate offered was not reached.",
            count(figures.never_sent),
            counted(due, "request", "requests"),
            percent(share),
            counted(figures.places(), "connection", "connections")
        ))
    })
}

fn lateness(figures: &Figures<'_>) -> Option<StepFinding> {
    let late = figures.total.lateness.as_ref()?.quantile_ns(0.99)? as f64;
    let median = figures.total.service.quantile_ns(0.5)? as f64;
    if late < median * LATENESS_SHARE {
        return None;
    }
    let facts = format!(
        "p99 of the lateness is {} at a median service time of {}",
        duration(late),
        duration(median)
    );
    Some(match fault(figures, late) {
        Fault::Server(why) => StepFinding::note(format!(
            "{facts}: requests waited for a free connection: {why}; response times contain the waiting."
        )),
        Fault::Client(why) if late < median => {
            StepFinding::care(format!("{facts}: client-limited, {why}."))
        }
        Fault::Client(why) => StepFinding::stop(format!(
            "{facts}: client-limited, {why}; response times measure the client."
        )),
    })
}

fn fault(figures: &Figures<'_>, late_ns: f64) -> Fault {
    let workers = || figures.step.runs.iter().flat_map(|run| &run.client.workers);
    let longest_loop = workers().map(|worker| worker.longest_loop_ns).max().unwrap_or(0) as f64;
    if longest_loop >= late_ns / 2.0 {
        return Fault::Client(format!(
            "one worker did not poll its sockets for {}",
            duration(longest_loop)
        ));
    }
    let busiest = workers()
        .filter(|worker| !worker.spin && worker.wall_ns > 0)
        .map(|worker| worker.cpu_ns as f64 / worker.wall_ns as f64)
        .fold(0.0, f64::max);
    if busiest > super::client::BUSY_SHARE {
        return Fault::Client(format!("one worker used {} of its processor", percent(busiest)));
    }
    if let Some((waited, sent)) = waited(figures) {
        let facts = format!(
            "{} found {} taken when due",
            counted(waited, "request", "requests"),
            match figures.places() {
                1 => "the only connection".to_owned(),
                all => format!("all {} connections", count(all)),
            }
        );
        return if waited as f64 >= BEYOND_P99 * sent as f64 {
            Fault::Server(facts)
        } else {
            let facts =
                if waited == 0 { "no request waited for a connection".into() } else { facts };
            Fault::Client(format!(
                "{facts}, the client itself was late (a free processor or --spin helps)"
            ))
        };
    }
    let busy = figures.busy_share();
    if busy >= 0.9 {
        return Fault::Server(format!(
            "the {} of them were busy for {}",
            figures.places(),
            percent(busy)
        ));
    }
    let longest = figures.longest_ns();
    if longest >= late_ns / 2.0 {
        return Fault::Server(format!("some answers took up to {}", duration(longest)));
    }
    Fault::Client(format!(
        "for no worker was blocked longer than {}, no answer took longer than {} and connections were busy for {} only",
        duration(longest_loop),
        duration(longest),
        percent(busy)
    ))
}

/// Requests that found no free connection, and all that were sent; `None` if not counted.
fn waited(figures: &Figures<'_>) -> Option<(u64, u64)> {
    let mut sums = (0, 0);
    for open in figures.step.runs.iter().filter_map(|run| run.open_loop.as_ref()) {
        sums.0 += open.waited_for_connection?;
        sums.1 += open.sent;
    }
    (sums.1 > 0).then_some(sums)
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::histogram::Histogram;
    use crate::result::{Outcome, Step};

    fn judged(step: &Step) -> StepFinding {
        judge(&Figures::of(step).unwrap())
    }

    fn late(by_ns: u64) -> Step {
        let mut step = build::open(1_000.0).step();
        let mut lateness = Histogram::new();
        lateness.record_n(10_000, 9_000);
        lateness.record_n(by_ns, 1_000);
        step.runs[0].endpoints[0].lateness = Some(lateness);
        step
    }

    #[test]
    fn on_time_passes_and_closed_loop_is_not_asked() {
        let finding = judged(&build::open(1_000.0).step());
        assert_eq!(finding.outcome, Outcome::Passed, "{finding:?}");
        assert_eq!(judged(&build::closed(4).step()).outcome, Outcome::NotChecked);
    }

    #[test]
    fn a_stalled_server_is_not_held_against_the_client() {
        let mut step = late(800_000_000);
        step.runs[0].endpoints[0].service.record_n(1_000_000_000, 50);
        let finding = judged(&step);
        assert_eq!(finding.outcome, Outcome::Note);
        assert!(finding.sentence.contains("some answers took up to 1.00 s"), "{finding:?}");
    }

    #[test]
    fn a_stalled_client_is() {
        let mut step = late(800_000_000);
        step.runs[0].endpoints[0].service.record_n(1_000_000_000, 50);
        step.runs[0].client.workers[0].longest_loop_ns = 950_000_000;
        let finding = judged(&step);
        assert_eq!(finding.outcome, Outcome::Stop);
        assert!(finding.sentence.contains("client-limited"), "{finding:?}");
    }

    #[test]
    fn a_little_late_needs_care_and_nothing_else_is_left_to_blame() {
        // 300 µs late at a median of 880 µs; loops of 200 µs explain it.
        assert_eq!(judged(&late(300_000)).outcome, Outcome::Care);
        // Late by 80 ms, while nothing took longer than 4 ms.
        let finding = judged(&late(80_000_000));
        assert_eq!(finding.outcome, Outcome::Stop);
        assert!(finding.sentence.contains("no answer took longer"), "{finding:?}");
    }

    #[test]
    fn requests_never_sent_and_a_schedule_that_is_off_need_care() {
        let mut step = build::open(1_000.0).step();
        let open = step.runs[0].open_loop.as_mut().unwrap();
        open.sent -= 100;
        open.never_sent = 100;
        let finding = judged(&step);
        assert_eq!(finding.outcome, Outcome::Care);
        assert!(
            finding.sentence.contains("100 of 10,000 requests due were never sent (1.0%)"),
            "{finding:?}"
        );
        let mut step = build::open(1_000.0).step();
        step.runs[0].open_loop.as_mut().unwrap().due = 9_800;
        assert!(judged(&step).sentence.contains("schedule itself was off by 2.0%"));
    }

    #[test]
    fn a_poisson_count_may_differ_by_chance() {
        let mut step = build::open(100.0).step();
        step.runs[0].open_loop.as_mut().unwrap().due = 1_100;
        assert_eq!(judged(&step).outcome, Outcome::Care);
        step.settings.load = Load::Open { rate_per_s: 100.0, arrivals: Arrivals::Poisson };
        assert_eq!(judged(&step).outcome, Outcome::Passed);
    }

    #[test]
    fn lateness_with_a_connection_free_is_the_clients_however_slow_some_answers_were() {
        let mut step = late(50_000_000);
        let set = |step: &mut Step, waited| {
            step.runs[0].open_loop.as_mut().unwrap().waited_for_connection = Some(waited);
        };
        set(&mut step, 3);
        let finding = judged(&step);
        assert!(finding.outcome >= Outcome::Care, "{finding:?}");
        assert!(finding.sentence.contains("3 requests found all"), "{finding:?}");
        let sent = step.runs[0].open_loop.as_ref().unwrap().sent;
        set(&mut step, sent / 50);
        let finding = judged(&step);
        assert_eq!(finding.outcome, Outcome::Note, "{finding:?}");
        assert!(finding.sentence.contains("waited for a free connection"), "{finding:?}");
    }
}
