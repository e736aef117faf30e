/** One log of a server: append, read, project, decide, subscribe. */

import type {
  Accepted,
  AppendOptions,
  Appended,
  BulkAppended,
  DecideOptions,
  IngestOptions,
  LogInfo,
  ProjectOptions,
  PassedOver,
  Projected,
  ReadOptions,
  SubscribeOptions,
} from "./answers.js";
import { bulkBodies, listed } from "./bulk.js";
import { LogCalls } from "./calls.js";
import {
  type ConsumerOptions,
  type ConsumerStatus,
  consumerPath,
  definitionOf,
  statusOf,
} from "./consumers.js";
import { Cursor, cursorAt } from "./cursor.js";
import { type Database, type SqliteConnection, databaseOf } from "./database.js";
import { ConditionFailed, Unavailable, WellspringError, moveLines } from "./errors.js";
import {
  ALL,
  type Condition,
  Event,
  type Json,
  type NewEvent,
  type Projection,
  type Query,
  eventJson,
} from "./events.js";
import { LONGEST_BULK_KEY, idempotencyKey } from "./keys.js";
import { type HeldLease, Lease, type LeaseCall, acquire, hold } from "./leases.js";
import type { Handler } from "./pulls.js";
import { ReadModel } from "./read_model.js";
import { Backoff, type RetryPolicy, sleep } from "./retry.js";
import { Session } from "./session.js";
import { Subscription } from "./subscription.js";
import type { Transport } from "./transport.js";
import {
  historyOf,
  isBytes,
  jsonText,
  member,
  queryText,
  segment,
  texts,
  timesOf,
} from "./wire.js";
import { Worker, type WorkerOptions } from "./worker.js";

const PAGE_EVENTS = 1000;
const DECISIONS: RetryPolicy = { attempts: 100, totalS: 30, firstS: 0.001, longestS: 0.05 };

/** The states of projections, by their names. */
export type States = Record<string, Json>;
type Decided = Iterable<NewEvent> | null | undefined;

/** One log of the server; `Client.log` returns one for each name. */
export class Log {
  readonly #calls: LogCalls;

  constructor(transport: Transport, readonly name: string, session: Session) {
    this.#calls = new LogCalls(transport, name, session);
  }

  // The log itself

  /**
   * Creates the log; false if it exists, unchanged.
   *
   * The request is repeated as long as its outcome is unknown. So false may also mean that this
   * call has created the log, at an attempt whose answer was lost.
   */
  async create(): Promise<boolean> {
    const request = { method: "PUT", path: this.#calls.path, changes: true };
    const answer = await this.#calls.transport.exchange(request);
    if (answer.status === 201) {
      this.forgetHistory();
    }
    this.#calls.session.learn(answer.headers);
    return answer.status === 201;
  }

  /** Deletes the log with all its events. */
  async drop(): Promise<void> {
    await this.#calls.change("DELETE", queryText([["confirm", this.name]]));
    this.forgetHistory();
  }

  /** Head, size, and numbers of types and tags. */
  async info(): Promise<LogInfo> {
    const found = (await this.#calls.read("GET", "")).json();
    return {
      name: member(found, "name", "string"),
      head: member(found, "head", "number"),
      diskBytes: member(found, "disk_bytes", "number"),
      segments: member(found, "segments", "number"),
      types: member(found, "types", "number"),
      tags: member(found, "tags", "number"),
      moreTypes: member(found, "more_types", "boolean"),
      moreTags: member(found, "more_tags", "boolean"),
      history: found.history,
    };
  }

  /** The end of the log as it is now. */
  async head(): Promise<Cursor> {
    const answer = await this.#calls.read("GET", "/head");
    return new Cursor(member(answer.json(), "head", "number"), historyOf(answer.headers));
  }

  /** The history that this client takes the log to have; undefined if the server tells none. */
  get history(): string | undefined {
    return this.#calls.session.history;
  }

  /**
   * Accepts whatever log the server has from now on, after `AnotherHistory`.
   *
   * Positions and cursors from before must be discarded by the caller.
   */
  forgetHistory(): void {
    this.#calls.session.forget();
  }

  // Appending

  async append(
    events: Iterable<NewEvent>,
    condition: Condition | undefined,
    options: AppendOptions & { ack: "accepted" },
  ): Promise<Accepted>;
  async append(
    events: Iterable<NewEvent>,
    condition?: Condition,
    options?: AppendOptions & { ack?: "durable" },
  ): Promise<Appended>;
  /**
   * Appends all events or none.
   *
   * It is repeated as long as its outcome is unknown, under one idempotency key, so the events are
   * stored once. An error's `key` is that of the request.
   *
   * Throws `ConditionFailed`, `LeaseLost`, `Invalid` and so on: nothing was appended. After
   * `OutcomeUnknown` it may have been; append the same under the same key to find out.
   */
  async append(
    events: Iterable<NewEvent>,
    condition?: Condition,
    options: AppendOptions = {},
  ): Promise<Appended | Accepted> {
    return this.#append(events, condition, options, this.history);
  }

  async #append(
    events: Iterable<NewEvent>,
    condition: Condition | undefined,
    options: AppendOptions,
    history: string | undefined,
  ): Promise<Appended | Accepted> {
    const { fence, ack = "durable" } = options;
    const key = await idempotencyKey(options.key);
    const body = jsonText({
      events: [...listed(events)].map((event, index) => eventJson(event, `events[${index}]`)),
      ...(condition === undefined ? {} : { condition }),
      ...(fence === undefined ? {} : { fence }),
      ...(ack === "durable" ? {} : { ack }),
    });
    return this.#calls.keyed<Appended | Accepted>(body, "application/json", key, history, (found) => {
      if (ack !== "durable") {
        return { accepted: member(found, "accepted", "number") };
      }
      const done = {
        first: member(found, "first", "number"),
        last: member(found, "last", "number"),
        head: member(found, "head", "number"),
        replayed: member(found, "replayed", "boolean"),
      };
      this.#calls.session.hasWritten(done.last);
      return done;
    });
  }

  /**
   * Appends any number of events, in batches of at most 1000, each of them atomic.
   *
   * Under the same `key` the same events can be sent again: what is in the log is found, and the
   * rest is added. A bulk's key has at most 230 characters: each batch is sent under one that
   * begins with it. Throws `Invalid` with `line`; everything before it is in the log.
   */
  async appendBulk(
    events: Iterable<NewEvent> | AsyncIterable<NewEvent>,
    options: { key?: string } = {},
  ): Promise<BulkAppended> {
    const key = await idempotencyKey(options.key, LONGEST_BULK_KEY);
    const total: BulkAppended = { events: 0, first: undefined, last: undefined, replayed: true };
    let [lines, number] = [0, 0];
    for await (const part of bulkBodies(events)) {
      try {
        const done = await this.#appendPart(part.body, `${key}.${number}`);
        total.events += done.events;
        total.first ??= done.first;
        total.last = done.last;
        total.replayed &&= done.replayed;
      } catch (error) {
        if (error instanceof WellspringError) {
          error.key = key;
          moveLines(error, lines);
        }
        throw error;
      }
      lines += part.lines;
      number += 1;
    }
    if (total.last !== undefined) {
      this.#calls.session.hasWritten(total.last);
    }
    total.replayed &&= number > 0;
    return total;
  }

  /** Appends lines of a bulk, of which there is at least one. */
  #appendPart(body: string, key: string): Promise<BulkAppended> {
    return this.#calls.keyed(body, "application/x-ndjson", key, this.history, (found) => ({
      events: member(found, "events", "number"),
      first: member(found, "first", "number"),
      last: member(found, "last", "number"),
      replayed: member(found, "replayed", "boolean"),
    }));
  }

  /**
   * Hands over one frequent, small event, answered from memory (`POST /e`).
   *
   * A crash of the server may lose the last milliseconds. Never repeated: after `OutcomeUnknown`
   * it may be stored or not.
   */
  async ingest(data: Json | Uint8Array, options: IngestOptions = {}): Promise<void> {
    const tags = texts(options.tags ?? [], "tags");
    const query = queryText([
      ["type", options.type],
      ...tags.map((tag): [string, string] => ["tag", tag]),
      ["ack", options.ack === "accepted" ? undefined : options.ack],
    ]);
    const body = isBytes(data) ? data : jsonText(data ?? null, "data");
    const kind = isBytes(data) ? "application/octet-stream" : "application/json";
    await this.#calls.change("POST", `/e${query}`, body, kind);
  }

  // Reading

  /**
   * The events that match, oldest first, or newest first if `backwards`; page by page.
   *
   * A cursor as `after` is checked: if the log has another history, or is not that long,
   * `AnotherHistory` is thrown.
   */
  async *read(query: Query = ALL, options: ReadOptions = {}): AsyncGenerator<Event, void> {
    const { limit, backwards = false, page = PAGE_EVENTS } = options;
    const place = options.after === undefined ? undefined : cursorAt(options.after);
    let history = place?.history;
    let after = place?.position;
    let left = limit;
    while (left === undefined || left > 0) {
      const sent = {
        query,
        ...timesOf(options),
        limit: left === undefined ? page : Math.min(page, left),
        ...(after === undefined ? {} : { after }),
        ...(backwards ? { order: "desc" } : {}),
      };
      const answer = await this.#calls.read("POST", "/query", sent, history);
      // All pages are of one log.
      history ??= historyOf(answer.headers);
      const found = answer.json();
      const events = member(found, "events", "array");
      for (const event of events) {
        yield Event.ofJson(event, history);
      }
      if ((found.next ?? null) === null) {
        return;
      }
      after = member(found, "next", "number");
      left = left === undefined ? undefined : left - events.length;
    }
  }

  /** One event by its position; `NotFound` if there is none. */
  async event(position: number): Promise<Event> {
    if (!Number.isSafeInteger(position)) {
      throw new TypeError(`position must be an integer, not ${JSON.stringify(position)}`);
    }
    const answer = await this.#calls.read("GET", `/events/${position}`);
    return Event.ofJson(answer.json(), historyOf(answer.headers));
  }

  /** One event by its id; `NotFound` if there is none. */
  async eventById(id: string): Promise<Event> {
    const answer = await this.#calls.read("GET", `/events/by-id/${segment(id, "the id of an event")}`);
    return Event.ofJson(answer.json(), historyOf(answer.headers));
  }

  /**
   * Follows the log after a cursor, a position, its start (the default) or its present end.
   *
   * The promise is resolved when the place is known; nothing appended after that is missed.
   */
  async subscribe(query: Query = ALL, options: SubscribeOptions = {}): Promise<Subscription> {
    const { after = "start", heartbeatTimeoutS = 45, giveUpAfterS, since, whileHeld } = options;
    const wanted = {
      query,
      ...timesOf(since === undefined ? {} : { since }),
      ...(whileHeld === undefined ? {} : { fence: whileHeld.fence }),
    };
    const subscription = new Subscription(
      {
        retry: this.#calls.transport.retry,
        start: async () => {
          if (after === "end") {
            return this.head();
          }
          return after === "start" ? new Cursor(0) : cursorAt(after);
        },
        open: async (cursor, controller) => {
          const open = (sent: Record<string, unknown>): Promise<ReadableStream<Uint8Array>> =>
            this.#calls.openStream(sent, cursor, heartbeatTimeoutS, controller);
          try {
            return await open(wanted);
          } catch (error) {
            const isFollower = error instanceof Unavailable && error.type === "not-leading";
            if (whileHeld === undefined || !isFollower) {
              throw error;
            }
          }
          // Only the node that leads knows of leases. Here the holder's own clock and renewals tell.
          return open({ ...wanted, fence: undefined });
        },
      },
      { heartbeatTimeoutS, giveUpAfterS, whileHeld },
    );
    return subscription.begin();
  }

  // Deciding

  /** Folds events on the server, all projections in one read. */
  async project<S extends States = States>(
    projections: Record<string, Projection>,
    options: ProjectOptions = {},
  ): Promise<Projected<S>> {
    const { after, key, until } = options;
    const answer = await this.#calls.read("POST", "/project", {
      projections,
      ...timesOf(options),
      ...(after === undefined ? {} : { after }),
      ...(key === undefined ? {} : { key: await idempotencyKey(key) }),
    });
    const found = answer.json();
    const position = member(found, "position", "number");
    const guard =
      until === undefined ? (member(found, "appendCondition", "object") as Condition) : undefined;
    return {
      states: member(found, "states", "object") as S,
      position,
      get condition(): Condition {
        if (guard === undefined) {
          throw new RangeError("a projection until some time has no append condition");
        }
        return guard;
      },
      history: historyOf(answer.headers),
      appended: found.appended === undefined ? undefined : earlier(found.appended, position),
      passedOver: (found.passed_over ?? {}) as Record<string, PassedOver>,
    };
  }

  /**
   * Projects, lets `decision(states)` return events, appends them under the condition.
   *
   * If another writer got there first, all of it is repeated on the new states, so `decision` must
   * have no effects of its own. Returns undefined if there are no events to append. Throws what
   * `decision` throws, and `ConditionFailed` if others were always faster.
   */
  async decide<S extends States = States>(
    projections: Record<string, Projection>,
    decision: (states: S) => Decided | Promise<Decided>,
    options: DecideOptions = {},
  ): Promise<Appended | undefined> {
    const { key, policy = DECISIONS } = options;
    const named = key === undefined ? {} : { key };
    const backoff = new Backoff(policy);
    for (;;) {
      const known = await this.project<S>(projections, named);
      if (known.appended !== undefined) {
        return known.appended;
      }
      const events = [...listed((await decision(known.states)) ?? [])];
      if (events.length === 0) {
        return undefined;
      }
      try {
        const history = known.history ?? this.history;
        return (await this.#append(events, known.condition, named, history)) as Appended;
      } catch (error) {
        const pauseS = isOvertaken(error, key) ? backoff.nextPauseS() : undefined;
        if (pauseS === undefined) {
          throw error;
        }
        await sleep(pauseS);
      }
    }
  }

  // Work in the background

  /**
   * Defines or changes a consumer, as an operator; false if it was there.
   *
   * With `key: { tag: "customer" }` events that have the same value of that tag are delivered in
   * the order of the log, one after the other.
   */
  async defineConsumer(
    name: string,
    query: Query,
    options: ConsumerOptions = {},
  ): Promise<boolean> {
    const body = jsonText({ query, ...definitionOf(options) });
    const path = consumerPath(name);
    const answer = await this.#calls.change("PUT", path, body, undefined, { isSafe: true });
    return answer.status === 201;
  }

  /** How far a consumer has come; `NotFound` if there is none. */
  async consumer(name: string): Promise<ConsumerStatus> {
    return statusOf((await this.#calls.read("GET", consumerPath(name))).json());
  }

  /**
   * Makes a function the worker of a consumer: `run` calls it with each delivery.
   *
   * A delivery is settled when the function has returned. If it returns events, they are appended
   * to this log and the delivery is settled as one. If it throws, the delivery comes again after a
   * pause, up to the consumer's `maxTries`; `Park` parks it at once.
   */
  worker(consumer: string, handle: Handler, options: WorkerOptions = {}): Worker {
    return new Worker(this.#calls, consumer, handle, options);
  }

  // Read models

  readModel<Db extends SqliteConnection>(name: string, connection: Db, query?: Query): ReadModel<Db>;
  readModel<Db>(name: string, database: Database<Db>, query?: Query): ReadModel<Db>;
  /**
   * Rows of a database that follow the log, each event exactly once: `follow` applies them.
   *
   * `name`, of letters, digits, `_`, `.` and `-`, is unique in the database.
   */
  readModel<Db>(
    name: string,
    database: Database<Db> | SqliteConnection,
    query: Query = ALL,
  ): ReadModel<Db> {
    const { transport, session } = this.#calls;
    const own = new Log(transport, this.name, new Session(this.name, session.readYourWrites));
    return new ReadModel(own, name, databaseOf<Db>(database), query);
  }

  // Leases

  /** Acquires a lease, waiting for it at most `waitS` (60 s); else throws `LeaseHeld`. */
  async acquireLease(name: string, ttlS: number, options: { waitS?: number } = {}): Promise<Lease> {
    return new Lease(await acquire(this.#leaseCall, leasePath(name), ttlS, options.waitS ?? 0));
  }

  /**
   * Acquires a lease that renews itself; waits for it, or at most `waitS`.
   *
   * `await using` releases it at the end. If it cannot be renewed in time it is lost: its
   * subscriptions throw `LeaseLost`, and so do fenced appends.
   */
  async holdLease(
    name: string,
    options: { ttlS?: number; waitS?: number } = {},
  ): Promise<HeldLease> {
    return hold(this.#leaseCall, leasePath(name), options.ttlS ?? 15, options.waitS);
  }

  readonly #leaseCall: LeaseCall = async (method, path, body, times = {}) => {
    const text = body === undefined ? undefined : jsonText(body);
    const isSafe = method !== "DELETE" && times.limitS === undefined;
    const timeoutS = times.limitS ?? this.#calls.transport.timeoutS + (times.waitS ?? 0);
    return (await this.#calls.change(method, path, text, undefined, { isSafe, timeoutS })).json();
  };
}

function leasePath(name: string): string {
  return `/leases/${segment(name, "the name of a lease")}`;
}

/** What an earlier request with the same key has appended. */
function earlier(found: Json, position: number): Appended {
  const [first, last] = [member(found, "first", "number"), member(found, "last", "number")];
  return { first, last, head: Math.max(position, last), replayed: true };
}

/** Whether another writer got there first; of two with the same key the later finds the earlier. */
function isOvertaken(error: unknown, key: string | undefined): boolean {
  const isLate =
    key !== undefined &&
    error instanceof WellspringError &&
    error.type === "idempotency-key-reused";
  return isLate || error instanceof ConditionFailed;
}
