//! The tags of structures within values, with their fields. Where versions differ,
//! [`Version`](crate::Version) has the number of fields and the tag.

/// `id, labels, properties`, and from 5.0 `element_id`.
pub const NODE: u8 = 0x4E;
/// `id, start, end, type, properties`, and from 5.0 `element_id, start_element_id, end_element_id`.
pub const RELATIONSHIP: u8 = 0x52;
/// A relationship within a path: `id, type, properties`, and from 5.0 `element_id`.
pub const UNBOUND_RELATIONSHIP: u8 = 0x72;
/// `nodes, relationships, indices`. Indices alternate: a relationship counted from 1, negative
/// against its direction, and a node counted from 0. The first node has no index.
pub const PATH: u8 = 0x50;
/// `days` since 1970-01-01.
pub const DATE: u8 = 0x44;
/// `nanoseconds` of the local day, `offset` in seconds.
pub const TIME: u8 = 0x54;
/// `nanoseconds` of the day.
pub const LOCAL_TIME: u8 = 0x74;
/// `seconds` since 1970 in UTC, `nanoseconds`, `offset` in seconds.
pub const DATE_TIME: u8 = 0x49;
/// `seconds` since 1970 in UTC, `nanoseconds`, `zone` by its name.
pub const DATE_TIME_ZONE_ID: u8 = 0x69;
/// `seconds` since 1970 in local time, `nanoseconds`, `offset` in seconds.
pub const LEGACY_DATE_TIME: u8 = 0x46;
/// `seconds` since 1970 in local time, `nanoseconds`, `zone` by its name.
pub const LEGACY_DATE_TIME_ZONE_ID: u8 = 0x66;
/// `seconds` since 1970 in local time, `nanoseconds`.
pub const LOCAL_DATE_TIME: u8 = 0x64;
/// `months, days, seconds, nanoseconds`.
pub const DURATION: u8 = 0x45;
/// `srid, x, y`.
pub const POINT_2D: u8 = 0x58;
/// `srid, x, y, z`.
pub const POINT_3D: u8 = 0x59;
