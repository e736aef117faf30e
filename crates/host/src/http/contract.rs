//! What a route takes and gives, declared once: its parameters, headers and bodies, its answers and
//! the problems that are its own. The router holds requests against it, handlers read through it,
//! tests hold answers against it, and the OpenAPI document and the table in `docs/api.md` are made
//! from it.

use super::fresh::Consistency;
use crate::wire::param::{AnyParam, IntegerOr, MAX_WAIT_MS, Param, Values, Words};
use crate::wire::params::{KnownParams, Params};
use crate::wire::problem::{Kind, Problem};

/// What a route takes and gives.
pub struct Contract {
    /// Its query.
    pub query: Query,
    /// The variable segments of its path that are not the log's name, in their order.
    pub segments: [Option<&'static dyn Variable>; 2],
    /// Its body, if it has one.
    pub takes: Option<BodyContract>,
    /// Its answers that are not problems.
    pub gives: &'static [AnswerContract],
    /// Whether `Accept` chooses among them.
    pub accept: Accept,
    /// Headers of the request that have a meaning here.
    pub headers: &'static [&'static Header],
    /// The problems that do not follow from the rest.
    pub problems: &'static [&'static [&'static Kind]],
    /// The words that its problems get besides those of its face.
    pub words: fn(Box<Problem>) -> Box<Problem>,
    /// Which node of several answers.
    pub answered: AnsweredBy,
}

/// Which node of several answers a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnsweredBy {
    /// Any node for what reads, by its method and what it needs; the leader of its log for what
    /// writes.
    ByMethod,
    /// The node that is asked.
    AnyNode,
    /// The leader of its log, or of `system` if it is about no log.
    Leader,
}

/// The query of a route.
#[derive(Clone, Copy)]
pub enum Query {
    /// These parameters and no others.
    Known(KnownParams),
    /// The same, and the route's fast path judges it with the rest of the target, so that both
    /// stacks say the same.
    OfFastPath(KnownParams),
    /// Whatever it is, it is passed over.
    Ignored,
}

/// Media types, each with the name of its schema; an empty one for anything.
pub type Media = &'static [(&'static str, &'static str)];

/// The body of a route.
pub struct BodyContract {
    /// What it may be.
    pub media: Media,
    /// Whether it has to be there.
    pub presence: Presence,
}

/// Whether a body has to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It has.
    Required,
    /// It may be left out.
    Optional,
}

/// An answer that is not a problem.
pub struct AnswerContract {
    /// Its status.
    pub status: u16,
    /// What it may be; nothing for no content.
    pub media: Media,
    /// Headers of this answer besides those of every answer.
    pub headers: &'static [&'static Header],
}

/// Whether `Accept` is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accept {
    /// It chooses among what there is, and nothing else is given.
    Obeyed,
    /// There is one answer, whatever is accepted.
    Ignored,
}

/// A header.
pub struct Header {
    /// Its name.
    pub name: &'static str,
    /// What it means, in a sentence.
    pub what: &'static str,
    /// Its values.
    pub values: Values,
}

/// A variable segment of a path, which is read as a `T`.
pub struct Segment<T: 'static> {
    /// Its name, as it stands in the path.
    pub name: &'static str,
    /// What it means, in a sentence.
    pub what: &'static str,
    /// Its values.
    pub values: Values,
    /// Reads it, or says what is wrong with it.
    pub read: fn(&str) -> Result<T, Box<Problem>>,
}

/// What is known of a segment without knowing its type.
pub trait Variable: Sync {
    /// Its name, as it stands in the path.
    fn name(&self) -> &'static str;
    /// What it means, in a sentence.
    fn what(&self) -> &'static str;
    /// Its values.
    fn values(&self) -> Values;
}

impl<T> Variable for Segment<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn what(&self) -> &'static str {
        self.what
    }

    fn values(&self) -> Values {
        self.values
    }
}

/// `Idempotency-Key`.
pub static IDEMPOTENCY_KEY: Header = Header {
    name: "Idempotency-Key",
    what: "A retry with the same key gets the first answer.",
    values: Values::Text(None),
};
/// `Wellspring-Min-Position`, of every route that can be asked to wait.
pub static MIN_POSITION: Header = Header {
    name: "Wellspring-Min-Position",
    what: "Wait until the log has reached this position.",
    values: Values::Integer { least: 0, most: u64::MAX, default: None },
};
/// `Last-Event-ID`.
pub static LAST_EVENT_ID: Header = Header {
    name: "Last-Event-ID",
    what: "Position after which a subscription resumes.",
    values: Values::Integer { least: 0, most: u64::MAX, default: None },
};
/// `Location` of what was made, or of where a link leads.
pub static LOCATION: Header = Header {
    name: "Location",
    what: "Location of the resource.",
    values: Values::Text(Some("uri-reference")),
};

/// `Wellspring-Position` of what is no log's and is kept in the log `system`.
pub static SYSTEM_POSITION: Header = Header {
    name: "Wellspring-Position",
    what: "A position of the log system at which the change is visible; send it to another \
           node as Wellspring-Min-System-Position.",
    values: Values::Integer { least: 0, most: u64::MAX, default: None },
};

/// How fresh the answer to a read has to be.
pub static CONSISTENCY: Param<Words<Consistency>> = consistency("local");
/// The same of routes that answer what they have unless they are asked for more.
pub static CONSISTENCY_CACHED: Param<Words<Consistency>> = consistency("cached");
/// How long a read waits to be as fresh as it has to be.
pub static WAIT_MS: Param<IntegerOr> = wait_ms(1_000);
/// What every read knows.
pub const FRESHNESS: &[&dyn AnyParam] = &[&CONSISTENCY, &WAIT_MS];
/// What every read knows that answers what it has unless it is asked for more.
pub const FRESHNESS_CACHED: &[&dyn AnyParam] = &[&CONSISTENCY_CACHED, &WAIT_MS];

const fn consistency(default: &'static str) -> Param<Words<Consistency>> {
    Param::words(
        "consistency",
        "What the answer must reflect: the current fold (cached), everything that this node \
         has acknowledged (local), or the same with the end of the log confirmed first \
         (linearizable).",
        &[
            ("cached", Consistency::Cached),
            ("local", Consistency::Local),
            ("linearizable", Consistency::Linearizable),
        ],
        default,
    )
}

/// `wait_ms` of reads that wait so long if nothing else is asked.
pub const fn wait_ms(default_ms: u64) -> Param<IntegerOr> {
    Param::integer(
        "wait_ms",
        "Longest wait for the requested consistency and Wellspring-Min-Position, in ms.",
        (0, MAX_WAIT_MS),
    )
    .or(default_ms)
}

/// Of a request whose route is not known yet.
pub static NO_ROUTE: Contract = Contract::new(&[]);

impl Contract {
    /// A route that gives these as accepted, and takes nothing.
    pub const fn new(gives: &'static [AnswerContract]) -> Contract {
        Contract {
            query: Query::Known(KnownParams { own: &[], shared: &[] }),
            segments: [None; 2],
            takes: None,
            gives,
            accept: Accept::Obeyed,
            headers: &[],
            problems: &[],
            words: |problem| problem,
            answered: AnsweredBy::ByMethod,
        }
    }

    /// With these parameters in the query.
    pub const fn query(mut self, own: &'static [&'static dyn AnyParam]) -> Contract {
        self.query = Query::Known(KnownParams { own, ..self.known() });
        self
    }

    /// With these parameters, which say how fresh the answer has to be.
    pub const fn fresh(mut self, shared: &'static [&'static dyn AnyParam]) -> Contract {
        self.query = Query::Known(KnownParams { shared, ..self.known() });
        self
    }

    /// With another treatment of the query.
    pub const fn query_is(mut self, query: Query) -> Contract {
        self.query = query;
        self
    }

    /// The parameters that are known.
    pub const fn known(&self) -> KnownParams {
        match self.query {
            Query::Known(known) | Query::OfFastPath(known) => known,
            Query::Ignored => KnownParams { own: &[], shared: &[] },
        }
    }

    /// With this variable segment in the path, behind the one given before, if any.
    pub const fn at(mut self, segment: &'static dyn Variable) -> Contract {
        match self.segments[0] {
            None => self.segments[0] = Some(segment),
            Some(_) => self.segments[1] = Some(segment),
        }
        self
    }

    /// With a body of these media types.
    pub const fn takes(mut self, media: Media) -> Contract {
        self.takes = Some(BodyContract { media, presence: Presence::Required });
        self
    }

    /// With a body of these media types, or none.
    pub const fn may_take(mut self, media: Media) -> Contract {
        self.takes = Some(BodyContract { media, presence: Presence::Optional });
        self
    }

    /// With another treatment of `Accept`.
    pub const fn accept(mut self, accept: Accept) -> Contract {
        self.accept = accept;
        self
    }

    /// With headers of the request that have a meaning.
    pub const fn headers(mut self, headers: &'static [&'static Header]) -> Contract {
        self.headers = headers;
        self
    }

    /// With problems of its own.
    pub const fn fails(mut self, problems: &'static [&'static [&'static Kind]]) -> Contract {
        self.problems = problems;
        self
    }

    /// With words of its own in its problems.
    pub const fn worded(mut self, words: fn(Box<Problem>) -> Box<Problem>) -> Contract {
        self.words = words;
        self
    }

    /// Answered by other nodes than its method tells.
    pub const fn answered(mut self, answered: AnsweredBy) -> Contract {
        self.answered = answered;
        self
    }

    /// Reads the query of a request.
    ///
    /// # Errors
    /// As [`Params::of`].
    pub(super) fn read(&self, query: Option<&str>) -> Result<Params, Box<Problem>> {
        match self.query {
            Query::Known(known) => Params::of(query, known),
            Query::OfFastPath(_) | Query::Ignored => Ok(Params::default()),
        }
    }

    /// Whether a header has a meaning here.
    pub fn reads(&self, header: &Header) -> bool {
        self.headers.iter().any(|known| known.name == header.name)
    }

    /// Every media type of the answers, the first of which is for those who do not care.
    pub fn offered(&self) -> Vec<&'static str> {
        let mut offered = Vec::with_capacity(4);
        for (media, _) in self.gives.iter().flat_map(|gives| gives.media) {
            if !offered.contains(media) {
                offered.push(*media);
            }
        }
        offered
    }
}
