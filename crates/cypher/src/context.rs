//! What a statement is executed with: everything an expression may read besides its row.

use crate::error::{Detail, Error, ErrorKind, Result};
use crate::value::{NodeId, RelationshipId, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Values by the names of parameters.
pub type Parameters = BTreeMap<Arc<str>, Value>;

/// The surroundings of one statement's execution.
pub struct Context<'a> {
    /// The graph, as this transaction sees it.
    pub graph: &'a mut dyn Entities,
    /// The statement's parameters.
    pub parameters: &'a Parameters,
    /// When the statement began.
    pub time: StatementTime,
    /// Where `rand()` comes from.
    pub random: &'a mut Random,
    /// What the statement may still spend.
    pub budget: &'a mut Budget,
    /// Who answers subqueries.
    pub subqueries: &'a dyn Subqueries,
}

/// What expressions read of the graph.
pub trait Entities {
    /// The labels of a node, by name.
    fn labels(&mut self, node: NodeId) -> Result<Vec<Arc<str>>>;
    /// Whether a node has a label.
    fn has_label(&mut self, node: NodeId, label: &str) -> Result<bool>;
    /// One property of a node, or null.
    fn node_property(&mut self, node: NodeId, key: &str) -> Result<Value>;
    /// All properties of a node.
    fn node_properties(&mut self, node: NodeId) -> Result<Vec<(Arc<str>, Value)>>;
    /// The type of a relationship.
    fn relationship_type(&mut self, relationship: RelationshipId) -> Result<Arc<str>>;
    /// Where a relationship begins and ends.
    fn relationship_ends(&mut self, relationship: RelationshipId) -> Result<(NodeId, NodeId)>;
    /// One property of a relationship, or null.
    fn relationship_property(&mut self, relationship: RelationshipId, key: &str) -> Result<Value>;
    /// All properties of a relationship.
    fn relationship_properties(
        &mut self,
        relationship: RelationshipId,
    ) -> Result<Vec<(Arc<str>, Value)>>;
}

/// Answers `Expression::Subquery`: the executor does.
pub trait Subqueries {
    /// The value of the subquery with this number for a row.
    fn evaluate(
        &self,
        number: usize,
        row: &mut [Value],
        context: &mut Context<'_>,
    ) -> Result<Value>;
}

/// For what has no subqueries.
pub struct NoSubqueries;

impl Subqueries for NoSubqueries {
    fn evaluate(&self, number: usize, _: &mut [Value], _: &mut Context<'_>) -> Result<Value> {
        Err(Error::defect(format!("no subquery {number}")))
    }
}

/// The instant at which a statement began: what `datetime()` and its kin say throughout the statement. In UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementTime {
    /// Seconds since 1970-01-01T00:00Z.
    pub seconds: i64,
    /// Nanoseconds of the second, below 10⁹.
    pub nanoseconds: u32,
}

/// A source of numbers that look random, the same for the same seed (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A source that begins at a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// The next float of [0, 1).
    pub fn float(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

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
