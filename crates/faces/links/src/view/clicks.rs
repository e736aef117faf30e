//! The clicks of one link, in space that does not grow with their number.

use super::agent;
use super::event::{ClickedData, parse_visitor};
use super::referrer::MAX_REFERRER_BYTES;
use super::top::FrequentNames;
use super::visitors::Visitors;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wellspring_types::Position;

/// Number of hours whose clicks are kept; days are kept for ever.
pub(super) const HOURS_KEPT: usize = 92 * 24;
pub(super) const HOUR_US: u64 = 3_600_000_000;
pub(super) const DAY_US: u64 = 24 * HOUR_US;

/// The clicks of one link. The total is read without a lock; the lock on the rest is held for one
/// click or one copy, never for a fold or an answer.
#[derive(Debug, Default)]
pub(super) struct Clicks {
    total: AtomicU64,
    detail: Mutex<Detail>,
}

/// A day's clicks and, once it is over, its visitors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Day {
    /// Days since 1970 UTC.
    pub(super) day: u32,
    pub(super) visitors: u32,
    pub(super) clicks: u64,
}

/// The click data that is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Detail {
    /// Position of the last click counted.
    pub(super) applied: Position,
    pub(super) total: u64,
    pub(super) bots: u64,
    /// Clicks without a referrer.
    pub(super) direct: u64,
    /// Hours since 1970 UTC and their clicks; ascending, omits hours without clicks.
    pub(super) hours: VecDeque<(u32, u64)>,
    /// Ascending, omits days without clicks. The last day is still counting visitors.
    pub(super) days: Vec<Day>,
    pub(super) today: Visitors,
    /// Index in [`agent::FAMILIES`] and number of clicks.
    pub(super) agents: Vec<(u8, u64)>,
    pub(super) referrers: FrequentNames,
}

impl Clicks {
    /// Clicks restored from a snapshot.
    pub(super) fn of(detail: Detail) -> Clicks {
        Clicks { total: AtomicU64::new(detail.total), detail: Mutex::new(detail) }
    }

    /// The number of clicks.
    pub(super) fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// Counts a click once.
    pub(super) fn add(&self, position: Position, at_us: u64, click: &ClickedData<'_>) {
        let mut detail = self.lock();
        if position > detail.applied {
            detail.add(position, at_us, click);
            self.total.store(detail.total, Relaxed);
        }
    }

    /// A copy of the click data.
    pub(super) fn detail(&self) -> Detail {
        self.lock().clone()
    }

    /// Visitors and bots.
    pub(super) fn visits(&self) -> (u64, u64) {
        let (before, today, bots) = {
            let detail = self.lock();
            (detail.visitors_before_today(), detail.today.clone(), detail.bots)
        };
        (before + today.count(), bots)
    }

    fn lock(&self) -> MutexGuard<'_, Detail> {
        self.detail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Detail {
    /// No clicks yet; clicks up to `applied` do not count.
    pub(super) fn after(applied: Position) -> Detail {
        Detail { applied, ..Detail::default() }
    }

    fn visitors_before_today(&self) -> u64 {
        self.days
            .split_last()
            .map_or(0, |(_, days)| days.iter().map(|d| u64::from(d.visitors)).sum())
    }

    /// The number of visitors, each counted once a day.
    pub(super) fn visitors(&self) -> u64 {
        self.visitors_before_today() + self.today.count()
    }

    fn add(&mut self, position: Position, at_us: u64, click: &ClickedData<'_>) {
        self.applied = position;
        self.total += 1;
        self.add_hour((at_us / HOUR_US) as u32);
        self.add_day((at_us / DAY_US) as u32);
        if click.bot {
            self.bots += 1;
        } else if let Some(visitor) = parse_visitor(&click.visitor) {
            self.today.add(visitor);
        }
        debug_assert!(self.bots <= self.total);
        self.add_agent(&click.agent);
        match click.referrer.as_deref().filter(|host| host.len() <= MAX_REFERRER_BYTES) {
            Some(host) => self.referrers.add(host),
            None => self.direct += 1,
        }
    }

    fn add_hour(&mut self, hour: u32) {
        match self.hours.back_mut() {
            Some((last, clicks)) if *last == hour => *clicks += 1,
            _ => {
                if self.hours.len() == HOURS_KEPT {
                    self.hours.pop_front();
                }
                self.hours.push_back((hour, 1));
            }
        }
    }

    fn add_day(&mut self, day: u32) {
        if let Some(last) = self.days.last_mut() {
            if last.day == day {
                last.clicks += 1;
                return;
            }
            last.visitors = u32::try_from(self.today.count()).unwrap_or(u32::MAX);
        }
        self.today = Visitors::default();
        self.days.push(Day { day, visitors: 0, clicks: 1 });
    }

    fn add_agent(&mut self, name: &str) {
        // Nearly always one of the few recent agents, so the scan is short.
        let known =
            |&(family, _): &(u8, u64)| agent::FAMILIES.get(usize::from(family)) == Some(&name);
        if let Some(at) = self.agents.iter().position(known) {
            self.agents[at].1 += 1;
            return;
        }
        let family = agent::index_of(name).or_else(|| agent::index_of("Other")).unwrap_or(0);
        match self.agents.iter_mut().find(|(known, _)| *known == family) {
            Some((_, clicks)) => *clicks += 1,
            None => self.agents.push((family, 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn click(visitor: u64, referrer: Option<&'static str>, bot: bool) -> ClickedData<'static> {
        ClickedData {
            visitor: format!("{visitor:016x}").into(),
            agent: "Firefox".into(),
            referrer: referrer.map(Into::into),
            bot,
        }
    }

    #[test]
    fn a_visitor_counts_once_a_day_and_a_bot_never() {
        let clicks = Clicks::default();
        for (position, day, visitor, bot) in [
            (1, 0, 7, false),
            (2, 0, 7, false),
            (3, 0, 8, true),
            (4, 1, 7, false),
            (5, 1, 9, false),
        ] {
            clicks.add(position, day * DAY_US + 5, &click(visitor, Some("a.example"), bot));
        }
        // Applying it again changes nothing.
        clicks.add(3, 5, &click(3, None, false));
        assert_eq!((clicks.total(), clicks.visits()), (5, (3, 1)));
        let detail = clicks.detail();
        assert_eq!(detail.days.iter().map(|d| d.clicks).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(detail.days[0].visitors, 1);
        assert_eq!(detail.hours, [(0, 3), (24, 2)]);
        assert_eq!((detail.direct, detail.referrers.entries()[0].count), (0, 5));
    }

    #[test]
    fn what_is_kept_is_bounded_but_for_days() {
        let clicks = Clicks::default();
        let hours = HOURS_KEPT as u64 + 500;
        for hour in 0..hours {
            clicks.add(hour + 1, hour * HOUR_US, &click(hour, None, false));
        }
        let detail = clicks.detail();
        assert_eq!(detail.hours.len(), HOURS_KEPT);
        assert_eq!(detail.days.iter().map(|d| d.clicks).sum::<u64>(), hours);
    }
}
