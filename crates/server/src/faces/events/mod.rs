//! Events: append, read, query, project, subscribe, leases, logs, import, ingest, and the dialects of
//! others' servers.

pub(crate) mod append;
pub(crate) mod bulk;
pub(crate) mod count_only;
pub(crate) mod dialect_data;
pub(crate) mod dialects;
pub(crate) mod disclosure;
pub(crate) mod event_json;
pub(crate) mod fold;
pub(crate) mod import;
pub(crate) mod ingest;
pub(crate) mod leases;
pub(crate) mod logs;
pub(crate) mod project;
pub(crate) mod read;
pub(crate) mod subscribe;
pub(crate) mod terms;

use crate::declare::routes;
use crate::fast::Factory;
use crate::http::Host;
use crate::http::face::{Face, Served};
use crate::ingest::fast_path;
use crate::settings::NoSettings;
use std::sync::Arc;

/// The face.
pub(crate) struct EventFace {
    host: Arc<Host>,
}

impl Face for EventFace {
    const NAME: &'static str = "events";
    type Settings = NoSettings;
    const LIMITS: &'static [(&'static str, usize)] = &[
        ("max_subscription_query_bytes", subscribe::MAX_QUERY_BYTES),
        ("max_page_terms", terms::MAX_TERMS as usize),
        ("max_page_events", read::MAX_PAGE_EVENTS as usize),
        ("max_lease_ttl_ms", leases::MAX_LEASE_TTL_MS as usize),
    ];
    const ROUTES: &'static [Served<EventFace>] = routes! { |face| Arc::clone(&face.host);
        POST "/v1/append" Log Writer append::append:
            "Appends events, all or none, if the condition holds. With application/x-ndjson: bulk, one event a line, streamed, atomic per batch of at most 1000 lines."
            ? [] "Append" => "Appended";
        POST "/v1/import" Log Writer import::import:
            "Appends the lines of a body that no earlier import has appended: the events themselves are the key. Streamed, atomic per batch."
            ? ["label", "batch", "invalid", "more", "continues"] "EventToAppend" => "Imported";
        POST "/e" Main Writer ingest::post:
            "Takes an event in: the body is its data, one JSON value or any bytes; with application/x-ndjson the data of an event a line, all or none. Answers 202 when it is in memory; with ack=durable when it is on disk."
            ? ["type", "tag", "ack"] "Anything" => "Taken";
        GET "/e" Main Public ingest::up: "Whether events are taken in." ? [] "" => "Up";
        POST "/v1/e" Log Writer ingest::post: "As POST /e." ? ["type", "tag", "ack"] "Anything" => "Taken";
        GET "/v1/ingest" Log Reader ingest::account:
            "What was accepted before it was durable, and what became of it."
            ? ["consistency", "wait_ms"] "" => "IngestAccount";
        GET "/v1/events" Log Reader read::get_events:
            "Reads events in order: a JSON page, an NDJSON stream without limit, or a subscription as server-sent events."
            ? ["type", "tag", "query", "after", "limit", "order", "consistency", "wait_ms"] "" => "Events";
        POST "/v1/query" Log Reader read::post_query: "As GET events, with the query in the body."
            ? ["consistency", "wait_ms"] "Read" => "Events";
        GET "/v1/events/{position}" Log Reader read::get_event: "One event by position."
            ? ["consistency", "wait_ms"] "" => "Event";
        GET "/v1/events/by-id/{uuid}" Log Reader read::get_event_by_id: "One event by its id."
            ? ["consistency", "wait_ms"] "" => "Event";
        GET "/v1/head" Log Reader terms::head: "The last position." ? ["consistency", "wait_ms"] "" => "Head";
        GET "/v1/types" Log Reader terms::types: "Types with their counts, in byte order."
            ? ["after", "limit", "consistency", "wait_ms"] "" => "Types";
        GET "/v1/tags" Log Reader terms::tags: "Tags with their counts, in byte order."
            ? ["prefix", "after", "limit", "consistency", "wait_ms"] "" => "Tags";
        POST "/v1/project" Log Reader project::project:
            "Folds events into states in one read and gives the append condition that protects the decision."
            ? ["consistency", "wait_ms"] "Project" => "Projected";
        POST "/v1/leases/{name}" Log Writer leases::acquire: "Takes an exclusive lease with a fencing token."
            ? [] "Acquire" => "Lease";
        PUT "/v1/leases/{name}" Log Writer leases::renew: "Renews a lease." ? [] "Renew" => "Lease";
        DELETE "/v1/leases/{name}" Log Writer leases::release: "Ends a lease; token in the body or the URL."
            ? ["token"] "Release" => "";
        GET "/v1/logs" Node Account logs::list: "All logs with size, head and term counts." ? [] "" => "Logs";
        PUT "/v1/logs/{log}" Node Admin logs::create: "Makes a log." ? [] "" => "Log";
        GET "/v1/logs/{log}" Node Reader logs::get: "One log with size, head and term counts." ? [] "" => "Log";
        DELETE "/v1/logs/{log}" Node Admin logs::delete: "Drops a log with everything in it."
            ? ["confirm"] "" => "";
        POST "/append" Main Writer dialects::append: "Append, DCB dialect: always 200."
            ? [] "DialectAppend" => "DialectAppended";
        GET "/read" Main Reader dialects::get_read: "Read, DCB dialect." ? ["query", "options"] "" => "DialectEvents";
        POST "/read" Main Reader dialects::post_read: "Count and last position, go-crablet dialect."
            ? [] "DialectRead" => "DialectCount";
        POST "/project" Main Reader dialects::project: "Counts per projector, go-crablet dialect."
            ? [] "DialectProject" => "DialectProjected";
        POST "/cleanup" Dev Admin dialects::cleanup: "Empties the log main." ? [] "" => "";
        POST "/load-test-data" Dev Admin dialects::load_test_data: "Appends example events."
            ? ["size"] "" => "";
    };

    fn open(_: NoSettings, host: &Arc<Host>) -> Result<EventFace, String> {
        Ok(EventFace { host: Arc::clone(host) })
    }

    fn fast_paths(&self) -> Vec<Factory> {
        vec![fast_path(self.host.ingest())]
    }
}
