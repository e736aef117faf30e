//! From the names of one transaction to the names of the graph: a change set gives its new names
//! the next numbers, in the order in which it uses them, so that its events and the transaction
//! that made them come to the same numbers.

use super::{
    ChangeFault, ChangeSet, CommittedChanges, NodeChange, PropertyChanges, RelationshipChange,
};
use crate::footprint::Footprint;
use crate::graph::Graph;
use crate::names::Name;
use std::collections::HashMap;
use std::sync::Arc;

impl Graph {
    /// Applies a change set in which these names are private. Leaves the version unchanged if it is
    /// refused.
    ///
    /// # Errors
    /// Why it does not apply to this version.
    pub(crate) fn apply_decoded(
        &mut self,
        mut changes: ChangeSet,
        private: &[(Name, Arc<str>)],
    ) -> Result<CommittedChanges, ChangeFault> {
        let before = (!private.is_empty()).then(|| self.names().clone());
        if before.is_some() {
            changes.settle(self, private)?;
        }
        match self.apply(&changes) {
            Ok(touches) => Ok(CommittedChanges { changes, touches }),
            Err(fault) => {
                if let Some(before) = before {
                    self.set_names(before);
                }
                Err(fault)
            }
        }
    }
}

impl ChangeSet {
    /// Whether it gives private names to anything.
    pub(crate) fn has_private_names(&self) -> bool {
        let mut has = false;
        self.each_given_name(|name| has |= name.is_private());
        has
    }

    /// Replaces private names, adding to the graph those that it gives to anything and the graph
    /// does not have.
    pub(crate) fn settle(
        &mut self,
        graph: &mut Graph,
        private: &[(Name, Arc<str>)],
    ) -> Result<(), ChangeFault> {
        let texts: HashMap<Name, &Arc<str>> =
            private.iter().map(|(name, it)| (*name, it)).collect();
        let mut settled: HashMap<Name, Name> = known(graph, private).collect();
        let (count, mut added) = (graph.names().len(), Vec::new());
        self.each_given_name(|name| {
            if let Some(text) = texts.get(&name).filter(|_| !settled.contains_key(&name)) {
                settled.insert(name, Name::new((count + added.len()) as u32));
                added.push(Arc::clone(text));
            }
        });
        if !added.is_empty() {
            let mut names = graph.names().clone();
            names.extend(added).ok_or(ChangeFault::OutOfNames)?;
            graph.set_names(names);
        }
        self.rename(&settled);
        Ok(())
    }

    /// Calls `each` with every name that an entity, an index or a constraint gets, in an order that
    /// the events keep.
    fn each_given_name(&self, mut each: impl FnMut(Name)) {
        let mut keys_of = |set: &[(Name, _)], names: &[Name]| {
            names.iter().for_each(|name| each(*name));
            set.iter().for_each(|(key, _)| each(*key));
        };
        for (_, change) in &self.nodes {
            match change {
                NodeChange::Created { labels, properties } => keys_of(properties, labels),
                NodeChange::Changed { label, properties, .. } => keys_of(&properties.set, label),
                NodeChange::Deleted => {}
            }
        }
        for (_, change) in &self.relationships {
            match change {
                RelationshipChange::Created { head, properties } => {
                    keys_of(properties, &[head.relationship_type]);
                }
                RelationshipChange::Changed(properties) => keys_of(&properties.set, &[]),
                RelationshipChange::Deleted => {}
            }
        }
        for item in &self.created_items {
            keys_of(&[], &item.subjects().collect::<Vec<_>>());
            keys_of(&[], &item.keys);
        }
    }

    /// Replaces private names. Of those that are only taken away, the unknown ones are dropped:
    /// nothing has them.
    pub(crate) fn rename(&mut self, settled: &HashMap<Name, Name>) {
        let rename = |name: &mut Name| {
            if let Some(known) = settled.get(name) {
                *name = *known;
            }
        };
        let rename_taken = |names: &mut Vec<Name>| {
            names.iter_mut().for_each(rename);
            names.retain(|name| !name.is_private());
        };
        let rename_keys = |changes: &mut PropertyChanges| {
            changes.set.iter_mut().for_each(|(key, _)| rename(key));
            rename_taken(&mut changes.unset);
        };
        for (_, change) in &mut self.nodes {
            match change {
                NodeChange::Created { labels, properties } => {
                    labels.iter_mut().for_each(rename);
                    properties.iter_mut().for_each(|(key, _)| rename(key));
                }
                NodeChange::Changed { label, unlabel, properties } => {
                    label.iter_mut().for_each(rename);
                    rename_taken(unlabel);
                    rename_keys(properties);
                }
                NodeChange::Deleted => {}
            }
        }
        for (_, change) in &mut self.relationships {
            match change {
                RelationshipChange::Created { head, properties } => {
                    rename(&mut head.relationship_type);
                    properties.iter_mut().for_each(|(key, _)| rename(key));
                }
                RelationshipChange::Changed(properties) => rename_keys(properties),
                RelationshipChange::Deleted => {}
            }
        }
        for item in &mut self.created_items {
            item.rename(rename);
        }
    }
}

/// The private names that the graph has, too, with their numbers there.
fn known<'a>(
    graph: &'a Graph,
    private: &'a [(Name, Arc<str>)],
) -> impl Iterator<Item = (Name, Name)> + 'a {
    private.iter().filter_map(|(name, text)| Some((*name, graph.names().find(text)?)))
}

impl Footprint {
    /// The footprint with the private names that the graph has by now replaced; `None` if there are
    /// none.
    pub(crate) fn settled(&self, graph: &Graph, private: &[(Name, Arc<str>)]) -> Option<Footprint> {
        let settled: HashMap<Name, Name> = known(graph, private).collect();
        let renamed = |name: Name| settled.get(&name).copied().unwrap_or(name);
        (!settled.is_empty()).then(|| self.renamed(renamed))
    }
}
