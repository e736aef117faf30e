/** Following a log: events as they come, over any number of connections. */

import { Cursor } from "./cursor.js";
import {
  AnotherHistory,
  ServerFault,
  Unavailable,
  WellspringError,
  errorOf,
  isTemporary,
} from "./errors.js";
import { Event, type Json } from "./events.js";
import { HeldLease, type Lease } from "./leases.js";
import { Backoff, type RetryPolicy, sleep } from "./retry.js";
import { type Message, SseParser } from "./sse.js";

/** A connection that lasted this long was a good one. */
const GOOD_CONNECTION_MS = 5000;

/** What a subscription needs of its log. */
export interface StreamSource {
  readonly retry: RetryPolicy;
  open(after: Cursor, controller: AbortController): Promise<ReadableStream<Uint8Array>>;
  /** Where the subscription begins, looked up once. */
  start(): Promise<Cursor>;
}

export interface SubscriptionLimits {
  heartbeatTimeoutS: number;
  giveUpAfterS: number | undefined;
  whileHeld: Lease | undefined;
}

interface Connection {
  reader: ReadableStreamDefaultReader<Uint8Array>;
  controller: AbortController;
  parser: SseParser;
  openedMs: number;
}

/**
 * Events in order, each once: existing ones first, then new ones for as long as it is open.
 *
 * It reconnects by itself and resumes after the last event it has handed out. `close` ends the
 * iteration, and so does leaving a `for await` loop.
 */
export class Subscription implements AsyncIterableIterator<Event> {
  readonly #source: StreamSource;
  readonly #limits: SubscriptionLimits;
  readonly #leaseEnd: AbortSignal | undefined;
  readonly #closed = new AbortController();
  #cursor: Cursor | undefined;
  #connection: Connection | undefined;
  #arrived: Message[] = [];
  #lastSignOfLifeMs = performance.now();
  #backoff: Backoff;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(source: StreamSource, limits: SubscriptionLimits) {
    this.#source = source;
    this.#limits = limits;
    this.#leaseEnd = limits.whileHeld instanceof HeldLease ? limits.whileHeld.signal : undefined;
    this.#backoff = this.#newBackoff();
  }

  /**
   * Everything up to here was handed out. Saved between two events, it resumes there. Undefined
   * until the first event, if the subscription begins at the end of the log.
   */
  get cursor(): Cursor | undefined {
    return this.#cursor;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * The next event.
   *
   * Throws `AnotherHistory` if the log is not the one the cursor belongs to, `LeaseLost` if the
   * lease has ended that must be held, and whatever else a retry does not mend.
   */
  next(): Promise<IteratorResult<Event, undefined>> {
    // Calls that overlap take turns: each event is handed out once, in order.
    const event = this.#turn.then(() => this.#next());
    this.#turn = event.catch(() => undefined);
    return event;
  }

  /** Ends the subscription. */
  close(): void {
    this.#closed.abort();
    this.#connection?.controller.abort();
  }

  async return(): Promise<IteratorResult<Event, undefined>> {
    this.close();
    return { done: true, value: undefined };
  }

  /** Looks up where the subscription begins. */
  async begin(): Promise<this> {
    this.#cursor = await this.#source.start();
    return this;
  }

  async #next(): Promise<IteratorResult<Event, undefined>> {
    while (!this.#closed.signal.aborted) {
      this.#checkLease();
      const message = this.#arrived.shift();
      if (message !== undefined) {
        const event = this.#takeOrEnd(message);
        if (event !== undefined) {
          this.#backoff = this.#newBackoff();
          return { done: false, value: event };
        }
        continue;
      }
      try {
        await this.#receive();
      } catch (error) {
        const openedMs = this.#connection?.openedMs;
        this.#disconnect();
        if (this.#closed.signal.aborted) {
          break;
        }
        this.#checkLease();
        if (!(error instanceof WellspringError) || !isTemporary(error)) {
          throw error;
        }
        await this.#pause(error, openedMs);
      }
    }
    this.#disconnect();
    return { done: true, value: undefined };
  }

  #checkLease(): void {
    const lost = this.#limits.whileHeld?.lost;
    if (lost !== undefined) {
      this.#disconnect();
      throw lost;
    }
  }

  /** Waits for the next bytes; connects first if need be. */
  async #receive(): Promise<void> {
    const connection = (this.#connection ??= await this.#connect());
    const { reader, controller, parser } = connection;
    const abort = (): void => controller.abort();
    const timer = setTimeout(abort, this.#limits.heartbeatTimeoutS * 1000);
    this.#leaseEnd?.addEventListener("abort", abort);
    let piece: ReadableStreamReadResult<Uint8Array>;
    try {
      piece = await reader.read();
    } catch (cause) {
      throw new Unavailable(`the stream was lost (${String(cause)})`, { cause });
    } finally {
      clearTimeout(timer);
      this.#leaseEnd?.removeEventListener("abort", abort);
    }
    if (piece.done) {
      throw new Unavailable("the server has ended the stream");
    }
    const signs = parser.signsOfLife;
    this.#arrived.push(...parser.feed(piece.value));
    if (parser.signsOfLife > signs) {
      this.#lastSignOfLifeMs = performance.now();
    }
  }

  async #connect(): Promise<Connection> {
    const controller = new AbortController();
    const close = (): void => controller.abort();
    this.#closed.signal.addEventListener("abort", close);
    this.#leaseEnd?.addEventListener("abort", close);
    try {
      const body = await this.#source.open(await this.#start(), controller);
      const openedMs = performance.now();
      return { reader: body.getReader(), controller, parser: new SseParser(), openedMs };
    } finally {
      this.#closed.signal.removeEventListener("abort", close);
      this.#leaseEnd?.removeEventListener("abort", close);
    }
  }

  async #start(): Promise<Cursor> {
    return (this.#cursor ??= await this.#source.start());
  }

  /** The same as `#take`; what follows a message that cannot be used is not handed out. */
  #takeOrEnd(message: Message): Event | undefined {
    try {
      return this.#take(message);
    } catch (error) {
      this.#disconnect();
      throw error;
    }
  }

  /** Moves the cursor; returns the event, if the message is one. */
  #take(message: Message): Event | undefined {
    if (message.event === "problem") {
      throw errorOf(409, new Headers(), message.data, false);
    }
    let reached: Cursor;
    let found: Json;
    try {
      reached = Cursor.parse(message.id ?? "");
      found = JSON.parse(message.data);
    } catch {
      throw new ServerFault(`not an event: ${JSON.stringify(message)}`);
    }
    const known = this.#cursor?.history;
    if (known !== undefined && reached.history !== undefined && known !== reached.history) {
      const problem = { history: reached.history };
      throw new AnotherHistory("the log has another history now", { problem });
    }
    this.#cursor = new Cursor(reached.position, reached.history ?? known);
    return message.event === "message" ? Event.ofJson(found, this.#cursor.history) : undefined;
  }

  #disconnect(): void {
    // The next connection resumes after what was handed out.
    this.#arrived = [];
    this.#connection?.controller.abort();
    this.#connection = undefined;
  }

  async #pause(error: WellspringError, openedMs: number | undefined): Promise<void> {
    const nowMs = performance.now();
    const { giveUpAfterS } = this.#limits;
    if (giveUpAfterS !== undefined && nowMs - this.#lastSignOfLifeMs > giveUpAfterS * 1000) {
      throw error;
    }
    if (openedMs !== undefined && nowMs - openedMs > GOOD_CONNECTION_MS) {
      this.#backoff = this.#newBackoff();
    }
    await sleep(this.#backoff.nextPauseS(error.retryAfter) ?? 0, this.#closed.signal);
  }

  #newBackoff(): Backoff {
    return new Backoff({ ...this.#source.retry, attempts: Infinity, totalS: Infinity });
  }
}
