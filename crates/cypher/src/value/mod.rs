//! Runtime values of expressions and rows. openCypher defines three relations between them:
//! equality (`=`, with null), equivalence (DISTINCT, grouping) and the order of ORDER BY.

mod compare;
mod convert;
mod equivalence;
mod nested;
mod order;
mod path;
mod text;

pub use compare::{ValueOrder, compare, equals};
pub use convert::{from_property, to_property};
pub use equivalence::{Distinct, DistinctMap, DistinctSet, equivalent, meets_by_hash};
pub use nested::{List, MAX_DEPTH, Map, steps_of};
pub use order::order;
pub use path::Path;
pub use text::float_text;
pub use wellspring_graph::value::{
    CoordinateSystem, Date, DateTime, Duration, LocalDateTime, LocalTime, Point, Time,
};
pub use wellspring_graph::{NodeId, RelationshipId};

use std::collections::BTreeMap;
use std::sync::Arc;

/// The entries of a map, by name.
pub type Entries = BTreeMap<Arc<str>, Value>;

/// A value. A clone copies at most 16 bytes and increments a reference count.
#[derive(Debug, Clone, Default)]
pub enum Value {
    /// Unknown or absent.
    #[default]
    Null,
    /// True or false.
    Boolean(bool),
    /// A signed integer of 64 bits.
    Integer(i64),
    /// A 64-bit float, including infinities and NaN.
    Float(f64),
    /// A string.
    String(Arc<str>),
    /// A list of any values.
    List(Arc<List>),
    /// Values by name.
    Map(Arc<Map>),
    /// A node of the graph.
    Node(NodeId),
    /// A relationship of the graph.
    Relationship(RelationshipId),
    /// A path in the graph.
    Path(Arc<Path>),
    /// A date.
    Date(Date),
    /// A time of day without a zone.
    LocalTime(LocalTime),
    /// A time of day at an offset.
    Time(Time),
    /// A date and a time without a zone.
    LocalDateTime(LocalDateTime),
    /// An instant in a zone.
    DateTime(Arc<DateTime>),
    /// An amount of time.
    Duration(Arc<Duration>),
    /// A point in a coordinate system.
    Point(Arc<Point>),
    /// Bytes, which come from parameters and properties only.
    Bytes(Arc<[u8]>),
}

impl Value {
    /// A string.
    pub fn string(text: impl AsRef<str>) -> Self {
        Self::String(Arc::from(text.as_ref()))
    }

    /// A list.
    pub fn list(items: Vec<Self>) -> Self {
        Self::List(Arc::new(items.into()))
    }

    /// A map.
    pub fn map(entries: impl IntoIterator<Item = (Arc<str>, Self)>) -> Self {
        Self::Map(Arc::new(entries.into_iter().collect::<Entries>().into()))
    }

    /// A duration.
    pub fn duration(duration: Duration) -> Self {
        Self::Duration(Arc::new(duration))
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The type's name for messages, as in Neo4j.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "Null",
            Self::Boolean(_) => "Boolean",
            Self::Integer(_) => "Integer",
            Self::Float(_) => "Float",
            Self::String(_) => "String",
            Self::List(_) => "List",
            Self::Map(_) => "Map",
            Self::Node(_) => "Node",
            Self::Relationship(_) => "Relationship",
            Self::Path(_) => "Path",
            Self::Date(_) => "Date",
            Self::LocalTime(_) => "LocalTime",
            Self::Time(_) => "Time",
            Self::LocalDateTime(_) => "LocalDateTime",
            Self::DateTime(_) => "DateTime",
            Self::Duration(_) => "Duration",
            Self::Point(_) => "Point",
            Self::Bytes(_) => "ByteArray",
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::string(value)
    }
}

/// A three-valued truth value: unknown is null.
impl From<Option<bool>> for Value {
    fn from(value: Option<bool>) -> Self {
        value.map_or(Self::Null, Self::Boolean)
    }
}
