//! What an operator defines of a consumer.

/// What keeps its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderKey {
    /// Events with the same value of this tag (`name:value`). An event with several values waits
    /// for all of them; an event without one has no order.
    Tag(Box<str>),
    /// Nothing: each event stands for itself.
    None,
    /// All events, as one key.
    All,
}

impl OrderKey {
    /// The keys of an event with these tags, each once.
    pub fn values<'a>(&self, tags: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        match self {
            OrderKey::None => Vec::new(),
            OrderKey::All => vec![""],
            OrderKey::Tag(name) => {
                let tags = tags.into_iter();
                let mut values: Vec<&str> =
                    tags.filter_map(|tag| tag.strip_prefix(&**name)?.strip_prefix(':')).collect();
                values.sort_unstable();
                values.dedup();
                values
            }
        }
    }
}

/// What follows the last try of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureRule {
    /// The event and its keys are parked: later events of these keys wait.
    ParkKey,
    /// The event is parked alone, and its keys go on without it.
    ParkEvent,
    /// The consumer stops until an operator resumes it.
    Stop,
}

/// The pause before a retry: `first_us` after the first failure, doubled for each further one, at
/// most `most_us`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub first_us: u64,
    /// The longest pause.
    pub most_us: u64,
}

impl Backoff {
    /// The pause after this many failures.
    #[must_use]
    pub fn after(self, failures: u8) -> u64 {
        let doublings = u32::from(failures.saturating_sub(1)).min(63);
        self.first_us.saturating_mul(1 << doublings).min(self.most_us)
    }
}

/// A consumer as its operator defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// What keeps its order.
    pub key: OrderKey,
    /// The longest silence of a worker, which then loses all that it holds.
    pub hold_us: u64,
    /// The longest hold of a delivery, whatever its worker says.
    pub max_hold_us: u64,
    /// The most deliveries held at a time, by all workers.
    pub max_in_flight: usize,
    /// The most consecutive events of one key in a delivery, 1 to [`Definition::MAX_RUN`].
    pub run: u8,
    /// The tries after which `on_failure` applies.
    pub max_tries: u8,
    /// The pause before a retry.
    pub backoff: Backoff,
    /// What follows the last try.
    pub on_failure: FailureRule,
    /// The most keys open at a time. At the bound scanning stops, and open keys go on.
    pub max_open_keys: usize,
}

/// A limit that a definition does not keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionFault {
    /// `hold_us` is 0.
    Hold,
    /// `max_hold_us` is below `hold_us`.
    MaxHold,
    /// `max_in_flight` is 0.
    InFlight,
    /// `run` is not in 1 to [`Definition::MAX_RUN`].
    Run,
    /// `max_tries` is 0.
    Tries,
    /// The first pause is longer than the longest.
    Backoff,
    /// `max_open_keys` is 0 or above [`Definition::MAX_OPEN_KEYS`].
    OpenKeys,
}

impl Definition {
    /// The most events in a delivery.
    pub const MAX_RUN: u8 = 100;
    /// The most keys that may be open.
    pub const MAX_OPEN_KEYS: usize = 1 << 24;

    /// Checks the limits.
    pub fn check(&self) -> Result<(), DefinitionFault> {
        let limits = [
            (self.hold_us > 0, DefinitionFault::Hold),
            (self.max_hold_us >= self.hold_us, DefinitionFault::MaxHold),
            (self.max_in_flight > 0, DefinitionFault::InFlight),
            ((1..=Definition::MAX_RUN).contains(&self.run), DefinitionFault::Run),
            (self.max_tries > 0, DefinitionFault::Tries),
            (self.backoff.first_us <= self.backoff.most_us, DefinitionFault::Backoff),
            (
                (1..=Definition::MAX_OPEN_KEYS).contains(&self.max_open_keys),
                DefinitionFault::OpenKeys,
            ),
        ];
        match limits.into_iter().find(|(holds, _)| !holds) {
            Some((_, fault)) => Err(fault),
            None => Ok(()),
        }
    }

    /// The most positions that a look-up brings.
    pub(crate) fn lookup_limit(&self) -> usize {
        usize::from(self.run.max(8))
    }
}
