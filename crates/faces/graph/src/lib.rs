//! The graph: every log is a database, written and read with Cypher over Neo4j's protocols.
//!
//! A transaction works on its own version of the graph, records what it reads, and is committed as
//! one event if no one has changed that meanwhile (decision 0028).
//!
//! ```text
//! base = newest version, staged or folded (at once) │ folded (open)               a clone of one Arc
//! statements on a private clone: pages copied as they are written; reads noted in the footprint
//! commit ─► lock ─► changes since the base touch the footprint? ─► overtaken: executed again
//!                   else the next version ─► staged, with one constant condition  unlock ─► durable ─► folded ─► answer
//! ```
//!
//! A statement begins on the serving thread under a budget of steps, and begins again in the room
//! for bounded work when the budget is used up. An open transaction that is overtaken is executed
//! again, too, and committed if none of its results has changed (decision 0048). `decide` is the
//! check of the footprint, never the execution. The fold takes the version of the commit if that
//! was decided on the very version that is folded; otherwise it computes the event's effect, as for
//! any writer's.

#![forbid(unsafe_code)]

mod body;
mod bolt;
mod bookmarks;
mod commit;
mod csv_file;
mod database;
mod envelope;
mod fresh;
mod handlers;
mod log_events;
mod object;
mod open;
mod parameters;
mod query;
mod render;
mod replay;
mod run;
mod server_facts;
mod settings;
mod tally;
#[cfg(test)]
mod tests;
mod transactions;
mod typed_value;
mod view;

use bolt::{Bolt, BoltService};
use database::database;
use fresh::FRESHNESS;
use handlers::{TRANSACTION, begin, commit, commit_at_once, go_on, rollback};
use open::OpenTransactions;
use query::ANSWERS as QUERY_ANSWERS;
use replay::DigestKeys;
use run::Memory;
use settings::GraphConfig;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tally::Tally;
use view::{EVENT_TYPES, GraphView};
use wellspring_cypher::context::Pool;
use wellspring_cypher::{NEO4J_VERSION, PlanCache};
use wellspring_host::declare::{Route, routes};
use wellspring_host::http::contract::{AnsweredBy, Changes, LOCATION};
use wellspring_host::http::declared_problems::{APPENDING, READING, VIEWING};
use wellspring_host::http::face::{Discovered, Face, ServedRoute, Surroundings};
use wellspring_host::http::{Host, JSON, Response};
use wellspring_host::names::MAIN;
use wellspring_host::node::Views;
use wellspring_host::protocol::Protocol;
use wellspring_host::random;
use wellspring_host::setup::SetupError;
use wellspring_host::stats::family::Family;
use wellspring_host::wire::problem::{FORBIDDEN, Problem};

/// Plans of statements cached, and bytes of their texts.
const MOST_PLANS: usize = 1_000;
const MOST_PLAN_BYTES: usize = 4 << 20;

/// The face.
pub struct GraphFace {
    host: Arc<Host>,
    /// The graph of each log.
    graphs: Views<GraphView>,
    plans: PlanCache,
    open: Arc<OpenTransactions>,
    memory: Memory,
    bolt: BoltService,
    speaks_bolt: bool,
    /// The folder of files for `LOAD CSV`, if there is one.
    csv_folder: Option<Arc<Path>>,
    /// The counters.
    tally: Tally,
    /// Random at the start.
    seed: u64,
    /// Numbers assigned since.
    numbers: AtomicU64,
    /// Makes ids of numbers; its key is random.
    ids: RandomState,
    /// Makes digests of results.
    digests: DigestKeys,
}

impl GraphFace {
    /// A number that no other transaction has.
    fn next_number(&self) -> u128 {
        u128::from(self.seed) << 64 | u128::from(self.numbers.fetch_add(1, Relaxed))
    }

    /// An id of an open transaction that reveals nothing about others: a number under a keyed hash.
    /// Below 2⁵³ for clients that only know floats; two of the few that are open at a time are as
    /// likely to be equal as 53 random bits.
    fn next_id(&self) -> u64 {
        self.ids.hash_one(self.numbers.fetch_add(1, Relaxed)) & ((1 << 53) - 1)
    }

    /// The seed of `rand()` in a statement.
    fn next_seed(&self) -> u64 {
        self.seed ^ self.numbers.fetch_add(1, Relaxed).wrapping_mul(0xd134_2543_de82_ef95)
    }
}

impl Face for GraphFace {
    const NAME: &'static str = "graph";
    type Settings = GraphConfig;
    // The default databases of Neo4j's and NornicDB's clients.
    const LOG_ALIASES: &'static [(&'static str, &'static str)] =
        &[("neo4j", MAIN), ("nornic", MAIN)];
    const DISCOVERY: &'static [(&'static str, Discovered)] = &[
        ("transaction", Discovered::Path("/db/{databaseName}/tx")),
        ("query", Discovered::Path("/db/{databaseName}/query/v2")),
        ("neo4j_version", Discovered::Text(NEO4J_VERSION)),
        ("neo4j_edition", Discovered::Text("community")),
        ("default_database", Discovered::Text("neo4j")),
    ];
    const LIMITS: &'static [(&'static str, usize)] = &[
        ("max_graph_writes", wellspring_graph::limits::MAX_WRITES),
        ("max_graph_labels", wellspring_graph::limits::MAX_LABELS),
        ("max_graph_properties", wellspring_graph::limits::MAX_PROPERTIES),
        ("max_graph_name_bytes", wellspring_graph::limits::MAX_NAME_BYTES),
        ("max_graph_schema_items", wellspring_graph::limits::MAX_SCHEMA_ITEMS),
    ];
    const OPERATIONS: &'static [Route] = bolt::OPERATIONS;
    const ROUTES: &'static [ServedRoute<GraphFace>] = routes! { |face| face;
        GET "/db/{log}" Named Reader database: "How much there is in a graph."
            .fresh(FRESHNESS) .fails[READING, VIEWING] => [200 JSON "GraphDatabase"];
        POST "/db/{log}/tx/commit" Named Reader commit_at_once:
            "Executes Cypher statements as one transaction. A statement that writes needs the role writer."
            .fresh(FRESHNESS) .short(true) .may_take[(JSON, "GraphStatements")] .answered(AnsweredBy::Leader) .fails[READING, APPENDING, VIEWING, &[&FORBIDDEN]]
            => [200 JSON "GraphResults"];
        POST "/db/{log}/tx" Named Reader begin: "Opens a transaction, and executes Cypher statements in it."
            .fresh(FRESHNESS) .may_take[(JSON, "GraphStatements")] .answered(AnsweredBy::Leader) .fails[READING, VIEWING, &[&FORBIDDEN]]
            => [201 JSON "GraphResults" + LOCATION, 200 JSON "GraphResults"];
        POST "/db/{log}/tx/{transaction}" Named Reader go_on: "Executes Cypher statements in an open transaction."
            .at(&TRANSACTION) .may_take[(JSON, "GraphStatements")] .answered(AnsweredBy::Leader) .fails[READING, VIEWING, &[&FORBIDDEN]]
            => [200 JSON "GraphResults", 404 JSON "GraphResults"];
        POST "/db/{log}/tx/{transaction}/commit" Named Reader commit:
            "Executes Cypher statements in an open transaction, and commits it."
            .at(&TRANSACTION) .may_take[(JSON, "GraphStatements")] .answered(AnsweredBy::Leader) .fails[READING, APPENDING, VIEWING, &[&FORBIDDEN]]
            => [200 JSON "GraphResults", 404 JSON "GraphResults"];
        DELETE "/db/{log}/tx/{transaction}" Named Reader rollback: "Rolls an open transaction back."
            .at(&TRANSACTION) .answered(AnsweredBy::Leader) => [200 JSON "GraphResults", 404 JSON "GraphResults"];
        POST "/db/system/query/v2" Node Account query::at_once: "Executes a statement about the server."
            .takes(query::REQUESTS) .changes(Changes::Nothing) .answered(AnsweredBy::AnyNode) .fails[READING] => [202 ~QUERY_ANSWERS, 400 ~QUERY_ANSWERS];
        POST "/db/system/query/v2/tx" Node Account query::begin: "Opens a transaction for statements about the server."
            .may_take(query::REQUESTS) .changes(Changes::Nothing) .answered(AnsweredBy::AnyNode) .fails[READING]
            => [202 ~QUERY_ANSWERS, 400 ~QUERY_ANSWERS, 503 ~QUERY_ANSWERS];
        POST "/db/system/query/v2/tx/{transaction}" Node Account query::go_on: "Executes a statement about the server in an open transaction."
            .at(&TRANSACTION) .may_take(query::REQUESTS) .changes(Changes::Nothing) .answered(AnsweredBy::AnyNode) .fails[READING]
            => [202 ~QUERY_ANSWERS, 400 ~QUERY_ANSWERS, 404 ~QUERY_ANSWERS];
        POST "/db/system/query/v2/tx/{transaction}/commit" Node Account query::commit: "Ends a transaction for statements about the server."
            .at(&TRANSACTION) .may_take(query::REQUESTS) .changes(Changes::Nothing) .answered(AnsweredBy::AnyNode) .fails[READING]
            => [202 ~QUERY_ANSWERS, 400 ~QUERY_ANSWERS, 404 ~QUERY_ANSWERS];
        DELETE "/db/system/query/v2/tx/{transaction}" Node Account query::rollback: "Ends a transaction for statements about the server."
            .at(&TRANSACTION) .changes(Changes::Nothing) .answered(AnsweredBy::AnyNode) => [200 ~QUERY_ANSWERS, 400 ~QUERY_ANSWERS, 404 ~QUERY_ANSWERS];
        POST "/db/{log}/query/v2" Named Reader query::at_once:
            "Executes a Cypher statement as a transaction (Query API). A statement that writes needs the role writer."
            .fresh(FRESHNESS) .takes(query::REQUESTS) .answered(AnsweredBy::Leader) .fails[READING, APPENDING, VIEWING, &[&FORBIDDEN]]
            => [202 ~QUERY_ANSWERS, 400 ~QUERY_ANSWERS];
        POST "/db/{log}/query/v2/tx" Named Reader query::begin: "Opens a transaction, and may execute a Cypher statement in it (Query API)."
            .fresh(FRESHNESS) .may_take(query::REQUESTS) .answered(AnsweredBy::Leader) .fails[READING, VIEWING, &[&FORBIDDEN]]
            => [202 ~QUERY_ANSWERS, 400 ~QUERY_ANSWERS, 503 ~QUERY_ANSWERS];
        POST "/db/{log}/query/v2/tx/{transaction}" Named Reader query::go_on: "Executes a Cypher statement in an open transaction (Query API)."
            .at(&TRANSACTION) .may_take(query::REQUESTS) .answered(AnsweredBy::Leader) .fails[READING, VIEWING, &[&FORBIDDEN]]
            => [202 ~QUERY_ANSWERS, 400 ~QUERY_ANSWERS, 404 ~QUERY_ANSWERS];
        POST "/db/{log}/query/v2/tx/{transaction}/commit" Named Reader query::commit:
            "May execute a Cypher statement in an open transaction, and commits it (Query API)."
            .at(&TRANSACTION) .may_take(query::REQUESTS) .answered(AnsweredBy::Leader) .fails[READING, APPENDING, VIEWING, &[&FORBIDDEN]]
            => [202 ~QUERY_ANSWERS, 400 ~QUERY_ANSWERS, 404 ~QUERY_ANSWERS];
        DELETE "/db/{log}/query/v2/tx/{transaction}" Named Reader query::rollback: "Rolls an open transaction back (Query API)."
            .at(&TRANSACTION) .answered(AnsweredBy::Leader) => [200 ~QUERY_ANSWERS, 400 ~QUERY_ANSWERS, 404 ~QUERY_ANSWERS];
    };

    fn check(settings: &GraphConfig, _surroundings: Surroundings<'_>) -> Result<(), SetupError> {
        settings.check()
    }

    fn open(settings: GraphConfig, host: &Arc<Host>) -> Result<GraphFace, SetupError> {
        let seed = random::bytes().map_err(|error| format!("no random bytes: {error}"))?;
        Ok(GraphFace {
            graphs: host.attach_each(EVENT_TYPES, |log| Ok(log.into()))?,
            plans: PlanCache::new(MOST_PLANS, MOST_PLAN_BYTES),
            open: OpenTransactions::new(
                settings.graph_transactions,
                settings.graph_transactions_bytes,
                settings.graph_transaction_timeout_ms,
            ),
            memory: Memory {
                query_bytes: settings.graph_query_bytes,
                pool: Pool::new(settings.graph_queries_bytes as u64),
            },
            bolt: BoltService::new(host, GraphFace::NAME),
            speaks_bolt: settings.bolt,
            csv_folder: settings.graph_csv_folder.map(Arc::from),
            tally: Tally::default(),
            seed: u64::from_le_bytes(seed),
            numbers: AtomicU64::new(0),
            ids: RandomState::new(),
            digests: DigestKeys::default(),
            host: Arc::clone(host),
        })
    }

    fn render(problem: Box<Problem>) -> Response {
        envelope::of_problem(problem)
    }

    fn figures(&self) -> Vec<Family> {
        tally::families(self).into_iter().chain(self.bolt.families()).collect()
    }

    fn protocols(self: &Arc<Self>) -> Vec<Arc<dyn Protocol>> {
        let bolt = || Arc::new(Bolt(Arc::clone(self))) as Arc<dyn Protocol>;
        self.speaks_bolt.then(bolt).into_iter().collect()
    }

    fn tick(self: &Arc<Self>, _wall_us: u64) {
        self.open.end_idle(self.host.clock.monotonic_us());
    }
}
