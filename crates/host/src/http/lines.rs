//! Bodies of lines, read as they arrive.

use super::Body;
use crate::wire::problem::{self, Problem};
use bytes::{Bytes, BytesMut};

/// The lines of a body as they arrive.
pub struct Lines {
    buffer: BytesMut,
    /// This many bytes of the buffer contain no line end.
    searched: usize,
    most_bytes: usize,
}

/// Why no more lines are read.
#[derive(Debug)]
pub enum LineFault {
    /// A line is at fault and always will be.
    Line(Box<Problem>),
    /// The body ended early, or there is no memory for it now: a retry may succeed.
    Body(Box<Problem>),
}

impl Lines {
    /// None read yet; each may have at most this many bytes.
    pub fn up_to(most_bytes: usize) -> Lines {
        Lines { buffer: BytesMut::new(), searched: 0, most_bytes }
    }

    /// The next line, without its end; `None` after the last.
    ///
    /// # Errors
    /// [`LineFault`].
    pub async fn next(&mut self, body: &mut Body) -> Result<Option<Bytes>, LineFault> {
        loop {
            if let Some(end) = self.buffer[self.searched..].iter().position(|&b| b == b'\n') {
                let line = self.buffer.split_to(self.searched + end).freeze();
                let _ = self.buffer.split_to(1);
                self.searched = 0;
                return self.within(line).map(Some);
            }
            self.searched = self.buffer.len();
            if self.searched > self.most_bytes {
                return Err(self.too_long());
            }
            let Some(chunk) = body.piece().await.map_err(LineFault::Body)? else {
                let line = std::mem::take(&mut self.buffer).freeze();
                self.searched = 0;
                return if line.is_empty() { Ok(None) } else { self.within(line).map(Some) };
            };
            self.buffer.extend_from_slice(&chunk);
        }
    }

    /// Bytes buffered for further lines.
    pub fn held_bytes(&self) -> usize {
        self.buffer.len()
    }

    fn within(&self, line: Bytes) -> Result<Bytes, LineFault> {
        if line.len() > self.most_bytes { Err(self.too_long()) } else { Ok(line) }
    }

    fn too_long(&self) -> LineFault {
        let limit = self.most_bytes;
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

    #[test]
    fn a_problem_says_its_line_and_stays_itself() {
        let problem = of_line(7, problem::INVALID.because("wrong"));
        let json: serde_json::Value = serde_json::from_slice(&problem.to_json()).unwrap();
        assert_eq!((json["line"].as_u64(), json["status"].as_u64()), (Some(7), Some(422)));
        assert_eq!(json["detail"], "line 7: wrong");
    }
}
