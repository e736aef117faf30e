//! A seeded random generator.

/// The generator.
#[derive(Debug)]
pub(super) struct Coins(pub(super) u64);

impl Coins {
    /// A number below `n`.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}
