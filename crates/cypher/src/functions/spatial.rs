//! Points.

use super::arguments::{at, number, unfit};
use super::catalogue::Function;
use crate::error::{Detail, Error, Result};
use crate::value::{CoordinateSystem, Entries, Point, Value, float_text};
use std::sync::Arc;

pub(super) static TABLE: &[Function] = &[
    Function::new("point", 1, 1, |arguments, _| match at(arguments, 0) {
        Value::Map(entries) => point(entries),
        other => Err(unfit("point", other, "a Map")),
    }),
    Function::new("point.distance", 2, 2, |arguments, _| {
        distance(at(arguments, 0), at(arguments, 1))
    }),
    Function::new("distance", 2, 2, |arguments, _| distance(at(arguments, 0), at(arguments, 1))),
    Function::new("point.withinBBox", 3, 3, |arguments, _| {
        let points = (at(arguments, 0), at(arguments, 1), at(arguments, 2));
        let (Value::Point(point), Value::Point(low), Value::Point(high)) = points else {
            return Ok(Value::Null);
        };
        if point.system != low.system || point.system != high.system {
            return Ok(Value::Null);
        }
        let within = |coordinate: fn(&Point) -> f64| {
            (coordinate(low)..=coordinate(high)).contains(&coordinate(point))
        };
        Ok(Value::Boolean(within(|p| p.x) && within(|p| p.y) && within(|p| p.z)))
    }),
];

/// The mean radius of the earth in metres, as in Neo4j.
const EARTH_RADIUS: f64 = 6_378_140.0;

fn point(entries: &Entries) -> Result<Value> {
    if entries.values().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let coordinate = |names: [&str; 2]| {
        let value = names.iter().find_map(|name| entries.get(*name));
        value.map(|value| number("point", value)).transpose()
    };
    let geographic = entries.contains_key("longitude") || entries.contains_key("latitude");
    let (x, y, z) = (
        coordinate(["x", "longitude"])?,
        coordinate(["y", "latitude"])?,
        coordinate(["z", "height"])?,
    );
    let malformed = |message: &str| Error::argument(Detail::InvalidArgumentValue, message);
    let (Some(x), Some(y)) = (x, y) else {
        return Err(malformed("A point needs x and y, or longitude and latitude."));
    };
    let system = match (system_named(entries)?, geographic, z.is_some()) {
        (Some(system), _, _) => system,
        (None, true, false) => CoordinateSystem::Wgs84,
        (None, true, true) => CoordinateSystem::Wgs84With3d,
        (None, false, false) => CoordinateSystem::Cartesian,
        (None, false, true) => CoordinateSystem::Cartesian3d,
    };
    if system.has_z() != z.is_some() {
        return Err(malformed("The number of coordinates does not match the coordinate system."));
    }
    let is_geographic = matches!(system, CoordinateSystem::Wgs84 | CoordinateSystem::Wgs84With3d);
    if is_geographic && !(-90.0..=90.0).contains(&y) {
        let message = format!("A latitude is from -90 to 90, not {}.", float_text(y));
        return Err(malformed(&message));
    }
    Ok(Value::Point(Arc::new(Point { system, x, y, z: z.unwrap_or(0.0) })))
}

fn system_named(entries: &Entries) -> Result<Option<CoordinateSystem>> {
    let unknown = || Error::argument(Detail::InvalidArgumentValue, "Unknown coordinate system.");
    match (entries.get("crs"), entries.get("srid")) {
        (Some(Value::String(name)), _) => {
            let system = match name.to_ascii_lowercase().as_str() {
                "cartesian" => CoordinateSystem::Cartesian,
                "cartesian-3d" => CoordinateSystem::Cartesian3d,
                "wgs-84" => CoordinateSystem::Wgs84,
                "wgs-84-3d" => CoordinateSystem::Wgs84With3d,
                _ => return Err(unknown()),
            };
            Ok(Some(system))
        }
        (None, Some(Value::Integer(srid))) => {
            let system = u16::try_from(*srid).ok().and_then(CoordinateSystem::from_srid);
            system.map(Some).ok_or_else(unknown)
        }
        (None, None) => Ok(None),
        _ => Err(unknown()),
    }
}

fn system_name(system: CoordinateSystem) -> &'static str {
    match system {
        CoordinateSystem::Cartesian => "cartesian",
        CoordinateSystem::Cartesian3d => "cartesian-3d",
        CoordinateSystem::Wgs84 => "wgs-84",
        CoordinateSystem::Wgs84With3d => "wgs-84-3d",
    }
}

/// A component of a point; `None` if it has no such component.
pub(super) fn component(point: &Point, key: &str) -> Option<Value> {
    let geographic =
        matches!(point.system, CoordinateSystem::Wgs84 | CoordinateSystem::Wgs84With3d);
    Some(match key {
        "x" => Value::Float(point.x),
        "y" => Value::Float(point.y),
        "z" if point.system.has_z() => Value::Float(point.z),
        "longitude" if geographic => Value::Float(point.x),
        "latitude" if geographic => Value::Float(point.y),
        "height" if geographic && point.system.has_z() => Value::Float(point.z),
        "crs" => Value::string(system_name(point.system)),
        "srid" => Value::Integer(i64::from(point.system.srid())),
        _ => return None,
    })
}

/// The text that `toString()` returns.
pub(super) fn text(point: &Point) -> String {
    let (x, y, name) = (float_text(point.x), float_text(point.y), system_name(point.system));
    if point.system.has_z() {
        return format!("point({{x: {x}, y: {y}, z: {}, crs: '{name}'}})", float_text(point.z));
    }
    format!("point({{x: {x}, y: {y}, crs: '{name}'}})")
}

/// In the unit of the coordinates, or in metres over the earth's surface; null for different
/// systems.
fn distance(left: &Value, right: &Value) -> Result<Value> {
    let (Value::Point(left), Value::Point(right)) = (left, right) else {
        return Ok(Value::Null);
    };
    if left.system != right.system {
        return Ok(Value::Null);
    }
    let (dx, dy, dz) = (right.x - left.x, right.y - left.y, right.z - left.z);
    Ok(Value::Float(match left.system {
        CoordinateSystem::Cartesian | CoordinateSystem::Cartesian3d => {
            (dx * dx + dy * dy + dz * dz).sqrt()
        }
        CoordinateSystem::Wgs84 | CoordinateSystem::Wgs84With3d => {
            let (from, to) = (left.y.to_radians(), right.y.to_radians());
            let a = (dy.to_radians() / 2.0).sin().powi(2)
                + from.cos() * to.cos() * (dx.to_radians() / 2.0).sin().powi(2);
            let radius = EARTH_RADIUS + f64::midpoint(left.z, right.z);
            let along = 2.0 * radius * a.sqrt().min(1.0).asin();
            along.hypot(dz)
        }
    }))
}
