//! The view of links at a node: decides on the leader's log, and is folded and queried on every
//! node.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use wellspring_face_links::view::{
    Code, Command, Context, Create, LinkRefusal, Links, Lookup, Naming, StagedLinks, TargetRule,
};
use wellspring_host::view::contract::{LogEvent, View};
use wellspring_log::{Log, ReadError, ReadOptions, RecordView};
use wellspring_types::{AppendCondition, Event, Position, Query};

/// The view at a node and how far it is folded.
#[derive(Default)]
pub struct LinksAt {
    view: Links,
    /// Everything up to this position is folded.
    pub folded: Position,
    /// An unsettled attempt decided on this view; the next one waits for it.
    pub deciding: Option<usize>,
}

struct StoredEvent<'a>(RecordView<'a>);

impl LogEvent for StoredEvent<'_> {
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
    /// Folds new events of the log.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn catch_up(&mut self, log: &Log) -> Result<(), ReadError> {
        let snapshot = log.snapshot();
        let options = ReadOptions { after: Some(self.folded), ..ReadOptions::default() };
        let mut events = snapshot.read(&Links::query(), options);
        while let Some(record) = events.next()? {
            self.view.apply(&StoredEvent(record));
        }
        self.folded = snapshot.head();
        Ok(())
    }

    /// The events that create a link, and their condition.
    ///
    /// # Errors
    /// Why the link cannot be created.
    pub fn decide(
        &self,
        alias: &str,
        random: u64,
    ) -> Result<(Vec<Event>, AppendCondition), LinkRefusal> {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&random.to_le_bytes());
        let context = Context { key, reserved, targets: TargetRule::default() };
        let create = Create {
            url: format!("https://example.com/{alias}"),
            naming: Naming::Alias(code(alias)),
            expires_at_us: None,
            max_clicks: None,
            tags: Vec::new(),
            sealed: None,
        };
        let command = Command::Create(create);
        let decision =
            Links::decide(self.view.folded(), &StagedLinks::default(), &context, &command)?;
        let query = Query { items: decision.unless };
        Ok((decision.events, AppendCondition::no_match_after(query, self.folded)))
    }

    /// Whether a link leads anywhere.
    #[must_use]
    pub fn follow(&self, alias: &str) -> bool {
        let mut location = Vec::new();
        self.view.folded().lookup(code(alias), 0, &mut location) == Lookup::Found
    }

    /// Hash of the whole view.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let mut bytes = Vec::new();
        Links::encode(self.view.folded(), &mut bytes).expect("memory takes it");
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        hasher.finish()
    }
}
