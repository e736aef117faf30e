//! What a statement may spend.

use crate::error::{Detail, Error, ErrorKind, Result};

/// What a statement may spend, and who may stop it. Every loop over data of a user's size charges it.
pub struct Budget {
    steps: u64,
    bytes: u64,
    /// How many steps are left before `stop` is asked again.
    unasked: u64,
    stop: Box<dyn FnMut() -> Option<Stop> + Send>,
}

/// Why a statement is to end now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Its time is over.
    Deadline,
    /// Nobody waits for it any more.
    Cancelled,
}

impl Budget {
    /// How many steps pass between two questions whether to stop.
    const STEPS_PER_QUESTION: u64 = 4096;

    /// At most so many steps and bytes of memory; `stop` is asked every 4,096 steps.
    pub fn new(
        steps: u64,
        bytes: u64,
        stop: impl FnMut() -> Option<Stop> + Send + 'static,
    ) -> Self {
        Self { steps, bytes, unasked: Self::STEPS_PER_QUESTION, stop: Box::new(stop) }
    }

    /// Without any bound: for tests.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX, u64::MAX, || None)
    }

    /// Takes steps. An error if there are not so many left, or if the statement is to end.
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

    /// Takes bytes of memory. An error if there are not so many left.
    pub fn charge_bytes(&mut self, bytes: u64) -> Result<()> {
        match self.bytes.checked_sub(bytes) {
            Some(left) => self.bytes = left,
            None => return Err(exhausted("bytes of memory")),
        }
        Ok(())
    }

    /// Gives bytes back that are no longer held.
    pub fn return_bytes(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// The bytes of memory that are left.
    pub fn bytes_left(&self) -> u64 {
        self.bytes
    }

    /// The steps that are left.
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
                "The statement took longer than it may.",
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
fn exhausted(what: &str) -> Error {
    let message = format!("The statement needs more {what} than it may take.");
    Error::runtime(ErrorKind::ResourceExhausted, Detail::LimitExceeded, message)
}
