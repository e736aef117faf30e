//! A property graph as lists of nodes and edges.

use crate::random::Random;
use crate::value::Value;
use std::fmt::Write;

pub(crate) const LABELS: [&str; 3] = ["A", "B", "C"];
pub(crate) const TYPES: [&str; 2] = ["R", "S"];

type Properties = Vec<(&'static str, Value)>;

/// A node.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) labels: Vec<&'static str>,
    properties: Properties,
}

/// A relationship, by the places of its ends.
#[derive(Debug, Clone)]
pub(crate) struct Edge {
    pub(crate) kind: &'static str,
    pub(crate) from: usize,
    pub(crate) to: usize,
    properties: Properties,
}

/// A graph.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) nodes: Vec<Node>,
    pub(crate) edges: Vec<Edge>,
}

impl Model {
    /// A graph of at most so many nodes and edges, with loops and parallel edges.
    ///
    /// Of its properties `i` has integers, `m` values of several types, and `l` lists; each may be
    /// absent.
    pub(crate) fn random(random: &mut Random, nodes: usize, edges: usize) -> Self {
        let node_count = 1 + random.below(nodes);
        let edge_count = edges / 2 + random.below(edges / 2 + 1);
        let nodes = (0..node_count)
            .map(|_| Node {
                labels: LABELS.into_iter().filter(|_| random.chance(60)).collect(),
                properties: properties(random),
            })
            .collect();
        let edges = (0..edge_count)
            .map(|_| Edge {
                kind: random.of(&TYPES),
                from: random.below(node_count),
                to: random.below(node_count),
                properties: properties(random),
            })
            .collect();
        Self { nodes, edges }
    }

    /// The property of a node or an edge; null of anything else.
    pub(crate) fn property(&self, owner: &Value, key: &str) -> Value {
        let properties = match owner {
            Value::Node(node) => &self.nodes[*node].properties,
            Value::Edge(edge) => &self.edges[*edge].properties,
            _ => return Value::Null,
        };
        let found = properties.iter().find(|(name, _)| *name == key);
        found.map_or(Value::Null, |(_, value)| value.clone())
    }

    /// A statement that creates it. Each node and edge has its place as property `place`.
    pub(crate) fn creation(&self) -> String {
        let mut parts = Vec::new();
        for (place, node) in self.nodes.iter().enumerate() {
            let labels: String = node.labels.iter().fold(String::new(), |mut text, label| {
                let _ = write!(text, ":{label}");
                text
            });
            parts.push(format!("(n{place}{labels} {})", map_text(place, &node.properties)));
        }
        for (place, edge) in self.edges.iter().enumerate() {
            let (from, to, kind) = (edge.from, edge.to, edge.kind);
            let properties = map_text(place, &edge.properties);
            parts.push(format!("(n{from})-[:{kind} {properties}]->(n{to})"));
        }
        format!("CREATE {}", parts.join(", "))
    }
}

fn map_text(place: usize, properties: &Properties) -> String {
    let mut text = format!("{{place: {place}");
    for (key, value) in properties {
        let _ = write!(text, ", {key}: {}", value.literal());
    }
    text + "}"
}

fn properties(random: &mut Random) -> Properties {
    let mut properties = Vec::new();
    if random.chance(75) {
        properties.push(("i", Value::Integer(random.below(4) as i64)));
    }
    if random.chance(75) {
        properties.push(("m", mixed(random)));
    }
    if random.chance(40) {
        let length = random.below(3);
        let items = (0..length).map(|_| Value::Integer(random.below(4) as i64)).collect();
        properties.push(("l", Value::List(items)));
    }
    properties
}

/// A value of any simple type.
pub(crate) fn mixed(random: &mut Random) -> Value {
    match random.below(4) {
        0 => Value::Integer(random.below(3) as i64),
        1 => Value::Float(random.below(5) as f64 / 2.0),
        2 => Value::Boolean(random.chance(50)),
        _ => Value::Text(random.of(&["", "a", "ab", "b"]).into()),
    }
}
