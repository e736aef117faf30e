//! The messages of a client, read into what a server acts on. Members that are unknown are passed
//! over, those of a wrong type are refused, and nothing is kept in a form larger than it came.

mod fields;
mod parse;
mod transaction;

pub(crate) use parse::{Request, RequestFault};
pub use transaction::{
    AccessMode, NotificationFilter, NotificationSeverity, Run, TransactionSettings,
};

use crate::packstream::{Item, Reader};
use std::fmt;

/// The tags of messages.
pub(crate) mod tag {
    pub(crate) const HELLO: u8 = 0x01;
    pub(crate) const GOODBYE: u8 = 0x02;
    pub(crate) const RESET: u8 = 0x0F;
    pub(crate) const RUN: u8 = 0x10;
    pub(crate) const BEGIN: u8 = 0x11;
    pub(crate) const COMMIT: u8 = 0x12;
    pub(crate) const ROLLBACK: u8 = 0x13;
    pub(crate) const DISCARD: u8 = 0x2F;
    pub(crate) const PULL: u8 = 0x3F;
    pub(crate) const TELEMETRY: u8 = 0x54;
    pub(crate) const ROUTE: u8 = 0x66;
    pub(crate) const LOGON: u8 = 0x6A;
    pub(crate) const LOGOFF: u8 = 0x6B;
    pub(crate) const SUCCESS: u8 = 0x70;
    pub(crate) const RECORD: u8 = 0x71;
    pub(crate) const IGNORED: u8 = 0x7E;
    pub(crate) const FAILURE: u8 = 0x7F;
}

/// The tag of a message, if it has one.
#[cfg(test)]
pub(crate) fn tag_of(message: &[u8]) -> Option<u8> {
    match message {
        [0xB0..=0xBF, tag, ..] => Some(*tag),
        _ => None,
    }
}

/// Whether a message takes effect before those that were sent ahead of it.
pub(crate) fn jumps_ahead(message: &[u8]) -> bool {
    matches!(message, [0xB0, tag::RESET | tag::GOODBYE])
}

/// A map as it came, well formed: its header, then pairs of a text and a value, for a
/// [`Reader`]. Keys may be repeated.
#[derive(Clone, PartialEq, Eq)]
pub struct PackedMap {
    /// The message that holds it, which is not copied.
    message: Vec<u8>,
    start: usize,
    end: usize,
}

impl PackedMap {
    /// A map without entries.
    #[must_use]
    pub fn empty() -> PackedMap {
        PackedMap::from_bytes(&[0xA0])
    }

    /// A copy of a map's bytes, which were checked.
    pub(crate) fn from_bytes(packed: &[u8]) -> PackedMap {
        PackedMap { message: packed.to_vec(), start: 0, end: packed.len() }
    }

    /// The part of a message that is a map, which was checked.
    pub(crate) fn within(message: Vec<u8>, start: usize, end: usize) -> PackedMap {
        PackedMap { message, start, end }
    }

    /// The bytes of the map.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.message[self.start..self.end]
    }

    /// A reader at the header of the map.
    #[must_use]
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(self.as_bytes())
    }

    /// Memory that it takes, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.message.capacity()
    }
}

impl fmt::Debug for PackedMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PackedMap({:02X?})", self.as_bytes())
    }
}

/// A list of texts as it came, well formed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextList {
    /// The texts without the list's header; empty for none.
    packed: Vec<u8>,
}

impl TextList {
    /// The texts, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let mut reader = Reader::new(&self.packed);
        std::iter::from_fn(move || match reader.item() {
            Ok(Item::Text(text)) => Some(text),
            _ => None,
        })
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }
}

/// `HELLO`: the client introduces itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The program, such as `neo4j-python/6.0.0`; empty if it says nothing.
    pub user_agent: String,
    /// The driver by its product name, from 5.3.
    pub bolt_agent: Option<String>,
    /// Whether the client wants to be told about other servers, and by which address it knows this
    /// one. `None`: it talks to this server alone.
    pub routing: Option<Routing>,
    /// The client's credentials, in versions that have no `LOGON`. `None` from 5.1.
    pub auth: Option<Auth>,
    /// Which notifications the client wants, unless a transaction says otherwise.
    pub notifications: NotificationFilter,
    /// Whether the client asks for moments in UTC (4.4); the session grants it.
    pub(crate) wants_utc: bool,
}

/// What a client tells about the way to the server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Routing {
    /// The host and port that the client connected to.
    pub address: Option<String>,
}

/// A client's credentials. Its `Debug` form leaves them out.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Auth {
    /// `none`, `basic`, `bearer` or another; `none` if the client says nothing.
    pub scheme: String,
    /// The account; empty if there is none.
    pub principal: String,
    /// The password or token; empty if there is none.
    pub credentials: String,
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

/// `ROUTE`: which servers serve a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// How the client knows this server.
    pub routing: Routing,
    /// What the answer must be as new as.
    pub bookmarks: TextList,
    /// The database; `None`: the default one.
    pub db: Option<String>,
    /// The account in whose name the client asks.
    pub imp_user: Option<String>,
}

/// How many rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchAmount {
    /// All that are left.
    All,
    /// At most so many, at least one.
    Rows(u64),
}

/// `PULL` or `DISCARD`: rows of one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetch {
    /// How many rows.
    pub amount: FetchAmount,
    /// The result: in a transaction one that `RUN` opened, otherwise 0. In what a client sends −1
    /// is the last one; the session puts its number here.
    pub qid: i64,
}
