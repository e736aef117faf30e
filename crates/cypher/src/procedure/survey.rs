//! A survey of the graph: which properties, of which types, and which relationships entities with
//! a label or of a type have. It examines a sample of each label and of each type.

use crate::context::Context;
use crate::error::Result;
use crate::functions::properties;
use crate::value::{NodeId, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wellspring_graph::{Direction, EntityScan, Name};

/// What is surveyed.
pub(super) struct Extent {
    /// The most entities of a label or of a type that are examined; all of them without.
    pub(super) sample: Option<u64>,
    /// The most relationships of a node that are examined.
    pub(super) relationships: usize,
    /// Whether entities with this label or of this type are.
    pub(super) labels: NameFilter,
    pub(super) types: NameFilter,
}

/// A choice of names.
#[derive(Default)]
pub(super) struct NameFilter {
    /// Only these, unless empty.
    pub(super) included: Vec<Arc<str>>,
    /// Not these.
    pub(super) excluded: Vec<Arc<str>>,
}

impl NameFilter {
    fn has(&self, name: &Arc<str>) -> bool {
        (self.included.is_empty() || self.included.contains(name)) && !self.excluded.contains(name)
    }
}

/// A name: of a label, a type or a key.
type Text = Arc<str>;

/// What has been found.
#[derive(Default)]
pub(super) struct Survey {
    /// By label.
    pub(super) labels: BTreeMap<Text, SeenLabel>,
    /// By type.
    pub(super) types: BTreeMap<Text, SeenEntities>,
    /// By the combination of labels.
    pub(super) combinations: BTreeMap<Vec<Text>, SeenEntities>,
}

/// The nodes with a label.
#[derive(Default)]
pub(super) struct SeenLabel {
    pub(super) nodes: SeenEntities,
    /// Their outgoing relationships, by type.
    pub(super) outgoing: BTreeMap<Text, SeenEnds>,
}

/// Entities of a kind.
#[derive(Default)]
pub(super) struct SeenEntities {
    /// The number examined.
    pub(super) count: u64,
    pub(super) properties: BTreeMap<Text, SeenProperty>,
    /// For relationships: the labels of their ends by the labels of their starts.
    pub(super) ends: BTreeMap<Text, SeenEnds>,
}

/// Relationships between labels.
#[derive(Default)]
pub(super) struct SeenEnds {
    /// The number examined.
    pub(super) count: u64,
    /// The number of their start nodes.
    pub(super) starts: u64,
    /// The labels of their end nodes.
    pub(super) labels: BTreeSet<Text>,
    pub(super) end_nodes: BTreeSet<NodeId>,
}

/// The values of a property.
#[derive(Default)]
pub(super) struct SeenProperty {
    /// The number of entities that have it.
    pub(super) count: u64,
    /// By type.
    pub(super) kinds: BTreeMap<PropertyKind, u64>,
}

/// The type of a property's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PropertyKind {
    /// The type of the value, or of the elements of a list.
    pub(super) element: &'static str,
    pub(super) is_list: bool,
}

impl PropertyKind {
    /// The type of a value, in the words of Cypher's messages.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::List(items) => {
                let element = items.first().map_or("Any", Value::type_name);
                Self { element, is_list: true }
            }
            single => Self { element: single.type_name(), is_list: false },
        }
    }
}

impl SeenProperty {
    /// The most frequent type.
    pub(super) fn kind(&self) -> Option<PropertyKind> {
        self.kinds.iter().max_by_key(|(_, count)| **count).map(|(kind, _)| *kind)
    }
}

/// Bytes charged for a name that was found, with its counts.
const FOUND_BYTES: u64 = 128;

impl SeenEntities {
    fn see(&mut self, found: &[(Text, Value)], context: &mut Context<'_>) -> Result<()> {
        self.count += 1;
        for (key, value) in found {
            if !self.properties.contains_key(key) {
                context.budget.charge_bytes(FOUND_BYTES)?;
            }
            let seen = self.properties.entry(Arc::clone(key)).or_default();
            seen.count += 1;
            *seen.kinds.entry(PropertyKind::of(value)).or_default() += 1;
        }
        context.budget.charge_steps(found.len() as u64)
    }
}

/// Surveys the graph.
///
/// # Errors
/// An exhausted budget.
pub(super) fn survey(extent: &Extent, context: &mut Context<'_>) -> Result<Survey> {
    let mut survey = Survey::default();
    for label in context.transaction.labels_in_use() {
        if extent.labels.has(&label) {
            survey_label(&mut survey, &label, extent, context)?;
        }
    }
    for kind in context.transaction.types_in_use() {
        if extent.types.has(&kind) {
            survey_type(&mut survey, &kind, extent, context)?;
        }
    }
    Ok(survey)
}

fn survey_label(
    survey: &mut Survey,
    label: &Text,
    extent: &Extent,
    context: &mut Context<'_>,
) -> Result<()> {
    let name = context.transaction.known_name(label);
    let count = context.transaction.label_count(name);
    for id in sampled(count, extent.sample, context.transaction.scan_label(name), context)? {
        let found = properties(&Value::Node(id), context)?;
        let labels = label_texts(id, context)?;
        let seen = survey.labels.entry(Arc::clone(label)).or_default();
        seen.nodes.see(&found, context)?;
        survey_outgoing(seen, id, extent, context)?;
        // A node with several labels is met once for each.
        if labels.iter().find(|label| extent.labels.has(label)) == Some(label) {
            survey.combinations.entry(labels).or_default().see(&found, context)?;
        }
    }
    Ok(())
}

fn survey_outgoing(
    seen: &mut SeenLabel,
    id: NodeId,
    extent: &Extent,
    context: &mut Context<'_>,
) -> Result<()> {
    let mut scan = context.transaction.adjacent(id, Direction::Outgoing, &[], None);
    let (mut adjacent, mut is_finished) = (Vec::new(), false);
    while !is_finished && adjacent.len() < extent.relationships {
        let progress = scan.fill(context.transaction, &mut adjacent);
        context.budget.charge_steps(1 + progress.examined as u64)?;
        is_finished = progress.is_finished;
    }
    let mut starts = BTreeSet::new();
    for found in adjacent.iter().take(extent.relationships) {
        let kind = context.transaction.text(found.relationship_type);
        if !extent.types.has(&kind) {
            continue;
        }
        let ends = label_texts(found.other, context)?;
        let outgoing = seen.outgoing.entry(Arc::clone(&kind)).or_default();
        outgoing.count += 1;
        outgoing.starts += u64::from(starts.insert(kind));
        if outgoing.end_nodes.insert(found.other) {
            context.budget.charge_bytes(FOUND_BYTES)?;
        }
        outgoing.labels.extend(ends);
    }
    Ok(())
}

fn survey_type(
    survey: &mut Survey,
    kind: &Text,
    extent: &Extent,
    context: &mut Context<'_>,
) -> Result<()> {
    let name = context.transaction.known_name(kind);
    let count = context.transaction.type_count(name);
    for id in sampled(count, extent.sample, context.transaction.scan_type(name), context)? {
        let found = properties(&Value::Relationship(id), context)?;
        let relationship = context.transaction.relationship(id)?;
        let starts = label_texts(relationship.from, context)?;
        let ends = label_texts(relationship.to, context)?;
        let seen = survey.types.entry(Arc::clone(kind)).or_default();
        seen.see(&found, context)?;
        for start in starts {
            let between = seen.ends.entry(start).or_default();
            between.count += 1;
            between.labels.extend(ends.iter().cloned());
        }
    }
    Ok(())
}

/// A node's labels, sorted.
fn label_texts(id: NodeId, context: &mut Context<'_>) -> Result<Vec<Text>> {
    let names: Vec<Name> = context.transaction.labels(id)?;
    context.budget.charge_steps(1 + names.len() as u64)?;
    let mut texts: Vec<Text> =
        names.into_iter().map(|name| context.transaction.text(name)).collect();
    texts.sort_unstable();
    Ok(texts)
}

/// Every n-th of the entities of a scan: all of them where there are few. A scan is not followed
/// beyond 64 times the sample.
fn sampled<Scan: EntityScan>(
    count: u64,
    sample: Option<u64>,
    mut scan: Scan,
    context: &mut Context<'_>,
) -> Result<Vec<Scan::Item>> {
    const WIDEST_STRIDE: u64 = 64;
    let sample = sample.unwrap_or(u64::MAX).max(1);
    let stride = (count / sample).clamp(1, WIDEST_STRIDE);
    let (mut chosen, mut met, mut next, mut at) = (Vec::new(), Vec::new(), 0, 0);
    loop {
        let progress = scan.fill(context.transaction, &mut met);
        context.budget.charge_steps(1 + progress.examined as u64)?;
        for entity in met.drain(..) {
            if at == next && (chosen.len() as u64) < sample {
                context.budget.charge_bytes(size_of::<Scan::Item>() as u64)?;
                chosen.push(entity);
                next += stride;
            }
            at += 1;
        }
        if progress.is_finished || chosen.len() as u64 >= sample {
            return Ok(chosen);
        }
    }
}
