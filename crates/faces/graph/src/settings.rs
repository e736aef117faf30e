//! The settings of the graph.

use std::path::PathBuf;
use wellspring_host::settings::section;
use wellspring_host::setup::SetupError;

section! {
    /// Settings of the graph.
    GraphConfig from GraphConfigArgs under "Graphs":
    /// Memory limit of one query, its result included, in bytes.
    graph_query_bytes: usize = "WELLSPRING_GRAPH_QUERY_BYTES", 64 << 20;
    /// Memory limit of all running queries and their writes together, in bytes.
    graph_queries_bytes: usize = "WELLSPRING_GRAPH_QUERIES_BYTES", 1 << 30;
    /// Serve Bolt, the protocol of Neo4j's drivers, on the ports of HTTP.
    [num_args = 0..=1, default_missing_value = "true"]
    bolt: bool = "WELLSPRING_BOLT", true;
    /// Maximum number of open transactions.
    graph_transactions: usize = "WELLSPRING_GRAPH_TRANSACTIONS", 1_000;
    /// Memory limit of all open transactions together, in bytes, in addition to the graphs.
    graph_transactions_bytes: usize = "WELLSPRING_GRAPH_TRANSACTIONS_BYTES", 256 << 20;
    /// Time after which an open transaction without requests ends, in ms.
    graph_transaction_timeout_ms: u64 = "WELLSPRING_GRAPH_TRANSACTION_TIMEOUT_MS", 30_000;
    optional
    /// Folder with the files that LOAD CSV may read; without it, there are none.
    graph_csv_folder: PathBuf = "WELLSPRING_GRAPH_CSV_FOLDER";
}

/// Free memory of a query before it draws on the shared pool, and what of its writes is not counted
/// yet.
const UNSHARED_BYTES: usize = 2 << 20;
/// Changes kept of a log's past commits.
const RECENT_BYTES: usize = 64 << 20;
/// Memory for cached plans.
const PLAN_BYTES: usize = 64 << 20;

impl GraphConfig {
    /// Most memory that clients can make graphs use beyond their content, in bytes: with this many
    /// long reads at a time, and the graph of one log in use.
    #[must_use]
    pub fn memory_bound_bytes(&self, max_long_reads: usize) -> usize {
        let executing = self.graph_queries_bytes + max_long_reads * UNSHARED_BYTES;
        executing + self.graph_transactions_bytes + RECENT_BYTES + PLAN_BYTES
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence about the first invalid setting.
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        if self.graph_query_bytes < 1 << 16 {
            return Err(format!(
                "graph_query_bytes must be at least 65536, not {}",
                self.graph_query_bytes
            )
            .into());
        }
        if self.graph_queries_bytes < self.graph_query_bytes {
            return Err(format!(
                "graph_queries_bytes must be at least graph_query_bytes, {}, not {}",
                self.graph_query_bytes, self.graph_queries_bytes
            )
            .into());
        }
        if self.graph_transactions_bytes < 1 << 16 {
            return Err(format!(
                "graph_transactions_bytes must be at least 65536, not {}",
                self.graph_transactions_bytes
            )
            .into());
        }
        if self.graph_transactions == 0 {
            return Err("graph_transactions must be at least 1, not 0".into());
        }
        let timeout_ms = self.graph_transaction_timeout_ms;
        if !(100..=86_400_000).contains(&timeout_ms) {
            return Err(format!(
                "graph_transaction_timeout_ms must be from 100 to 86400000, not {timeout_ms}"
            )
            .into());
        }
        match &self.graph_csv_folder {
            Some(folder) if !folder.is_dir() => {
                Err(format!("graph_csv_folder, {}, is no folder", folder.display()).into())
            }
            _ => Ok(()),
        }
    }
}
