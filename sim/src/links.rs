//! The view of links at a node: decided on the log of whoever leads, folded and followed
//! everywhere.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use wellspring_log::{Log, ReadError, ReadOptions, RecordView};
use wellspring_types::{AppendCondition, Event, Position, Query};
use wellspring_views::links::{
    Code, Command, Context, Create, Links, Lookup, Naming, Refusal, Staged, TargetRule,
};
use wellspring_views::view::{Recorded, View};

/// The view at a node, and up to where it is folded.
#[derive(Default)]
pub struct LinksAt {
    view: Links,
    /// Everything up to here is in it.
    pub folded: Position,
    /// An attempt that was decided on this view and is not settled: the next waits for it.
    pub deciding: Option<usize>,
}

struct Stored<'a>(RecordView<'a>);

impl Recorded for Stored<'_> {
    fn position(&self) -> Position {
        self.0.position()
    }
    fn recorded_at_us(&self) -> u64 {
        self.0.recorded_at_us()
    }
    fn event_type(&self) -> &str {
        self.0.event_type()
    }
    fn tags(&self) -> impl Iterator<Item = &str> {
        self.0.tags()
    }
    fn data(&self) -> &[u8] {
        self.0.data()
    }
}

fn reserved(_: &str) -> bool {
    false
}

fn code(alias: &str) -> Code {
    Code::check(alias.as_bytes()).expect("an alias that may be one")
}

impl LinksAt {
    /// Folds what the log shows.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn catch_up(&mut self, log: &Log) -> Result<(), ReadError> {
        let snapshot = log.snapshot();
        let options = ReadOptions { after: Some(self.folded), ..ReadOptions::default() };
        let mut events = snapshot.read(&Links::concern(), options);
        while let Some(record) = events.next()? {
            self.view.apply(&Stored(record));
        }
        self.folded = snapshot.head();
        Ok(())
    }

    /// The events that make a link, and on what condition.
    ///
    /// # Errors
    /// Why there can be no such link.
    pub fn decide(
        &self,
        alias: &str,
        random: u64,
    ) -> Result<(Vec<Event>, AppendCondition), Refusal> {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&random.to_le_bytes());
        let context = Context { key, reserved, targets: TargetRule::default() };
        let create = Create {
            url: format!("https://example.com/{alias}"),
            naming: Naming::Alias(code(alias)),
            expires_at_us: None,
            tags: Vec::new(),
        };
        let command = Command::Create(create);
        let decision = Links::decide(self.view.folded(), &Staged::default(), &context, &command)?;
        let query = Query { items: decision.unless };
        Ok((decision.events, AppendCondition::no_match_after(query, self.folded)))
    }

    /// Whether a link leads anywhere.
    #[must_use]
    pub fn follow(&self, alias: &str) -> bool {
        let mut location = Vec::new();
        self.view.folded().lookup(code(alias), 0, &mut location) == Lookup::Found
    }

    /// Over all of it.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let mut bytes = Vec::new();
        Links::encode(self.view.folded(), &mut bytes).expect("memory takes it");
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        hasher.finish()
    }
}
