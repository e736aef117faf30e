//! Values of rows as PackStream, in the structures of a version.

use crate::render::Place;
use std::sync::Arc;
use wellspring_bolt::packstream::Writer;
use wellspring_bolt::{Version, structure};
use wellspring_cypher::value::{
    DateTime, NodeId, Path, Point, RelationshipId, Value, from_property,
};
use wellspring_graph::{Name, Value as Property};

impl Place<'_> {
    /// Appends a value, or a part of it if the result is too long already.
    pub(crate) fn pack(&self, out: &mut Vec<u8>, value: &Value, version: Version) {
        if self.is_full(out) {
            // The result is refused; what is written stays a value.
            return Writer::new(out).null();
        }
        let mut writer = Writer::new(out);
        match value {
            Value::Null => writer.null(),
            Value::Boolean(truth) => writer.bool(*truth),
            Value::Integer(integer) => writer.int(*integer),
            Value::Float(float) => writer.float(*float),
            Value::String(text) => writer.text(text),
            Value::Bytes(bytes) => writer.bytes(bytes),
            Value::List(items) => {
                writer.list(items.len());
                items.iter().for_each(|item| self.pack(out, item, version));
            }
            Value::Map(entries) => {
                writer.map(entries.len());
                for (key, value) in entries.iter() {
                    Writer::new(out).text(key);
                    self.pack(out, value, version);
                }
            }
            Value::Node(id) => self.pack_node(out, *id, version),
            Value::Relationship(id) => self.pack_relationship(out, *id, version),
            Value::Path(path) => self.pack_path(out, path, version),
            Value::Date(date) => {
                writer.structure(structure::DATE, 1);
                writer.int(date.days);
            }
            Value::LocalTime(time) => {
                writer.structure(structure::LOCAL_TIME, 1);
                writer.int(time.nanoseconds.cast_signed());
            }
            Value::Time(time) => {
                writer.structure(structure::TIME, 2);
                writer.int(time.nanoseconds.cast_signed());
                writer.int(time.offset.into());
            }
            Value::LocalDateTime(at) => {
                writer.structure(structure::LOCAL_DATE_TIME, 2);
                writer.int(at.seconds);
                writer.int(at.nanoseconds.into());
            }
            Value::DateTime(at) => pack_date_time(writer, at, version),
            Value::Duration(amount) => {
                writer.structure(structure::DURATION, 4);
                writer.int(amount.months);
                writer.int(amount.days);
                writer.int(amount.seconds);
                writer.int(amount.nanoseconds.into());
            }
            Value::Point(point) => pack_point(writer, point),
        }
    }

    fn pack_properties(
        &self,
        out: &mut Vec<u8>,
        properties: Vec<(Name, Property)>,
        version: Version,
    ) {
        let named = self.sorted(properties);
        Writer::new(out).map(named.len());
        for (key, value) in named {
            Writer::new(out).text(&key);
            self.pack(out, &from_property(value), version);
        }
    }

    fn element_id(&self, kind: u8, number: u64) -> String {
        format!("{kind}:{}:{number}", self.database)
    }

    fn pack_node(&self, out: &mut Vec<u8>, id: NodeId, version: Version) {
        let mut writer = Writer::new(out);
        writer.structure(structure::NODE, version.node_fields());
        writer.int(id.number().cast_signed());
        let labels = self.transaction.labels(id).unwrap_or_default();
        writer.list(labels.len());
        labels.into_iter().for_each(|label| writer.text(&self.transaction.text(label)));
        self.pack_properties(
            out,
            self.transaction.node_properties(id).unwrap_or_default(),
            version,
        );
        if version.has_element_ids() {
            Writer::new(out).text(&self.element_id(4, id.number()));
        }
    }

    /// One that was deleted in its own transaction has neither type nor ends any more: -1 and empty
    /// texts stand for them.
    fn pack_relationship(&self, out: &mut Vec<u8>, id: RelationshipId, version: Version) {
        let found = self.transaction.relationship(id).ok();
        let ends = found.as_ref().map(|found| [found.from, found.to].map(NodeId::number));
        let mut writer = Writer::new(out);
        writer.structure(structure::RELATIONSHIP, version.relationship_fields());
        writer.int(id.number().cast_signed());
        let ends_as_ints = ends.map_or([-1; 2], |ends| ends.map(u64::cast_signed));
        ends_as_ints.into_iter().for_each(|end| writer.int(end));
        writer.text(&self.type_of(id));
        let properties = self.transaction.relationship_properties(id).unwrap_or_default();
        self.pack_properties(out, properties, version);
        if version.has_element_ids() {
            let mut writer = Writer::new(out);
            writer.text(&self.element_id(5, id.number()));
            let texts = ends.map(|ends| ends.map(|end| self.element_id(4, end)));
            texts.unwrap_or_default().iter().for_each(|text| writer.text(text));
        }
    }

    fn type_of(&self, id: RelationshipId) -> Arc<str> {
        let found = self.transaction.relationship(id);
        found.map_or_else(|_| "".into(), |found| self.transaction.text(found.relationship_type))
    }

    fn pack_unbound(&self, out: &mut Vec<u8>, id: RelationshipId, version: Version) {
        let mut writer = Writer::new(out);
        let fields = version.unbound_relationship_fields();
        writer.structure(structure::UNBOUND_RELATIONSHIP, fields);
        writer.int(id.number().cast_signed());
        writer.text(&self.type_of(id));
        let properties = self.transaction.relationship_properties(id).unwrap_or_default();
        self.pack_properties(out, properties, version);
        if version.has_element_ids() {
            Writer::new(out).text(&self.element_id(5, id.number()));
        }
    }

    /// Each node and relationship is written once; the indices say in which order they come.
    fn pack_path(&self, out: &mut Vec<u8>, path: &Path, version: Version) {
        let (mut nodes, mut relationships) = (vec![path.start], Vec::new());
        let mut indices = Vec::with_capacity(2 * path.length());
        let mut at = path.start;
        for &(relationship, node) in &path.steps {
            let index = 1 + index_in(&mut relationships, relationship);
            let starts_here = self.transaction.relationship(relationship);
            let is_along = starts_here.is_ok_and(|found| found.from == at);
            indices.push(if is_along { index } else { -index });
            indices.push(index_in(&mut nodes, node));
            at = node;
        }
        let mut writer = Writer::new(out);
        writer.structure(structure::PATH, 3);
        writer.list(nodes.len());
        nodes.into_iter().for_each(|node| self.pack_node(out, node, version));
        Writer::new(out).list(relationships.len());
        relationships.into_iter().for_each(|one| self.pack_unbound(out, one, version));
        let mut writer = Writer::new(out);
        writer.list(indices.len());
        indices.into_iter().for_each(|index| writer.int(index));
    }
}

/// The index of an item in a list to which it is added if it is not there.
fn index_in<T: PartialEq>(items: &mut Vec<T>, item: T) -> i64 {
    let index = items.iter().position(|known| *known == item).unwrap_or_else(|| {
        items.push(item);
        items.len() - 1
    });
    i64::try_from(index).unwrap_or(i64::MAX)
}

fn pack_date_time(mut writer: Writer<'_>, at: &DateTime, version: Version) {
    let local = at.seconds.saturating_add(at.offset.into());
    let seconds = if version.has_utc() { at.seconds } else { local };
    let tag = match &at.zone {
        Some(_) => version.date_time_zone_id_tag(),
        None => version.date_time_tag(),
    };
    writer.structure(tag, 3);
    writer.int(seconds);
    writer.int(at.nanoseconds.into());
    match &at.zone {
        Some(zone) => writer.text(zone),
        None => writer.int(at.offset.into()),
    }
}

fn pack_point(mut writer: Writer<'_>, point: &Point) {
    let has_z = point.system.has_z();
    let (tag, fields) = if has_z { (structure::POINT_3D, 4) } else { (structure::POINT_2D, 3) };
    writer.structure(tag, fields);
    writer.int(point.system.srid().into());
    writer.float(point.x);
    writer.float(point.y);
    if has_z {
        writer.float(point.z);
    }
}
