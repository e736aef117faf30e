//! The SQL, and what a connection has prepared of it.

use tokio_postgres::{Client, Error, Statement};

/// How each session is set. Waiting for a commit is never cut short by time: what a cancelled wait
/// leaves behind is committed here and perhaps nowhere else. The plans are the same for tables of
/// every size, so that none is made for an empty one. `synchronous_commit` is raised where it would
/// acknowledge what no disk has.
pub(crate) const SESSION: &str = "
SET statement_timeout = 0; SET lock_timeout = 0; SET idle_session_timeout = 0;
SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan;
SET DateStyle = ISO; SET TimeZone = 'UTC';
SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') IN ('off', 'local');
";

/// Columns of `ws_event` as arrays, from the parameter `$from` on.
fn event_arrays(from: usize) -> String {
    let types = ["bigint", "bigint", "text", "text", "text", "text", "text", "bytea"];
    let arrays = types.iter().enumerate().map(|(at, of)| format!("${}::{of}[]", from + at));
    arrays.collect::<Vec<_>>().join(", ")
}

const EVENT_COLUMNS: &str = "v.position, timestamptz 'epoch' + v.recorded_at * interval '1 microsecond', \
     v.type, v.tags::text[], v.id::uuid, v.metadata::jsonb, v.data, v.data_bytes";
const EVENT_NAMES: &str = "v(position, recorded_at, type, tags, id, metadata, data, data_bytes)";

/// Moves the cursor of the rows in `ws_end`, if it stands where this node has it. `$from`: where it
/// has it, where it goes, then the rule's state there.
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

/// Of the writing connection.
pub(crate) struct Writing {
    pub(crate) begin: Statement,
    pub(crate) offer: Statement,
    pub(crate) offer_with_rows: Statement,
    pub(crate) add_rows: Statement,
    pub(crate) end: Statement,
}

impl Writing {
    pub(crate) async fn prepare(client: &Client, schema: &str) -> Result<Writing, Error> {
        let end = format!("\"{schema}\".ws_end");
        let entry = format!("\"{schema}\".ws_entry");
        let event = format!("\"{schema}\".ws_event");
        // The end row is made once, by the first; it knows entries that are there already.
        let begin = format!(
            "INSERT INTO {end} (log, place) SELECT $1, coalesce(max(place), 0) FROM {entry} WHERE log = $1 \
             ON CONFLICT DO NOTHING"
        );
        // One statement, one round trip, one commit. The lock of the end row is held until the
        // commit: so places become visible in order and without a gap, and who comes second finds
        // another place and no row.
        let offer = format!(
            "WITH e AS (UPDATE {end} SET place = place + 1 WHERE log = $1 AND place = $2 RETURNING place) \
             INSERT INTO {entry} SELECT $1, e.place, $3 FROM e RETURNING true"
        );
        let (cursor_4, arrays_10) = (cursor(4), event_arrays(10));
        let offer_with_rows = format!(
            "WITH e AS (UPDATE {end} SET place = place + 1, {cursor_4} WHERE log = $1 AND place = $2 \
                 RETURNING place, rows_place = $5 AS counted), \
             r AS (INSERT INTO {event} SELECT $1, {EVENT_COLUMNS} \
                 FROM e, unnest({arrays_10}) AS {EVENT_NAMES} WHERE e.counted) \
             INSERT INTO {entry} SELECT $1, e.place, $3 FROM e RETURNING (SELECT counted FROM e)"
        );
        let (cursor_2, arrays_8) = (cursor(2), event_arrays(8));
        let add_rows = format!(
            "WITH e AS (UPDATE {end} SET {cursor_2} WHERE log = $1 AND rows_place = $2 RETURNING true), \
             r AS (INSERT INTO {event} SELECT $1, {EVENT_COLUMNS} FROM e, unnest({arrays_8}) AS {EVENT_NAMES}) \
             SELECT count(*) FROM e"
        );
        // A write, so that only a primary that can commit answers: a deposed one would know an
        // older end.
        let end = format!("UPDATE {end} SET place = place WHERE log = $1 RETURNING place");
        Ok(Writing {
            begin: client.prepare(&begin).await?,
            offer: client.prepare(&offer).await?,
            offer_with_rows: client.prepare(&offer_with_rows).await?,
            add_rows: client.prepare(&add_rows).await?,
            end: client.prepare(&end).await?,
        })
    }
}

/// Of the reading connection.
pub(crate) struct Reading {
    pub(crate) entries: Statement,
    pub(crate) header: Statement,
    pub(crate) first: Statement,
    pub(crate) cursor: Statement,
}

impl Reading {
    pub(crate) async fn prepare(client: &Client, schema: &str) -> Result<Reading, Error> {
        let end = format!("\"{schema}\".ws_end");
        let entry = format!("\"{schema}\".ws_entry");
        // All logs at once; of each at least the next entry, then as many as fit into so many
        // bytes. The length of an entry is known without reading it.
        let entries = format!(
            "SELECT w.i, e.place, e.entry \
             FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS w(log, after, i), LATERAL ( \
                 SELECT b.place, b.entry FROM ( \
                     SELECT a.place, a.entry, sum(octet_length(a.entry)) OVER (ORDER BY a.place) \
                         - octet_length(a.entry) AS before \
                     FROM (SELECT place, entry FROM {entry} WHERE log = w.log AND place > w.after \
                           ORDER BY place LIMIT 1000) a) b \
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
        Ok(Reading {
            entries: client.prepare(&entries).await?,
            header: client.prepare(&header).await?,
            first: client.prepare(&first).await?,
            cursor: client.prepare(&cursor).await?,
        })
    }
}
