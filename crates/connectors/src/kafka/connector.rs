//! Connections to real brokers.

use super::Connect;
use crate::fault::Fault;
use std::sync::Arc;
use wellspring_kafka::{Cluster, ConnectionSettings, KafkaCluster};

/// Makes a new connection to brokers each time it is called.
#[must_use]
pub fn connector(settings: ConnectionSettings) -> Connect {
    Box::new(move || match KafkaCluster::connect(&settings) {
        Ok(cluster) => Ok(Arc::new(cluster) as Arc<dyn Cluster>),
        Err(fault) => Err(Fault::from(fault)),
    })
}
