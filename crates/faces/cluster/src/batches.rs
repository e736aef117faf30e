//! `GET /v1/cluster/batches/{log}`: what the copy of a log here has, for nodes whose copy lacks it.

use super::{ClusterFace, OCTETS};
use std::sync::Arc;
use wellspring_host::cluster::copies::{AFTER_PLACE, BATCH_BYTES, encode};
use wellspring_host::cluster::sealed_log::EntrySeal;
use wellspring_host::http::contract::{Header, Segment};
use wellspring_host::http::work::elsewhere;
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::names::SYSTEM_LOG;
use wellspring_host::wire::param::Values;
use wellspring_host::wire::problem::{self, Problem};
use wellspring_log::ReadError;
use wellspring_log::shared::{Place, PlacedEntry};

/// The log.
pub(super) static JOURNAL_LOG: Segment<String> = Segment {
    name: "log",
    what: "Name of the log in the journal: with a dot and its generation, unless that is 0.",
    values: Values::Text(None),
    read: |text| Ok(text.to_owned()),
};
/// The place.
pub(super) static AFTER: Header = Header {
    name: AFTER_PLACE,
    what: "Place in the journal after which the batches are wanted.",
    values: Values::Integer { least: 0, most: u64::MAX, default: Some(0) },
};

pub(super) async fn batches(face: Arc<ClusterFace>, request: Box<Request>) -> Answer {
    let cluster = Arc::clone(face.cluster()?);
    let journal_name = request.segment(&JOURNAL_LOG)?;
    let after = request
        .header(AFTER_PLACE)
        .map_or(Ok(0), str::parse)
        .map_err(|_| problem::BAD_REQUEST.because("a place is a number").field(AFTER_PLACE))?;
    let (name, generation) = match journal_name.rsplit_once('.') {
        Some((name, generation)) => (name, generation.parse().ok()),
        None => (&*journal_name, Some(0)),
    };
    let node = &face.host.node;
    let log = node.get(name).filter(|_| node.incarnation(name) == generation);
    let log = log.ok_or_else(|| problem::no_such_log(&journal_name))?;
    let is_system = name == SYSTEM_LOG;
    let found = elsewhere(move || -> Result<Vec<PlacedEntry>, ReadError> {
        let batches = log.accepted_after(Place(after), BATCH_BYTES)?;
        let seal = is_system.then(|| EntrySeal::new(&cluster.key, &journal_name));
        let seal = |(place, entry): PlacedEntry| match &seal {
            Some(seal) => Some((place, seal.seal(&entry)?)),
            None => Some((place, entry)),
        };
        // Without random bytes nothing can be sealed: none, and the other node asks again.
        Ok(batches.into_iter().map_while(seal).collect())
    });
    let found = found.await?.map_err(Box::<Problem>::from)?;
    Ok(Response::json(200, encode(&found)).of_type(OCTETS))
}
