//! What a placeholder stands for, and writing its value of the moment.

use super::data::Table;
use super::template::{Escape, Segment, Template};
use crate::random::SplitMix64;
use std::fmt::Write as _;

/// What a placeholder stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Captured by a setup request: the same for the whole run.
    Setup(u16, String),
    /// Captured by an earlier request of the user, drawn from a pool, or set by `let`.
    Slot(u16, String),
    /// A column of a data file.
    Column { data: u16, column: u16, name: String },
    /// The numbers that worker w of n deals: start + w, start + w + n, …
    Counter(u16, String),
    /// A whole number, both bounds included.
    Random(i64, i64),
    /// So many hexadecimal digits.
    RandomHex(u16),
    /// A UUID of version 4 (RFC 9562) made from the seeded generator.
    Uuid,
    /// One of these.
    Pick(Vec<String>),
    /// The time in milliseconds since 1970.
    NowMs,
    /// The time in nanoseconds since 1970.
    NowNs,
    /// The time as RFC 3339 with milliseconds, in UTC.
    NowIso,
    /// The user's number.
    User,
    /// A text that is different in every run, from the time at which it began.
    Run,
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Setup(_, name) | Value::Slot(_, name) | Value::Column { name, .. } => {
                f.write_str(name)
            }
            Value::Counter(_, name) => write!(f, "counter:{name}"),
            Value::Random(first, last) => write!(f, "random:{first}..{last}"),
            Value::RandomHex(digits) => write!(f, "random_hex:{digits}"),
            Value::Uuid => f.write_str("uuid"),
            Value::Pick(items) => write!(f, "pick:{}", items.join("|")),
            Value::NowMs => f.write_str("now_ms"),
            Value::NowNs => f.write_str("now_ns"),
            Value::NowIso => f.write_str("now_iso"),
            Value::User => f.write_str("user"),
            Value::Run => f.write_str("run"),
        }
    }
}

/// The counters of one worker.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    next: Vec<u64>,
    stride: u64,
}

impl Counters {
    /// Those of worker `worker` of `workers`, which begin at `starts`.
    pub(crate) fn new(starts: &[u64], worker: u32, workers: u32) -> Self {
        let next = starts.iter().map(|start| start.saturating_add(u64::from(worker))).collect();
        Counters { next, stride: u64::from(workers.max(1)) }
    }

    fn take(&mut self, counter: u16) -> u64 {
        let Some(next) = self.next.get_mut(usize::from(counter)) else { return 0 };
        let taken = *next;
        *next = taken.wrapping_add(self.stride);
        taken
    }

    /// Where others may go on.
    pub(crate) fn next(&self) -> &[u64] {
        &self.next
    }
}

/// Where the values of one user's moment come from.
pub(crate) struct Moment<'a> {
    pub(crate) user: u32,
    pub(crate) random: &'a mut SplitMix64,
    /// What setup captured.
    pub(crate) setup: &'a [Option<String>],
    pub(crate) slots: &'a [Option<String>],
    pub(crate) tables: &'a [Table],
    /// The row of each table that is the user's now.
    pub(crate) rows: &'a [u32],
    pub(crate) counters: &'a mut Counters,
    /// What the counters showed first in this run of the step.
    pub(crate) counted: &'a mut [Option<u64>],
    /// Nanoseconds since 1970.
    pub(crate) clock: fn() -> u64,
    /// What it said first for this request.
    pub(crate) now_ns: Option<u64>,
    pub(crate) run: &'a str,
}

/// A value that is not there, or cannot stand where it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfilled(pub(crate) String);

impl Template {
    /// Appends the text with its values of the moment. Allocates only while `out` grows.
    pub(crate) fn fill(&self, moment: &mut Moment<'_>, out: &mut String) -> Result<(), Unfilled> {
        for segment in &self.segments {
            match segment {
                Segment::Text(text) => out.push_str(text),
                Segment::Value(value, escape) => moment.write(value, *escape, out)?,
            }
        }
        Ok(())
    }
}

impl Moment<'_> {
    fn write(&mut self, value: &Value, escape: Escape, out: &mut String) -> Result<(), Unfilled> {
        let text = match value {
            Value::Setup(index, _) => text_of(self.setup, *index),
            Value::Slot(index, _) => text_of(self.slots, *index),
            Value::Column { data, column, .. } => {
                let row = self.rows.get(usize::from(*data)).copied().unwrap_or(0);
                self.tables.get(usize::from(*data)).and_then(|table| table.cell(row, *column))
            }
            Value::Pick(items) => {
                let at = self.random.below(items.len() as u64);
                items.get(usize::try_from(at).unwrap_or(0)).map(String::as_str)
            }
            _ => {
                self.write_made(value, escape, out);
                return Ok(());
            }
        };
        let text = text.ok_or_else(|| Unfilled(format!("{{{{{value}}}}} has no value yet")))?;
        let written = escape.write(text, out);
        written.map_err(|why| Unfilled(format!("the value of {{{{{value}}}}} {why}")))
    }

    /// Values that are made here. None of them but the time of `now_iso`, whose
    /// colons only a path must escape, has characters that any place would.
    fn write_made(&mut self, value: &Value, escape: Escape, out: &mut String) {
        let written = match value {
            Value::Counter(counter, _) => {
                let taken = match self.counted.get_mut(usize::from(*counter)) {
                    Some(Some(there)) => *there,
                    Some(empty) => *empty.insert(self.counters.take(*counter)),
                    None => self.counters.take(*counter),
                };
                write!(out, "{taken}")
            }
            Value::Random(first, last) => {
                let span = last.wrapping_sub(*first) as u64;
                let offset = match span.checked_add(1) {
                    Some(count) => self.random.below(count),
                    None => self.random.next_u64(),
                };
                write!(out, "{}", first.wrapping_add(offset as i64))
            }
            Value::RandomHex(digits) => {
                let mut left = usize::from(*digits);
                while left > 0 {
                    let chunk = format_hex(self.random.next_u64());
                    let part = chunk.len().min(left);
                    out.push_str(std::str::from_utf8(&chunk[..part]).unwrap_or_default());
                    left -= part;
                }
                Ok(())
            }
            Value::Uuid => write_uuid(self.random.next_u64(), self.random.next_u64(), out),
            Value::NowMs => write!(out, "{}", self.now() / 1_000_000),
            Value::NowNs => write!(out, "{}", self.now()),
            Value::NowIso => {
                let encoded =
                    matches!(escape, Escape::Percent | Escape::Form | Escape::JsonPercent);
                let colon = if encoded { "%3A" } else { ":" };
                write_iso(self.now(), colon, out)
            }
            Value::User => write!(out, "{}", self.user),
            _ => out.write_str(self.run),
        };
        written.expect("writing to a String does not fail");
    }

    fn now(&mut self) -> u64 {
        *self.now_ns.get_or_insert_with(self.clock)
    }
}

fn text_of(texts: &[Option<String>], index: u16) -> Option<&str> {
    texts.get(usize::from(index)).and_then(Option::as_deref)
}

fn format_hex(bits: u64) -> [u8; 16] {
    std::array::from_fn(|i| b"0123456789abcdef"[(bits >> (60 - 4 * i) & 15) as usize])
}

fn write_uuid(high: u64, low: u64, out: &mut String) -> std::fmt::Result {
    let high = high & !0xF000 | 0x4000; // version 4
    let low = low & !(0b11 << 62) | 0b10 << 62; // the variant of RFC 9562
    write!(
        out,
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xFFFF,
        high & 0xFFFF,
        low >> 48,
        low & 0xFFFF_FFFF_FFFF
    )
}

/// RFC 3339 in UTC, to the millisecond. The date from the day's number after
/// Howard Hinnant, "chrono-compatible low-level date algorithms".
fn write_iso(unix_ns: u64, colon: &str, out: &mut String) -> std::fmt::Result {
    let ms = unix_ns / 1_000_000;
    let (day, in_day) = (ms / 86_400_000, ms % 86_400_000);
    let shifted = day + 719_468; // days since 0000-03-01
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    write!(
        out,
        "{year:04}-{month:02}-{day_of_month:02}T{:02}{colon}{:02}{colon}{:02}.{:03}Z",
        in_day / 3_600_000,
        in_day / 60_000 % 60,
        in_day / 1_000 % 60,
        in_day % 1_000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_calendar_has_them() {
        let iso = |ns| {
            let mut out = String::new();
            write_iso(ns, ":", &mut out).unwrap();
            out
        };
        assert_eq!(iso(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso(951_782_399_999_999_999), "2000-02-28T23:59:59.999Z");
        assert_eq!(iso(951_782_400_000_000_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(iso(1_795_224_656_517_796_090), "2026-11-21T01:30:56.517Z");
        assert_eq!(iso(4_107_542_400_000_000_000), "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn uuids_have_their_version_and_variant() {
        for (high, low) in [(0, 0), (u64::MAX, u64::MAX)] {
            let mut out = String::new();
            write_uuid(high, low, &mut out).unwrap();
            assert_eq!(out.len(), 36);
            assert_eq!(&out[14..15], "4");
            assert!("89ab".contains(&out[19..20]), "{out}");
        }
    }

    #[test]
    fn workers_deal_numbers_without_a_gap_or_a_repeat() {
        let mut all: Vec<u64> = (0..3)
            .flat_map(|worker| {
                let mut counters = Counters::new(&[10], worker, 3);
                (0..4).map(move |_| counters.take(0)).collect::<Vec<_>>()
            })
            .collect();
        all.sort_unstable();
        assert_eq!(all, (10..22).collect::<Vec<_>>());
    }
}
