/** What a read model needs of a database. */

import { sleep } from "./retry.js";

/** How long it waits for a transaction of another program. */
const LONGEST_LOCK_MS = 10_000;
const LOCK_PAUSE_S = 0.005;

/** A database, as a read model uses it. `Db` is what runs statements within a transaction. */
export interface Database<Db> {
  /** Begins a transaction, commits it after `work`, or rolls it back if `work` is rejected. */
  transaction(work: (db: Db) => Promise<void>): Promise<unknown>;
  /** Runs a statement without parameters, and returns the rows, if it is a SELECT. */
  query(db: Db, sql: string): Promise<readonly object[]> | readonly object[];
}

/** A connection of `node:sqlite` or `better-sqlite3`, which nothing else uses meanwhile. */
export interface SqliteConnection {
  exec(sql: string): unknown;
  prepare(sql: string): { all(): unknown[] };
}

/** What is given, or the database of a connection of SQLite. */
export function databaseOf<Db>(given: Database<Db> | SqliteConnection): Database<Db> {
  if (!("prepare" in given)) {
    return given;
  }
  const database: Database<SqliteConnection> = {
    async transaction(work) {
      await begin(given);
      try {
        await work(given);
        given.exec("COMMIT");
      } catch (error) {
        try {
          given.exec("ROLLBACK");
        } catch {
          // SQLite has done so.
        }
        throw error;
      }
    },
    query(db, sql) {
      if (sql.startsWith("SELECT")) {
        return db.prepare(sql).all() as object[];
      }
      db.exec(sql);
      return [];
    },
  };
  return database as unknown as Database<Db>;
}

/** Begins a transaction, without blocking the thread while another has one. */
async function begin(connection: SqliteConnection): Promise<void> {
  const endsMs = performance.now() + LONGEST_LOCK_MS;
  for (;;) {
    try {
      connection.exec("BEGIN IMMEDIATE");
      return;
    } catch (error) {
      if (!/locked|busy/i.test(String(error)) || performance.now() >= endsMs) {
        throw error;
      }
    }
    await sleep(LOCK_PAUSE_S);
  }
}
