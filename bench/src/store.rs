//! The two event stores behind one blocking connection each: append, head, read everything, read a
//! tag.

use crate::{
    flags::Outcome,
    grpc::GrpcConnection,
    http1::{HttpConnection, number_after},
    proto::{self, AppendRequest, ReadRequest},
    workload::write_json,
};
use prost::Message as _;
use wellspring_log::RecordView;

/// How a server is spoken to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    /// Wellspring: JSON over HTTP/1.1.
    Wellspring,
    /// UmaDB: Protocol Buffers over gRPC.
    Umadb,
}

impl Dialect {
    /// Its name in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Wellspring => "wellspring",
            Self::Umadb => "umadb",
        }
    }
}

impl std::str::FromStr for Dialect {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "wellspring" => Ok(Self::Wellspring),
            "umadb" => Ok(Self::Umadb),
            _ => Err(()),
        }
    }
}

/// How Wellspring sends events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EventForm {
    /// JSON, one event a line.
    Lines,
    /// As they are stored.
    Records,
}

impl EventForm {
    fn media_type(self) -> &'static str {
        match self {
            Self::Lines => "application/x-ndjson",
            Self::Records => "application/vnd.wellspring.records",
        }
    }
}

impl std::str::FromStr for EventForm {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "lines" => Ok(Self::Lines),
            "records" => Ok(Self::Records),
            _ => Err(()),
        }
    }
}

/// What a reader does with the events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Depth {
    /// Counts them: newlines for NDJSON, outer fields for Protocol Buffers.
    Count,
    /// Decodes each one into a struct.
    Decode,
}

/// What came back from a read.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Tally {
    /// Events.
    pub(crate) events: u64,
    /// Bytes of bodies or messages.
    pub(crate) bytes: u64,
}

/// One blocking connection to an event store.
pub(crate) enum Store {
    /// Over HTTP/1.1.
    Wellspring(HttpConnection),
    /// Over gRPC.
    Umadb(GrpcConnection),
}

/// An event as an application would take it from a line of NDJSON, borrowed where JSON allows.
#[derive(serde::Deserialize)]
#[allow(dead_code, reason = "decoding is what is measured")]
struct Line<'a> {
    position: u64,
    #[serde(borrow, rename = "type")]
    event_type: std::borrow::Cow<'a, str>,
    tags: Vec<String>,
    #[serde(borrow)]
    data: &'a serde_json::value::RawValue,
}

impl Store {
    /// Connects.
    pub(crate) fn open(dialect: Dialect, address: &str) -> Outcome<Self> {
        Ok(match dialect {
            Dialect::Wellspring => Self::Wellspring(HttpConnection::open(address)?),
            Dialect::Umadb => Self::Umadb(GrpcConnection::open(address)?),
        })
    }

    /// Appends; the position of the last event. A failed condition is an error: no measurement asks
    /// for one.
    pub(crate) fn append(
        &mut self,
        request: &AppendRequest,
        scratch: &mut Vec<u8>,
    ) -> Outcome<u64> {
        match self {
            Self::Wellspring(connection) => {
                scratch.clear();
                write_json(request, scratch);
                let mut answer = Vec::with_capacity(256);
                let status = connection.call("POST", "/v1/append", "", Some(scratch), |part| {
                    answer.extend_from_slice(part)
                })?;
                number_after(&answer, "last").filter(|_| status == 200).ok_or_else(|| {
                    format!("append answered {status}: {}", String::from_utf8_lossy(&answer)).into()
                })
            }
            Self::Umadb(connection) => {
                let mut position = None;
                connection.call("Append", request, |message| {
                    position = Some(proto::AppendResponse::decode(message)?.position);
                    Ok(())
                })?;
                position.ok_or_else(|| "UmaDB refused an append".into())
            }
        }
    }

    /// The position of the newest event; 0 for an empty store.
    pub(crate) fn head(&mut self) -> Outcome<u64> {
        match self {
            Self::Wellspring(connection) => {
                let mut answer = Vec::new();
                let status = connection
                    .call("GET", "/v1/head", "", None, |part| answer.extend_from_slice(part))?;
                number_after(&answer, "head")
                    .or_else(|| number_after(&answer, "position"))
                    .filter(|_| status == 200)
                    .ok_or_else(|| {
                        format!("head answered {status}: {}", String::from_utf8_lossy(&answer))
                            .into()
                    })
            }
            Self::Umadb(connection) => {
                let mut head = None;
                let answered = connection.call("Head", &AppendRequest::default(), |message| {
                    head = proto::HeadResponse::decode(message)?.position;
                    Ok(())
                })?;
                if answered == 0 { Err("UmaDB refused Head".into()) } else { Ok(head.unwrap_or(0)) }
            }
        }
    }

    /// Reads every event, or those with `tag`, in order.
    pub(crate) fn read(
        &mut self,
        tag: Option<&str>,
        depth: Depth,
        batch_size: Option<u32>,
        form: EventForm,
    ) -> Outcome<Tally> {
        let mut tally = Tally::default();
        match self {
            Self::Wellspring(connection) => {
                let path = match tag {
                    None => "/v1/events".to_owned(),
                    Some(tag) => format!("/v1/events?tag={}", tag.replace(':', "%3A")),
                };
                let mut broken = None;
                let mut carry = Vec::new();
                let status = connection.call("GET", &path, form.media_type(), None, |part| {
                    tally.bytes += part.len() as u64;
                    let read = match (form, depth) {
                        (EventForm::Lines, Depth::Count) => {
                            tally.events += memchr::memchr_iter(b'\n', part).count() as u64;
                            Ok(())
                        }
                        (EventForm::Lines, Depth::Decode) => {
                            decode_lines(part, &mut carry, &mut tally.events)
                        }
                        (EventForm::Records, _) => {
                            read_records(part, &mut carry, depth, &mut tally.events)
                        }
                    };
                    if let Err(error) = read {
                        broken.get_or_insert(error);
                    }
                })?;
                if broken.is_none() && !carry.is_empty() {
                    broken = Some("the answer ends within an event".into());
                }
                match broken {
                    Some(error) => return Err(error.into()),
                    None if status != 200 => return Err(format!("read answered {status}").into()),
                    None => {}
                }
            }
            Self::Umadb(connection) => {
                let query = tag.map(|tag| proto::Query {
                    items: vec![proto::QueryItem { types: vec![], tags: vec![tag.to_owned()] }],
                });
                let answered =
                    connection.call("Read", &ReadRequest { query, batch_size }, |message| {
                        tally.bytes += message.len() as u64;
                        tally.events += match depth {
                            Depth::Count => proto::count_events(message)?,
                            Depth::Decode => {
                                std::hint::black_box(proto::ReadResponse::decode(message)?)
                                    .events
                                    .len() as u64
                            }
                        };
                        Ok(())
                    })?;
                if answered == 0 {
                    return Err("UmaDB refused a read".into());
                }
            }
        }
        Ok(tally)
    }

    /// Bytes of the last request and its answer, framing included.
    pub(crate) fn last_sizes(&self) -> (usize, usize) {
        match self {
            Self::Wellspring(connection) => connection.last_sizes,
            Self::Umadb(connection) => connection.last_sizes,
        }
    }
}

/// Counts or decodes complete records; an incomplete last one is carried over to the next part. What
/// is decoded is verified, and owned as what `prost` decodes is.
fn read_records(part: &[u8], carry: &mut Vec<u8>, depth: Depth, events: &mut u64) -> Outcome<()> {
    let joined;
    let mut rest = part;
    if !carry.is_empty() {
        carry.extend_from_slice(part);
        joined = std::mem::take(carry);
        rest = &joined;
    }
    while let Some(length) = rest.get(..4) {
        let length = u32::from_le_bytes(length.try_into()?) as usize;
        let Some(record) = rest.get(..length) else { break };
        if length < 32 {
            return Err("a record is too short".into());
        }
        if depth == Depth::Decode {
            let view = RecordView::verify(record).map_err(|fault| fault.to_string())?;
            std::hint::black_box((
                view.event_type().to_owned(),
                view.tags().map(str::to_owned).collect::<Vec<_>>(),
                view.data().to_vec(),
                view.position(),
            ));
        }
        *events += 1;
        rest = &rest[length..];
    }
    carry.extend_from_slice(rest);
    Ok(())
}

/// Decodes complete lines; an incomplete last one is carried over to the next part.
fn decode_lines(part: &[u8], carry: &mut Vec<u8>, events: &mut u64) -> Outcome<()> {
    let mut rest = part;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let line = if carry.is_empty() {
            &rest[..end]
        } else {
            carry.extend_from_slice(&rest[..end]);
            &carry[..]
        };
        if !line.is_empty() {
            std::hint::black_box(serde_json::from_slice::<Line<'_>>(line)?);
            *events += 1;
        }
        carry.clear();
        rest = &rest[end + 1..];
    }
    carry.extend_from_slice(rest);
    Ok(())
}
