//! Schema changes in a transaction.

use super::Transaction;
use crate::fault::GraphError;
use crate::graph::SchemaDefinition;
use std::sync::Arc;

impl Transaction {
    /// Creates an index or a constraint; checks and indexes existing data at once.
    ///
    /// # Errors
    /// The name is taken, an equivalent definition exists, the definition is invalid, or existing
    /// data violates the constraint.
    pub fn create_schema_item(&mut self, definition: SchemaDefinition) -> Result<(), GraphError> {
        self.writable()?;
        self.graph.check_definition(&definition)?;
        let is_constraint = definition.kind.is_constraint();
        let item = self.graph.add_schema_item(definition.clone());
        self.graph.check_item(&item)?;
        self.writes.created_items.push(definition);
        self.writes.count += 1;
        if is_constraint {
            self.statistics.constraints_added += 1
        } else {
            self.statistics.indexes_added += 1
        }
        Ok(())
    }

    /// Drops an index or a constraint.
    ///
    /// # Errors
    /// [`GraphError::NoSuchItem`]
    pub fn drop_schema_item(&mut self, name: &str) -> Result<(), GraphError> {
        self.writable()?;
        let item = self.graph.remove_schema_item(name);
        let item = item.ok_or_else(|| GraphError::NoSuchItem(name.into()))?;
        self.writes.count += 1;
        let created = self.writes.created_items.iter().position(|known| *known.name == *name);
        match created {
            Some(at) => {
                self.writes.created_items.remove(at);
            }
            None => self.writes.dropped_items.push(Arc::clone(&item.definition.name)),
        }
        if item.definition.kind.is_constraint() {
            self.statistics.constraints_removed += 1
        } else {
            self.statistics.indexes_removed += 1
        }
        Ok(())
    }
}
