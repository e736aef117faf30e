//! The resources that a statement may use.

use super::pool::{Grant, Pool};
use crate::error::{Detail, Error, ErrorKind, Result};
use std::sync::Arc;

/// The resources that a statement may use, and its stop signal. Every loop over data of
/// user-controlled size charges it.
pub struct Budget {
    steps: u64,
    /// Bytes available without the pool.
    bytes: u64,
    /// Bytes available beyond those, if the pool has them.
    ungranted: u64,
    /// Memory taken from the pool, if there is one.
    grant: Option<Grant>,
    /// Memory that the pool was charged for the transaction's writes.
    written: u64,
    /// Steps left before `stop` is checked again.
    unasked: u64,
    stop: Box<dyn FnMut() -> Option<Stop> + Send>,
}

/// Why a statement must end now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Its deadline has passed.
    Deadline,
    /// Its client has gone.
    Cancelled,
}

impl Budget {
    /// Number of steps between two checks of `stop`.
    const STEPS_PER_QUESTION: u64 = 4096;
    /// Amount taken from the pool at a time. A statement that needs no more than this takes nothing
    /// from it.
    const BLOCK_BYTES: u64 = 256 << 10;
    /// Unused amount that is kept for a while.
    const SPARE_BYTES: u64 = 4 * Self::BLOCK_BYTES;

    /// A budget of this many steps and bytes of memory; `stop` is checked every 4,096 steps.
    pub fn new(
        steps: u64,
        bytes: u64,
        stop: impl FnMut() -> Option<Stop> + Send + 'static,
    ) -> Self {
        Self {
            steps,
            bytes,
            ungranted: 0,
            grant: None,
            written: 0,
            unasked: Self::STEPS_PER_QUESTION,
            stop: Box::new(stop),
        }
    }

    /// The same budget, with all but the first block of bytes taken from a shared pool.
    #[must_use]
    pub fn sharing(mut self, pool: &Arc<Pool>) -> Self {
        self.ungranted = self.bytes.saturating_sub(Self::BLOCK_BYTES);
        self.bytes -= self.ungranted;
        self.grant = Some(Grant::none(pool));
        self
    }

    /// The memory taken from the pool; keep it as long as the data it was taken for: the result,
    /// the transaction.
    pub fn into_grant(self) -> Option<Grant> {
        self.grant
    }

    /// An unlimited budget, for tests.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX, u64::MAX, || None)
    }

    /// Charges steps. An error if too few are left, or if the statement must end.
    pub fn charge_steps(&mut self, steps: u64) -> Result<()> {
        match self.steps.checked_sub(steps) {
            Some(left) => self.steps = left,
            None => return Err(exhausted("steps")),
        }
        match self.unasked.checked_sub(steps) {
            Some(left) => self.unasked = left,
            None => return self.ask(),
        }
        Ok(())
    }

    /// Charges bytes of memory. An error if too few are left.
    pub fn charge_bytes(&mut self, bytes: u64) -> Result<()> {
        match self.bytes.checked_sub(bytes) {
            Some(left) => self.bytes = left,
            None => return self.grow(bytes),
        }
        Ok(())
    }

    /// Charges bytes: the first block is the statement's own, the others come in blocks from the
    /// pool.
    #[cold]
    fn grow(&mut self, bytes: u64) -> Result<()> {
        let missing = bytes.saturating_sub(self.bytes);
        let Some(grant) = self.grant.as_mut().filter(|_| missing <= self.ungranted) else {
            return Err(exhausted("bytes of memory"));
        };
        let blocks = missing.div_ceil(Self::BLOCK_BYTES).saturating_mul(Self::BLOCK_BYTES);
        let taken = blocks.min(self.ungranted);
        grant.take(taken).map_err(|_| pool_empty(grant.most()))?;
        self.ungranted -= taken;
        self.bytes = self.bytes + taken - bytes;
        Ok(())
    }

    /// Charges the pool for the memory held by the transaction, in bytes. The statement's own
    /// allowance is unaffected: a transaction has its own limits.
    ///
    /// # Errors
    /// The pool has too little left.
    pub fn charge_written(&mut self, bytes: impl FnOnce() -> usize) -> Result<()> {
        if self.grant.is_none() {
            return Ok(());
        }
        let more = (bytes() as u64).saturating_sub(self.written);
        self.written += more;
        self.ungranted = self.ungranted.saturating_add(more);
        self.charge_bytes(more)
    }

    /// Returns bytes that are no longer used.
    pub fn return_bytes(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some(grant) = &mut self.grant
            && self.bytes > Self::SPARE_BYTES
        {
            let spare = (self.bytes - Self::BLOCK_BYTES).min(grant.bytes());
            grant.give_back(spare);
            self.bytes -= spare;
            self.ungranted = self.ungranted.saturating_add(spare);
        }
    }

    /// Bytes of memory left.
    pub fn bytes_left(&self) -> u64 {
        self.bytes.saturating_add(self.ungranted)
    }

    /// Steps left.
    pub fn steps_left(&self) -> u64 {
        self.steps
    }

    #[cold]
    fn ask(&mut self) -> Result<()> {
        self.unasked = Self::STEPS_PER_QUESTION;
        match (self.stop)() {
            None => Ok(()),
            Some(Stop::Deadline) => Err(Error::runtime(
                ErrorKind::Terminated,
                Detail::TimeLimit,
                "The statement exceeded its time limit.",
            )),
            Some(Stop::Cancelled) => Err(Error::runtime(
                ErrorKind::Terminated,
                Detail::Cancelled,
                "The statement was terminated.",
            )),
        }
    }
}

#[cold]
fn pool_empty(most: u64) -> Error {
    let message = format!(
        "Running statements together use all of the {most} bytes of memory that they share. This statement has changed nothing; try again."
    );
    Error::runtime(ErrorKind::ResourceExhausted, Detail::LimitExceeded, message)
}

#[cold]
fn exhausted(what: &str) -> Error {
    let message = format!("The statement exceeded its limit of {what}.");
    Error::runtime(ErrorKind::ResourceExhausted, Detail::LimitExceeded, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = Budget::BLOCK_BYTES;

    fn blocks(count: usize) -> usize {
        count * BLOCK as usize
    }

    fn budget(bytes: u64, pool: &Arc<Pool>) -> Budget {
        Budget::new(u64::MAX, bytes, || None).sharing(pool)
    }

    #[test]
    fn the_first_block_is_of_nobody_and_others_are_of_the_pool() {
        let pool = Pool::new(3 * BLOCK);
        let (mut one, mut other) = (budget(10 * BLOCK, &pool), budget(10 * BLOCK, &pool));
        one.charge_bytes(BLOCK).unwrap();
        assert_eq!((pool.taken(), one.bytes_left()), (0, 9 * BLOCK));
        one.charge_bytes(1).unwrap();
        assert_eq!((pool.taken(), one.bytes_left()), (BLOCK, 9 * BLOCK - 1));
        other.charge_bytes(3 * BLOCK).unwrap();
        assert_eq!(pool.taken(), 3 * BLOCK);
        let empty = one.charge_bytes(BLOCK).unwrap_err();
        assert!(empty.code().starts_with("Neo.TransientError."), "{}", empty.code());
        assert!(empty.message.contains("together"), "{empty}");
        drop(other);
        assert_eq!(pool.taken(), BLOCK);
        one.charge_bytes(BLOCK).unwrap();
        drop(one.into_grant());
        assert_eq!(pool.taken(), 0);
    }

    #[test]
    fn what_one_may_take_stays_what_it_was() {
        let pool = Pool::new(100 * BLOCK);
        for most in [BLOCK / 2, 5 * BLOCK + 7] {
            let mut one = budget(most, &pool);
            assert!(one.charge_bytes(most + 1).is_err());
            one.charge_bytes(most).unwrap();
            assert_eq!(one.bytes_left(), 0);
            let alone = one.charge_bytes(1).unwrap_err();
            assert!(!alone.message.contains("together"), "{alone}");
            one.return_bytes(most);
            assert_eq!(one.bytes_left(), most);
        }
        assert_eq!(pool.taken(), 0);
    }

    #[test]
    fn what_is_returned_goes_back_to_the_others() {
        let pool = Pool::new(100 * BLOCK);
        let mut one = budget(100 * BLOCK, &pool);
        one.charge_bytes(50 * BLOCK).unwrap();
        one.return_bytes(50 * BLOCK);
        assert!(pool.taken() <= 4 * BLOCK, "{}", pool.taken());
        assert_eq!(one.bytes_left(), 100 * BLOCK);
    }

    #[test]
    fn what_is_written_is_taken_of_the_pool_alone() {
        let pool = Pool::new(10 * BLOCK);
        let mut one = budget(2 * BLOCK, &pool);
        one.charge_written(|| blocks(5)).unwrap();
        one.charge_written(|| blocks(4)).unwrap();
        assert_eq!((one.bytes_left(), pool.taken()), (2 * BLOCK, 4 * BLOCK));
        one.charge_bytes(2 * BLOCK).unwrap();
        assert!(one.charge_bytes(1).is_err());
        assert!(one.charge_written(|| blocks(20)).is_err());
        let mut alone = Budget::new(1, 1, || None);
        alone.charge_written(|| usize::MAX).unwrap();
        drop(one);
        assert_eq!(pool.taken(), 0);
    }
}
