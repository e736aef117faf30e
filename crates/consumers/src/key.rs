//! An open key: how far its events are settled, and what becomes of the next one.

use wellspring_types::Position;

/// What identifies an open key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyName {
    /// A value of the order key: the key of all events that have it.
    Value(Box<str>),
    /// The position of an event without order, which is a key of its own.
    Event(Position),
}

impl KeyName {
    pub(crate) fn borrowed(&self) -> KeyRef<'_> {
        match self {
            KeyName::Value(value) => KeyRef::Value(value),
            KeyName::Event(position) => KeyRef::Event(*position),
        }
    }
}

/// A borrowed [`KeyName`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum KeyRef<'a> {
    Value(&'a str),
    Event(Position),
}

/// What becomes of a key's next event. All keys of an event that is ready, held, retrying or parked
/// are in the same state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyState {
    /// The position of the next event is to be looked up; it is not below `next`.
    Looking,
    /// The event is not yet the next one of all of its keys.
    Waiting,
    /// One of the keys is in the line of ready keys.
    Ready,
    /// In the delivery with this number.
    Held(u64),
    /// Ready again at this time.
    Retrying(u64),
    /// To be parked as soon as a checkpoint that says so is durable: alone, or with its keys.
    Parking {
        is_alone: bool,
    },
    Parked,
    /// Not parked any more as soon as a checkpoint that says so is durable.
    Replaying,
}

#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: KeyName,
    /// The next event, or where it is looked for. All earlier ones of the key are settled.
    pub(crate) next: Position,
    /// The last event of the key up to `scanned`, or a position above it.
    pub(crate) last: Position,
    /// The distances to the events that follow `next`, each from the one before; those before
    /// `used` are behind `next`.
    further: Box<[u32]>,
    pub(crate) state: KeyState,
    /// The next key in the same bucket of the table.
    pub(crate) chain: u32,
    /// Deliveries of the next event.
    pub(crate) tries: u8,
    used: u8,
    /// Different from what the checkpoints say, and in the list of such keys.
    pub(crate) is_changed: bool,
    /// In the checkpoints.
    pub(crate) is_saved: bool,
}

impl Key {
    pub(crate) fn new(name: KeyName, next: Position, last: Position, state: KeyState) -> Key {
        Key {
            name,
            next,
            last,
            further: Box::default(),
            state,
            chain: u32::MAX,
            tries: 0,
            used: 0,
            is_changed: false,
            is_saved: false,
        }
    }

    /// Takes what a look-up found: ascending positions, at least one. Returns the last one taken: a
    /// gap too wide for a distance ends them, and what follows is looked up again.
    pub(crate) fn locate(&mut self, positions: &[Position]) -> Position {
        self.next = positions[0];
        self.used = 0;
        let distances = positions.windows(2).map(|pair| u32::try_from(pair[1] - pair[0]).ok());
        self.further = distances.map_while(|distance| distance).collect();
        positions[self.further.len()]
    }

    /// Takes the position of an event that was scanned and has this key alone, if all of the key's
    /// events before are known, and they are fewer than `most`.
    pub(crate) fn follow(&mut self, position: Position, most: usize) {
        if self.state == KeyState::Looking || self.known() >= most {
            return;
        }
        let known = self.positions().last().expect("the next one");
        if let Ok(distance) = u32::try_from(position - known)
            && known == self.last
        {
            let unused = &self.further[usize::from(self.used)..];
            self.further = unused.iter().copied().chain([distance]).collect();
            self.used = 0;
        }
    }

    /// How many positions are known.
    fn known(&self) -> usize {
        1 + self.further.len() - usize::from(self.used)
    }

    /// The known positions, from `next` on.
    pub(crate) fn positions(&self) -> impl Iterator<Item = Position> + '_ {
        let further = self.further[usize::from(self.used)..].iter();
        let further = further.scan(self.next, |position, distance| {
            *position += u64::from(*distance);
            Some(*position)
        });
        std::iter::once(self.next).chain(further)
    }

    /// Goes to the next known event, if there is one.
    pub(crate) fn step(&mut self) -> bool {
        let Some(distance) = self.further.get(usize::from(self.used)) else { return false };
        self.next += u64::from(*distance);
        self.used += 1;
        true
    }

    /// Looks for the next event from this position on.
    pub(crate) fn look_from(&mut self, position: Position) {
        self.next = position;
        self.further = Box::default();
        self.used = 0;
        self.state = KeyState::Looking;
    }
}
