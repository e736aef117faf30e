//! For operators and their tools: health, metrics, views, the OpenAPI document, problem pages.

#![forbid(unsafe_code)]

pub(crate) mod backup;
pub(crate) mod health;
pub mod openapi;
pub mod problem_page;
pub(crate) mod views;

use health::FOR;
use problem_page::SLUG;
use std::sync::Arc;
use wellspring_host::declare::routes;
use wellspring_host::http::contract::{Accept, FRESHNESS, Query};
use wellspring_host::http::face::{Discovered, Face, ServedRoute};
use wellspring_host::http::{HTML, Host, JSON, OCTETS, TEXT};
use wellspring_host::node::readiness::KINDS as REASONS;
use wellspring_host::settings::NoSettings;
use wellspring_host::setup::SetupError;
use wellspring_host::wire::problem::{CORRUPT, IO, NOT_FOUND, SHARED_LOG, TRIMMED};

/// The face.
pub struct OperationFace {
    host: Arc<Host>,
}

impl Face for OperationFace {
    const NAME: &'static str = "operations";
    type Settings = NoSettings;
    const DISCOVERY: &'static [(&'static str, Discovered)] = &[
        ("openapi", Discovered::Path("/openapi.json")),
        ("wellspring_version", Discovered::Text(env!("CARGO_PKG_VERSION"))),
    ];
    const ROUTES: &'static [ServedRoute<OperationFace>] = routes! { |face| Arc::clone(&face.host);
        GET "/v1/views" Node Account views::list: "State, position and lag of each view."
            .fresh(FRESHNESS) => [200 JSON "Views"];
        GET "/v1/backup" Node Admin backup::plan: "What is durable in all logs at one moment: what a backup of now would hold."
            .query_is(Query::Ignored) .accept(Accept::Ignored) .fails[&[&CORRUPT, &IO, &SHARED_LOG]] => [200 JSON "BackupPlan"];
        GET "/v1/segments/{base}" Log Admin backup::segment: "The durable bytes of one segment, as they are on disk."
            .at(&backup::BASE) .query[&backup::FROM, &backup::BYTES] .accept(Accept::Ignored)
            .fails[&[&NOT_FOUND, &TRIMMED, &CORRUPT, &IO]] => [200 OCTETS ""];
        GET "/health" Node Public health::health: "Whether the process is healthy."
            .query_is(Query::Ignored) .short(true) .accept(Accept::Ignored) => [200 JSON "Health"];
        GET "/health/live" Node Public health::health: "Whether the process is alive."
            .query_is(Query::Ignored) .short(true) .accept(Accept::Ignored) => [200 JSON "Health"];
        GET "/health/ready" Node Public health::ready: "Whether the process is ready for requests."
            .query[&FOR] .short(true) .accept(Accept::Ignored) .fails[REASONS] => [200 JSON "Ready"];
        GET "/metrics" Node Operator health::metrics: "Metrics in the Prometheus text format."
            .query_is(Query::Ignored) .short(true) .accept(Accept::Ignored) => [200 TEXT ""];
        GET "/v1/settings" Node Admin health::settings: "The settings of the server as `serve --print-config` prints them, without passwords."
            .accept(Accept::Ignored) => [200 TEXT ""];
        GET "/openapi.json" Node Public openapi::document: "This document."
            .query_is(Query::Ignored) .accept(Accept::Ignored) => [200 JSON ""];
        GET "/problems" Node Public problem_page::index: "All problem types with status and \
                                                          title: JSON, text/plain or text/html."
            => [200 JSON "ProblemTypes" HTML "" TEXT ""];
        GET "/problems/{slug}" Node Public problem_page::problem: "The cause and remedy of a problem type, whether a retry helps, and an example answer: JSON, text/plain or text/html."
            .at(&SLUG) .fails[&[&NOT_FOUND]] => [200 JSON "ProblemType" HTML "" TEXT ""];
    };

    fn open(_: NoSettings, host: &Arc<Host>) -> Result<OperationFace, SetupError> {
        Ok(OperationFace { host: Arc::clone(host) })
    }
}
