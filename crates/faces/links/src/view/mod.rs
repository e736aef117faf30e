//! The view of links: codes and their order, valid targets, lists of hosts, what a click's headers
//! say of the visitor; and its decisions, fold and queries.
//!
//! A link is a row of words in an array that never moves. A change is written to another place and
//! published by moving one pointer, and the old place is reused, so a reader checks the pointer
//! before and after (`state`, `places`). An automatic code is a permuted counter, so the code
//! itself leads to the place of its link; all others are looked up by name (`names`). Repeated
//! look-ups of one link skip both (`Folded::lookup_near`).

pub mod agent;
mod answer;
mod apply;
mod clicks;
pub mod code;
mod command;
mod decide;
mod digest;
pub mod event;
pub mod hosts;
mod names;
pub mod permutation;
mod places;
mod record;
pub mod referrer;
mod snapshot;
mod state;
mod target_rule;
mod top;
pub mod url;
mod visitors;

pub use agent::Agent;
pub use answer::{
    Bucket, Details, ListOrder, ListRequest, Page, ReferrerClicks, SeriesPoint, Stats, StatsRequest,
};
pub use code::{Code, CodeFault, CodeText, MAX_CODE_CHARS};
pub use command::{Change, Command, Create, LinkOutcome, LinkRefusal, Naming, SealedTarget};
pub use decide::{Context, StagedLinks};
pub use hosts::{HostVerdict, Policy};
pub use permutation::Permutation;
pub use record::Status;
pub use referrer::ReferrerHost;
pub use state::{Folded, Links, Lookup, RecentLink};
pub use target_rule::{TargetRule, TargetVerdict};
pub use url::{MAX_URL_CHARS, Target, UrlFault};

use std::io;
use std::sync::Arc;
use wellspring_host::view::contract::{Decision, LogEvent, SnapshotFault, Ticket, View};
use wellspring_types::{Event, Query};

/// Maximum number of tags of a link.
pub const MAX_TAGS: usize = 16;
/// Maximum length of a link's tag, in bytes of UTF-8.
pub const MAX_TAG_BYTES: usize = 64;

impl View for Links {
    const NAME: &'static str = "links";
    const VERSION: u32 = 2;

    type Folded = Folded;
    type Staged = StagedLinks;
    type Command = Command;
    type Context = Context;
    type Outcome = LinkOutcome;
    type Refusal = LinkRefusal;

    fn new() -> Links {
        Links::default()
    }

    fn with_context(context: &Context) -> Links {
        Links::with_rule(context.targets.clone())
    }

    fn restore(context: &Context, input: &mut impl io::Read) -> Result<Links, SnapshotFault> {
        snapshot::decode(input, context.targets.clone())
    }

    fn query() -> Query {
        let types = [event::OPENED, event::CREATED, event::CHANGED, event::DELETED, event::CLICKED];
        Query::item(&types, &[])
    }

    fn folded(&self) -> &Arc<Folded> {
        &self.folded
    }

    fn apply(&mut self, event: &impl LogEvent) {
        self.fold(event);
    }

    fn outcome(event: &impl LogEvent) -> Option<LinkOutcome> {
        decide::outcome(event)
    }

    fn remember(outcome: &LinkOutcome) -> Option<Event> {
        decide::remember(*outcome)
    }

    fn decide(
        folded: &Folded,
        staged: &StagedLinks,
        context: &Context,
        command: &Command,
    ) -> Result<Decision<LinkOutcome>, LinkRefusal> {
        decide::decide(folded, staged, context, command)
    }

    fn sealed_parts(command: &Command) -> &[u8] {
        let sealed = match command {
            Command::Create(create) => &create.sealed,
            Command::Change(change) => &change.sealed,
            Command::Delete { .. } | Command::Click { .. } => &None,
        };
        sealed.as_ref().map_or(&[], |sealed| &sealed.parts)
    }

    fn stage(staged: &mut StagedLinks, decision: &Decision<LinkOutcome>, ticket: Ticket) {
        staged.stage(decision, ticket);
    }

    fn settle(staged: &mut StagedLinks, ticket: Ticket) {
        staged.settle(ticket);
    }

    fn encode(folded: &Folded, out: &mut impl io::Write) -> io::Result<()> {
        snapshot::encode(folded, out)
    }

    fn decode(input: &mut impl io::Read) -> Result<Links, SnapshotFault> {
        snapshot::decode(input, TargetRule::default())
    }
}
