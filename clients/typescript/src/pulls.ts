/** One loop of a worker: it takes deliveries, has them handled, and tells what came of it. */

import { listed } from "./bulk.js";
import type { LogCalls } from "./calls.js";
import { consumerPath } from "./consumers.js";
import { Delivery, Park } from "./delivery.js";
import {
  AnotherHistory,
  Forbidden,
  Unauthenticated,
  WellspringError,
  isTemporary,
} from "./errors.js";
import { type NewEvent, eventJson } from "./events.js";
import { EXTEND_AFTER, HeldDeliveries, Hold } from "./holds.js";
import { newKey } from "./keys.js";
import type { Notices } from "./notices.js";
import { Backoff, DEFAULT_RETRY, NO_RETRY, type RetryPolicy, sleep } from "./retry.js";
import { historyOf, jsonText, member } from "./wire.js";

type Handled = Iterable<NewEvent> | void | null | undefined;

/** Does the work of a delivery; what it returns is appended as the delivery is settled. */
export type Handler = (delivery: Delivery) => Handled | Promise<Handled>;

/** What all loops of a worker share. */
export interface WorkerParts {
  calls: LogCalls;
  consumer: string;
  handle: Handler;
  batch: number;
  /** Called when what is held, and so when it has to be extended, has changed. */
  changed: () => void;
  notices: Notices;
}

/** What came of a delivery: the member of the next call, and its item. */
type Outcome = [kind: "done" | "failed" | "park" | "release", item: unknown];

/** How long the server lets a call wait, and after what it repeats a late settlement. */
const WAIT_MS = 20_000;
const STAGED_WAIT_MS = 100;
const LONGEST_REASON_BYTES = 1024;
/** Outages are waited out, but not at the end. */
const ENDLESS: RetryPolicy = { attempts: Infinity, totalS: Infinity, firstS: 0.05, longestS: 5 };
const AT_THE_END: RetryPolicy = { ...DEFAULT_RETRY, totalS: 5 };
/** These do not concern one event alone. */
const FATAL = [AnotherHistory, Unauthenticated, Forbidden];
const VERBS = { done: "settle", failed: "fail", park: "park", release: "release" };

/** Takes deliveries, one call after the other: the next one is made after the last answer. */
export class Puller {
  readonly held = new HeldDeliveries();
  readonly #parts: WorkerParts;
  readonly #stopping = new AbortController();
  readonly #path: string;
  #worker: string;
  #turn = 0;
  /** A call without an answer, which is repeated as it was. */
  #sent: Record<string, unknown> | undefined;
  /** What came of deliveries: in the call, and in the next one. */
  #told = new Map<string, Outcome>();
  #outcomes = new Map<string, Outcome>();
  #isStaged = false;

  /** `worker` is a name that nothing else has or has had. */
  constructor(parts: WorkerParts, worker: string) {
    this.#parts = parts;
    this.#path = consumerPath(parts.consumer);
    this.#worker = worker;
  }

  /** Throws an error that waiting does not mend, such as `NotFound`. */
  async look(): Promise<void> {
    try {
      await this.#takeTurn(0, 0);
    } catch (error) {
      if (!isWaitedOut(error)) {
        throw error;
      }
    }
  }

  /** Works until the worker is stopped, then gives back what was not begun. */
  async work(): Promise<void> {
    const stopping = this.#stopping.signal;
    let backoff = new Backoff(ENDLESS);
    try {
      while (!stopping.aborted) {
        const [askedMs, waitMs] = [performance.now(), this.#waitMs];
        const deliveries = await this.#pull(waitMs);
        await this.#workOn(deliveries);
        if (deliveries.length > 0 || performance.now() - askedMs > waitMs / 2) {
          backoff = new Backoff(ENDLESS);
        } else {
          // A server that does not wait is not asked without a pause.
          await sleep(backoff.nextPauseS() ?? 0, stopping);
        }
      }
    } finally {
      await this.#leave();
    }
  }

  /** Ends a wait for deliveries, and `work` after what runs. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Extends the hold. */
  async extend(): Promise<void> {
    const { timeoutMs, end } = this.held.extend();
    let isLost: boolean;
    try {
      const times = { retry: NO_RETRY, timeoutS: timeoutMs / 1000 };
      const sent = jsonText({ worker: this.#worker });
      const answer = await this.#parts.calls.consume(`${this.#path}/extend`, sent, times);
      const found = answer.json();
      isLost = end(member(found, "held", "number"), member(found, "hold_ms", "number"));
    } catch {
      return; // It is due again soon.
    }
    if (isLost) {
      this.#parts.notices.say("what it holds was lost: it was silent or busy for too long");
    }
  }

  /** How long the next call may wait; so short that its answer leaves most of the hold. */
  get #waitMs(): number {
    const mostMs = Math.min(WAIT_MS, this.held.holdMs * EXTEND_AFTER);
    return this.#isStaged ? STAGED_WAIT_MS : Math.round(mostMs);
  }

  /** Takes deliveries; waits out whatever is temporary. */
  async #pull(waitMs: number): Promise<Delivery[]> {
    const backoff = new Backoff(ENDLESS);
    for (;;) {
      try {
        return await this.#takeTurn(this.#parts.batch, waitMs);
      } catch (error) {
        if (this.#stopping.signal.aborted) {
          return [];
        }
        if (error instanceof WellspringError && error.type === "turn-passed") {
          await this.#rename();
        } else if (isWaitedOut(error)) {
          await this.#waitOut(error, backoff);
        } else {
          throw error;
        }
      }
    }
  }

  /** Tells what came of deliveries and takes new ones; or repeats that, after an error. */
  async #takeTurn(want: number, waitMs: number, isLast = false): Promise<Delivery[]> {
    if (this.#sent === undefined) {
      this.#turn += 1;
      [this.#told, this.#outcomes] = [this.#outcomes, new Map()];
      this.held.lose();
      const lists: Record<string, unknown[]> = {};
      for (const [kind, item] of this.#told.values()) {
        (lists[kind] ??= []).push(item);
      }
      this.#sent = { worker: this.#worker, turn: this.#turn, ...lists, want, wait_ms: waitMs };
    }
    const askedMs = performance.now();
    const { calls, changed, notices } = this.#parts;
    const answer = await calls.consume(`${this.#path}/next`, jsonText(this.#sent), {
      retry: isLast ? AT_THE_END : NO_RETRY,
      timeoutS: calls.transport.timeoutS + (this.#sent["wait_ms"] as number) / 1000,
      signal: isLast ? undefined : this.#stopping.signal,
    });
    const found = answer.json();
    const holdMs = member(found, "hold_ms", "number");
    const state = member(found, "state", "string");
    const [hold, history] = [new Hold(), historyOf(answer.headers)];
    const deliveries = member(found, "deliveries", "array");
    const taken = deliveries.map((each) => new Delivery(each, history, hold));
    [this.#sent, this.#isStaged] = [undefined, false];
    this.held.take(hold, taken.map(({ id }) => id), askedMs, holdMs);
    changed();
    for (const refusal of found.refused ?? []) {
      this.#hear(member(refusal, "delivery", "string"), member(refusal, "problem", "string"));
    }
    this.#told = new Map();
    notices.hear(state);
    return taken;
  }

  async #workOn(deliveries: Delivery[]): Promise<void> {
    const { notices } = this.#parts;
    try {
      for (const delivery of deliveries) {
        if (this.#stopping.signal.aborted) {
          this.#release(delivery);
        } else if (delivery.isHeld) {
          await this.#try(delivery);
        } else {
          notices.say(`${delivery} was lost before it was begun: it comes again`);
          this.#release(delivery);
        }
      }
    } catch (error) {
      for (const delivery of deliveries) {
        if (this.held.has(delivery.id) && !this.#outcomes.has(delivery.id)) {
          this.#release(delivery);
        }
      }
      throw error;
    }
  }

  /** Has a delivery handled; what the handler throws is a reason to try again. */
  async #try(delivery: Delivery): Promise<void> {
    const { consumer, handle } = this.#parts;
    let body: string | undefined;
    try {
      const made = await handle(delivery);
      const list = made === undefined || made === null ? [] : [...listed(made)];
      if (list.length > 0) {
        const events = list.map((event, index) => eventJson(event, `events[${index}]`));
        const settles = { consumer, worker: this.#worker, delivery: delivery.id };
        body = jsonText({ events, settles });
      }
    } catch (error) {
      if (isFatal(error)) {
        throw error;
      }
      if (error instanceof Park) {
        this.#outcomes.set(delivery.id, ["park", because(delivery, error.message)]);
      } else {
        this.#fail(delivery, error);
      }
      return;
    }
    if (body === undefined) {
      this.#outcomes.set(delivery.id, ["done", delivery.id]);
    } else {
      await this.#append(delivery, body);
    }
  }

  /** Appends events and settles the delivery as one; repeats that until it is known. */
  async #append(delivery: Delivery, body: string): Promise<void> {
    const { calls, notices } = this.#parts;
    const backoff = new Backoff(ENDLESS);
    for (;;) {
      try {
        const answer = await calls.consume("/append", body);
        calls.session.hasWritten(member(answer.json(), "last", "number"));
        this.held.forget(delivery.id);
        return;
      } catch (error) {
        const type = error instanceof WellspringError ? error.type : "";
        if (type === "delivery-settled" || type === "delivery-lost") {
          this.held.forget(delivery.id);
          if (type === "delivery-lost") {
            notices.say(`${delivery} was lost, and its events were not appended`);
          }
          return;
        }
        if (isFatal(error)) {
          throw error;
        }
        if (!isWaitedOut(error)) {
          this.#fail(delivery, error);
          return;
        }
        if (this.#stopping.signal.aborted) {
          notices.say(`${delivery}: its append may have been done (${error.message})`);
          this.#release(delivery);
          return;
        }
        await this.#waitOut(error, backoff);
      }
    }
  }

  #fail(delivery: Delivery, fault: unknown): void {
    this.#parts.notices.say(`${delivery} has failed`, fault);
    this.#outcomes.set(delivery.id, ["failed", because(delivery, String(fault))]);
  }

  #release(delivery: Delivery): void {
    this.#outcomes.set(delivery.id, ["release", delivery.id]);
  }

  /** Takes notice that what became of a delivery was refused. */
  #hear(delivery: string, problem: string): void {
    const told = this.#told.get(delivery);
    if (problem === "delivery-staged" && told !== undefined) {
      // An append of ours is under way: then it is settled, or held again.
      this.#outcomes.set(delivery, told);
      this.#isStaged = true;
    } else if (told?.[0] !== "release") {
      const verb = told === undefined ? "know" : VERBS[told[0]];
      const message = `delivery ${delivery}: refused to ${verb} it (${problem}); it may come again`;
      this.#parts.notices.say(message);
    }
  }

  async #waitOut(error: WellspringError, backoff: Backoff): Promise<void> {
    this.#parts.notices.miss(error);
    await sleep(backoff.nextPauseS(error.retryAfter) ?? 0, this.#stopping.signal);
  }

  /** Goes on under a new name: another process has used it. */
  async #rename(): Promise<void> {
    for (const delivery of this.#told.keys()) {
      this.#hear(delivery, `another process goes by the name ${this.#worker}`);
    }
    this.#worker = await newKey();
    [this.#turn, this.#sent, this.#told] = [0, undefined, new Map()];
  }

  /** Tells what came of the last deliveries, and gives back those that were not begun. */
  async #leave(): Promise<void> {
    try {
      if (this.#sent !== undefined) {
        // Its answer may have been on its way.
        this.#sent = { ...this.#sent, want: 0, wait_ms: 0 };
        (await this.#takeTurn(0, 0, true)).forEach((delivery) => this.#release(delivery));
      }
      const endsMs = performance.now() + AT_THE_END.totalS * 1000;
      while (this.#outcomes.size > 0 && performance.now() < endsMs) {
        await this.#takeTurn(0, 0, true);
        if (this.#outcomes.size > 0) {
          await sleep(STAGED_WAIT_MS / 1000);
        }
      }
    } catch (error) {
      const { size } = new Map([...this.#told, ...this.#outcomes]);
      if (size > 0) {
        this.#parts.notices.say(`what came of ${size} deliveries could not be told: ${error}`);
      }
    }
  }
}

function isWaitedOut(error: unknown): error is WellspringError {
  return error instanceof WellspringError && isTemporary(error);
}

function isFatal(error: unknown): boolean {
  return FATAL.some((kind) => error instanceof kind);
}

/** A reason as it is sent: cut between characters. */
function because(delivery: Delivery, reason: string): { delivery: string; reason: string } {
  const bytes = new TextEncoder().encode(reason).subarray(0, LONGEST_REASON_BYTES);
  const cut = new TextDecoder().decode(bytes, { stream: true });
  return { delivery: delivery.id, reason: cut };
}
