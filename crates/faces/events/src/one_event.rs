//! Reading one event, by its position or its id.

use super::disclosure::Disclosure;
use super::event_json::push_event;
use super::params::{POSITION, UUID};
use super::read::fresh_snapshot;
use std::sync::Arc;
use wellspring_host::http::work::{Cost, Job, Progress, Task};
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::wire::problem::{self, Problem};
use wellspring_log::{ReadError, RecordView, Snapshot, Work};
use wellspring_types::{EventId, Position};

/// `GET /v1/events/{position}`.
pub(crate) async fn get_event(host: Arc<Host>, request: Box<Request>) -> Answer {
    let position = request.segment(&POSITION)?;
    one_event(&host, &request, Name::Position(position)).await
}

/// `GET /v1/events/by-id/{uuid}`.
pub(crate) async fn get_event_by_id(host: Arc<Host>, request: Box<Request>) -> Answer {
    let id = request.segment(&UUID)?;
    one_event(&host, &request, Name::Id(id)).await
}

/// The name of one event.
enum Name {
    Position(Position),
    Id(EventId),
}

/// A search for one event.
struct Search {
    snapshot: Snapshot,
    name: Name,
    disclosure: Disclosure,
    /// Writes the event once it is found.
    found: Option<Vec<u8>>,
}

impl Task for Search {
    /// Starts from the beginning each time: it takes few steps, unless an index must be rebuilt.
    fn proceed(&mut self, mut work: Work) -> Result<Progress, Box<Problem>> {
        let snapshot = &self.snapshot;
        let position = match self.name {
            Name::Position(position) => Ok(Some(position)),
            Name::Id(id) => snapshot.find_id_within(id, &mut work),
        };
        let mut out = Vec::new();
        // No event has position 0.
        let found = position.and_then(|position| {
            let write = |event: &RecordView<'_>| push_event(&mut out, event, &self.disclosure);
            snapshot.at_within(position.unwrap_or(0), work, write)
        });
        match found {
            Ok(found) => {
                self.found = found.map(|()| out);
                Ok(Progress::Done)
            }
            Err(ReadError::Stopped(_)) => Ok(Progress::More),
            Err(error) => Err(error.into()),
        }
    }
}

async fn one_event(host: &Host, request: &Request, name: Name) -> Answer {
    let mut job = Job::begin(host, &request.payer)?;
    let snapshot = fresh_snapshot(request).await?;
    let head = snapshot.head();
    let disclosure = Disclosure::of(host, request);
    let search = Search { snapshot, name, disclosure, found: None };
    let search = job.run(Cost::Cheap, search).await?;
    match search.found {
        Some(event) => Ok(Response::json(200, event).at(head)),
        None => {
            let name = match search.name {
                Name::Position(position) => format!("position {position}"),
                Name::Id(id) => format!("id {id}"),
            };
            let detail = format!("there is no event with {name}; the head is {head}");
            Err(problem::NOT_FOUND.because(detail))
        }
    }
}
