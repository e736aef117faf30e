//! The entries, the operations in flight, and what each node may see.

use super::trimmed::Trimmed;
use super::{Connection, Faults, Landing, Settings, Stage, UnderWay, UnderWayId};
use crate::options::{Clock, SystemClock};
use crate::shared::{
    Arrival, AskId, EngineLeader, LogStart, OfferId, OfferOutcome, Place, PlacedEntry,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use wellspring_types::random::SplitMix64;

#[derive(Debug, Clone, Copy)]
pub(super) enum Mode {
    Immediate,
    Faulty(Faults),
    ByHand,
}

/// Whether a node gets the true outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Truth {
    Told,
    Withheld,
}

pub(super) struct OfNode {
    pub(super) disconnected: bool,
    pub(super) elected: EngineLeader,
    /// How far it sees, by hand.
    pub(super) sees: Place,
}

#[derive(Clone)]
struct PendingOffer {
    id: UnderWayId,
    node: u64,
    /// The node and offer to report to; `None` for a zombie.
    tell: Option<(u64, OfferId)>,
    after: Place,
    entry: Arc<[u8]>,
    outcome: Option<OfferOutcome>,
    due_us: u64,
}

struct Question {
    id: UnderWayId,
    node: u64,
    tell: (u64, AskId),
    end_then: Place,
    due_us: u64,
    answered: Truth,
}

pub(super) struct World {
    pub(super) settings: Settings,
    pub(super) mode: Mode,
    /// The first entry has the place `dropped + 1`.
    entries: Vec<Arc<[u8]>>,
    dropped: u64,
    pub(super) trimmed: Trimmed,
    pub(super) connections: BTreeMap<u64, Connection>,
    nodes: BTreeMap<u64, OfNode>,
    offered: Vec<PendingOffer>,
    asked: Vec<Question>,
    last_id: u64,
    random: SplitMix64,
}

impl World {
    pub(super) fn new(mode: Mode, seed: u64) -> World {
        World {
            settings: Settings::default(),
            mode,
            entries: Vec::new(),
            dropped: 0,
            trimmed: Trimmed::default(),
            connections: BTreeMap::new(),
            nodes: BTreeMap::new(),
            offered: Vec::new(),
            asked: Vec::new(),
            last_id: 0,
            random: SplitMix64::new(seed),
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random.below(n)
    }

    fn chance(&mut self, permille: u32) -> bool {
        permille > 0 && self.below(1000) < u64::from(permille)
    }

    pub(super) fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(super) fn of_node(&mut self, node: u64) -> &mut OfNode {
        let new =
            || OfNode { disconnected: false, elected: EngineLeader::NotThisNode, sees: Place(0) };
        self.nodes.entry(node).or_insert_with(new)
    }

    pub(super) fn end(&self) -> Place {
        Place(self.dropped + self.entries.len() as u64)
    }

    /// Where the entries begin, if not all after this place are there.
    pub(super) fn gap_after(&self, after: Place) -> Option<LogStart> {
        let place = Place(self.dropped);
        let start = self.trimmed.start.clone().filter(|start| start.place == place);
        (after < place).then(|| start.unwrap_or(LogStart { place, state: None }))
    }

    /// The batches after a place that took effect, as another node's copy has them.
    pub(super) fn accepted_after(&self, after: Place) -> Vec<PlacedEntry> {
        let mut accepted = self.trimmed.accepted_with(self.entries_after(Place(self.dropped)));
        accepted.retain(|(place, _)| *place > after);
        accepted
    }

    pub(super) fn durable(&mut self, node: u64, upto: Place, state: Arc<[u8]>) {
        // A process that was killed is disconnected before it is destroyed.
        if !self.of_node(node).disconnected {
            self.trimmed.durable.insert(node, (upto, state));
        }
    }

    pub(super) fn trim(&mut self, nodes: &[u64]) -> Place {
        let kept = self.entries_after(Place(self.dropped));
        if let Some(place) = self.trimmed.trim(nodes, kept) {
            self.drop_up_to(place);
        }
        Place(self.dropped)
    }

    pub(super) fn entry_after(&self, place: Place) -> Option<Arc<[u8]>> {
        let at = place.0.checked_sub(self.dropped)?;
        self.entries.get(at as usize).cloned()
    }

    pub(super) fn entries_after(&self, place: Place) -> Vec<(Place, Arc<[u8]>)> {
        let from = place.0.saturating_sub(self.dropped) as usize;
        let place = |(at, entry): (usize, &Arc<[u8]>)| {
            (Place(self.dropped + at as u64 + 1), Arc::clone(entry))
        };
        self.entries.iter().enumerate().skip(from).map(place).collect()
    }

    pub(super) fn stand(&mut self, entry: Arc<[u8]>) -> Place {
        self.entries.push(entry);
        self.end()
    }

    pub(super) fn drop_up_to(&mut self, place: Place) {
        let count = place.min(self.end()).0.saturating_sub(self.dropped);
        self.entries.drain(..count as usize);
        self.dropped += count;
    }

    pub(super) fn forget_after(&mut self, place: Place) {
        self.entries.truncate(place.0.saturating_sub(self.dropped) as usize);
        let end = self.end();
        self.nodes.values_mut().for_each(|node| node.sees = node.sees.min(end));
    }

    fn tell(&mut self, connection: u64, arrival: Arrival) {
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.told.push_back(arrival);
        }
    }

    /// The result of landing now.
    fn try_to_land(&mut self, after: Place, entry: Arc<[u8]>) -> OfferOutcome {
        if self.settings.compares && after != self.end() {
            OfferOutcome::Refused
        } else {
            OfferOutcome::Placed(self.stand(entry))
        }
    }

    /// Starts an offer of a connection.
    pub(super) fn offer(&mut self, connection: u64, id: OfferId, after: Place, entry: Arc<[u8]>) {
        let Some(node) = self.connections.get(&connection).map(|connection| connection.node) else {
            return;
        };
        if matches!(self.mode, Mode::Immediate) && !self.of_node(node).disconnected {
            let outcome = self.try_to_land(after, entry);
            return self.tell(connection, Arrival::Offer { id, outcome });
        }
        let tell = Some((connection, id));
        let name = UnderWayId(self.new_id());
        let mut offered =
            PendingOffer { id: name, node, tell, after, entry, outcome: None, due_us: 0 };
        if let Mode::Faulty(faults) = self.mode {
            if self.chance(faults.duplicate_permille) {
                let id = UnderWayId(self.new_id());
                let due_us = self.draw_due(faults.delay_us, 3);
                self.offered.push(PendingOffer { id, tell: None, due_us, ..offered.clone() });
            }
            if self.chance(faults.lose_permille) {
                if self.chance(500) {
                    let outcome = OfferOutcome::Unknown;
                    self.tell(connection, Arrival::Offer { id, outcome });
                }
                return;
            }
            let late = self.chance(faults.reorder_permille);
            offered.due_us = self.draw_due(faults.delay_us, if late { 4 } else { 1 });
            if !late {
                // Ordered after this connection's earlier offers, unless it is delayed.
                let connection = self.connections.get_mut(&connection).expect("found above");
                connection.in_order_us = connection.in_order_us.max(offered.due_us);
                offered.due_us = connection.in_order_us;
            }
        }
        self.offered.push(offered);
    }

    /// Starts a question of a connection.
    pub(super) fn ask(&mut self, connection: u64, id: AskId) {
        let Some(node) = self.connections.get(&connection).map(|connection| connection.node) else {
            return;
        };
        let end = self.end();
        if matches!(self.mode, Mode::Immediate) && !self.of_node(node).disconnected {
            return self.tell(connection, Arrival::End { id, end: Some(end) });
        }
        let (mut due_us, mut answered) = (0, Truth::Told);
        if let Mode::Faulty(faults) = self.mode {
            due_us = self.draw_due(faults.delay_us, 1);
            if self.chance(faults.lose_permille) {
                answered = Truth::Withheld;
            }
        }
        let name = UnderWayId(self.new_id());
        let tell = (connection, id);
        self.asked.push(Question { id: name, node, tell, end_then: end, due_us, answered });
    }

    fn draw_due(&mut self, delay_us: u64, times: u64) -> u64 {
        SystemClock.monotonic_us() + self.below(delay_us * times + 1)
    }

    /// The wakers of connections whose last call returned nothing.
    pub(super) fn take_wakers(&mut self) -> Vec<Waker> {
        self.connections.values_mut().filter_map(|connection| connection.waker.take()).collect()
    }

    /// Lands and answers what is due; returns whether anything was. By hand nothing is ever due.
    pub(super) fn settle_due(&mut self) -> bool {
        let nothing = self.offered.is_empty() && self.asked.is_empty();
        if nothing || matches!(self.mode, Mode::ByHand) {
            return false;
        }
        let now_us = SystemClock.monotonic_us();
        let nodes = &self.nodes;
        let connected = |node| nodes.get(&node).is_none_or(|of_node| !of_node.disconnected);
        let due = |node, due_us| due_us <= now_us && connected(node);
        let mut landing: Vec<(u64, UnderWayId)> = (self.offered.iter())
            .filter(|offered| due(offered.node, offered.due_us))
            .map(|offered| (offered.due_us, offered.id))
            .collect();
        landing.sort_unstable();
        let answering: Vec<(UnderWayId, Truth)> = (self.asked.iter())
            .filter(|asked| due(asked.node, asked.due_us))
            .map(|asked| (asked.id, asked.answered))
            .collect();
        let any = !landing.is_empty() || !answering.is_empty();
        for (_, id) in landing {
            self.land(id);
            self.report(id, Truth::Told);
        }
        answering.into_iter().for_each(|(id, truth)| self.answer(id, truth));
        any
    }

    pub(super) fn under_way(&self) -> Vec<UnderWay> {
        let offers = self.offered.iter().map(|offered| UnderWay {
            id: offered.id,
            node: offered.node,
            stage: match (&offered.outcome, offered.tell) {
                (Some(_), _) => Stage::Settled,
                (None, Some((tell, _))) if self.connections.contains_key(&tell) => Stage::Offered,
                (None, _) => Stage::Zombie,
            },
        });
        let asked = self.asked.iter();
        let asks =
            asked.map(|asked| UnderWay { id: asked.id, node: asked.node, stage: Stage::Asked });
        let mut all: Vec<UnderWay> = offers.chain(asks).collect();
        all.sort_unstable_by_key(|under_way| under_way.id);
        all
    }

    pub(super) fn under_way_len(&self) -> usize {
        self.offered.len() + self.asked.len()
    }

    fn offered_at(&self, id: UnderWayId) -> Option<usize> {
        self.offered.iter().position(|offered| offered.id == id)
    }

    pub(super) fn land(&mut self, id: UnderWayId) -> Landing {
        let Some(at) = self.offered_at(id) else { return Landing::NothingToLand };
        if self.offered[at].outcome.is_some() {
            return Landing::NothingToLand;
        }
        let outcome = self.try_to_land(self.offered[at].after, Arc::clone(&self.offered[at].entry));
        self.offered[at].outcome = Some(outcome);
        if self.offered[at].tell.is_none() {
            self.offered.remove(at);
        }
        match outcome {
            OfferOutcome::Placed(place) => Landing::Stands(place),
            OfferOutcome::Refused | OfferOutcome::Unknown => Landing::Refused,
        }
    }

    pub(super) fn duplicate(&mut self, id: UnderWayId) -> Option<UnderWayId> {
        let at = self.offered_at(id)?;
        let name = UnderWayId(self.new_id());
        let again =
            PendingOffer { id: name, tell: None, outcome: None, ..self.offered[at].clone() };
        self.offered.push(again);
        Some(name)
    }

    pub(super) fn report(&mut self, id: UnderWayId, truth: Truth) {
        let Some(at) = self.offered_at(id) else { return };
        let outcome = self.offered[at].outcome;
        let tell = self.offered[at].tell.take();
        if outcome.is_some() {
            self.offered.remove(at);
        }
        if let Some((connection, id)) = tell {
            let told = outcome.filter(|_| truth == Truth::Told).unwrap_or(OfferOutcome::Unknown);
            self.tell(connection, Arrival::Offer { id, outcome: told });
        }
    }

    pub(super) fn lose(&mut self, id: UnderWayId) {
        self.offered.retain(|offered| offered.id != id);
        self.asked.retain(|asked| asked.id != id);
    }

    pub(super) fn answer(&mut self, id: UnderWayId, truth: Truth) {
        let Some(at) = self.asked.iter().position(|asked| asked.id == id) else { return };
        let asked = self.asked.remove(at);
        let now = self.end().0.max(asked.end_then.0);
        let end = match (self.mode, truth) {
            (_, Truth::Withheld) => None,
            (Mode::ByHand, Truth::Told) => {
                let more = self.below(now - asked.end_then.0 + 1);
                Some(Place(asked.end_then.0 + more))
            }
            (Mode::Immediate | Mode::Faulty(_), Truth::Told) => Some(Place(now)),
        };
        let (connection, id) = asked.tell;
        self.tell(connection, Arrival::End { id, end });
    }

    /// How far a node may see.
    pub(super) fn sight(&mut self, node: u64) -> Place {
        match self.mode {
            Mode::ByHand => self.of_node(node).sees,
            Mode::Immediate | Mode::Faulty(_) => self.end(),
        }
    }

    pub(super) fn waiting_for(&mut self, node: u64) -> u64 {
        let sight = self.sight(node);
        let of = self.connections.values().filter(|connection| connection.node == node);
        of.map(|connection| {
            let unread = connection.read.map_or(0, |read| sight.0.saturating_sub(read.0));
            unread + connection.told.len() as u64
        })
        .sum()
    }
}
