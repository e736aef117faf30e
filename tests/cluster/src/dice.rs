//! Where chance comes from: a seed.

/// Splitmix64.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Dice that fall as the seed says, for one of several who throw them.
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

    /// Any number below `n`; 0 if that is 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.draw() % n.max(1)
    }

    /// Any number of a range.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// One of several.
    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Whether something happens that happens so often in 100 times.
    pub(crate) fn percent(&mut self, times: u64) -> bool {
        self.below(100) < times
    }
}
