/** One log of a server: append, read, project, decide, subscribe. */

import type {
  Accepted,
  AppendOptions,
  Appended,
  BulkAppended,
  IngestOptions,
  LogInfo,
  Projected,
  ReadOptions,
  SubscribeOptions,
} from "./answers.js";
import { Cursor, cursorAt } from "./cursor.js";
import { ConditionFailed, WellspringError } from "./errors.js";
import {
  ALL,
  type Condition,
  Event,
  type Json,
  type NewEvent,
  type Projection,
  type Query,
  eventJson,
  jsonText,
} from "./events.js";
import { newKey } from "./keys.js";
import { Lease } from "./leases.js";
import { Backoff, type RetryPolicy, sleep } from "./retry.js";
import { Session } from "./session.js";
import { Subscription } from "./subscription.js";
import type { Answer, Transport } from "./transport.js";

const BULK_LINES = 10_000;
const BULK_BYTES = 8 << 20;
const PAGE_EVENTS = 1000;
const DECISIONS: RetryPolicy = { attempts: 100, totalS: 30, firstS: 0.001, longestS: 0.05 };

/** The states of projections, by their names. */
export type States = Record<string, Json>;
type Decided = Iterable<NewEvent> | null | undefined;

/** One log of the server; `Client.log` returns one for each name. */
export class Log {
  readonly #transport: Transport;
  readonly #session: Session;
  readonly #path: string;

  constructor(
    transport: Transport,
    readonly name: string,
    session: Session,
  ) {
    this.#transport = transport;
    this.#session = session;
    this.#path = `/v1/logs/${encodeURIComponent(name)}`;
  }

  // The log itself

  /** Creates the log; false if it exists, unchanged. */
  async create(): Promise<boolean> {
    const answer = await this.#transport.exchange({ method: "PUT", path: this.#path });
    if (answer.status === 201) {
      this.forgetHistory();
    }
    this.#session.learn(answer.headers);
    return answer.status === 201;
  }

  /** Deletes the log with all its events. */
  async drop(): Promise<void> {
    await this.#change("DELETE", `?confirm=${encodeURIComponent(this.name)}`);
    this.forgetHistory();
  }

  /** Head, size, and numbers of types and tags. */
  async info(): Promise<LogInfo> {
    const found = (await this.#read("GET", "")).json();
    return {
      name: found.name,
      head: found.head,
      diskBytes: found.disk_bytes,
      segments: found.segments,
      types: found.types,
      tags: found.tags,
      moreTypes: found.more_types,
      moreTags: found.more_tags,
      history: found.history,
    };
  }

  /** The end of the log as it is now. */
  async head(): Promise<Cursor> {
    const answer = await this.#read("GET", "/head");
    return new Cursor(answer.json().head, Session.told(answer.headers));
  }

  /** The history that this client takes the log to have; undefined if the server tells none. */
  get history(): string | undefined {
    return this.#session.history;
  }

  /**
   * Accepts whatever log the server has from now on, after `AnotherHistory`.
   *
   * Positions and cursors from before must be discarded by the caller.
   */
  forgetHistory(): void {
    this.#session.forget();
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
    const key = options.key ?? (await newKey());
    const body = jsonText({
      events: [...events].map(eventJson),
      ...(condition === undefined ? {} : { condition }),
      ...(fence === undefined ? {} : { fence }),
      ...(ack === "durable" ? {} : { ack }),
    });
    const done = await this.#keyed(body, "application/json", key, history);
    if (ack !== "durable") {
      return { accepted: done.accepted };
    }
    this.#session.hasWritten(done.last);
    return { first: done.first, last: done.last, head: done.head, replayed: done.replayed };
  }

  /**
   * Appends any number of events, in batches of at most 1000, each of them atomic.
   *
   * Under the same `key` the same events can be sent again: what is in the log is found, and the
   * rest is added. Throws `Invalid` with `line`; everything before it is in the log.
   */
  async appendBulk(
    events: Iterable<NewEvent> | AsyncIterable<NewEvent>,
    options: { key?: string } = {},
  ): Promise<BulkAppended> {
    const key = options.key ?? (await newKey());
    const total: BulkAppended = { events: 0, first: undefined, last: undefined, replayed: true };
    let [lines, number] = [0, 0];
    for await (const part of bulkBodies(events)) {
      const partKey = `${key}.${number}`;
      try {
        const done = await this.#keyed(part.body, "application/x-ndjson", partKey, this.history);
        total.events += done.events;
        total.first ??= done.first ?? undefined;
        total.last = done.last ?? total.last;
        total.replayed &&= done.replayed;
      } catch (error) {
        if (error instanceof WellspringError) {
          error.key = key;
          for (const member of ["line", "durable_lines"]) {
            const of = error.problem[member];
            if (typeof of === "number") {
              error.problem[member] = of + lines;
            }
          }
        }
        throw error;
      }
      lines += part.lines;
      number += 1;
    }
    if (total.last !== undefined) {
      this.#session.hasWritten(total.last);
    }
    total.replayed &&= number > 0;
    return total;
  }

  /**
   * Hands over one frequent, small event, answered from memory (`POST /e`).
   *
   * A crash of the server may lose the last milliseconds. Never repeated: after `OutcomeUnknown`
   * it may be stored or not.
   */
  async ingest(data: Json | Uint8Array, options: IngestOptions = {}): Promise<void> {
    const terms = new URLSearchParams();
    if (options.type !== undefined) {
      terms.append("type", options.type);
    }
    for (const tag of options.tags ?? []) {
      terms.append("tag", tag);
    }
    if (options.ack !== undefined && options.ack !== "accepted") {
      terms.append("ack", options.ack);
    }
    const isBytes = data instanceof Uint8Array;
    const body: string | Uint8Array = isBytes ? data : jsonText(data);
    const kind = isBytes ? "application/octet-stream" : "application/json";
    await this.#change("POST", `/e?${terms}`.replace(/\?$/, ""), body, kind);
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
        limit: left === undefined ? page : Math.min(page, left),
        ...(after === undefined ? {} : { after }),
        ...(backwards ? { order: "desc" } : {}),
      };
      const answer = await this.#read("POST", "/query", sent, history);
      // All pages are of one log.
      history ??= Session.told(answer.headers);
      const found = answer.json();
      for (const event of found.events) {
        yield Event.ofJson(event, history);
      }
      if (found.next === null) {
        return;
      }
      after = found.next;
      left = left === undefined ? undefined : left - found.events.length;
    }
  }

  /** One event by its position; `NotFound` if there is none. */
  async event(position: number): Promise<Event> {
    const answer = await this.#read("GET", `/events/${position}`);
    return Event.ofJson(answer.json(), Session.told(answer.headers));
  }

  /** One event by its id; `NotFound` if there is none. */
  async eventById(id: string): Promise<Event> {
    const answer = await this.#read("GET", `/events/by-id/${encodeURIComponent(id)}`);
    return Event.ofJson(answer.json(), Session.told(answer.headers));
  }

  /**
   * Follows the log after a cursor, a position, its start (the default) or its present end.
   *
   * The promise is resolved when the place is known; nothing appended after that is missed.
   */
  async subscribe(query: Query = ALL, options: SubscribeOptions = {}): Promise<Subscription> {
    const { after = "start", heartbeatTimeoutS = 45, giveUpAfterS } = options;
    const subscription = new Subscription(
      {
        retry: this.#transport.retry,
        start: async () => {
          if (after === "end") {
            return this.head();
          }
          return after === "start" ? new Cursor(0) : cursorAt(after);
        },
        open: (cursor, controller) =>
          this.#openStream(query, cursor, heartbeatTimeoutS, controller),
      },
      { heartbeatTimeoutS, giveUpAfterS },
    );
    return subscription.begin();
  }

  // Deciding

  /** Folds events on the server, all projections in one read. */
  async project<S extends States = States>(
    projections: Record<string, Projection>,
    options: { after?: number } = {},
  ): Promise<Projected<S>> {
    const answer = await this.#read("POST", "/project", { projections, ...options });
    const found = answer.json();
    return {
      states: found.states,
      position: found.position,
      condition: found.appendCondition,
      history: Session.told(answer.headers),
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
    options: { policy?: RetryPolicy } = {},
  ): Promise<Appended | undefined> {
    const backoff = new Backoff(options.policy ?? DECISIONS);
    for (;;) {
      const known = await this.project<S>(projections);
      const events = [...((await decision(known.states)) ?? [])];
      if (events.length === 0) {
        return undefined;
      }
      try {
        const history = known.history ?? this.history;
        return (await this.#append(events, known.condition, {}, history)) as Appended;
      } catch (error) {
        const pauseS = error instanceof ConditionFailed ? backoff.nextPauseS() : undefined;
        if (pauseS === undefined) {
          throw error;
        }
        await sleep(pauseS);
      }
    }
  }

  // Leases

  /** Acquires a lease, waiting for it at most `waitS` (60 s); else throws `LeaseHeld`. */
  async acquireLease(name: string, ttlS: number, options: { waitS?: number } = {}): Promise<Lease> {
    const waitS = options.waitS ?? 0;
    const sent = {
      ttl_ms: Math.round(ttlS * 1000),
      ...(waitS > 0 ? { wait_ms: Math.round(waitS * 1000) } : {}),
    };
    const path = `/leases/${encodeURIComponent(name)}`;
    const timeoutS = this.#transport.timeoutS + waitS;
    const answer = await this.#change("POST", path, jsonText(sent), undefined, { timeoutS });
    return new Lease(path, answer.json(), async (method, leasePath, body) => {
      const text = body === undefined ? undefined : jsonText(body);
      const isSafe = method === "PUT";
      return (await this.#change(method, leasePath, text, undefined, { isSafe })).json();
    });
  }

  // Requests

  async #read(method: string, path: string, sent?: unknown, history?: string): Promise<Answer> {
    const answer = await this.#transport.exchange({
      method,
      path: this.#path + path,
      body: sent === undefined ? undefined : jsonText(sent),
      headers: {
        ...this.#session.identity(history),
        ...this.#session.freshness(),
        ...(sent === undefined ? {} : { "Content-Type": "application/json" }),
      },
    });
    this.#session.learn(answer.headers, history);
    return answer;
  }

  async #keyed(
    body: string,
    kind: string,
    key: string,
    history: string | undefined,
  ): Promise<Json> {
    const identity = this.#session.identity(history);
    try {
      const answer = await this.#transport.exchange({
        method: "POST",
        path: `${this.#path}/append`,
        body,
        headers: { ...identity, "Content-Type": kind, "Idempotency-Key": key },
        changes: true,
      });
      this.#session.learn(answer.headers, history);
      return answer.json();
    } catch (error) {
      if (error instanceof WellspringError) {
        error.key = key;
      }
      throw error;
    }
  }

  async #change(
    method: string,
    path: string,
    body?: string | Uint8Array,
    kind = "application/json",
    options: { isSafe?: boolean; timeoutS?: number } = {},
  ): Promise<Answer> {
    const answer = await this.#transport.exchange({
      method,
      path: this.#path + path,
      body,
      headers: {
        ...this.#session.identity(),
        ...(body === undefined ? {} : { "Content-Type": kind }),
      },
      changes: true,
      isSafe: false,
      ...options,
    });
    this.#session.learn(answer.headers);
    return answer;
  }

  async #openStream(
    query: Query,
    after: Cursor,
    timeoutS: number,
    controller: AbortController,
  ): Promise<ReadableStream<Uint8Array>> {
    const request = {
      method: "POST",
      path: `${this.#path}/query`,
      body: jsonText({ query, after: after.position }),
      headers: {
        // No freshness is asked for: own writes will come. A server that has lost them since must
        // say that its log is behind `after`, instead of being waited for.
        ...this.#session.identity(after.history),
        Accept: "text/event-stream",
        "Content-Type": "application/json",
      },
      timeoutS,
    };
    const response = await this.#transport.open(request, controller);
    try {
      this.#session.learn(response.headers, after.history);
    } catch (error) {
      controller.abort();
      throw error;
    }
    return response.body as ReadableStream<Uint8Array>;
  }
}

/**
 * Bodies of bounded size, each with its number of lines; cut by content alone, so that a repetition
 * cuts the same ones.
 */
async function* bulkBodies(
  events: Iterable<NewEvent> | AsyncIterable<NewEvent>,
): AsyncGenerator<{ lines: number; body: string }, void> {
  let [lines, size]: [string[], number] = [[], 0];
  for await (const event of events) {
    const line = jsonText(eventJson(event));
    lines.push(line);
    size += line.length + 1;
    if (lines.length === BULK_LINES || size >= BULK_BYTES) {
      yield { lines: lines.length, body: lines.join("\n") };
      [lines, size] = [[], 0];
    }
  }
  if (lines.length > 0) {
    yield { lines: lines.length, body: lines.join("\n") };
  }
}
