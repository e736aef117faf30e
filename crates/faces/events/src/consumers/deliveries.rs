//! Deliveries as JSON, with the content of their events.

use super::open::OpenConsumer;
use super::turn::DeliveryName;
use crate::disclosure::Disclosure;
use crate::event_json::push_event;
use std::sync::Arc;
use wellspring_consumers::Delivery;
use wellspring_host::http::work::{Progress, Task};
use wellspring_host::wire::json::{push_list, push_string, push_u64};
use wellspring_host::wire::problem::Problem;
use wellspring_log::{CompiledQuery, Events, ReadError, ReadOptions, RecordView, Snapshot, Work};
use wellspring_types::{Position, Query};

/// Positions up to this far ahead are read on to, and not looked up.
const NEAR: Position = 8;

/// Writes deliveries, as many as fit.
pub(super) struct DeliveryTask {
    consumer: Arc<OpenConsumer>,
    reader: PositionReader,
    deliveries: Vec<Delivery>,
    /// How many of them are written.
    pub(super) written: usize,
    pub(super) out: Vec<u8>,
    max_bytes: usize,
    disclosure: Disclosure,
}

impl DeliveryTask {
    /// Writes them behind `out`. The first one is written however large it is.
    pub(super) fn new(
        consumer: &Arc<OpenConsumer>,
        deliveries: Vec<Delivery>,
        out: Vec<u8>,
        max_bytes: usize,
        disclosure: Disclosure,
    ) -> DeliveryTask {
        let reader = PositionReader::new(consumer.log.snapshot());
        let consumer = Arc::clone(consumer);
        DeliveryTask { consumer, reader, deliveries, written: 0, out, max_bytes, disclosure }
    }

    fn write(&mut self, number: usize) -> Result<(), ReadError> {
        let (delivery, out) = (&self.deliveries[number], &mut self.out);
        if number > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"delivery\":");
        push_string(out, &DeliveryName(delivery.id).to_string());
        out.extend_from_slice(b",\"keys\":");
        push_list(out, &delivery.keys, |out, key| push_string(out, key));
        out.extend_from_slice(b",\"tries\":");
        push_u64(out, delivery.tries.into());
        for (at, &position) in delivery.positions.iter().enumerate() {
            let record = self.reader.at(position)?;
            if at == 0 {
                out.extend_from_slice(b",\"effect_key\":");
                push_string(out, &self.consumer.effect_key(delivery.id.generation, &record));
                out.extend_from_slice(b",\"events\":[");
            } else {
                out.push(b',');
            }
            push_event(out, &record, &self.disclosure);
        }
        out.extend_from_slice(b"]}");
        Ok(())
    }
}

impl Task for DeliveryTask {
    fn proceed(&mut self, work: Work) -> Result<Progress, Box<Problem>> {
        self.reader.work = work;
        while self.written < self.deliveries.len() {
            let before = self.out.len();
            match self.write(self.written) {
                Ok(()) if self.written == 0 || self.out.len() <= self.max_bytes => {
                    self.written += 1;
                }
                Ok(()) => {
                    self.out.truncate(before);
                    break;
                }
                Err(error) => {
                    self.out.truncate(before);
                    return match error {
                        ReadError::Stopped(_) => Ok(Progress::More),
                        error => Err(error.into()),
                    };
                }
            }
        }
        Ok(Progress::Done)
    }
}

/// Reads events at positions, most of which ascend.
struct PositionReader {
    snapshot: Snapshot,
    every: Arc<CompiledQuery>,
    /// With the position that was read last.
    events: Option<(Events, Position)>,
    work: Work,
}

impl PositionReader {
    fn new(snapshot: Snapshot) -> PositionReader {
        let every = CompiledQuery::shared(&Query::all());
        PositionReader { snapshot, every, events: None, work: Work::unbounded() }
    }

    fn at(&mut self, position: Position) -> Result<RecordView<'_>, ReadError> {
        let is_near = |(_, last): &(Events, Position)| *last < position && position <= last + NEAR;
        if !self.events.as_ref().is_some_and(is_near) {
            let options = ReadOptions { after: Some(position - 1), ..ReadOptions::default() };
            let events = self.snapshot.read_compiled(Arc::clone(&self.every), options);
            self.events = Some((events, position - 1));
        }
        let (events, last) = self.events.as_mut().expect("just made");
        events.bound(self.work.clone());
        while *last + 1 < position {
            *last += 1;
            events.next()?;
        }
        *last = position;
        let read = events.next();
        // A view of the record and the budget of its cursor exclude each other.
        self.work.step(1).map_err(ReadError::Stopped)?;
        read?.ok_or_else(|| ReadError::Io {
            doing: format!("reading position {position}"),
            error: "the log ends before it".into(),
        })
    }
}
