//! Access: the view of accounts, API keys and revoked tokens. It holds the accounts, their roles on
//! each log, and which credentials are no longer valid. It holds no secrets: of a password it keeps
//! a slow hash, of an API key the SHA-256 of 256 random bits, and of the secret that signs a
//! cluster's tokens a generation number.
//!
//! While accounts exist, at least one is an enabled admin of everything with a password: the first
//! account must be one, and the last such account cannot stop being one. Only events written by
//! something other than this view can break that invariant; facts are folded as they are.

mod answer;
mod apply;
mod decide;
pub mod event;
mod generations;
mod keys;
mod secret;
mod snapshot;
mod state;

pub use answer::Invalidation;
pub use decide::{AccessOutcome, AccessRefusal, Command, StagedAccess};
pub use event::without_hashes;
pub use generations::TokenGenerations;
pub use secret::{PasswordHash, SecretDigest};
pub use state::{Access, Account, Folded, Key, State};

use crate::identity::{AccountName, Grant, Grants, KeyId, Label, TokenId};
use crate::view::contract::{Decision, LogEvent, SnapshotFault, Ticket, View};
use std::io;
use std::sync::Arc;
use wellspring_types::Query;

/// Maximum number of accounts, including disabled ones.
pub const MAX_ACCOUNTS: usize = 10_000;
/// Maximum number of API keys that have not ended.
pub const MAX_KEYS: usize = 10_000;
/// Maximum number of API keys of one account that have not ended.
pub const MAX_KEYS_OF_ACCOUNT: usize = 100;
/// Maximum number of ended API keys remembered for one account: the most recently ended ones.
pub const MAX_ENDED_OF_ACCOUNT: usize = 100;
/// Maximum number of unexpired tokens of one account that can be revoked individually. Beyond it,
/// all tokens of the account can be revoked at once.
pub const MAX_REVOKED: usize = 1_024;

impl View for Access {
    const NAME: &'static str = "access";
    const VERSION: u32 = 6;

    type Folded = Folded;
    type Staged = StagedAccess;
    type Command = Command;
    type Context = ();
    type Outcome = AccessOutcome;
    type Refusal = AccessRefusal;

    fn new() -> Access {
        Access::default()
    }

    fn query() -> Query {
        Query::item(&event::TYPES, &[])
    }

    fn folded(&self) -> &Arc<Folded> {
        &self.folded
    }

    fn apply(&mut self, event: &impl LogEvent) {
        self.fold(event);
    }

    fn outcome(event: &impl LogEvent) -> Option<AccessOutcome> {
        decide::outcome(event)
    }

    fn decide(
        folded: &Folded,
        staged: &StagedAccess,
        _context: &(),
        command: &Command,
    ) -> Result<Decision<AccessOutcome>, AccessRefusal> {
        decide::decide(folded, staged, command)
    }

    fn stage(staged: &mut StagedAccess, decision: &Decision<AccessOutcome>, ticket: Ticket) {
        staged.stage(decision, ticket);
    }

    fn settle(staged: &mut StagedAccess, ticket: Ticket) {
        staged.settle(ticket);
    }

    fn encode(folded: &Folded, out: &mut impl io::Write) -> io::Result<()> {
        snapshot::encode(folded, out)
    }

    fn decode(input: &mut impl io::Read) -> Result<Access, SnapshotFault> {
        snapshot::decode(input)
    }
}
