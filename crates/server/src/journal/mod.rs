//! The engine that `--journal` names: the only place that knows the engines.

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "raft")]
mod raft;

use std::sync::Arc;
use wellspring_host::cluster::Engine;
use wellspring_host::config::HostConfig;
use wellspring_host::setup::SetupError;

/// The engine of a configuration; `None` if the logs are files of one node. Blocks until it is
/// connected.
///
/// # Errors
/// A sentence: there is no such engine, or it cannot be used or reached.
pub(crate) fn engine(host: &HostConfig) -> Result<Option<Arc<dyn Engine>>, SetupError> {
    let config = &host.cluster;
    if !config.is_shared() {
        return Ok(None);
    }
    let scheme = config.journal.secret_text().split("://").next().unwrap_or_default();
    match scheme {
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => postgres::engine(config).map(Some),
        #[cfg(not(feature = "postgres"))]
        "postgres" | "postgresql" => {
            Err("journal: this program was built without the feature postgres".to_owned().into())
        }
        #[cfg(feature = "raft")]
        "raft" if config.journal.secret_text() == "raft" => raft::engine(host).map(Some),
        #[cfg(not(feature = "raft"))]
        "raft" => Err("journal: this program was built without the feature raft".to_owned().into()),
        _ => Err(format!(
            "journal must be raft, postgres://USER@HOST/DATABASE, or empty for the files of this \
             node alone, not {}",
            config.journal
        )
        .into()),
    }
}
