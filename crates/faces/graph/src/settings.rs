//! The settings of the graph.

use wellspring_host::settings::section;

section! {
    /// Settings of the graph.
    GraphConfig from GraphConfigArgs:
    /// Most memory that one query may take, in bytes, its result included.
    graph_query_bytes: usize = "WELLSPRING_GRAPH_QUERY_BYTES", 64 << 20;
    /// Open transactions that there may be, of all clients together.
    graph_transactions: usize = "WELLSPRING_GRAPH_TRANSACTIONS", 1_000;
    /// How long an open transaction is kept without a request, in ms.
    graph_transaction_timeout_ms: u64 = "WELLSPRING_GRAPH_TRANSACTION_TIMEOUT_MS", 30_000;
}

impl GraphConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence about the first that is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.graph_query_bytes < 1 << 16 {
            return Err(format!(
                "graph_query_bytes must be at least 65536, not {}",
                self.graph_query_bytes
            ));
        }
        if self.graph_transactions == 0 {
            return Err("graph_transactions must be at least 1, not 0".to_owned());
        }
        let timeout_ms = self.graph_transaction_timeout_ms;
        if !(100..=86_400_000).contains(&timeout_ms) {
            return Err(format!(
                "graph_transaction_timeout_ms must be from 100 to 86400000, not {timeout_ms}"
            ));
        }
        Ok(())
    }
}
