//! `wellspring top`: what a running server is doing, in the terminal.
//!
//! Everything comes from `/metrics`, which the console and other tools read too;
//! `/v1/views` and `/v1/ingest` add words where a figure would not do. The path of a
//! sample: `poll` asks, `scrape` reads, `sample` picks, `rates` compares with the last one,
//! `view` writes lines. Only `poll` and `live` have effects.

mod live;
mod poll;
mod rates;
#[cfg(test)]
mod rates_tests;
mod sample;
mod view;
#[cfg(test)]
mod view_tests;

use crate::exit::{Code, Failure, say};
use crate::server::Server;
use poll::Poll;
use std::io::IsTerminal as _;
use std::time::Duration;
use wellspring_readable::duration::duration_ms;

/// What `wellspring top` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Keys: q quits, p pauses, s and the arrows select the column that routes are sorted by, r reverses the \
order. docs/operations.md explains each figure and when to worry.")]
pub struct TopArgs {
    /// Time between two samples, 100ms to 1h
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval_ms)]
    interval: u64,
    /// Print one table after one interval, and exit; works without a terminal
    #[arg(long)]
    once: bool,
    /// Print one JSON document after one interval, and exit
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: Server,
}

fn interval_ms(text: &str) -> Result<u64, String> {
    match duration_ms(text)? {
        ms @ 100..=3_600_000 => Ok(ms),
        _ => Err("the interval must be from 100ms to 1h".to_owned()),
    }
}

/// Runs until `q`, or prints one sample.
///
/// # Errors
/// Usage; with `--once` and `--json` also a server that cannot be reached or understood.
/// The live view shows that, and keeps trying.
pub(crate) fn run(args: &TopArgs) -> Result<(), Failure> {
    let mut poll = Poll::new(args.server.client()?);
    let interval = Duration::from_millis(args.interval);
    if !args.once && !args.json {
        if !std::io::stdout().is_terminal() {
            return Err(Failure::usage(
                "standard output is not a terminal; use --once for a table or --json for programs",
            ));
        }
        return live::run(poll, &args.server.url, interval);
    }
    let before = poll.sample()?;
    std::thread::sleep(interval);
    let figures = rates::between(&before, &poll.sample()?);
    if args.json {
        let document = serde_json::to_string(&figures)
            .map_err(|error| Failure::new(Code::Io, format!("writing JSON: {error}")))?;
        return say(&document);
    }
    let order = view::Order::default();
    let lines = std::iter::once(view::title(&args.server.url, &figures))
        .chain(view::lines(&figures, order, None))
        .map(|line| line.to_string().trim_end().to_owned())
        .collect::<Vec<_>>();
    say(&lines.join("\n"))
}

/// Whether a text is a page of figures; if so, it is compared with nothing and with itself,
/// and both are written. For the fuzz target.
#[cfg(any(test, feature = "fuzzing"))]
#[must_use]
pub fn is_metrics_page(text: &str) -> bool {
    let Ok(sample) = sample::Sample::read(1, text) else { return false };
    for before in [&sample::Sample::default(), &sample] {
        let figures = rates::between(before, &sample);
        let _ = view::lines(&figures, view::Order::default(), Some(text.len() % 64));
        debug_assert!(serde_json::to_string(&figures).is_ok());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_any_size_are_read() {
        let real = include_str!("metrics.txt");
        assert!(is_metrics_page(real) && !is_metrics_page("x") && !is_metrics_page(""));
        // As many answers as a page can say, again and again: nothing overflows.
        let mut huge = real.to_owned();
        for status in 0..5_000 {
            huge.push_str("wellspring_requests_total{route=\"a\",status=\"");
            huge.push_str(&format!("{status}\"}} +Inf\n"));
        }
        for route in 0..5_000 {
            huge.push_str("wellspring_request_duration_seconds_bucket{le=\"+Inf\",route=\"");
            huge.push_str(&format!("{route}\"}} 1e300\n"));
        }
        assert!(is_metrics_page(&huge));
        assert!(is_metrics_page(&huge.replace(
            "wellspring_log_head{log=\"main\"} 6",
            "wellspring_log_head{log=\"main\"} NaN"
        )));
    }

    #[test]
    fn intervals_have_bounds() {
        assert_eq!((interval_ms("1s"), interval_ms("0.25")), (Ok(1000), Ok(250)));
        for bad in ["0", "50ms", "2h", "x", "-1s"] {
            assert!(interval_ms(bad).is_err(), "{bad}");
        }
    }
}
