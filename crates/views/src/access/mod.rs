//! Access: the view of accounts, API keys and revoked tokens. Who there is, what each
//! may do on which log, and which credentials have stopped to count. Secrets are not here: a
//! password is the text that a slow hash made of it, an API key the SHA-256 of 256 random
//! bits; of what signs the tokens of a cluster's nodes, a number.
//!
//! As long as there are accounts, one of them is enabled, an admin of everything and has a
//! password: the first has to be, and the last cannot cease to be. Only events that somebody else
//! wrote can break that; facts are folded as they are.

mod answer;
mod apply;
mod decide;
pub mod event;
mod generations;
mod keys;
mod name;
mod role;
mod secret;
mod snapshot;
mod state;

pub use answer::Fallen;
pub use decide::{Command, Outcome, Refusal, Staged};
pub use event::without_hashes;
pub use generations::TokenGenerations;
pub use name::{AccountName, KeyId, Label, NameFault, TokenId};
pub use role::{Grant, Grants, GrantsFault, MAX_GRANTS, Role};
pub use secret::{PasswordHash, SecretDigest};
pub use state::{Access, Account, Folded, Key, State};

use crate::view::{Decision, Recorded, SnapshotFault, Ticket, View};
use std::io;
use std::sync::Arc;
use wellspring_types::Query;

/// Most accounts, disabled ones included.
pub const MAX_ACCOUNTS: usize = 10_000;
/// Most API keys that have not ended.
pub const MAX_KEYS: usize = 10_000;
/// Most API keys of one account that have not ended.
pub const MAX_KEYS_OF_ACCOUNT: usize = 100;
/// Most API keys of one account that are remembered after they have ended: those that ended last.
pub const MAX_ENDED_OF_ACCOUNT: usize = 100;
/// Most tokens of one account that are revoked one by one and not expired. Beyond it all of an
/// account's tokens can be revoked at once.
pub const MAX_REVOKED: usize = 1_024;

impl View for Access {
    const NAME: &'static str = "access";
    const VERSION: u32 = 6;

    type Folded = Folded;
    type Staged = Staged;
    type Command = Command;
    type Context = ();
    type Outcome = Outcome;
    type Refusal = Refusal;

    fn new() -> Access {
        Access::default()
    }

    fn concern() -> Query {
        Query::item(&event::TYPES, &[])
    }

    fn folded(&self) -> &Arc<Folded> {
        &self.folded
    }

    fn apply(&mut self, event: &impl Recorded) {
        self.fold(event);
    }

    fn outcome(event: &impl Recorded) -> Option<Outcome> {
        decide::outcome(event)
    }

    fn decide(
        folded: &Folded,
        staged: &Staged,
        _context: &(),
        command: &Command,
    ) -> Result<Decision<Outcome>, Refusal> {
        decide::decide(folded, staged, command)
    }

    fn stage(staged: &mut Staged, decision: &Decision<Outcome>, ticket: Ticket) {
        staged.stage(decision, ticket);
    }

    fn settle(staged: &mut Staged, ticket: Ticket) {
        staged.settle(ticket);
    }

    fn encode(folded: &Folded, out: &mut impl io::Write) -> io::Result<()> {
        snapshot::encode(folded, out)
    }

    fn decode(input: &mut impl io::Read) -> Result<Access, SnapshotFault> {
        snapshot::decode(input)
    }
}
