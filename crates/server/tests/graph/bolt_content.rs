//! A result over Bolt in the form of the transaction API, so that both can be held against the same
//! expectations.

use crate::bolt_client::{Packed, Rows};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use wellspring_cypher::temporal;
use wellspring_cypher::value::{
    Date, DateTime, Duration, LocalDateTime, LocalTime, Time, Value as Cypher,
};

/// The answer that the transaction API gives for a statement: rows with `meta`, the nodes of the
/// form `graph`, statistics; or an error.
pub fn content(result: Result<Rows, String>) -> Value {
    match result {
        Err(code) => json!({"results": [], "errors": [{"code": code, "message": ""}]}),
        Ok(Rows { fields, rows, summary }) => {
            let data: Vec<Value> = rows.iter().map(|row| row_content(row)).collect();
            let result = json!({"columns": fields, "data": data, "stats": statistics(&summary)});
            json!({"results": [result], "errors": []})
        }
    }
}

fn row_content(row: &[Packed]) -> Value {
    let mut nodes = Vec::new();
    row.iter().for_each(|value| nodes_of(value, &mut nodes));
    let values: Vec<Value> = row.iter().map(value).collect();
    let meta: Vec<Value> = row.iter().map(meta).collect();
    json!({"row": values, "meta": meta, "graph": {"nodes": nodes}})
}

fn statistics(summary: &Packed) -> Value {
    let stats = summary.get("stats");
    let count = |name: &str| match stats {
        Packed::Map(_) => match stats.get(name) {
            Packed::Int(count) => *count,
            _ => 0,
        },
        _ => 0,
    };
    let has_updates = *stats != Packed::Null;
    json!({"nodes_created": count("nodes-created"), "nodes_deleted": count("nodes-deleted"),
        "relationships_created": count("relationships-created"),
        "relationship_deleted": count("relationships-deleted"), "contains_updates": has_updates})
}

fn list(packed: &Packed) -> &[Packed] {
    let Packed::List(items) = packed else { panic!("{packed:?} is no list") };
    items
}

/// The nodes and relationships of a path in order.
fn parts(fields: &[Packed]) -> Vec<Packed> {
    let (nodes, relationships) = (list(&fields[0]), list(&fields[1]));
    let mut parts = vec![nodes[0].clone()];
    for step in list(&fields[2]).chunks(2) {
        let number = usize::try_from(step[0].int().unsigned_abs()).unwrap() - 1;
        let Packed::Struct(0x72, unbound) = &relationships[number] else { panic!("{fields:?}") };
        let bound = vec![
            unbound[0].clone(),
            Packed::Null,
            Packed::Null,
            unbound[1].clone(),
            unbound[2].clone(),
        ];
        parts.push(Packed::Struct(0x52, bound));
        parts.push(nodes[usize::try_from(step[1].int()).unwrap()].clone());
    }
    parts
}

fn value(packed: &Packed) -> Value {
    match packed {
        Packed::Null => Value::Null,
        Packed::Bool(truth) => json!(truth),
        Packed::Int(int) => json!(int),
        Packed::Float(float) if float.is_nan() => json!("NaN"),
        Packed::Float(float) => json!(float),
        Packed::Bytes(bytes) => json!(bytes),
        Packed::Text(text) => json!(text),
        Packed::List(items) => items.iter().map(value).collect(),
        Packed::Map(entries) => {
            entries.iter().map(|(key, of)| (key.clone(), value(of))).collect::<Map<_, _>>().into()
        }
        Packed::Struct(0x4E, fields) => value(&fields[2]),
        Packed::Struct(0x52, fields) => value(&fields[4]),
        Packed::Struct(0x50, fields) => parts(fields).iter().map(value).collect(),
        Packed::Struct(tag, fields) => json!(moment(*tag, fields)),
    }
}

fn meta(packed: &Packed) -> Value {
    match packed {
        Packed::Struct(0x4E, _) => json!({"type": "node"}),
        Packed::Struct(0x52, _) => json!({"type": "relationship"}),
        Packed::Struct(0x50, fields) => parts(fields).iter().map(meta).collect(),
        Packed::List(items) => items.iter().map(meta).collect(),
        Packed::Map(entries) => entries.iter().map(|(_, value)| meta(value)).collect(),
        _ => Value::Null,
    }
}

fn nodes_of(packed: &Packed, nodes: &mut Vec<Value>) {
    match packed {
        Packed::Struct(0x4E, fields) => {
            nodes.push(json!({"labels": value(&fields[1]), "properties": value(&fields[2])}));
        }
        Packed::Struct(0x50, fields) => {
            list(&fields[0]).iter().for_each(|node| nodes_of(node, nodes));
        }
        Packed::List(items) => items.iter().for_each(|item| nodes_of(item, nodes)),
        Packed::Map(entries) => entries.iter().for_each(|(_, value)| nodes_of(value, nodes)),
        _ => {}
    }
}

/// The text of a point in time or an amount of it, in versions with moments in UTC.
fn moment(tag: u8, fields: &[Packed]) -> String {
    let at = |index: usize| fields[index].int();
    let nanoseconds = |index: usize| u32::try_from(at(index)).unwrap();
    let of_day = || u64::try_from(at(0)).unwrap();
    let offset = |index: usize| i32::try_from(at(index)).unwrap();
    let value = match tag {
        0x44 => Cypher::Date(Date { days: at(0) }),
        0x74 => Cypher::LocalTime(LocalTime { nanoseconds: of_day() }),
        0x54 => Cypher::Time(Time { nanoseconds: of_day(), offset: offset(1) }),
        0x64 => {
            let (seconds, nanoseconds) = (at(0), nanoseconds(1));
            Cypher::LocalDateTime(LocalDateTime { seconds, nanoseconds })
        }
        0x49 => Cypher::DateTime(Arc::new(DateTime {
            seconds: at(0),
            nanoseconds: nanoseconds(1),
            offset: offset(2),
            zone: None,
        })),
        0x69 => {
            // The offset is the zone's at that instant.
            let fields = [
                ("epochSeconds".into(), Cypher::Integer(at(0))),
                ("nanosecond".into(), Cypher::Integer(at(1))),
                ("timezone".into(), Cypher::string(fields[2].text())),
            ];
            temporal::point_in_time(temporal::Kind::DateTime, &Cypher::map(fields)).unwrap()
        }
        0x45 => Cypher::duration(Duration {
            months: at(0),
            days: at(1),
            seconds: at(2),
            nanoseconds: nanoseconds(3),
        }),
        _ => panic!("{tag:#x} is no point in time"),
    };
    temporal::text(&value).expect("a text")
}
