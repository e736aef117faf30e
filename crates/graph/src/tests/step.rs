//! Transaction steps, executed on a transaction and on the model alike.

use super::any_value;
use super::model::Model;
use crate::value::Value;
use crate::{GraphError, NodeId, RelationshipId, Transaction};
use proptest::prelude::*;

pub(super) const LABELS: [&str; 3] = ["A", "B", "C"];
pub(super) const KEYS: [&str; 3] = ["k", "j", "é\"\\\u{2028}"];
pub(super) const TYPES: [&str; 2] = ["R", "S"];

pub(super) type NodeChoices = Vec<(usize, Value)>;

/// Numbers select from what exists.
#[derive(Debug, Clone)]
pub(super) enum Step {
    CreateNode(Vec<usize>, NodeChoices),
    SetNode(usize, usize, Option<Value>),
    ReplaceNode(usize, NodeChoices),
    Label(usize, usize),
    Unlabel(usize, usize),
    DeleteNode(usize),
    Connect(usize, usize, usize, NodeChoices),
    SetRelationship(usize, usize, Option<Value>),
    DeleteRelationship(usize),
}

fn picked() -> impl Strategy<Value = NodeChoices> {
    prop::collection::vec((0..KEYS.len(), any_value()), 0..3)
}

pub(super) fn any_step() -> impl Strategy<Value = Step> {
    let labels = prop::collection::vec(0..LABELS.len(), 0..3);
    let pick = || 0..usize::MAX;
    let value = || prop::option::of(any_value());
    prop_oneof![
        4 => (labels, picked()).prop_map(|(labels, set)| Step::CreateNode(labels, set)),
        2 => (pick(), 0..KEYS.len(), value()).prop_map(|(at, key, value)| Step::SetNode(at, key, value)),
        1 => (pick(), picked()).prop_map(|(at, set)| Step::ReplaceNode(at, set)),
        1 => (pick(), 0..LABELS.len()).prop_map(|(at, label)| Step::Label(at, label)),
        1 => (pick(), 0..LABELS.len()).prop_map(|(at, label)| Step::Unlabel(at, label)),
        1 => pick().prop_map(Step::DeleteNode),
        4 => (pick(), pick(), 0..TYPES.len(), picked()).prop_map(|(a, b, kind, set)| Step::Connect(a, b, kind, set)),
        1 => (pick(), 0..KEYS.len(), value()).prop_map(|(at, key, value)| Step::SetRelationship(at, key, value)),
        1 => pick().prop_map(Step::DeleteRelationship),
    ]
}

fn pick<T: Copy>(mut all: impl ExactSizeIterator<Item = T>, at: usize) -> Option<T> {
    let count = all.len();
    if count == 0 { None } else { all.nth(at % count) }
}

fn set_of(tx: &Transaction, picked: &NodeChoices) -> Vec<(crate::Name, Value)> {
    picked.iter().map(|(key, value)| (tx.name(KEYS[*key]), value.clone())).collect()
}

fn model_of(picked: &NodeChoices) -> super::model::Properties {
    picked.iter().map(|(key, value)| (KEYS[*key].to_owned(), value.clone())).collect()
}

fn node(id: u64) -> NodeId {
    NodeId::new(id).expect("an id of 48 bits")
}

fn relationship(id: u64) -> RelationshipId {
    RelationshipId::new(id).expect("an id of 48 bits")
}

impl Step {
    /// Executes the step on both.
    pub(super) fn take(&self, tx: &mut Transaction, model: &mut Model) -> Result<(), GraphError> {
        match self {
            Step::CreateNode(labels, picked) => {
                let names: Vec<_> = labels.iter().map(|label| tx.name(LABELS[*label])).collect();
                let id = tx.create_node(&names, set_of(tx, picked))?;
                let labels = labels.iter().map(|label| LABELS[*label].to_owned()).collect();
                model.nodes.insert(id.number(), (labels, model_of(picked)));
            }
            Step::Connect(from, to, kind, picked) => {
                let ends = [from, to].map(|at| pick(model.nodes.keys().copied(), *at));
                let [Some(from), Some(to)] = ends else { return Ok(()) };
                let properties = set_of(tx, picked);
                let name = tx.name(TYPES[*kind]);
                let id = tx.create_relationship(name, node(from), node(to), properties)?;
                let row = (TYPES[*kind].to_owned(), from, to, model_of(picked));
                model.relationships.insert(id.number(), row);
            }
            Step::SetRelationship(at, key, value) => {
                let Some(id) = pick(model.relationships.keys().copied(), *at) else {
                    return Ok(());
                };
                let name = tx.name(KEYS[*key]);
                tx.set_relationship_property(relationship(id), name, value.clone())?;
                if let Some(row) = model.relationships.get_mut(&id) {
                    Model::set(&mut row.3, KEYS[*key], value.clone());
                }
            }
            Step::DeleteRelationship(at) => {
                let Some(id) = pick(model.relationships.keys().copied(), *at) else {
                    return Ok(());
                };
                tx.delete_relationship(relationship(id))?;
                model.relationships.remove(&id);
            }
            _ => return self.take_on_node(tx, model),
        }
        Ok(())
    }

    fn take_on_node(&self, tx: &mut Transaction, model: &mut Model) -> Result<(), GraphError> {
        let (Step::SetNode(at, ..)
        | Step::ReplaceNode(at, _)
        | Step::Label(at, _)
        | Step::Unlabel(at, _)
        | Step::DeleteNode(at)) = self
        else {
            return Ok(());
        };
        let Some(id) = pick(model.nodes.keys().copied(), *at) else { return Ok(()) };
        let Some((labels, properties)) = model.nodes.get_mut(&id) else { return Ok(()) };
        match self {
            Step::SetNode(_, key, value) => {
                tx.set_node_property(node(id), tx.name(KEYS[*key]), value.clone())?;
                Model::set(properties, KEYS[*key], value.clone());
            }
            Step::ReplaceNode(_, picked) => {
                tx.replace_node_properties(node(id), set_of(tx, picked))?;
                *properties = model_of(picked);
            }
            Step::Label(_, label) => {
                tx.add_labels(node(id), &[tx.name(LABELS[*label])])?;
                labels.insert(LABELS[*label].to_owned());
            }
            Step::Unlabel(_, label) => {
                tx.remove_labels(node(id), &[tx.name(LABELS[*label])])?;
                labels.remove(LABELS[*label]);
            }
            _ => {
                tx.detach_delete_node(node(id))?;
                model.detach_delete(id);
            }
        }
        Ok(())
    }
}
