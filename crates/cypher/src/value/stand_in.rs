//! Until `wellspring-graph` has them: ids and temporal values.
#![allow(missing_docs, reason = "replaced by the graph's own")]
use std::sync::Arc;
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u64);
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelationshipId(pub u64);
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Date {
    pub days: i64,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalTime {
    pub nanoseconds: u64,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Time {
    pub nanoseconds: u64,
    pub offset: i32,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalDateTime {
    pub seconds: i64,
    pub nanoseconds: u32,
}
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DateTime {
    pub seconds: i64,
    pub nanoseconds: u32,
    pub offset: i32,
    pub zone: Option<Arc<str>>,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Duration {
    pub months: i64,
    pub days: i64,
    pub seconds: i64,
    pub nanoseconds: u32,
}
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub system: CoordinateSystem,
    pub x: f64,
    pub y: f64,
    pub z: f64,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CoordinateSystem {
    Cartesian,
    Cartesian3d,
    Wgs84,
    Wgs84With3d,
}
impl CoordinateSystem {
    pub fn srid(self) -> u16 {
        match self {
            Self::Cartesian => 7203,
            Self::Cartesian3d => 9157,
            Self::Wgs84 => 4326,
            Self::Wgs84With3d => 4979,
        }
    }
    pub fn from_srid(srid: u16) -> Option<Self> {
        match srid {
            7203 => Some(Self::Cartesian),
            9157 => Some(Self::Cartesian3d),
            4326 => Some(Self::Wgs84),
            4979 => Some(Self::Wgs84With3d),
            _ => None,
        }
    }
    pub fn has_z(self) -> bool {
        matches!(self, Self::Cartesian3d | Self::Wgs84With3d)
    }
}
