//! The start of a node of a cluster: its copy of the system log may lack the existing accounts, and
//! without any it would be open to all.

use super::gate::Gate;
use crate::setup::SetupError;
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use wellspring_log::Role;

/// How long a start waits for the other nodes.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Longest time for one request for the end of the log.
const QUESTION: Duration = Duration::from_secs(2);
/// How long another node may take to create the first account.
const TAKE_LEAD_AFTER: Duration = Duration::from_secs(3);
/// Time between two polls.
const LOOK: Duration = Duration::from_millis(20);

/// Waits until it is known whether there are accounts. A log of a single node knows at once; a copy
/// knows once it has some, or once its end is confirmed to be that of all nodes. Blocks.
///
/// # Errors
/// A sentence: this could not be determined in time.
pub(crate) fn await_accounts(gate: &Gate) -> Result<(), SetupError> {
    await_accounts_for(gate, PATIENCE)
}

fn await_accounts_for(gate: &Gate, patience: Duration) -> Result<(), SetupError> {
    let log = gate.live().log();
    if gate.has_accounts() || log.shared_stats().is_none() {
        return Ok(());
    }
    let known = async {
        loop {
            let confirmed = timeout(QUESTION, confirmed(gate)).await;
            if gate.has_accounts() || matches!(confirmed, Ok(Ok(()))) {
                return;
            }
            sleep(LOOK).await;
        }
    };
    if within(patience, known)?.is_some() {
        return Ok(());
    }
    const UNKNOWN: &str = "it is unknown whether accounts exist, and without accounts every \
                           client would have full access: this node's copy of the log system \
                           has none";
    let role = log.role();
    if let Role::Detached { reason } = role {
        return Err(format!("{UNKNOWN}, and is detached: {reason}").into());
    }
    Err(format!(
        "{UNKNOWN}, is {}, and its end could not be confirmed within {} s; start the node when \
         it can reach the cluster's journal",
        role.name(),
        patience.as_secs()
    )
    .into())
}

/// Folds everything up to the end of the system log, including events of other nodes.
async fn confirmed(gate: &Gate) -> Result<(), SetupError> {
    let end = gate.live().log().confirm().await.map_err(|refused| refused.to_string())?;
    gate.live()
        .caught_up(end, PATIENCE)
        .await
        .map(drop)
        .map_err(|error| SetupError::new(error.to_string()))
}

/// The result of waiting to create the first account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeadWait {
    /// This node leads the system log and may append to it.
    Leads,
    /// There are accounts, created by any node.
    Accounts,
}

/// Waits until this node may append to the system log, or there are accounts. Blocks.
///
/// # Errors
/// A sentence: neither happened in time.
pub(super) fn await_turn(
    gate: &Gate,
    patience: Duration,
    take_lead: &dyn Fn(),
) -> Result<LeadWait, SetupError> {
    let log = gate.live().log();
    let turn = async {
        // The node that leads is given the time to create it.
        let mut due = Instant::now() + TAKE_LEAD_AFTER;
        loop {
            if Instant::now() >= due {
                take_lead();
                due += TAKE_LEAD_AFTER;
            }
            if gate.has_accounts() {
                return LeadWait::Accounts;
            }
            if log.role().leads() {
                return LeadWait::Leads;
            }
            sleep(LOOK).await;
        }
    };
    if let Some(turn) = within(patience, turn)? {
        return Ok(turn);
    }
    let role = log.role();
    let leader = match &role {
        Role::Following { leader: Some(leader) } => {
            format!("{leader} leads it; create the account there")
        }
        _ => "no leader is known".to_owned(),
    };
    Err(format!(
        "there are no accounts, and this node could not create the first within {} s: it is {} \
         in the log system, and {leader}",
        patience.as_secs(),
        role.name()
    )
    .into())
}

/// The result of a future, run on this thread; `None` if it takes too long.
fn within<F: Future>(patience: Duration, future: F) -> Result<Option<F::Output>, SetupError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| format!("cannot start the runtime: {error}"))?;
    Ok(runtime.block_on(async { timeout(patience, future).await.ok() }))
}

#[cfg(test)]
#[path = "joining_node_tests.rs"]
mod tests;
