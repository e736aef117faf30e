//! A body as blocks of whole lines.

use super::intake::MAX_LINE_BYTES;
use wellspring_host::http::body::Body;
use wellspring_host::wire::problem::Problem;

/// Size of a block in bytes: large enough that handing it to another thread costs little.
const BLOCK_BYTES: usize = 512 << 10;

/// Cuts a body into blocks.
#[derive(Default)]
pub(super) struct Blocks {
    /// What arrived after the last block.
    rest: Vec<u8>,
    /// Whether a line that is too long is being skipped.
    too_long: bool,
    /// Length of the last block.
    block_bytes: usize,
    ended: bool,
}

impl Blocks {
    /// The next block of whole lines; `None` at the end. The body's last line may lack its end. A
    /// line that is too long is cut to a length that is still too long.
    ///
    /// # Errors
    /// The body ended early, or exceeds the memory limit.
    pub(super) async fn next(&mut self, body: &mut Body) -> Result<Option<Vec<u8>>, Box<Problem>> {
        while !self.ended {
            match body.piece().await? {
                None => self.ended = true,
                Some(piece) => self.add(&piece),
            }
            // The two blocks before this one may still be in use.
            body.charge(self.rest.len().max(self.block_bytes) * 3)?;
            if self.rest.len() >= BLOCK_BYTES
                && let Some(block) = self.cut()
            {
                self.block_bytes = block.len();
                return Ok(Some(block));
            }
        }
        let last = std::mem::take(&mut self.rest);
        Ok((!last.is_empty()).then_some(last))
    }

    fn add(&mut self, mut piece: &[u8]) {
        if self.too_long {
            let Some(end) = piece.iter().position(|&byte| byte == b'\n') else { return };
            piece = &piece[end..];
            self.too_long = false;
        }
        self.rest.extend_from_slice(piece);
        if self.rest.len() > MAX_LINE_BYTES && !self.rest.contains(&b'\n') {
            self.rest.truncate(MAX_LINE_BYTES + 1);
            self.too_long = true;
        }
    }

    /// The whole lines of the rest, if any.
    fn cut(&mut self) -> Option<Vec<u8>> {
        let end = self.rest.iter().rposition(|&byte| byte == b'\n')? + 1;
        let mut next = Vec::with_capacity(BLOCK_BYTES * 2);
        next.extend_from_slice(&self.rest[end..]);
        self.rest.truncate(end);
        Some(std::mem::replace(&mut self.rest, next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_whole_however_they_come_and_long_ones_are_cut() {
        let long = "x".repeat(MAX_LINE_BYTES + 500_000);
        let text = format!("a\n{long}\nb\n");
        for step in [7_001, 100_000, text.len()] {
            let mut blocks = Blocks::default();
            let mut lines = Vec::new();
            let mut all = Vec::new();
            for piece in text.as_bytes().chunks(step) {
                blocks.add(piece);
                all.extend(blocks.cut().unwrap_or_default());
            }
            all.append(&mut blocks.rest);
            lines.extend(all.split(|&byte| byte == b'\n').map(<[u8]>::len));
            assert_eq!((lines[0], lines[2], lines.len()), (1, 1, 4), "{step}");
            assert!(lines[1] > MAX_LINE_BYTES, "{step}");
        }
    }
}
