//! One log in PostgreSQL, as an engine of the log crate.

use crate::shared::{Command, NodeShared};
use crate::state::{LogState, Offer};
use std::sync::{Arc, mpsc};
use std::task::Waker;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use wellspring_log::shared::{
    Arrival, AskId, Fetched, LogStart, OfferId, Place, SharedLimits, SharedLog, SharedLogError,
};

/// Maximum time that a waiting caller is blocked.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// A log in PostgreSQL, created by [`PostgresNode::shared_log`](crate::PostgresNode::shared_log).
pub struct PostgresLog {
    pub(crate) node: Arc<NodeShared>,
    pub(crate) state: Arc<LogState>,
    pub(crate) commands: UnboundedSender<Command>,
}

impl PostgresLog {
    fn send(&self, command: Command) {
        // The receiver outlives all senders.
        let _ = self.commands.send(command);
    }

    fn wait_for<T>(
        &self,
        ask: impl FnOnce(mpsc::Sender<Result<T, SharedLogError>>) -> Command,
    ) -> Result<T, SharedLogError> {
        let (reply, answer) = mpsc::channel();
        self.send(ask(reply));
        answer.recv_timeout(ANSWER_WITHIN).unwrap_or_else(|_| {
            let reason = format!("the server has not answered for {} s", ANSWER_WITHIN.as_secs());
            Err(SharedLogError::Unavailable { reason })
        })
    }
}

impl SharedLog for PostgresLog {
    fn limits(&self) -> SharedLimits {
        self.node.limits
    }

    fn follow(&mut self, after: Place) {
        self.state.follow(after);
        self.send(Command::Follow(Arc::clone(&self.state)));
    }

    fn offer(&mut self, id: OfferId, after: Place, entry: Arc<[u8]>) {
        self.state.offer(Offer { id, after, entry });
        self.send(Command::Work(Arc::clone(&self.state)));
    }

    fn ask_end(&mut self, id: AskId) {
        self.state.ask(id);
        self.send(Command::Work(Arc::clone(&self.state)));
    }

    fn next(&mut self, waker: &Waker) -> Result<Arrival, SharedLogError> {
        self.state.next(waker)
    }

    fn lends_threads(&self) -> bool {
        true
    }

    fn fetch(&mut self, after: Place, max_bytes: usize) -> Result<Fetched, SharedLogError> {
        let log = Arc::clone(&self.state);
        self.wait_for(|reply| Command::Fetch { log, after, max_bytes, reply }).map(Fetched::Entries)
    }

    fn gap_after(&mut self, after: Place) -> Result<Option<LogStart>, SharedLogError> {
        let log = Arc::clone(&self.state);
        let place = self.wait_for(|reply| Command::FirstKept { log, reply })?;
        // Only an operator deletes entries.
        Ok((after < place).then_some(LogStart { place, state: None }))
    }
}

impl Drop for PostgresLog {
    fn drop(&mut self) {
        self.state.lock().closed = true;
        self.node.forget(&self.state);
    }
}
