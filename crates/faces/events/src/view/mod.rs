//! Projections: small folds that a client requests together (`POST /v1/project`). One read answers
//! them all, and the answer includes the append condition that protects a decision based on them.
//!
//! **Reducers.** `count`; `sum`, `avg`, `min`, `max` of the number at a JSON Pointer; `first`,
//! `last` value at a pointer (empty pointer: the whole data), byte for byte as sent, without
//! surrounding white space; `distinct` values in order; `group` by the value at a pointer or by a
//! tag's key, each group with its own reducer.
//!
//! **Events passed over.** An event without a value at the path, with a value of the wrong type
//! there (for `sum`, `avg`, `min`, `max` anything but a number; for `group` an array or object), or
//! whose data is not JSON changes nothing; a strict projection ends with an error instead. `count`
//! ignores the data and counts every matching event. The answer says for each projection how many
//! events it has passed over, and the first.
//!
//! **Numbers.** Sums are exact decimals within 128 bits: 38 digits from the largest place to the
//! smallest, at most 64 of them after the point. From the first number that does not fit, the sum
//! continues in binary floating point, in the order of the events. An average is exact if its
//! decimal ends within 38 digits, otherwise the nearest floating-point number. `min`, `max`,
//! `distinct` and `group` compare numbers exactly at any length: `1`, `1.0` and `10e-1` are equal.
//!
//! **`init`** is the state if no event was folded (default: 0 for `count` and `sum`, otherwise
//! `null`); for `count` and `sum` a number is also the starting value. It applies to the outermost
//! reducer only.

mod bounds;
mod counted;
mod group_listing;
mod json;
mod number;
mod reducer;
mod request;
mod sort_key;
mod time_bucket;
mod value_path;

pub use bounds::{MAX_DISTINCT, MAX_GROUPS, MAX_STATE_BYTES};
pub use counted::{CountAnswer, CountRequest, Grouping, NeedsFold};
pub(crate) use request::read_moment;
pub use request::{MAX_GROUP_DEPTH, MAX_NAME_BYTES, MAX_PROJECTIONS};

use bounds::{Bounds, PassedOver};
use reducer::{Facts, State};
use request::Definition;
use wellspring_json::{Fault, PointerSet, push_list, push_string, push_u64, shown_name};
use wellspring_types::moment::TimeRange;
use wellspring_types::{Position, Query};

/// An event to fold, borrowed from the log's read.
#[derive(Debug, Clone, Copy)]
pub struct FoldEvent<'a> {
    /// Its position.
    pub position: Position,
    /// Its type.
    pub event_type: &'a str,
    /// Its tags.
    pub tags: &'a [&'a str],
    /// Its payload.
    pub data: &'a [u8],
    /// Whether the payload is JSON; if not, only `count` and tags apply to the event.
    pub is_json: bool,
    /// When it was recorded, µs since 1970 UTC. No reducer uses it yet.
    pub recorded_at_us: u64,
}

/// The projections of one request during the fold.
#[derive(Debug, Clone)]
pub struct Projections {
    running: Vec<Projection>,
    union: Query,
    /// The pointers of all reducers.
    pointers: PointerSet,
    after: Option<Position>,
    times: TimeRange,
    key: Option<String>,
    /// Bytes left for the states.
    memory: usize,
    failure: Option<Box<Fault>>,
}

#[derive(Debug, Clone)]
struct Projection {
    definition: Definition,
    state: State,
    /// Groups left.
    groups: usize,
    passed_over: PassedOver,
}

impl Projections {
    /// Parses the request's body.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn parse(body: &[u8]) -> Result<Projections, Box<Fault>> {
        let request = request::parse(body)?;
        let union = request::union(&request.definitions)?;
        let (mut definitions, mut pointers) = (request.definitions, PointerSet::default());
        definitions.iter_mut().for_each(|it| it.reducer.add_to(&mut pointers));
        let running = definitions.into_iter().map(|definition| Projection {
            state: definition.reducer.start(definition.init.as_deref()),
            passed_over: PassedOver::new(definition.strictness),
            definition,
            groups: MAX_GROUPS,
        });
        Ok(Projections {
            running: running.collect(),
            union,
            pointers,
            after: request.after,
            times: request.times,
            key: request.key,
            memory: MAX_STATE_BYTES,
            failure: None,
        })
    }

    /// The query to read: every event that any projection needs. It has at most as many items as a
    /// query may hold, all different; no items mean every event.
    #[must_use]
    pub fn union_query(&self) -> Query {
        self.union.clone()
    }

    /// Number of types and tags in all projections, including repetitions.
    #[must_use]
    pub fn term_count(&self) -> usize {
        self.running.iter().map(|projection| projection.definition.query.term_count()).sum()
    }

    /// Number of items in all queries: each event is compared with each item.
    #[must_use]
    pub fn item_count(&self) -> usize {
        self.running.iter().map(|projection| projection.definition.query.items.len()).sum()
    }

    /// Whether the data of events are looked into.
    #[must_use]
    pub fn reads_data(&self) -> bool {
        !self.pointers.is_empty()
    }

    /// Approximate memory of the queries, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let of_each = self.running.iter().map(|p| p.definition.query.memory_bytes());
        of_each.sum::<usize>() + self.union.memory_bytes()
    }

    /// Exclusive start of the read, as requested; `None`: from the beginning.
    #[must_use]
    pub fn after(&self) -> Option<Position> {
        self.after
    }

    /// The times of the events to fold.
    #[must_use]
    pub fn times(&self) -> TimeRange {
        self.times
    }

    /// The key of the append that the projections are for.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Folds the next event, by ascending position, into every projection whose query it matches.
    /// Ignores events at or before [`after`](Self::after).
    pub fn fold(&mut self, event: &FoldEvent<'_>) {
        if self.failure.is_some() || self.after.is_some_and(|after| event.position <= after) {
            return;
        }
        let facts = Facts::of(event, &self.pointers);
        for Projection { definition, state, groups, passed_over } in &mut self.running {
            let tags = event.tags.iter().copied();
            if definition.query.matching_item(event.event_type, tags).is_none() {
                continue;
            }
            let mut bounds = Bounds { memory: &mut self.memory, groups, passed_over };
            if let Err(overrun) = definition.reducer.fold(state, &facts, &mut bounds) {
                self.failure = Some(overrun.fault(&reduce_path(definition)));
                return;
            }
        }
    }

    /// The error, as soon as it is certain: the read can stop.
    #[must_use]
    pub fn failure(&self) -> Option<&Fault> {
        self.failure.as_deref()
    }

    /// The answer as JSON: the states in the order of the request, `position`, and the append
    /// condition that fails once another matching event is appended, unless only events until some
    /// time were wanted.
    ///
    /// # Errors
    /// A limit was exceeded during the fold, or a sum cannot be written. The answer is never
    /// partial.
    pub fn finish(self, position: Position) -> Result<Vec<u8>, Box<Fault>> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let mut out = b"{\"states\":{".to_vec();
        for (i, Projection { definition, state, .. }) in self.running.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            push_string(&mut out, &definition.name);
            out.push(b':');
            let written = definition.reducer.write(state, definition.init.as_deref(), &mut out);
            written.map_err(|overrun| overrun.fault(&reduce_path(definition)))?;
        }
        out.extend_from_slice(b"},\"position\":");
        push_u64(&mut out, position);
        // Of the past alone nothing can be decided: what came since may matter.
        if self.times.until_us.is_none() {
            out.extend_from_slice(b",\"appendCondition\":");
            push_condition(&mut out, &self.union, position);
        }
        self.push_passed_over(&mut out);
        out.push(b'}');
        Ok(out)
    }
}

impl Projections {
    /// Appends the events that each projection has passed over, if any has.
    fn push_passed_over(&self, out: &mut Vec<u8>) {
        let mut before = &b",\"passed_over\":{"[..];
        for Projection { definition, passed_over, .. } in &self.running {
            if passed_over.events > 0 {
                out.extend_from_slice(before);
                push_string(out, &definition.name);
                out.extend_from_slice(b":{\"events\":");
                push_u64(out, passed_over.events);
                out.extend_from_slice(b",\"first\":");
                push_u64(out, passed_over.first);
                out.push(b'}');
                before = b",";
            }
        }
        if before == b"," {
            out.push(b'}');
        }
    }
}

fn reduce_path(definition: &Definition) -> String {
    format!("projections.{}.reduce", shown_name(&definition.name))
}

/// Appends a condition without the lists that hold nothing.
fn push_condition(out: &mut Vec<u8>, query: &Query, after: Position) {
    out.extend_from_slice(b"{\"failIfEventsMatch\":{\"items\":");
    push_list(out, &query.items, |out, item| {
        let lists = [("types", &item.types), ("tags", &item.tags)];
        let given = lists.into_iter().filter(|(_, texts)| !texts.is_empty());
        out.push(b'{');
        for (i, (name, texts)) in given.enumerate() {
            if i > 0 {
                out.push(b',');
            }
            push_string(out, name);
            out.push(b':');
            push_list(out, texts, |out, text| push_string(out, text));
        }
        out.push(b'}');
    });
    out.extend_from_slice(b"},\"after\":");
    push_u64(out, after);
    out.push(b'}');
}
