//! Points as extended well-known text: `SRID=7203;POINT (1.0 2.0)`.

use crate::value::{CoordinateSystem, Point};

pub(super) fn write(point: &Point) -> String {
    let Point { system, x, y, z } = *point;
    if system.has_z() {
        format!("SRID={};POINT Z ({x:?} {y:?} {z:?})", system.srid())
    } else {
        format!("SRID={};POINT ({x:?} {y:?})", system.srid())
    }
}

pub(super) fn read(text: &str) -> Option<Point> {
    let (srid, rest) = text.strip_prefix("SRID=")?.split_once(";POINT ")?;
    let system = CoordinateSystem::from_srid(srid.parse().ok()?)?;
    let list = if system.has_z() { rest.strip_prefix("Z ")? } else { rest };
    let mut numbers = list.strip_prefix('(')?.strip_suffix(')')?.split(' ');
    let mut coordinate = || numbers.next()?.parse::<f64>().ok();
    let (x, y) = (coordinate()?, coordinate()?);
    let z = if system.has_z() { coordinate()? } else { 0.0 };
    numbers.next().is_none().then_some(Point { system, x, y, z })
}
