//! The decision: which events a command results in, given the folded state and the decisions that
//! are not folded yet.

use super::apply::{tags_are_fine, time_is_fine};
use super::clicks::Clicks;
use super::command::{
    Change, Command, Create, LinkOutcome, LinkRefusal, MOST_CANDIDATES, Naming, SealedTarget,
};
use super::event::{
    CLICKED, CLICKED_TAG, CREATED, ChangedData, CodeOrigin, CreatedData, DELETED, FOUND, Fact, Key,
    LINK_TAG, OPENED, OPENED_TAG, SEALED,
};
use super::record::Status;
use super::state::{CodeOrder, Folded};
use super::url;
use super::{Code, TargetRule, digest};
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::Ordering;
use wellspring_host::view::contract::{Decision, LogEvent, Ticket, event};
use wellspring_types::{Event, QueryItem};

/// Inputs of a decision that are not in any event.
#[derive(Debug, Clone)]
pub struct Context {
    /// A random key for the permutation of codes, used if the log has none yet.
    pub key: Key,
    /// Whether a word is reserved and cannot be an alias.
    pub reserved: fn(&str) -> bool,
    /// Which targets are allowed. Applied when a link is folded.
    pub targets: TargetRule,
}

/// A link's state once a pending decision is folded.
#[derive(Debug, Clone)]
struct Pending {
    ticket: Ticket,
    url: String,
    deleted: bool,
}

/// The decisions that are not folded yet.
#[derive(Debug, Default)]
pub struct StagedLinks {
    opened: Option<(Ticket, CodeOrder)>,
    next: u64,
    /// Each link's pending decisions, oldest first.
    links: HashMap<Code, Vec<Pending>>,
    /// Each link's pending clicks.
    clicks: HashMap<Code, Vec<Ticket>>,
    of_ticket: HashMap<Ticket, Vec<Code>>,
}

/// A link as a decision sees it.
struct LinkState {
    url: String,
    deleted: bool,
}

/// The folded state with the pending decisions on top.
struct ExpectedState<'a> {
    folded: &'a Folded,
    staged: &'a StagedLinks,
}

impl ExpectedState<'_> {
    fn link(&self, code: Code) -> Option<LinkState> {
        if let Some(Pending { url, deleted, .. }) = self.staged.last(code) {
            return Some(LinkState { url: url.clone(), deleted: *deleted });
        }
        let record = self.folded.record(self.folded.find(code)?)?;
        Some(LinkState { url: record.url, deleted: record.status == Status::Deleted })
    }

    fn is_taken(&self, code: Code) -> bool {
        self.staged.links.contains_key(&code) || self.folded.find(code).is_some()
    }

    fn alive(&self, code: Code) -> Result<LinkState, LinkRefusal> {
        let seen = self.link(code).ok_or(LinkRefusal::Unknown(code))?;
        if seen.deleted { Err(LinkRefusal::Deleted(code)) } else { Ok(seen) }
    }
}

/// The event that records an outcome without a change of its own; only `Existing` needs one.
pub(super) fn remember(outcome: LinkOutcome) -> Option<Event> {
    match outcome {
        LinkOutcome::Existing(code) => {
            Some(Event::json(FOUND, &[&format!("{LINK_TAG}{code}")], "{}"))
        }
        LinkOutcome::Created(_)
        | LinkOutcome::Changed(_)
        | LinkOutcome::Deleted(_)
        | LinkOutcome::Clicked(_) => None,
    }
}

pub(super) fn outcome(event: &impl LogEvent) -> Option<LinkOutcome> {
    if event.event_type() == FOUND {
        let code = event.tags().find_map(|tag| tag.strip_prefix(LINK_TAG))?;
        return Code::parse(code.as_bytes()).map(LinkOutcome::Existing);
    }
    match Fact::of(event.event_type(), event.tags(), event.data())? {
        Fact::Created(code, _) => Some(LinkOutcome::Created(code)),
        Fact::Changed(code, _) => Some(LinkOutcome::Changed(code)),
        Fact::Deleted(code) => Some(LinkOutcome::Deleted(code)),
        Fact::Opened(_) | Fact::Clicked(..) => None,
    }
}

pub(super) fn decide(
    folded: &Folded,
    staged: &StagedLinks,
    context: &Context,
    command: &Command,
) -> Result<Decision<LinkOutcome>, LinkRefusal> {
    let ahead = ExpectedState { folded, staged };
    match command {
        Command::Create(create) => decide_create(&ahead, context, create),
        Command::Change(change) => decide_change(&ahead, change),
        Command::Click { code, data } => decide_click(&ahead, *code, data),
        Command::Delete { code } => {
            ahead.alive(*code)?;
            Ok(Decision {
                events: vec![Fact::Deleted(*code).to_event()],
                unless: vec![deleted(*code)],
                outcome: LinkOutcome::Deleted(*code),
            })
        }
    }
}

/// One more click, if the clicks that are folded or pending leave one.
fn decide_click(
    ahead: &ExpectedState<'_>,
    code: Code,
    data: &[u8],
) -> Result<Decision<LinkOutcome>, LinkRefusal> {
    ahead.alive(code)?;
    let folded = ahead.folded;
    let link = folded.find(code).ok_or(LinkRefusal::Unknown(code))?;
    let most = folded.record(link).and_then(|record| record.max_clicks);
    let pending = ahead.staged.clicks.get(&code).map_or(0, Vec::len) as u64;
    let clicks = folded.clicks(link).map_or(0, Clicks::total) + pending;
    if most.is_some_and(|most| clicks >= most.into()) {
        return Err(LinkRefusal::UsedUp(code));
    }
    let click = event(CLICKED, vec![format!("{CLICKED_TAG}{code}")], data.to_vec());
    Ok(Decision {
        events: vec![click],
        unless: vec![deleted(code)],
        outcome: LinkOutcome::Clicked(code),
    })
}

/// Concurrent changes are harmless, but nothing may follow a deletion.
fn deleted(code: Code) -> QueryItem {
    QueryItem::new(&[DELETED], &[&format!("{LINK_TAG}{code}")])
}

/// Refuses values that the fold would ignore.
fn check(
    url: Option<&str>,
    tags: &[String],
    expires_at_us: Option<u64>,
) -> Result<(), LinkRefusal> {
    if let Some(text) = url {
        url::check(text).map_err(LinkRefusal::Url)?;
    }
    if !tags_are_fine(tags) {
        return Err(LinkRefusal::Tags);
    }
    if !time_is_fine(expires_at_us) {
        return Err(LinkRefusal::TooLate);
    }
    Ok(())
}

fn decide_change(
    ahead: &ExpectedState<'_>,
    change: &Change,
) -> Result<Decision<LinkOutcome>, LinkRefusal> {
    let Change { code, url, enabled, expires_at_us, max_clicks, tags, sealed } = change;
    let link = ahead.alive(*code)?;
    if link.url.starts_with(SEALED) && url.is_none() && tags.is_some() {
        return Err(LinkRefusal::SealedTags(*code));
    }
    check(url.as_deref(), tags.as_deref().unwrap_or_default(), expires_at_us.flatten())?;
    let data = ChangedData {
        url: url.as_deref().map(|url| clear(url, sealed)),
        enabled: *enabled,
        expires_at_us: *expires_at_us,
        max_clicks: *max_clicks,
        tags: if sealed.is_some() { Some(Vec::new()) } else { tags.clone() },
    };
    let nothing = data == ChangedData::default();
    let changed = || with_subject(Fact::Changed(*code, data).to_event(), sealed);
    let events = if nothing { Vec::new() } else { vec![changed()] };
    let unless = if nothing { Vec::new() } else { vec![deleted(*code)] };
    Ok(Decision { events, unless, outcome: LinkOutcome::Changed(*code) })
}

/// What an event has of a URL in the clear.
fn clear<'a>(url: &'a str, sealed: &Option<SealedTarget>) -> Cow<'a, str> {
    Cow::Borrowed(if sealed.is_some() { SEALED } else { url })
}

/// Adds the tag of its data subject to an event with a sealed target.
fn with_subject(mut event: Event, sealed: &Option<SealedTarget>) -> Event {
    event.tags.extend(sealed.iter().map(|sealed| sealed.subject.clone()));
    event
}

fn decide_create(
    ahead: &ExpectedState<'_>,
    context: &Context,
    create: &Create,
) -> Result<Decision<LinkOutcome>, LinkRefusal> {
    check(Some(&create.url), &create.tags, create.expires_at_us)?;
    let mut unless = Vec::with_capacity(2);
    let mut events = Vec::with_capacity(2);
    let (code, number, chosen) = match create.naming {
        Naming::Alias(code) if (context.reserved)(&code.as_text()) => {
            return Err(LinkRefusal::Reserved(code));
        }
        Naming::Alias(code) if ahead.is_taken(code) => return Err(LinkRefusal::AliasTaken(code)),
        Naming::Alias(code) => (code, None, CodeOrigin::Alias),
        Naming::Automatic => {
            let fresh;
            let opened = match (ahead.folded.opened.get(), &ahead.staged.opened) {
                (Some(opened), _) | (None, Some((_, opened))) => opened,
                (None, None) => {
                    fresh = CodeOrder::new(context.key);
                    events.push(Fact::Opened(context.key).to_event());
                    unless.push(QueryItem::new(&[OPENED], &[OPENED_TAG]));
                    &fresh
                }
            };
            let (code, number) = next_code(ahead, context, opened)?;
            (code, Some(number), CodeOrigin::Automatic)
        }
        Naming::Deterministic => match deterministic(ahead, context, &create.url)? {
            Deterministic::Free(code) => (code, None, CodeOrigin::Deterministic),
            Deterministic::There(code) => {
                let outcome = LinkOutcome::Existing(code);
                return Ok(Decision { events, unless, outcome });
            }
        },
    };
    let data = CreatedData {
        url: clear(&create.url, &create.sealed),
        number,
        chosen,
        expires_at_us: create.expires_at_us,
        max_clicks: create.max_clicks,
        tags: if create.sealed.is_some() { Vec::new() } else { create.tags.clone() },
    };
    events.push(with_subject(Fact::Created(code, data).to_event(), &create.sealed));
    unless.push(QueryItem::new(&[CREATED], &[&format!("{LINK_TAG}{code}")]));
    Ok(Decision { events, unless, outcome: LinkOutcome::Created(code) })
}

/// The next free automatic code and its counter.
fn next_code(
    ahead: &ExpectedState<'_>,
    context: &Context,
    opened: &CodeOrder,
) -> Result<(Code, u64), LinkRefusal> {
    let next = ahead.folded.next.load(Ordering::Acquire).max(ahead.staged.next);
    for number in next.. {
        let code = opened.permutation.code(number).ok_or(LinkRefusal::Exhausted)?;
        if !(context.reserved)(&code.as_text()) && !ahead.is_taken(code) {
            return Ok((code, number));
        }
    }
    Err(LinkRefusal::Exhausted)
}

enum Deterministic {
    Free(Code),
    There(Code),
}

/// The URL's first code that already leads there or is free. A deleted link's code never becomes
/// free.
fn deterministic(
    ahead: &ExpectedState<'_>,
    context: &Context,
    url: &str,
) -> Result<Deterministic, LinkRefusal> {
    for code in digest::candidates(url).take(MOST_CANDIDATES) {
        match ahead.link(code) {
            None if (context.reserved)(&code.as_text()) => {}
            None => return Ok(Deterministic::Free(code)),
            Some(seen) if seen.url == url && !seen.deleted => {
                return Ok(Deterministic::There(code));
            }
            Some(_) => {}
        }
    }
    Err(LinkRefusal::CandidatesTaken)
}

impl StagedLinks {
    /// The latest pending decision about a link.
    fn last(&self, code: Code) -> Option<&Pending> {
        self.links.get(&code)?.last()
    }

    pub(super) fn stage(&mut self, decision: &Decision<LinkOutcome>, ticket: Ticket) {
        for event in &decision.events {
            let tags = event.tags.iter().map(String::as_str);
            match Fact::of(&event.event_type, tags, &event.data) {
                Some(Fact::Opened(key)) => self.opened = Some((ticket, CodeOrder::new(key))),
                Some(Fact::Created(code, created)) => {
                    let number = created.number.map_or(0, |number| number + 1);
                    self.next = self.next.max(number);
                    let url = created.url.into_owned();
                    self.put(code, Pending { ticket, url, deleted: false });
                }
                Some(Fact::Changed(code, ChangedData { url: Some(url), .. })) => {
                    let url = url.into_owned();
                    self.put(code, Pending { ticket, url, deleted: false });
                }
                Some(Fact::Deleted(code)) => {
                    self.put(code, Pending { ticket, url: String::new(), deleted: true });
                }
                Some(Fact::Clicked(code, _)) => {
                    self.of_ticket.entry(ticket).or_default().push(code);
                    self.clicks.entry(code).or_default().push(ticket);
                }
                // Nothing else that changes matters to a decision.
                Some(Fact::Changed(..)) | None => {}
            }
        }
    }

    fn put(&mut self, code: Code, pending: Pending) {
        self.of_ticket.entry(pending.ticket).or_default().push(code);
        self.links.entry(code).or_default().push(pending);
    }

    pub(super) fn settle(&mut self, ticket: Ticket) {
        for code in self.of_ticket.remove(&ticket).unwrap_or_default() {
            // Other pending decisions about the link stay, even earlier ones: this one may have
            // been discarded.
            if let Entry::Occupied(mut link) = self.links.entry(code) {
                link.get_mut().retain(|pending| pending.ticket != ticket);
                if link.get().is_empty() {
                    link.remove();
                }
            }
            if let Entry::Occupied(mut clicks) = self.clicks.entry(code) {
                clicks.get_mut().retain(|pending| *pending != ticket);
                if clicks.get().is_empty() {
                    clicks.remove();
                }
            }
        }
        if self.opened.as_ref().is_some_and(|(opened, _)| *opened == ticket) {
            self.opened = None;
        }
        if self.of_ticket.is_empty() {
            // Numbers of discarded decisions become free again.
            self.next = 0;
        }
    }
}
