/** Rows of a database that follow a log: each event counts exactly once. */

import { Cursor } from "./cursor.js";
import type { Database } from "./database.js";
import { AnotherHistory } from "./errors.js";
import type { Event, Query } from "./events.js";
import type { Log } from "./log.js";
import type { Subscription } from "./subscription.js";

/** The most that one transaction has, so that other programs are not locked out for long. */
const MOST_EVENTS = 500;
const LONGEST_MS = 50;
/** Names and places are parts of statements, as drivers differ in how they write parameters. */
const NAME = /^[A-Za-z0-9_.-]{1,100}$/;
const PLACE = /^[0-9]{1,16}(@[0-9a-f]{16})?$/;
const START = new Cursor(0);

/** Writes the rows of an event. */
export type Apply<Db> = (db: Db, event: Event) => unknown;

export interface FollowOptions<Db> {
  /** Deletes the rows, as the log was restored or made anew; then all events are applied again. */
  rebuild?: (db: Db) => unknown;
}

/**
 * Rows that follow a log; `Log.readModel` makes one.
 *
 * How far they have come is a row of the table `wellspring_cursor`, which changes in the
 * transaction that changes the rows. Several programs may follow under one name: what one has
 * applied, the others pass over.
 */
export class ReadModel<Db> {
  readonly #log: Log;
  readonly #name: string;
  readonly #database: Database<Db>;
  readonly #query: Query;
  #stopped = false;
  #events: Subscription | undefined;

  /** The log is one of its own: a rebuild accepts another history for these rows alone. */
  constructor(log: Log, name: string, database: Database<Db>, query: Query) {
    if (!NAME.test(name)) {
      const shown = JSON.stringify(name);
      throw new RangeError(`${shown} must be 1 to 100 letters, digits, or any of _ . -`);
    }
    this.#log = log;
    this.#name = name;
    this.#database = database;
    this.#query = query;
  }

  /**
   * Applies existing events, then new ones as they come, until `stop`.
   *
   * Up to 500 events or 50 ms make a transaction. `apply` must not end it; in some databases
   * statements such as CREATE TABLE do. What it throws is thrown, after a rollback. Without
   * `rebuild`, `AnotherHistory` is thrown if the log was restored or made anew.
   */
  async follow(apply: Apply<Db>, { rebuild }: FollowOptions<Db> = {}): Promise<void> {
    await this.#prepare();
    while (!this.#stopped) {
      const place = await this.#place();
      try {
        await this.#applyAll(place, apply);
      } catch (error) {
        if (rebuild === undefined || !(error instanceof AnotherHistory)) {
          throw error;
        }
        this.#log.forgetHistory();
        await this.#transact(place, async (db) => {
          await rebuild(db);
          return START;
        });
      }
    }
  }

  /** Has `follow` return after its transaction. */
  stop(): void {
    this.#stopped = true;
    this.#events?.close();
  }

  /** Applies what arrives, until `stop`, or until another program has gone on from here. */
  async #applyAll(place: Cursor, apply: Apply<Db>): Promise<void> {
    const events = (this.#events = await this.#log.subscribe(this.#query, { after: place }));
    const arrivals = new Arrivals(events);
    try {
      let reached: Cursor | undefined = place;
      while (reached !== undefined && !this.#stopped) {
        const first = await arrivals.next();
        if (first === undefined) {
          return;
        }
        const batch = [first];
        reached = await this.#transact(reached, (db) => applyBatch(batch, arrivals, apply, db));
      }
    } finally {
      events.close();
    }
  }

  /**
   * Writes rows and the place they have reached, in one transaction. Returns that place, or
   * undefined if another program has moved the former one.
   */
  async #transact(
    place: Cursor,
    write: (db: Db) => Promise<Cursor>,
  ): Promise<Cursor | undefined> {
    let reached: Cursor | undefined;
    const where = `WHERE name = '${this.#name}'`;
    await this.#database.transaction(async (db) => {
      reached = undefined;
      // First of all, as it locks the row.
      await this.#database.query(db, `UPDATE wellspring_cursor SET place = place ${where}`);
      if ((await this.#read(db, this.#name)) === String(place)) {
        const next = await write(db);
        if (!PLACE.test(String(next))) {
          throw new RangeError(`not a place in a log: ${next}`);
        }
        await this.#database.query(db, `UPDATE wellspring_cursor SET place = '${next}' ${where}`);
        reached = next;
      }
    });
    return reached;
  }

  async #place(): Promise<Cursor> {
    const found = await this.#look(this.#name);
    if (found === undefined) {
      throw new Error(`the row '${this.#name}' of wellspring_cursor was deleted`);
    }
    return Cursor.parse(found);
  }

  /** Makes the table and the row if need be, and checks that a rollback undoes something. */
  async #prepare(): Promise<void> {
    const columns = "name VARCHAR(110) PRIMARY KEY, place VARCHAR(40) NOT NULL";
    let found: string | undefined;
    try {
      found = await this.#look(this.#name);
    } catch {
      // All databases have this in common alone: what is not there cannot be read.
      const made = this.#run(`CREATE TABLE wellspring_cursor (${columns})`);
      await made.catch(() => undefined);
      found = await this.#look(this.#name);
    }
    const probe = `${this.#name}?`;
    const undone = this.#database.transaction(async (db) => {
      await this.#database.query(db, insertion(probe));
      throw new Error("to be rolled back");
    });
    await undone.catch(() => undefined);
    if ((await this.#look(probe)) !== undefined) {
      await this.#run(`DELETE FROM wellspring_cursor WHERE name = '${probe}'`);
      throw new RangeError("`transaction` does not roll back when its work is rejected");
    }
    if (found === undefined) {
      try {
        await this.#run(insertion(this.#name));
      } catch (error) {
        // Another program may have done so at this moment.
        if ((await this.#look(this.#name)) === undefined) {
          throw error;
        }
      }
    }
  }

  async #look(name: string): Promise<string | undefined> {
    let found: string | undefined;
    await this.#database.transaction(async (db) => {
      found = await this.#read(db, name);
    });
    return found;
  }

  async #run(sql: string): Promise<void> {
    await this.#database.transaction(async (db) => void (await this.#database.query(db, sql)));
  }

  async #read(db: Db, name: string): Promise<string | undefined> {
    const sql = `SELECT place FROM wellspring_cursor WHERE name = '${name}'`;
    const [row] = await this.#database.query(db, sql);
    return row === undefined ? undefined : String(Object.values(row)[0]);
  }
}

function insertion(name: string): string {
  return `INSERT INTO wellspring_cursor (name, place) VALUES ('${name}', '${START}')`;
}

/** Events of a subscription, received while others are applied. */
class Arrivals {
  #coming: Promise<Event | undefined> | undefined;

  constructor(readonly events: Subscription) {}

  /** The next event; undefined at the end. */
  async next(): Promise<Event | undefined> {
    const coming = this.#begun();
    this.#coming = undefined;
    return coming;
  }

  /** The next event, if it is there; what the subscription throws is left to `next`. */
  async present(): Promise<Event | undefined> {
    const coming = this.#begun().catch(() => undefined);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const later = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined));
    });
    const found = await Promise.race([coming, later]);
    clearTimeout(timer);
    if (found !== undefined) {
      this.#coming = undefined;
    }
    return found;
  }

  #begun(): Promise<Event | undefined> {
    if (this.#coming === undefined) {
      this.#coming = this.events.next().then(({ value }) => value);
      this.#coming.catch(() => undefined);
    }
    return this.#coming;
  }
}

/** Applies events and those that have arrived meanwhile; returns the place after them. */
async function applyBatch<Db>(
  batch: Event[],
  arrivals: Arrivals,
  apply: Apply<Db>,
  db: Db,
): Promise<Cursor> {
  const endsMs = performance.now() + LONGEST_MS;
  // A database that runs the same transaction again has to get the same events.
  for (let at = 0; ; at += 1) {
    const event = batch[at]!;
    await apply(db, event);
    if (at + 1 === batch.length) {
      const isFull = batch.length >= MOST_EVENTS || performance.now() >= endsMs;
      const next = isFull ? undefined : await arrivals.present();
      if (next === undefined) {
        return event.cursor;
      }
      batch.push(next);
    }
  }
}
