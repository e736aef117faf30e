//! Connections to real brokers.

use super::Connect;
use crate::fault::Fault;
use std::sync::Arc;
use wellspring_kafka::{Cluster, ConnectionSettings, KafkaCluster};

/// Returns a function that connects to the brokers. Each call uses the current settings, because a
/// password may have changed.
#[must_use]
pub fn connector(
    settings: impl Fn() -> Result<ConnectionSettings, Fault> + Send + 'static,
) -> Connect {
    Box::new(move || Ok(Arc::new(KafkaCluster::connect(&settings()?)?) as Arc<dyn Cluster>))
}
