//! Adding faces: what a program needs that adds routes, views and event types to Wellspring
//! (`docs/faces.md`; `examples/faces/`).
//!
//! ```no_run
//! # use wellspring_server::embed::{EmbeddedFace, Face, NoSettings};
//! # fn of<Counters: Face<Settings = NoSettings>>() {
//! wellspring_server::main_with(vec![EmbeddedFace::of::<Counters>()]);
//! # }
//! ```

pub use crate::faces::EmbeddedFace;
pub use bytes::Bytes;
pub use wellspring_host::declare::{Needs, Role, Route, Scope, ServedRoute, routes};
pub use wellspring_host::http::face::{Face, Surroundings};
pub use wellspring_host::http::routes::AnswerFuture;
pub use wellspring_host::http::{Answer, Host, Request, Response};
pub use wellspring_host::kept_types::KeptEvents;
pub use wellspring_host::node::{NoView, Views};
pub use wellspring_host::settings::{NoSettings, Section};
pub use wellspring_host::setup::SetupError;
pub use wellspring_host::stats::family::Family;
pub use wellspring_host::view::contract::{
    ConditionStart, Decision, LogEvent, SnapshotFault, Ticket, View,
};
pub use wellspring_host::view::{CommandResults, ExecuteError, Live, NotFresh, ViewSlot};
pub use wellspring_host::wire::problem::{Kind, Problem, Retry, kinds};
pub use wellspring_log::{AppendError, Appended, CommitOn, RequestKey, TooManyWaiters};
pub use wellspring_types::{Event, Position, Query, QueryItem};

/// The contract of a route apart from the format of its body: parameters, path segments, headers,
/// media types, and common problems.
pub mod contract {
    pub use wellspring_host::http::contract::{
        Accept, AnswerContract, BodyContract, CONSISTENCY, CONSISTENCY_CACHED, Contract, FRESHNESS,
        FRESHNESS_CACHED, Header, IDEMPOTENCY_KEY, LOCATION, Media, Presence, Query, Segment,
        Variable, WAIT_MS, wait_ms,
    };
    pub use wellspring_host::http::declared_problems::{APPENDING, READING, VIEWING};
    pub use wellspring_host::http::required_freshness::{Consistency, Freshness};
    pub use wellspring_host::http::{ANY, FORM, HTML, JSON, NDJSON, SSE, SVG, TEXT};
    pub use wellspring_host::wire::param::{
        AnyParam, Integer, IntegerOr, Kind as ParamKind, Moment, Param, Text, Texts, Values, Words,
    };
    pub use wellspring_host::wire::params::{KnownParams, Pairs, Params};
}

/// `Idempotency-Key`: the key of a request, and the digest that identifies its retry.
pub mod idempotency {
    pub use wellspring_host::http::idempotency::{KeyUse, digest, idempotency_key};
}

/// Long work: in slices off the serving threads, charged to the client, ended when the client
/// leaves. [`Host::job`] starts it.
pub mod work {
    pub use wellspring_host::http::work::{Cost, Job, Progress, Task};
    pub use wellspring_log::Work;
}

/// Routes that the lean loop serves, too: [`Face::fast_paths`] returns their factories.
pub mod fast {
    pub use wellspring_host::fast::{
        AnyFastPath, AnyParams, AnyTicket, Claim, Factory, FastAnswer, FastPath, FastRequest,
        FastRoute, Form, FormContent, Head, Headers, MOST_VARYING_HEADERS, ServingThread, Shape,
        Stack, TicketState, Varying, Wake, Word, erase,
    };
}

/// The problem types that any face may answer.
pub mod problems {
    use wellspring_host::wire::problem::{self, Kind};

    /// 422: a value in the request breaks a rule.
    pub static INVALID: &Kind = &problem::INVALID;
    /// 404: no such thing.
    pub static NOT_FOUND: &Kind = &problem::NOT_FOUND;
    /// 503: the log accepts no appends, or is being emptied.
    pub static LOG_CLOSED: &Kind = &problem::LOG_CLOSED;
}

mod in_process;

pub use in_process::{InProcess, InProcessAnswer};
