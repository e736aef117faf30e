//! Splits an input into request bodies: one event per line, with the line numbers of the file.

use crate::exit::Failure;
use crate::import::Format;
use crate::import::csv::rows::CsvMapping;
use crate::import::event_ids::EventIds;
use crate::import::json_items::JsonItems;
use crate::import::rows::{Input, Rows};
use crate::lines::{Broken, MAX_LINE_BYTES, reading, too_long};
use std::io::BufRead as _;

/// A body is closed at this size: large enough that the cost per request does not matter, small
/// enough to be sent again.
const PART_BYTES: usize = 8 << 20;

/// Numbers of consecutive lines of a body in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LineNumbers {
    /// They follow one another from this one.
    From(u64),
    /// Each on its own.
    Each(Vec<u64>),
}

/// A body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// Lines.
    pub(crate) body: Vec<u8>,
    /// How many.
    pub(crate) lines: u64,
    /// Their numbers in the file.
    pub(crate) numbers: LineNumbers,
    /// Bytes of the file that had been taken when it was closed.
    pub(crate) taken_bytes: u64,
    /// Whether nothing follows.
    pub(crate) is_last: bool,
}

impl Part {
    /// The number in the file of a line of the body, counted from 1.
    pub(crate) fn number(&self, line: u64) -> u64 {
        match &self.numbers {
            LineNumbers::From(first) => first + line.saturating_sub(1),
            LineNumbers::Each(numbers) => {
                let at = (line.max(1) as usize - 1).min(numbers.len().saturating_sub(1));
                numbers.get(at).copied().unwrap_or(0)
            }
        }
    }

    /// Removes the first lines.
    pub(crate) fn without_first(mut self, lines: u64) -> Part {
        let mut at = 0;
        for _ in 0..lines {
            let rest = &self.body[at..];
            at += rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |end| end + 1);
        }
        self.body.drain(..at);
        self.lines -= lines;
        match &mut self.numbers {
            LineNumbers::From(first) => *first += lines,
            LineNumbers::Each(numbers) => drop(numbers.drain(..lines as usize)),
        }
        self
    }

    /// Appends the lines of the next part.
    pub(crate) fn followed_by(mut self, next: Part) -> Part {
        self.body.extend_from_slice(&next.body);
        self.lines += next.lines;
        match (&mut self.numbers, next.numbers) {
            (LineNumbers::Each(numbers), LineNumbers::Each(more)) => numbers.extend(more),
            // Of one file: they follow one another.
            (LineNumbers::From(_), LineNumbers::From(_)) => {}
            _ => unreachable!("the parts of one file are numbered alike"),
        }
        Part { taken_bytes: next.taken_bytes, is_last: next.is_last, ..self }
    }
}

/// The result of reading a part.
pub(crate) enum PartOutcome {
    /// A part; more may follow unless it is the last.
    Part(Part),
    /// The lines before the invalid one.
    Invalid(Part, InvalidInput),
}

/// A line that is not an event, found on this side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InvalidInput {
    /// It may be skipped.
    Row(u64, String),
    /// The lines that follow cannot be separated.
    Rest(Broken),
}

/// Cuts an input into parts.
pub(crate) enum Parts {
    /// Lines as they are in the file: the server parses them.
    Lines(Lines),
    /// Events parsed here, and written as lines.
    Events(Events),
}

impl Parts {
    /// Starts reading. `skip` is called for each invalid row that is skipped.
    ///
    /// # Errors
    /// Data, if a CSV header does not fit its mapping.
    pub(crate) fn new(
        format: Format,
        reader: Input,
        mapping: &CsvMapping,
        ids: Option<EventIds>,
        skip: Option<Skip>,
    ) -> Result<Parts, Failure> {
        if format != Format::Ndjson || ids.is_some() {
            let rows = Rows::new(format, reader, mapping)?;
            return Ok(Parts::Events(Events { rows, ids, skip }));
        }
        let mut items = JsonItems::new(reader);
        Ok(match items.is_array() {
            Ok(false) => {
                let (reader, line) = items.into_reader();
                Parts::Lines(Lines { reader, line, rest: Vec::new() })
            }
            // The next read meets an error again.
            _ => Parts::Events(Events {
                rows: Rows::Json(items, crate::import::ndjson::event, 0),
                ids,
                skip,
            }),
        })
    }

    /// The next part. `taken` returns the number of bytes read from the file.
    pub(crate) fn next(&mut self, taken: &dyn Fn() -> u64) -> PartOutcome {
        match self {
            Parts::Lines(lines) => lines.next(taken),
            Parts::Events(events) => events.next(taken),
        }
    }

    /// Tags given twice in one event, as far as this side has found them.
    pub(crate) fn folded(&self) -> u64 {
        match self {
            Parts::Lines(_) => 0,
            Parts::Events(events) => events.rows.folded(),
        }
    }
}

/// Called for an invalid row: its line, and what is wrong.
pub(crate) type Skip = Box<dyn FnMut(u64, String) + Send>;

pub(crate) struct Lines {
    reader: Input,
    /// Number of the next line.
    line: u64,
    /// The beginning of the next line.
    rest: Vec<u8>,
}

impl Lines {
    fn next(&mut self, taken: &dyn Fn() -> u64) -> PartOutcome {
        let mut body = Vec::with_capacity(PART_BYTES + (1 << 20));
        body.append(&mut self.rest);
        let (mut is_last, mut failure) = (false, None);
        // Where the last line that is whole ends.
        let mut end = 0;
        while end < PART_BYTES {
            let bytes = match self.reader.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) => {
                    failure = Some(reading(&error));
                    break;
                }
            };
            if bytes.is_empty() {
                is_last = true;
                end = body.len();
                break;
            }
            let count = bytes.len();
            if let Some(at) = bytes.iter().rposition(|&byte| byte == b'\n') {
                end = body.len() + at + 1;
            }
            body.extend_from_slice(bytes);
            self.reader.consume(count);
            if body.len() - end > MAX_LINE_BYTES {
                failure = Some(too_long(MAX_LINE_BYTES));
                break;
            }
        }
        self.rest = body.split_off(end);
        let mut lines = body.iter().filter(|&&byte| byte == b'\n').count() as u64;
        lines += u64::from(!body.is_empty() && !body.ends_with(b"\n"));
        let numbers = LineNumbers::From(self.line);
        self.line += lines;
        let part = Part { body, lines, numbers, taken_bytes: taken(), is_last };
        match failure {
            None => PartOutcome::Part(part),
            Some(what) => {
                PartOutcome::Invalid(part, InvalidInput::Rest(Broken { line: self.line, what }))
            }
        }
    }
}

pub(crate) struct Events {
    rows: Rows,
    ids: Option<EventIds>,
    skip: Option<Skip>,
}

impl Events {
    fn next(&mut self, taken: &dyn Fn() -> u64) -> PartOutcome {
        let mut body = Vec::with_capacity(PART_BYTES + (1 << 16));
        let mut numbers = Vec::new();
        let (mut is_last, mut bad) = (false, None);
        while body.len() < PART_BYTES {
            match self.rows.next() {
                Ok(None) => {
                    is_last = true;
                    break;
                }
                Ok(Some((line, Ok(mut event)))) => {
                    if let Some(ids) = &mut self.ids {
                        ids.name(&mut event);
                    }
                    event.push(&mut body);
                    body.push(b'\n');
                    numbers.push(line);
                }
                Ok(Some((line, Err(fault)))) => match &mut self.skip {
                    Some(skip) => skip(line, fault.to_string()),
                    None => {
                        bad = Some(InvalidInput::Row(line, fault.to_string()));
                        break;
                    }
                },
                Err(broken) => {
                    bad = Some(InvalidInput::Rest(broken));
                    break;
                }
            }
        }
        let lines = numbers.len() as u64;
        let numbers = LineNumbers::Each(numbers);
        let part = Part { body, lines, numbers, taken_bytes: taken(), is_last };
        match bad {
            None => PartOutcome::Part(part),
            Some(bad) => PartOutcome::Invalid(part, bad),
        }
    }
}
