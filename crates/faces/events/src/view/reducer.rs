//! Reducers and their states: how an event changes a state and how a state is written.

use super::FoldEvent;
use super::bounds::{Bounds, MAX_DISTINCT, Overrun, Unusable};
use super::group_listing::GroupListing;
use super::json::{self, Kind};
use super::number::{Number, Sum};
use super::sort_key::{NoKey, sort_key};
use super::time_bucket::TimeBuckets;
use super::value_path::ValuePath;
use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use wellspring_json::{PointerSet, push_string};
use wellspring_types::Position;

/// Memory of a group in addition to its key: a map entry with its share of the tree, and a small
/// state.
pub(super) const GROUP_OVERHEAD: usize = 160;
/// Memory of a distinct value in addition to its key and text.
const DISTINCT_OVERHEAD: usize = 96;

/// Turns events into a state.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reducer {
    Count,
    Sum(ValuePath),
    Average(ValuePath),
    Least(ValuePath),
    Greatest(ValuePath),
    First(ValuePath),
    Last(ValuePath),
    Distinct(ValuePath),
    /// The groups are an object by key, unless they are listed.
    Group {
        by: GroupBy,
        inner: Box<Reducer>,
        listing: Option<GroupListing>,
    },
}

/// The grouping criterion.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum GroupBy {
    /// The value at a pointer: a string as it is, a number in its canonical spelling, `true`,
    /// `false` or `null`.
    Data(ValuePath),
    /// The text after `key:` in each of the event's tags with that prefix. An event with several
    /// such tags belongs to several groups.
    Tag(String),
    /// When the event was recorded: the beginning of its minute, hour or day.
    Time(TimeBuckets),
}

/// The state folded so far.
#[derive(Debug, Clone)]
pub(super) enum State {
    /// Count, sum and average: the running sum and the number of events in it.
    Total {
        sum: Sum,
        taken: u64,
        /// The event with which the sum left the range of numbers; 0: `init` was beyond it.
        beyond: Option<Position>,
    },
    /// Least, greatest, first and last: the value as it was sent.
    Kept(Option<String>),
    /// Values as first sent, by sort key.
    Distinct(BTreeMap<Box<[u8]>, Box<str>>),
    /// States by group key.
    Groups(BTreeMap<Box<str>, State>),
}

/// An event as reducers see it.
pub(super) struct Facts<'a> {
    position: Position,
    tags: &'a [&'a str],
    data: &'a [u8],
    is_json: bool,
    recorded_at_us: u64,
    pointers: &'a PointerSet,
    /// What the pointers of the request point at, if the data is JSON: found once for all reducers,
    /// and only if one needs it.
    found: OnceCell<Option<Vec<Option<&'a str>>>>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(event: &FoldEvent<'a>, pointers: &'a PointerSet) -> Facts<'a> {
        let FoldEvent { position, tags, data, is_json, recorded_at_us, .. } = *event;
        let found = OnceCell::new();
        Facts { position, tags, data, is_json, recorded_at_us, pointers, found }
    }

    /// The value at a path; an event without one is passed over.
    fn find(&self, path: &ValuePath, bounds: &mut Bounds<'_>) -> Result<Option<&'a str>, Overrun> {
        let found = self.found.get_or_init(|| {
            let text = self.is_json.then(|| std::str::from_utf8(self.data).ok())??;
            json::whole(text).ok().map(|json| self.pointers.find(json))
        });
        let found = match found {
            None => Unusable::NotJson,
            Some(found) => match path.value_of(found) {
                Some(value) => return Ok(Some(value)),
                None => Unusable::Nothing,
            },
        };
        bounds.pass_over(self.position, path, found).map(|()| None)
    }

    /// The number at a path; an event with anything else is passed over.
    fn number(
        &self,
        path: &ValuePath,
        bounds: &mut Bounds<'_>,
    ) -> Result<Option<&'a str>, Overrun> {
        let Some(value) = self.find(path, bounds)? else { return Ok(None) };
        let found = match Kind::of(value) {
            Kind::Number => return Ok(Some(value)),
            Kind::Null => Unusable::Null,
            Kind::Boolean => Unusable::Boolean,
            Kind::Text => Unusable::Text,
            Kind::Array => Unusable::Array,
            Kind::Object => Unusable::Object,
        };
        bounds.pass_over(self.position, path, found).map(|()| None)
    }
}

impl Reducer {
    /// Adds its pointers to those of the request.
    pub(super) fn add_to(&mut self, set: &mut PointerSet) {
        match self {
            Reducer::Count => {}
            Reducer::Sum(path)
            | Reducer::Average(path)
            | Reducer::Least(path)
            | Reducer::Greatest(path)
            | Reducer::First(path)
            | Reducer::Last(path)
            | Reducer::Distinct(path) => path.add_to(set),
            Reducer::Group { by, inner, .. } => {
                if let GroupBy::Data(path) = by {
                    path.add_to(set);
                }
                inner.add_to(set);
            }
        }
    }

    /// The state before any event; a numeric `init` is the starting value of count and sum.
    pub(super) fn start(&self, init: Option<&str>) -> State {
        match self {
            Reducer::Count | Reducer::Sum(_) => {
                let mut sum = Sum::ZERO;
                if let Some(number) = init.filter(|init| Kind::of(init) == Kind::Number) {
                    sum.add(number);
                }
                let beyond = (!sum.is_finite()).then_some(0);
                State::Total { sum, taken: 0, beyond }
            }
            Reducer::Average(_) => State::Total { sum: Sum::ZERO, taken: 0, beyond: None },
            Reducer::Least(_) | Reducer::Greatest(_) | Reducer::First(_) | Reducer::Last(_) => {
                State::Kept(None)
            }
            Reducer::Distinct(_) => State::Distinct(BTreeMap::new()),
            Reducer::Group { .. } => State::Groups(BTreeMap::new()),
        }
    }

    /// Folds one event. An event without a usable value changes nothing and is counted, or is an
    /// error if the projection is strict.
    pub(super) fn fold(
        &self,
        state: &mut State,
        event: &Facts<'_>,
        bounds: &mut Bounds<'_>,
    ) -> Result<(), Overrun> {
        match (self, state) {
            (Reducer::Count, State::Total { sum, taken, .. }) => {
                *taken += u64::from(sum.add("1"));
            }
            (Reducer::Sum(at) | Reducer::Average(at), State::Total { sum, taken, beyond }) => {
                if let Some(number) = event.number(at, bounds)? {
                    *taken += u64::from(sum.add(number));
                    if beyond.is_none() && !sum.is_finite() {
                        *beyond = Some(event.position);
                    }
                }
            }
            (Reducer::Least(at), State::Kept(kept)) => {
                let number = event.number(at, bounds)?;
                return keep_extreme(kept, number, Ordering::Less, bounds);
            }
            (Reducer::Greatest(at), State::Kept(kept)) => {
                let number = event.number(at, bounds)?;
                return keep_extreme(kept, number, Ordering::Greater, bounds);
            }
            (Reducer::First(at), State::Kept(kept)) => {
                let value = event.find(at, bounds)?;
                if kept.is_none() {
                    return keep(kept, value, bounds);
                }
            }
            (Reducer::Last(at), State::Kept(kept)) => {
                let value = event.find(at, bounds)?;
                return keep(kept, value, bounds);
            }
            (Reducer::Distinct(at), State::Distinct(values)) => {
                return add_distinct(values, event, at, bounds);
            }
            (Reducer::Group { by, inner, .. }, State::Groups(groups)) => {
                return by.fold(inner, groups, event, bounds);
            }
            // No other pair occurs: a state comes from its own reducer.
            _ => {}
        }
        Ok(())
    }

    /// Writes the state as JSON; `init` if no event was folded.
    pub(super) fn write(
        &self,
        state: &State,
        init: Option<&str>,
        out: &mut Vec<u8>,
    ) -> Result<(), Overrun> {
        if let Some(init) = init.filter(|_| state.is_untouched()) {
            out.extend_from_slice(init.as_bytes());
            return Ok(());
        }
        match state {
            State::Total { taken: 0, .. } if matches!(self, Reducer::Average(_)) => {
                out.extend_from_slice(b"null");
            }
            State::Total { beyond: Some(position), .. } => return Err(Overrun::Range(*position)),
            State::Total { sum, taken, .. } => {
                let written = match self {
                    Reducer::Average(_) => sum.average_text(*taken),
                    _ => sum.text(),
                };
                out.extend_from_slice(written.as_bytes());
            }
            State::Kept(kept) => {
                out.extend_from_slice(kept.as_deref().unwrap_or("null").as_bytes())
            }
            State::Distinct(values) if values.is_empty() => out.extend_from_slice(b"null"),
            State::Distinct(values) => write_list(values, out),
            State::Groups(groups) if groups.is_empty() => out.extend_from_slice(b"null"),
            State::Groups(groups) => {
                let Reducer::Group { inner, listing, .. } = self else { return Ok(()) };
                return match listing {
                    Some(listing) => listing.write(inner, groups, out),
                    None => write_groups(inner, groups, out),
                };
            }
        }
        Ok(())
    }
}

impl State {
    /// Whether no event was folded.
    fn is_untouched(&self) -> bool {
        match self {
            State::Total { taken, .. } => *taken == 0,
            State::Kept(kept) => kept.is_none(),
            State::Distinct(values) => values.is_empty(),
            State::Groups(groups) => groups.is_empty(),
        }
    }
}

impl GroupBy {
    fn fold(
        &self,
        inner: &Reducer,
        groups: &mut BTreeMap<Box<str>, State>,
        event: &Facts<'_>,
        bounds: &mut Bounds<'_>,
    ) -> Result<(), Overrun> {
        let mut fold_into = |key: &str, bounds: &mut Bounds<'_>| {
            if let Some(state) = groups.get_mut(key) {
                return inner.fold(state, event, bounds);
            }
            bounds.charge_group(key.len() + GROUP_OVERHEAD)?;
            let state = groups.entry(key.into()).or_insert_with(|| inner.start(None));
            inner.fold(state, event, bounds)
        };
        match self {
            GroupBy::Data(at) => {
                let Some(value) = event.find(at, bounds)? else { return Ok(()) };
                let unusable = match Kind::of(value) {
                    Kind::Text => match json::string(value) {
                        Some(key) => return fold_into(&key, bounds),
                        None => Unusable::Unreadable,
                    },
                    Kind::Number => match Number::parse(value) {
                        Some(number) => return fold_into(&number.text(), bounds),
                        None => Unusable::Unreadable,
                    },
                    Kind::Null | Kind::Boolean => return fold_into(value, bounds),
                    Kind::Array => Unusable::Array,
                    Kind::Object => Unusable::Object,
                };
                bounds.pass_over(event.position, at, unusable)
            }
            GroupBy::Tag(wanted) => event
                .tags
                .iter()
                .filter_map(|tag| tag.split_once(':'))
                .filter(|(key, _)| key == wanted)
                .try_for_each(|(_, value)| fold_into(value, bounds)),
            GroupBy::Time(buckets) => fold_into(&buckets.beginning(event.recorded_at_us), bounds),
        }
    }
}

fn keep(
    kept: &mut Option<String>,
    value: Option<&str>,
    bounds: &mut Bounds<'_>,
) -> Result<(), Overrun> {
    let Some(value) = value else { return Ok(()) };
    let held = kept.as_ref().map_or(0, String::capacity);
    bounds.charge(value.len().saturating_sub(held))?;
    let kept = kept.get_or_insert_default();
    kept.clear();
    kept.reserve_exact(value.len());
    kept.push_str(value);
    Ok(())
}

/// Keeps `value` if it compares as `wanted` to the kept one; of equal values the earlier stays.
fn keep_extreme(
    kept: &mut Option<String>,
    value: Option<&str>,
    wanted: Ordering,
    bounds: &mut Bounds<'_>,
) -> Result<(), Overrun> {
    let better = match (value, kept.as_deref()) {
        (Some(value), Some(kept)) => Number::compare(value, kept) == Some(wanted),
        _ => true,
    };
    if better { keep(kept, value, bounds) } else { Ok(()) }
}

fn add_distinct(
    values: &mut BTreeMap<Box<[u8]>, Box<str>>,
    event: &Facts<'_>,
    at: &ValuePath,
    bounds: &mut Bounds<'_>,
) -> Result<(), Overrun> {
    let Some(value) = event.find(at, bounds)? else { return Ok(()) };
    let key = match sort_key(value) {
        Ok(key) => key.into_boxed_slice(),
        Err(NoKey::TooDeep) => return Err(Overrun::Depth),
        Err(NoKey::NotText) => {
            return bounds.pass_over(event.position, at, Unusable::Unreadable);
        }
    };
    if values.contains_key(&key) {
        return Ok(());
    }
    if values.len() == MAX_DISTINCT {
        return Err(Overrun::Distinct);
    }
    bounds.charge(key.len() + value.len() + DISTINCT_OVERHEAD)?;
    values.insert(key, value.into());
    Ok(())
}

fn write_list(values: &BTreeMap<Box<[u8]>, Box<str>>, out: &mut Vec<u8>) {
    for (i, value) in values.values().enumerate() {
        out.push(if i == 0 { b'[' } else { b',' });
        out.extend_from_slice(value.as_bytes());
    }
    out.push(b']');
}

fn write_groups(
    inner: &Reducer,
    groups: &BTreeMap<Box<str>, State>,
    out: &mut Vec<u8>,
) -> Result<(), Overrun> {
    for (i, (key, state)) in groups.iter().enumerate() {
        out.push(if i == 0 { b'{' } else { b',' });
        push_string(out, key);
        out.push(b':');
        inner.write(state, None, out)?;
    }
    out.push(b'}');
    Ok(())
}
