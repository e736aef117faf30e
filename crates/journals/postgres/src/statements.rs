//! The SQL, and the statements that a connection has prepared.

use tokio_postgres::{Client, Error, Statement};
use wellspring_log::shared::entry::ENTRY_HEADER_BYTES;

/// The settings of each session. Waiting for a commit has no timeout: a cancelled wait leaves a
/// commit that exists here and perhaps nowhere else. Plans are the same for tables of every size,
/// so that none is made for an empty table. `synchronous_commit` is raised if it would acknowledge
/// commits that no disk has.
pub(crate) const SESSION: &str = "
SET statement_timeout = 0; SET lock_timeout = 0; SET idle_session_timeout = 0;
SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan;
SET DateStyle = ISO; SET TimeZone = 'UTC';
SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') IN ('off', 'local');
";

/// Moves the cursor of the rows in `ws_end`, if it is where this node expects it. `$from`: the
/// expected place, the new place, then the rule's state there.
fn cursor(from: usize) -> String {
    let columns = ["rows_place", "rows_epoch", "rows_head", "rows_chain", "rows_cluster"];
    let set = columns.iter().enumerate().map(|(at, column)| {
        format!(
            "{column} = CASE WHEN rows_place = ${from} THEN ${} ELSE {column} END",
            from + 1 + at
        )
    });
    set.collect::<Vec<_>>().join(", ")
}

/// Statements of a writing connection.
pub(crate) struct WriteStatements {
    pub(crate) begin: Statement,
    pub(crate) offer: Statement,
    pub(crate) offer_with_rows: Statement,
    pub(crate) add_rows: Statement,
    pub(crate) end: Statement,
}

impl WriteStatements {
    pub(crate) async fn prepare(client: &Client, schema: &str) -> Result<WriteStatements, Error> {
        let end = format!("\"{schema}\".ws_end");
        let entry = format!("\"{schema}\".ws_entry");
        let event = format!("\"{schema}\".ws_event");
        // The first node creates the end row, which takes existing entries into account.
        let begin = format!(
            "INSERT INTO {end} (log, place) SELECT $1, coalesce(max(place), 0) FROM {entry} WHERE log = $1 \
             ON CONFLICT DO NOTHING"
        );
        // One statement, one round trip, one commit. The lock on the end row is held until the
        // commit, so places become visible in order and without gaps, and a second node finds
        // another place and no row.
        // An offer behind another that is on the way is placed behind that one or nowhere.
        let there = format!(
            "log = $1 AND place = $2 AND ($4::bytea IS NULL OR EXISTS (SELECT FROM {entry} WHERE log = $1 \
             AND place = $2 AND substring(entry from 1 for {ENTRY_HEADER_BYTES}) = $4))"
        );
        let offer = format!(
            "WITH e AS (UPDATE {end} SET place = place + 1 WHERE {there} RETURNING place) \
             INSERT INTO {entry} SELECT $1, e.place, $3 FROM e RETURNING true"
        );
        let cursor_5 = cursor(5);
        let offer_with_rows = format!(
            "WITH e AS (UPDATE {end} SET place = place + 1, {cursor_5} WHERE {there} \
                 RETURNING place, rows_place = $6 AS counted), \
             r AS (INSERT INTO {event} SELECT v.* FROM e, unnest($11::{event}[]) v WHERE e.counted) \
             INSERT INTO {entry} SELECT $1, e.place, $3 FROM e RETURNING (SELECT counted FROM e)"
        );
        let cursor_2 = cursor(2);
        let add_rows = format!(
            "WITH e AS (UPDATE {end} SET {cursor_2} WHERE log = $1 AND rows_place = $2 RETURNING true), \
             r AS (INSERT INTO {event} SELECT v.* FROM e, unnest($8::{event}[]) v) \
             SELECT count(*) FROM e"
        );
        // A transaction that writes to the WAL, so that only a primary that can commit answers: a
        // deposed one would report an older end. It locks no row: where commits are slow, offers
        // would wait for the questions of all nodes.
        let end = format!(
            "SELECT place FROM {end}, pg_logical_emit_message(true, 'wellspring', '') WHERE log = $1"
        );
        Ok(WriteStatements {
            begin: client.prepare(&begin).await?,
            offer: client.prepare(&offer).await?,
            offer_with_rows: client.prepare(&offer_with_rows).await?,
            add_rows: client.prepare(&add_rows).await?,
            end: client.prepare(&end).await?,
        })
    }
}

/// Maximum number of entries read per log and query.
pub(crate) const LOOK_ENTRIES: usize = 1_000;

/// Statements of the reading connection.
pub(crate) struct ReadStatements {
    pub(crate) entries: Statement,
    pub(crate) header: Statement,
    pub(crate) first: Statement,
    pub(crate) cursor: Statement,
}

impl ReadStatements {
    pub(crate) async fn prepare(client: &Client, schema: &str) -> Result<ReadStatements, Error> {
        let end = format!("\"{schema}\".ws_end");
        let entry = format!("\"{schema}\".ws_entry");
        // All logs at once; of each at least the next entry, then as many as fit into this many
        // bytes. The length of an entry is known without reading it.
        let entries = format!(
            "SELECT w.i, e.place, e.entry \
             FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS w(log, after, i), LATERAL ( \
                 SELECT b.place, b.entry FROM ( \
                     SELECT a.place, a.entry, sum(octet_length(a.entry)) OVER (ORDER BY a.place) \
                         - octet_length(a.entry) AS before \
                     FROM (SELECT place, entry FROM {entry} WHERE log = w.log AND place > w.after \
                           ORDER BY place LIMIT {LOOK_ENTRIES}) a) b \
                 WHERE b.before < $3) e \
             ORDER BY w.i, e.place"
        );
        let header = format!(
            "SELECT substring(entry from 1 for 64) FROM {entry} WHERE log = $1 AND place = $2"
        );
        let first = format!(
            "SELECT coalesce((SELECT min(place) - 1 FROM {entry} WHERE log = $1), \
                             (SELECT place FROM {end} WHERE log = $1), 0)"
        );
        let cursor = format!(
            "SELECT rows_place, rows_epoch, rows_head, rows_chain, rows_cluster FROM {end} WHERE log = $1"
        );
        Ok(ReadStatements {
            entries: client.prepare(&entries).await?,
            header: client.prepare(&header).await?,
            first: client.prepare(&first).await?,
            cursor: client.prepare(&cursor).await?,
        })
    }
}
