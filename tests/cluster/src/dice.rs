//! A seeded pseudo-random generator.

/// Splitmix64.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// A generator with this seed, for one of several users.
    pub(crate) fn new(seed: u64, thrower: u64) -> Dice {
        let mixed = seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ thrower.wrapping_mul(0x9e37_79b9);
        Dice(mixed ^ 0x9e37_79b9_7f4a_7c15)
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `n`; 0 if `n` is 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.draw() % n.max(1)
    }

    /// A number in a range.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// One of several values.
    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Whether an event with this probability (in percent) occurs.
    pub(crate) fn percent(&mut self, times: u64) -> bool {
        self.below(100) < times
    }
}
