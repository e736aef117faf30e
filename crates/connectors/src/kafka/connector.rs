//! Connections to real brokers.

use super::Connect;
use crate::fault::Fault;
use std::sync::Arc;
use wellspring_kafka::{Cluster, ConnectionSettings, KafkaCluster};

/// Makes a new connection to brokers each time it is called, with the settings of that moment: a
/// password may have been changed.
#[must_use]
pub fn connector(
    settings: impl Fn() -> Result<ConnectionSettings, Fault> + Send + 'static,
) -> Connect {
    Box::new(move || Ok(Arc::new(KafkaCluster::connect(&settings()?)?) as Arc<dyn Cluster>))
}
