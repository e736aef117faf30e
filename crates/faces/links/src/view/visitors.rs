//! The number of distinct visitors in a day, in bounded memory: exact while they are few, then
//! estimated by HyperLogLog (Flajolet, Fusy, Gandouet, Meunier 2007) with 2048 registers, whose
//! standard error is 1.04/√2048 = 2.3%.

/// Maximum number of visitors in a day that are counted exactly.
pub(super) const FEW: usize = 64;
const REGISTER_BITS: u32 = 11;
const REGISTERS: usize = 1 << REGISTER_BITS;

/// The visitors of one day, by their hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Visitors {
    /// The hashes of all visitors.
    Few(Vec<u64>),
    /// For each register, the longest run of zeros plus one.
    Many(Box<[u8]>),
}

impl Default for Visitors {
    fn default() -> Self {
        Visitors::Few(Vec::new())
    }
}

impl Visitors {
    /// Adds a visitor; adding one again changes nothing. Hashes must be uniform.
    pub(super) fn add(&mut self, hash: u64) {
        match self {
            Visitors::Few(hashes) if hashes.contains(&hash) => {}
            Visitors::Few(hashes) if hashes.len() < FEW => hashes.push(hash),
            Visitors::Few(hashes) => {
                let mut registers = vec![0; REGISTERS].into_boxed_slice();
                hashes.iter().chain([&hash]).for_each(|&hash| note(&mut registers, hash));
                *self = Visitors::Many(registers);
            }
            Visitors::Many(registers) => note(registers, hash),
        }
    }

    /// The number of visitors, exact or estimated.
    pub(super) fn count(&self) -> u64 {
        match self {
            Visitors::Few(hashes) => hashes.len() as u64,
            Visitors::Many(registers) => estimate(registers),
        }
    }

    /// Whether hashes can produce this state.
    pub(super) fn is_sound(&self) -> bool {
        match self {
            Visitors::Few(_) => true,
            Visitors::Many(registers) => {
                registers.iter().all(|&run| u32::from(run) <= 65 - REGISTER_BITS)
            }
        }
    }

    /// Registers from a snapshot; `None` if their number is wrong.
    pub(super) fn many(registers: Vec<u8>) -> Option<Visitors> {
        (registers.len() == REGISTERS).then(|| Visitors::Many(registers.into_boxed_slice()))
    }

    /// Hashes from a snapshot; `None` if there are too many.
    pub(super) fn few(hashes: Vec<u64>) -> Option<Visitors> {
        (hashes.len() <= FEW).then_some(Visitors::Few(hashes))
    }
}

fn note(registers: &mut [u8], hash: u64) {
    debug_assert_eq!(registers.len(), REGISTERS);
    let register = (hash >> (64 - REGISTER_BITS)) as usize;
    let run = (hash << REGISTER_BITS).leading_zeros().min(64 - REGISTER_BITS) as u8 + 1;
    registers[register] = registers[register].max(run);
}

fn estimate(registers: &[u8]) -> u64 {
    let m = REGISTERS as f64;
    let alpha = 0.7213 / (1.0 + 1.079 / m);
    let sum: f64 = registers.iter().map(|&run| 2f64.powi(-i32::from(run))).sum();
    let raw = alpha * m * m / sum;
    let zeros = registers.iter().filter(|&&run| run == 0).count() as f64;
    // Below two and a half times the number of registers, counting the empty ones is more accurate.
    let estimate = if raw <= 2.5 * m && zeros > 0.0 { m * (m / zeros).ln() } else { raw };
    estimate.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_types::random::{STEP, mix};

    /// SplitMix64 (Steele, Lea, Flood 2014), a uniform hash.
    fn hash(n: u64) -> u64 {
        mix(n.wrapping_add(1).wrapping_mul(STEP))
    }

    #[test]
    fn few_are_exact_and_many_are_close() {
        let mut visitors = Visitors::default();
        for n in 0..200_000u64 {
            visitors.add(hash(n));
            visitors.add(hash(n / 2));
            let (count, truth) = (visitors.count_if(n), n + 1);
            if n < FEW as u64 {
                assert_eq!(count, Some(truth));
            } else if let Some(count) = count {
                let error = (count as f64 - truth as f64).abs() / truth as f64;
                assert!(error < 0.08, "{count} for {truth}");
            }
        }
    }

    impl Visitors {
        /// Estimating is slow in a debug build, so not every step does it.
        fn count_if(&self, n: u64) -> Option<u64> {
            (n < 100 || n.is_multiple_of(9_973)).then(|| self.count())
        }
    }
}
