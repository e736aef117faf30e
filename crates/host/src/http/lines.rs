//! Bodies of lines (NDJSON), read as they arrive: the line reader of all bulk requests.
//!
//! `POST /v1/import` does not use it. There another thread reads the lines, so the body is cut into
//! blocks of many whole lines, and no line costs a message between threads.

use super::Body;
use crate::wire::problem::{self, Problem};
use bytes::Bytes;
use std::ops::Range;

/// The lines of a body as they arrive. A line that lies within one received piece is lent from it,
/// without a copy.
pub struct Lines {
    /// The received piece.
    piece: Bytes,
    /// This many bytes of the piece have been read.
    read_bytes: usize,
    /// The beginning of a line that earlier pieces contained, and the line last returned if it was
    /// assembled here.
    partial: Vec<u8>,
    max_line_bytes: usize,
}

/// Why no more lines are read.
#[derive(Debug)]
pub enum LineFault {
    /// A line is at fault and always will be.
    Line(Box<Problem>),
    /// The body ended early, or there is no memory for it now: a retry may succeed.
    Body(Box<Problem>),
}

/// Where the next line ends.
enum NextLine {
    /// It lies in the piece, here.
    InPiece(Range<usize>),
    /// It is complete in `partial`.
    Assembled,
    /// Its end is still to be received.
    Incomplete,
}

impl Lines {
    /// None read yet; each may have at most this many bytes.
    pub fn up_to(max_line_bytes: usize) -> Lines {
        Lines { piece: Bytes::new(), read_bytes: 0, partial: Vec::new(), max_line_bytes }
    }

    /// The next line, without its end; `None` after the last. Charges the body for a line that
    /// several pieces contain.
    ///
    /// # Errors
    /// [`LineFault`]. Nothing can be read after one.
    pub async fn next(&mut self, body: &mut Body) -> Result<Option<&[u8]>, LineFault> {
        self.partial.clear();
        let line = loop {
            match self.advance() {
                NextLine::InPiece(range) => break &self.piece[range],
                NextLine::Assembled => break self.partial.as_slice(),
                NextLine::Incomplete => {}
            }
            if self.partial.len() > self.max_line_bytes {
                return Err(self.too_long());
            }
            // A long line occupies memory like a body.
            body.charge(self.partial.len()).map_err(LineFault::Body)?;
            match body.piece().await.map_err(LineFault::Body)? {
                Some(piece) => self.piece = piece,
                None if self.partial.is_empty() => return Ok(None),
                None => break self.partial.as_slice(),
            }
        };
        if line.len() > self.max_line_bytes { Err(self.too_long()) } else { Ok(Some(line)) }
    }

    /// Reads on to the end of the line or of the piece.
    fn advance(&mut self) -> NextLine {
        let start = self.read_bytes;
        let rest = &self.piece[start..];
        let Some(length) = rest.iter().position(|&b| b == b'\n') else {
            self.partial.extend_from_slice(rest);
            (self.piece, self.read_bytes) = (Bytes::new(), 0);
            return NextLine::Incomplete;
        };
        self.read_bytes += length + 1;
        if self.partial.is_empty() {
            return NextLine::InPiece(start..start + length);
        }
        self.partial.extend_from_slice(&rest[..length]);
        NextLine::Assembled
    }

    /// Bytes received of further lines.
    pub fn held_bytes(&self) -> usize {
        self.piece.len() - self.read_bytes
    }

    fn too_long(&self) -> LineFault {
        let limit = self.max_line_bytes;
        let problem = problem::TOO_LARGE.because(format!("the line is longer than {limit} bytes"));
        LineFault::Line(problem.limit(limit as u64))
    }
}

/// A problem of a line, with its number, from 1.
pub fn of_line(line: u64, problem: Box<Problem>) -> Box<Problem> {
    let mut problem = problem.with("line", line.to_string());
    problem.detail = format!("line {line}: {}", problem.detail);
    problem
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of these pieces, as [`Lines::next`] puts them together.
    fn lines_of(pieces: &[&str]) -> Vec<String> {
        let mut lines = Lines::up_to(1_000);
        let mut found = Vec::new();
        for piece in pieces {
            lines.piece = Bytes::copy_from_slice(piece.as_bytes());
            loop {
                let line = match lines.advance() {
                    NextLine::InPiece(range) => &lines.piece[range],
                    NextLine::Assembled => lines.partial.as_slice(),
                    NextLine::Incomplete => break,
                };
                found.push(String::from_utf8(line.to_vec()).unwrap());
                lines.partial.clear();
            }
            assert_eq!(lines.held_bytes(), 0);
        }
        if !lines.partial.is_empty() {
            found.push(String::from_utf8(lines.partial).unwrap());
        }
        found
    }

    #[test]
    fn lines_do_not_depend_on_the_pieces_they_arrive_in() {
        let body = "one\n\ntwo, longer\r\n \n\nlast";
        let expected = ["one", "", "two, longer\r", " ", "", "last"];
        assert_eq!(lines_of(&[body]), expected);
        for first in 0..=body.len() {
            for second in first..=body.len() {
                let pieces = [&body[..first], &body[first..second], &body[second..]];
                assert_eq!(lines_of(&pieces), expected, "{pieces:?}");
            }
        }
    }

    #[test]
    fn a_problem_says_its_line_and_stays_itself() {
        let problem = of_line(7, problem::INVALID.because("wrong"));
        let json: serde_json::Value = serde_json::from_slice(&problem.to_json()).unwrap();
        assert_eq!((json["line"].as_u64(), json["status"].as_u64()), (Some(7), Some(422)));
        assert_eq!(json["detail"], "line 7: wrong");
    }
}
