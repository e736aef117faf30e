//! Transactions that log their reads, so that two runs can be compared.

use super::step::{KEYS, LABELS, TYPES};
use crate::value::Value;
use crate::{
    ChangeSet, Direction, EntityScan, Graph, Name, NodeChange, NodeId, PreparedTransaction,
    PropertyChanges, RelationshipChange, RelationshipId, Transaction, Violation,
};
use proptest::prelude::*;
use std::sync::Arc;

/// One read or write. Nodes and relationships are chosen from those of a common base version.
#[derive(Debug, Clone)]
pub(super) enum Action {
    Create(usize, usize, i64),
    Seek(usize, usize, i64),
    Merge(usize, usize, i64),
    CountLabel(usize),
    ScanLabel(usize),
    CountAll,
    Read(usize),
    Adjacent(usize, usize, Option<usize>),
    CountType(usize),
    ReadRelationship(usize),
    Set(usize, usize, Option<i64>),
    Increment(usize, usize),
    Label(usize, usize),
    Unlabel(usize, usize),
    Connect(usize, usize, usize),
    ConnectOnce(usize, usize, usize),
    SeekRelationship(usize, usize, i64),
    SetRelationship(usize, usize, i64),
    DeleteRelationship(usize),
    Delete(usize),
    DetachDelete(usize),
}

pub(super) fn any_act() -> impl Strategy<Value = Action> {
    // Few distinct values, so scripts interact.
    let (label, key, kind) = (0..2usize, 0..2usize, 0..TYPES.len());
    let at = 0..4usize;
    let value = 0i64..3;
    let lkv = (label.clone(), key.clone(), value.clone());
    prop_oneof![
        3 => lkv.clone().prop_map(|(l, k, v)| Action::Create(l, k, v)),
        1 => lkv.clone().prop_map(|(l, k, v)| Action::Seek(l, k, v)),
        2 => lkv.prop_map(|(l, k, v)| Action::Merge(l, k, v)),
        1 => label.clone().prop_map(Action::CountLabel),
        1 => label.clone().prop_map(Action::ScanLabel),
        1 => Just(Action::CountAll),
        1 => at.clone().prop_map(Action::Read),
        2 => (at.clone(), 0..3usize, prop::option::of(kind.clone())).prop_map(|(n, d, t)| Action::Adjacent(n, d, t)),
        1 => kind.clone().prop_map(Action::CountType),
        1 => at.clone().prop_map(Action::ReadRelationship),
        2 => (at.clone(), key.clone(), prop::option::of(value.clone())).prop_map(|(n, k, v)| Action::Set(n, k, v)),
        2 => (at.clone(), key.clone()).prop_map(|(n, k)| Action::Increment(n, k)),
        1 => (at.clone(), label.clone()).prop_map(|(n, l)| Action::Label(n, l)),
        1 => (at.clone(), label).prop_map(|(n, l)| Action::Unlabel(n, l)),
        3 => (at.clone(), at.clone(), kind.clone()).prop_map(|(a, b, t)| Action::Connect(a, b, t)),
        2 => (at.clone(), at.clone(), kind.clone()).prop_map(|(a, b, t)| Action::ConnectOnce(a, b, t)),
        1 => (at.clone(), key.clone(), value.clone()).prop_map(|(r, k, v)| Action::SetRelationship(r, k, v)),
        1 => (kind.clone(), key.clone(), value.clone()).prop_map(|(t, k, v)| Action::SeekRelationship(t, k, v)),
        1 => at.clone().prop_map(Action::DeleteRelationship),
        1 => at.clone().prop_map(Action::Delete),
        1 => at.prop_map(Action::DetachDelete),
    ]
}

/// The result of a run.
#[derive(Debug)]
pub(super) struct ScriptRun {
    /// The reads, with new entities numbered by creation.
    pub(super) log: Vec<String>,
    pub(super) prepared: PreparedTransaction,
    new_nodes: Vec<NodeId>,
    new_relationships: Vec<RelationshipId>,
}

struct Runner {
    tx: Transaction,
    nodes: Vec<NodeId>,
    relationships: Vec<RelationshipId>,
    new_nodes: Vec<NodeId>,
    new_relationships: Vec<RelationshipId>,
    log: Vec<String>,
}

fn place<T: PartialEq>(all: &[T], one: T) -> Option<u64> {
    all.iter().position(|known| *known == one).map(|at| at as u64)
}

impl Runner {
    fn say(&mut self, what: impl std::fmt::Debug) {
        self.log.push(format!("{what:?}"));
    }

    /// Names by their texts, in order: a transaction gives new ones numbers of its own.
    fn texts(&self, names: Vec<Name>) -> Vec<Arc<str>> {
        let mut texts: Vec<_> = names.into_iter().map(|name| self.tx.text(name)).collect();
        texts.sort_unstable();
        texts
    }

    fn named(&self, properties: Vec<(Name, Value)>) -> Vec<(Arc<str>, Value)> {
        let mut named: Vec<_> =
            properties.into_iter().map(|(key, value)| (self.tx.text(key), value)).collect();
        named.sort_by(|(a, _), (b, _)| a.cmp(b));
        named
    }

    fn normal(&self, id: NodeId) -> i64 {
        place(&self.new_nodes, id).map_or(id.number() as i64, |at| -1 - at as i64)
    }

    fn normal_relationship(&self, id: RelationshipId) -> i64 {
        place(&self.new_relationships, id).map_or(id.number() as i64, |at| -1 - at as i64)
    }

    fn found(&mut self, nodes: Vec<NodeId>) -> usize {
        let mut ids: Vec<i64> = nodes.into_iter().map(|id| self.normal(id)).collect();
        ids.sort_unstable();
        let count = ids.len();
        self.say(ids);
        count
    }

    fn create(&mut self, label: Name, key: Name, value: i64) {
        let id = self.tx.create_node(&[label], [(key, value.into())]).expect("a node");
        self.new_nodes.push(id);
    }

    fn connect(&mut self, from: NodeId, to: NodeId, kind: Name) {
        match self.tx.create_relationship(kind, from, to, []) {
            Ok(id) => self.new_relationships.push(id),
            Err(error) => self.say(error),
        }
    }

    fn act(&mut self, act: &Action) {
        let label = |label: &usize| self.tx.name(LABELS[*label]);
        let key = |key: &usize| self.tx.name(KEYS[*key]);
        match act {
            Action::Create(l, k, v) => self.create(label(l), key(k), *v),
            Action::Seek(l, k, v) => {
                let nodes = self.tx.seek_nodes(label(l), key(k), &Value::Integer(*v));
                let nodes = nodes.collect(&self.tx);
                self.found(nodes);
            }
            Action::Merge(l, k, v) => {
                let (label, key) = (label(l), key(k));
                let nodes = self.tx.seek_nodes(label, key, &Value::Integer(*v)).collect(&self.tx);
                if self.found(nodes) == 0 {
                    self.create(label, key, *v);
                }
            }
            Action::CountLabel(l) => self.say(self.tx.label_count(label(l))),
            Action::ScanLabel(l) => {
                let nodes = self.tx.scan_label(label(l)).collect(&self.tx);
                self.found(nodes);
            }
            Action::CountAll => {
                let count = self.tx.node_count();
                let nodes = self.tx.scan_nodes().collect(&self.tx);
                assert_eq!(self.found(nodes) as u64, count);
            }
            Action::CountType(t) => {
                let name = self.tx.name(TYPES[*t]);
                self.say(self.tx.type_count(name));
            }
            Action::SeekRelationship(t, k, v) => {
                let (name, key) = (self.tx.name(TYPES[*t]), key(k));
                let scan = self.tx.seek_relationships(name, key, &Value::Integer(*v));
                let mut found: Vec<i64> = scan
                    .collect(&self.tx)
                    .into_iter()
                    .map(|id| self.normal_relationship(id))
                    .collect();
                found.sort_unstable();
                self.say(found);
            }
            _ => self.act_on_one(act),
        }
    }

    fn act_on_one(&mut self, act: &Action) {
        let of_relationship = match act {
            Action::ReadRelationship(at)
            | Action::SetRelationship(at, ..)
            | Action::DeleteRelationship(at) => Some(*at),
            _ => None,
        };
        if let Some(at) = of_relationship {
            if let Some(&id) = self.relationships.get(at) {
                self.act_on_relationship(act, id);
            }
            return;
        }
        let (Action::Read(at)
        | Action::Adjacent(at, ..)
        | Action::Set(at, ..)
        | Action::Increment(at, _)
        | Action::Label(at, _)
        | Action::Unlabel(at, _)
        | Action::Connect(at, ..)
        | Action::ConnectOnce(at, ..)
        | Action::Delete(at)
        | Action::DetachDelete(at)) = act
        else {
            return;
        };
        if let Some(&id) = self.nodes.get(*at) {
            self.act_on_node(act, id);
        }
    }

    fn act_on_relationship(&mut self, act: &Action, id: RelationshipId) {
        match act {
            Action::SetRelationship(_, k, v) => {
                let key = self.tx.name(KEYS[*k]);
                let set = self.tx.set_relationship_property(id, key, Some((*v).into()));
                self.say(set);
            }
            Action::DeleteRelationship(_) => {
                let deleted = self.tx.delete_relationship(id);
                self.say(deleted);
            }
            _ => {
                let head = self.tx.relationship(id);
                let head = head.map(|it| (self.tx.text(it.relationship_type), it.from, it.to));
                let properties = self.tx.relationship_properties(id).map(|all| self.named(all));
                self.say((head, properties));
            }
        }
    }

    fn act_on_node(&mut self, act: &Action, id: NodeId) {
        let result = match act {
            Action::Read(_) => {
                let labels = self.tx.labels(id).map(|labels| self.texts(labels));
                let properties = self.tx.node_properties(id).map(|all| self.named(all));
                self.say((labels, properties));
                return;
            }
            Action::Adjacent(_, d, t) => return self.adjacent(id, *d, *t),
            Action::Connect(_, other, t) | Action::ConnectOnce(_, other, t) => {
                let name = self.tx.name(TYPES[*t]);
                let Some(&other) = self.nodes.get(*other) else { return };
                if matches!(act, Action::ConnectOnce(..)) {
                    let (out, types) = (Direction::Outgoing, [name]);
                    let known = self.tx.adjacent(id, out, &types, Some(other)).collect(&self.tx);
                    self.say(known.len());
                    if !known.is_empty() {
                        return;
                    }
                }
                return self.connect(id, other, name);
            }
            Action::Set(_, k, v) => {
                let key = self.tx.name(KEYS[*k]);
                self.tx.set_node_property(id, key, v.map(Value::Integer))
            }
            Action::Increment(_, k) => {
                let key = self.tx.name(KEYS[*k]);
                let value = self.tx.node_property(id, key);
                self.say(&value);
                let next = match value {
                    Ok(Some(Value::Integer(value))) => value + 1,
                    _ => 0,
                };
                self.tx.set_node_property(id, key, Some(next.into()))
            }
            Action::Label(_, l) => {
                let label = self.tx.name(LABELS[*l]);
                self.tx.add_labels(id, &[label])
            }
            Action::Unlabel(_, l) => {
                let label = self.tx.name(LABELS[*l]);
                self.tx.remove_labels(id, &[label])
            }
            Action::Delete(_) => self.tx.delete_node(id),
            _ => self.tx.detach_delete_node(id),
        };
        self.say(result);
    }

    fn adjacent(&mut self, id: NodeId, direction: usize, kind: Option<usize>) {
        let directions = [Direction::Outgoing, Direction::Incoming, Direction::Both];
        let types: Vec<Name> = kind.map(|kind| self.tx.name(TYPES[kind])).into_iter().collect();
        let scan = self.tx.adjacent(id, directions[direction], &types, None);
        let mut met: Vec<_> = scan
            .collect(&self.tx)
            .into_iter()
            .map(|met| (self.normal_relationship(met.relationship), self.normal(met.other)))
            .collect();
        met.sort_unstable();
        self.say(met);
    }
}

/// Runs a script on a version; entities are chosen from `base`.
pub(super) fn run(base: &Graph, graph: &Graph, acts: &[Action]) -> Result<ScriptRun, Violation> {
    run_within(4_096, base, graph, acts)
}

/// Runs a script with a footprint limit of this many entries per kind.
pub(super) fn run_within(
    limit: usize,
    base: &Graph,
    graph: &Graph,
    acts: &[Action],
) -> Result<ScriptRun, Violation> {
    let mut runner = Runner {
        tx: Transaction::with_footprint_limit(graph.clone(), limit),
        nodes: base.node_ids().collect(),
        relationships: base.relationship_ids().collect(),
        new_nodes: Vec::new(),
        new_relationships: Vec::new(),
        log: Vec::new(),
    };
    acts.iter().for_each(|act| runner.act(act));
    let Runner { tx, new_nodes, new_relationships, log, .. } = runner;
    Ok(ScriptRun { log, prepared: tx.finish()?.prepare(), new_nodes, new_relationships })
}

fn sort(changes: &mut PropertyChanges) {
    changes.set.sort_by_key(|(key, _)| *key);
    changes.unset.sort_unstable();
}

/// The change with all names in order.
fn sorted(mut change: NodeChange) -> NodeChange {
    match &mut change {
        NodeChange::Created { labels, properties } => {
            labels.sort_unstable();
            properties.sort_by_key(|(key, _)| *key);
        }
        NodeChange::Changed { label, unlabel, properties } => {
            label.sort_unstable();
            unlabel.sort_unstable();
            sort(properties);
        }
        NodeChange::Deleted => {}
    }
    change
}

/// New entities are numbered from here in a normalized change set.
const NEW: u64 = 1 << 40;

impl ScriptRun {
    fn normal(&self, id: NodeId) -> NodeId {
        let new = place(&self.new_nodes, id).and_then(|at| NodeId::new(NEW + at));
        new.unwrap_or(id)
    }

    /// The net change with new entities numbered by creation and names by their place here, as
    /// text.
    pub(super) fn normal_changes(&self) -> String {
        let texts = LABELS.iter().chain(&KEYS).chain(&TYPES);
        let names = texts.zip(0..).filter_map(|(text, number)| {
            Some((self.prepared.base().find_name(text)?, Name::new(number)))
        });
        let mut changes = self.prepared.changes().changes.clone();
        changes.rename(&names.collect());
        let ChangeSet { nodes, relationships, .. } = changes;
        let mut nodes: Vec<(NodeId, NodeChange)> =
            nodes.into_iter().map(|(id, change)| (self.normal(id), sorted(change))).collect();
        nodes.sort_by_key(|(id, _)| *id);
        let mut relationships: Vec<_> = relationships
            .into_iter()
            .map(|(id, mut change)| {
                let new = place(&self.new_relationships, id);
                let id = new.map_or(id.number(), |at| NEW + at);
                if let RelationshipChange::Changed(changes) = &mut change {
                    sort(changes);
                }
                if let RelationshipChange::Created { head, .. } = &mut change {
                    (head.from, head.to) = (self.normal(head.from), self.normal(head.to));
                }
                (id, change)
            })
            .collect();
        relationships.sort_by_key(|(id, _)| *id);
        format!("{nodes:?} {relationships:?}")
    }
}
