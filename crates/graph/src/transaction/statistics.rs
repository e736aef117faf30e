//! Statistics of statements as reported to clients: gross counts, unlike the event, which is net.

/// Statistics of statements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Statistics {
    /// Nodes created.
    pub nodes_created: u64,
    /// Nodes deleted.
    pub nodes_deleted: u64,
    /// Relationships created.
    pub relationships_created: u64,
    /// Relationships deleted.
    pub relationships_deleted: u64,
    /// Properties set or removed.
    pub properties_set: u64,
    /// Labels added to nodes.
    pub labels_added: u64,
    /// Labels removed from nodes.
    pub labels_removed: u64,
    /// Indexes created.
    pub indexes_added: u64,
    /// Indexes dropped.
    pub indexes_removed: u64,
    /// Constraints created.
    pub constraints_added: u64,
    /// Constraints dropped.
    pub constraints_removed: u64,
}

impl Statistics {
    /// All counts: nodes, relationships, properties set, labels, indexes, constraints; where both
    /// are counted, first what came and then what went.
    #[must_use]
    pub fn counts(&self) -> [u64; 11] {
        let Statistics { nodes_created, nodes_deleted, properties_set, .. } = *self;
        let Statistics { relationships_created, relationships_deleted, .. } = *self;
        let Statistics { labels_added, labels_removed, indexes_added, indexes_removed, .. } = *self;
        [
            nodes_created,
            nodes_deleted,
            relationships_created,
            relationships_deleted,
            properties_set,
            labels_added,
            labels_removed,
            indexes_added,
            indexes_removed,
            self.constraints_added,
            self.constraints_removed,
        ]
    }

    /// Whether anything was changed.
    #[must_use]
    pub fn has_updates(&self) -> bool {
        *self != Statistics::default()
    }
}
