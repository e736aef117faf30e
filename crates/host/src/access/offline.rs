//! The accounts of a data folder that no server has open: for the first administrator before the
//! first start, and for an operator without a working credential.

use crate::access::view::{Access, AccessRefusal, Command, Folded, State};
use crate::private_folder::keep_private;
use crate::view::{CommandResults, Live};
use crate::wire::effects::Effects;
use std::io;
use std::path::Path;
use std::sync::Arc;
use wellspring_log::{CommitOn, Log, OpenError, Options};

/// The accounts of a data folder, locked against other processes.
pub struct Offline {
    log: Log,
    live: Arc<Live<Access>>,
    folded: Arc<Folded>,
}

/// Why accounts could not be opened.
#[derive(Debug)]
pub enum OfflineError {
    /// Another process has them open, most likely a server.
    InUse,
    /// There is no data folder, or it holds no accounts.
    NotThere,
    /// Anything else, as a sentence.
    Failed(String),
}

/// What to do with a folder that has no accounts yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMissing {
    /// Create them.
    Begin,
    /// Fail.
    Fail,
}

impl Offline {
    /// Opens the accounts of a data folder.
    ///
    /// # Errors
    /// [`OfflineError`].
    pub fn open(data: &Path, if_missing: IfMissing) -> Result<Offline, OfflineError> {
        let dir = data.join("logs").join(crate::names::SYSTEM_LOG);
        if if_missing == IfMissing::Fail && !dir.is_dir() {
            return Err(OfflineError::NotThere);
        }
        let failed =
            |error: io::Error| OfflineError::Failed(format!("locking {}: {error}", dir.display()));
        keep_private(&dir).map_err(failed)?;
        let options = Options { clock: crate::clock::system(), ..Options::default() };
        let clock = Arc::clone(&options.clock);
        let log = Log::open(&dir, options).map_err(|error| match error {
            OpenError::Locked { .. } => OfflineError::InUse,
            error => OfflineError::Failed(error.to_string()),
        })?;
        // The folders' own entries must survive a power loss, or the account would be lost with
        // them.
        for dir in [&data.join("logs"), data] {
            let synced = std::fs::File::open(dir).and_then(|dir| dir.sync_all());
            synced.map_err(|error| OfflineError::Failed(format!("{}: {error}", dir.display())))?;
        }
        let live = Live::open(log.clone(), &dir, (), clock)
            .map_err(|error| OfflineError::Failed(error.to_string()))?;
        let folded = live.wait_live().map_err(|reason| OfflineError::Failed(reason.to_string()))?;
        Ok(Offline { log, live, folded })
    }

    /// The current accounts and keys.
    pub fn state(&self) -> Arc<State> {
        self.folded.now()
    }

    /// Executes commands; returns the reason if one was refused.
    ///
    /// # Errors
    /// A sentence.
    pub fn execute(&self, commands: &[Command]) -> Result<Option<AccessRefusal>, String> {
        execute(&self.live, commands)
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        self.log.close();
        self.live.close();
    }
}

/// Executes commands on a thread that may block; returns the reason if one was refused.
///
/// # Errors
/// A sentence.
pub(crate) fn execute(
    live: &Live<Access>,
    commands: &[Command],
) -> Result<Option<AccessRefusal>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| format!("cannot start the runtime: {error}"))?;
    let executed =
        runtime.block_on(live.execute(&Effects::default(), commands, None, CommitOn::ThisThread));
    let all = |executed: CommandResults<Access>| executed.stopped.map_or(Ok(executed.refused), Err);
    executed.and_then(all).map_err(|error| {
        // The same text that a client would get.
        Box::<crate::wire::problem::Problem>::from(error).detail
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::view::PasswordHash;
    use crate::identity::{AccountName, Grant, Grants, Role};

    #[test]
    fn accounts_are_made_before_the_first_start_and_held_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        assert!(matches!(Offline::open(&data, IfMissing::Fail), Err(OfflineError::NotThere)));
        assert!(!data.exists(), "nothing is made by looking");
        let offline = Offline::open(&data, IfMissing::Begin).unwrap_or_else(|_| panic!());
        let add = Command::AddAccount {
            name: AccountName::parse("ann").unwrap(),
            password: PasswordHash::new("$x"),
            roles: Grants::from(Grant::everywhere(Role::Admin)),
        };
        assert_eq!(offline.execute(std::slice::from_ref(&add)), Ok(None));
        assert!(matches!(offline.execute(&[add]), Ok(Some(AccessRefusal::NameTaken(_)))));
        assert!(matches!(Offline::open(&data, IfMissing::Begin), Err(OfflineError::InUse)));
        drop(offline);
        let again = Offline::open(&data, IfMissing::Fail).unwrap_or_else(|_| panic!());
        assert!(again.state().account("ann").is_some());
    }
}
