//! The contract of a route, declared once: its parameters, headers and bodies, its answers and its
//! own problems. The router enforces it on requests, handlers read through it, tests check answers
//! against it, and the OpenAPI document and the table in `docs/api.md` are made from it.

use super::required_freshness::Consistency;
use crate::wire::effects::Repeat;
use crate::wire::param::{AnyParam, IntegerOr, MAX_WAIT_MS, Param, Values, Words};
use crate::wire::params::{KnownParams, Params};
use crate::wire::problem::{Kind, Problem};

/// The contract of a route.
pub struct Contract {
    /// Its query.
    pub query: Query,
    /// The variable path segments other than the log's name, in order.
    pub segments: [Option<&'static dyn Variable>; 2],
    /// Its body, if it has one.
    pub takes: Option<BodyContract>,
    /// Its answers that are not problems.
    pub gives: &'static [AnswerContract],
    /// Whether `Accept` selects among them.
    pub accept: Accept,
    /// Request headers that matter here.
    pub headers: &'static [&'static Header],
    /// Problems that do not follow from the rest.
    pub problems: &'static [&'static [&'static Kind]],
    /// How its problems are rendered, if not as the face does.
    pub words: fn(Box<Problem>) -> Box<Problem>,
    /// Which node of a cluster answers.
    pub answered: AnsweredBy,
    /// Whether a request without a key may be sent again after it may have taken effect.
    pub repeat: Repeat,
    /// What it changes.
    pub changes: Changes,
    /// Whether its answers to JSON are short and in one piece, so that the lean loop has them.
    pub is_short: bool,
}

/// What a route changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// Derived from its method: `GET` changes nothing.
    ByMethod,
    /// Nothing, whatever its method.
    Nothing,
}

/// Which node of a cluster answers a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnsweredBy {
    /// Derived from its method and needs: any node for reads; the leader of its log for writes.
    ByMethod,
    /// The receiving node.
    AnyNode,
    /// The leader of its log, or of `system` if it concerns no log.
    Leader,
    /// The leader of `system`, which lists the logs.
    LeaderOfSystem,
}

/// The query of a route.
#[derive(Clone, Copy)]
pub enum Query {
    /// Only these parameters.
    Known(KnownParams),
    /// The same, parsed by the route's fast path with the rest of the target, so that both stacks
    /// agree.
    OfFastPath(KnownParams),
    /// Ignored.
    Ignored,
}

/// Media types, each with the name of its schema; an empty name for anything.
pub type Media = &'static [(&'static str, &'static str)];

/// The body of a route.
pub struct BodyContract {
    /// Its media types.
    pub media: Media,
    /// Whether it is required.
    pub presence: Presence,
}

/// Whether a body is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Required.
    Required,
    /// Optional.
    Optional,
}

/// A successful answer.
pub struct AnswerContract {
    /// Its status.
    pub status: u16,
    /// Its media types; none for no content.
    pub media: Media,
    /// Headers of this answer, apart from those of every answer.
    pub headers: &'static [&'static Header],
}

/// Whether `Accept` is obeyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accept {
    /// It selects among the representations, and nothing else is sent.
    Obeyed,
    /// There is one answer, whatever it says.
    Ignored,
}

/// A header.
pub struct Header {
    /// Its name.
    pub name: &'static str,
    /// Its description, a sentence.
    pub what: &'static str,
    /// Its values.
    pub values: Values,
}

/// A variable path segment, parsed as a `T`.
pub struct Segment<T: 'static> {
    /// Its name in the path.
    pub name: &'static str,
    /// Its description, a sentence.
    pub what: &'static str,
    /// Its values.
    pub values: Values,
    /// Parses it, or says what is wrong with it.
    pub read: fn(&str) -> Result<T, Box<Problem>>,
}

/// A segment without its type.
pub trait Variable: Sync {
    /// Its name in the path.
    fn name(&self) -> &'static str;
    /// Its description, a sentence.
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
/// `Wellspring-Min-Position`, for every route that can wait.
pub static MIN_POSITION: Header = Header {
    name: "Wellspring-Min-Position",
    what: "Wait until the log has reached this position.",
    values: Values::Integer { least: 0, most: u64::MAX, default: None },
};
/// `Wellspring-History`, for every route about a log.
pub static HISTORY: Header = Header {
    name: "Wellspring-History",
    what: "The history that the request is about; refused if the log has another one.",
    values: Values::Matching("^[0-9a-fA-F]{16}$"),
};
/// `Last-Event-ID`.
pub static LAST_EVENT_ID: Header = Header {
    name: "Last-Event-ID",
    what: "The id of the last event that was processed: its position, with or without its history.",
    values: Values::Matching("^[0-9]+(@[0-9a-fA-F]{16})?$"),
};
/// `Location` of a new resource, or of a link's target.
pub static LOCATION: Header = Header {
    name: "Location",
    what: "Location of the resource.",
    values: Values::Text(Some("uri-reference")),
};

/// `Wellspring-Position` of a change in the log `system` rather than in the route's log.
pub static SYSTEM_POSITION: Header = Header {
    name: "Wellspring-Position",
    what: "A position of the log system at which the change is visible; send it to another \
           node as Wellspring-Min-System-Position.",
    values: Values::Integer { least: 0, most: u64::MAX, default: None },
};

/// The required freshness of a read's answer.
pub static CONSISTENCY: Param<Words<Consistency>> = consistency("local");
/// The same for routes that by default answer from the current fold.
pub static CONSISTENCY_CACHED: Param<Words<Consistency>> = consistency("cached");
/// How long a read waits for the required freshness.
pub static WAIT_MS: Param<IntegerOr> = wait_ms(1_000);
/// The parameters of every read.
pub const FRESHNESS: &[&dyn AnyParam] = &[&CONSISTENCY, &WAIT_MS];
/// The parameters of every read that by default answers from the current fold.
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

/// `wait_ms` of reads that wait this long by default.
pub const fn wait_ms(default_ms: u64) -> Param<IntegerOr> {
    Param::integer(
        "wait_ms",
        "Longest wait for the requested consistency and Wellspring-Min-Position, in ms.",
        0..=MAX_WAIT_MS,
    )
    .or(default_ms)
}

/// Of a request whose route is not known yet.
pub static NO_ROUTE: Contract = Contract::new(&[]);

impl Contract {
    /// A route with these successful answers, and no body.
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
            repeat: Repeat::Unsafe,
            changes: Changes::ByMethod,
            is_short: false,
        }
    }

    /// With these query parameters.
    pub const fn query(mut self, own: &'static [&'static dyn AnyParam]) -> Contract {
        self.query = Query::Known(KnownParams { own, ..self.known() });
        self
    }

    /// With these parameters, which concern the freshness of the answer.
    pub const fn fresh(mut self, shared: &'static [&'static dyn AnyParam]) -> Contract {
        self.query = Query::Known(KnownParams { shared, ..self.known() });
        self
    }

    /// With another treatment of the query.
    pub const fn query_is(mut self, query: Query) -> Contract {
        self.query = query;
        self
    }

    /// The known parameters.
    pub const fn known(&self) -> KnownParams {
        match self.query {
            Query::Known(known) | Query::OfFastPath(known) => known,
            Query::Ignored => KnownParams { own: &[], shared: &[] },
        }
    }

    /// With this variable path segment, after the one given before, if any.
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

    /// With an optional body of these media types.
    pub const fn may_take(mut self, media: Media) -> Contract {
        self.takes = Some(BodyContract { media, presence: Presence::Optional });
        self
    }

    /// With another treatment of `Accept`.
    pub const fn accept(mut self, accept: Accept) -> Contract {
        self.accept = accept;
        self
    }

    /// With request headers that matter.
    pub const fn headers(mut self, headers: &'static [&'static Header]) -> Contract {
        self.headers = headers;
        self
    }

    /// With its own problems.
    pub const fn fails(mut self, problems: &'static [&'static [&'static Kind]]) -> Contract {
        self.problems = problems;
        self
    }

    /// With its own rendering of problems.
    pub const fn worded(mut self, words: fn(Box<Problem>) -> Box<Problem>) -> Contract {
        self.words = words;
        self
    }

    /// Answered by other nodes than its method implies.
    pub const fn answered(mut self, answered: AnsweredBy) -> Contract {
        self.answered = answered;
        self
    }

    /// With short answers to JSON, in one piece.
    pub const fn short(mut self, is_short: bool) -> Contract {
        self.is_short = is_short;
        self
    }

    /// With other changes than its method implies.
    pub const fn changes(mut self, changes: Changes) -> Contract {
        self.changes = changes;
        self
    }

    /// With content that is its own key, or without.
    pub const fn repeat(mut self, repeat: Repeat) -> Contract {
        self.repeat = repeat;
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

    /// Whether a header matters here.
    pub fn reads(&self, header: &Header) -> bool {
        self.headers.iter().any(|known| known.name == header.name)
    }

    /// All media types of the answers; the first is the default.
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
