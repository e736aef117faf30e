/// <reference lib="esnext.disposable" preserve="true" />
/** Exclusive leases, and the fence that keeps a former holder from appending. */

import { LeaseHeld, LeaseLost } from "./errors.js";
import type { Json } from "./events.js";
import { newKey } from "./keys.js";
import { member } from "./wire.js";

/** Of its time, a lease is renewed after this part, and again after this part of what is left. */
const RENEW_AFTER = 1 / 3;
const SHORTEST_TIMEOUT_S = 0.05;
/** What the server lets one request wait. */
const LONGEST_WAIT_S = 60;

/** Makes an append fail with `LeaseLost` unless the lease is held with this token. */
export interface Fence {
  lease: string;
  token: number;
}

/** Sends a request about a lease to its log; with a time limit, once. */
export type LeaseCall = (
  method: "POST" | "PUT" | "DELETE",
  path: string,
  body?: Record<string, unknown>,
  times?: { waitS?: number; limitS?: number },
) => Promise<Json>;

/** What a lease is made of. */
export interface Grant {
  path: string;
  granted: Json;
  /** When it was asked for, by a clock that is never set. */
  askedMs: number;
  call: LeaseCall;
}

/**
 * A lease that this client holds until its time is up, unless renewed.
 *
 * It does not renew itself, `Log.holdLease` does: without a `fence` on its appends, a holder that
 * was paused too long does not know that it lost the lease.
 */
export class Lease {
  readonly name: string;
  readonly token: number;
  #ttlS = 0;
  #expiresAt = "";
  #deadlineMs = 0;
  readonly #path: string;
  readonly #call: LeaseCall;

  constructor({ path, granted, askedMs, call }: Grant) {
    this.name = member(granted, "name", "string");
    this.token = member(granted, "token", "number");
    this.#path = path;
    this.#call = call;
    this.#take(granted, askedMs);
  }

  get ttlS(): number {
    return this.#ttlS;
  }

  /** When it ends by the server's clock, unless renewed (RFC 3339); for people. */
  get expiresAt(): string {
    return this.#expiresAt;
  }

  /** What `Log.append` takes as `fence`. */
  get fence(): Fence {
    return { lease: this.name, token: this.token };
  }

  /** How long it is certain to be held, by a clock that is never set. */
  get leftS(): number {
    return (this.#deadlineMs - performance.now()) / 1000;
  }

  /** Why it is not certain to be held now; undefined if it is. */
  get lost(): LeaseLost | undefined {
    if (this.leftS > 0) {
      return undefined;
    }
    return new LeaseLost(`the lease ${JSON.stringify(this.name)} has ended: its time was up`);
  }

  /** Holds the lease for `ttlS` from now; throws `LeaseLost` if it has ended. */
  async renew(limitS?: number): Promise<void> {
    const sent = { token: this.token, ttl_ms: Math.round(this.#ttlS * 1000) };
    const askedMs = performance.now();
    const times = limitS === undefined ? {} : { limitS };
    this.#take(await this.#call("PUT", this.#path, sent, times), askedMs);
  }

  #take(granted: Json, askedMs: number): void {
    this.#expiresAt = member(granted, "expires_at", "string");
    this.#ttlS = member(granted, "ttl_ms", "number") / 1000;
    // The server has counted from a later moment.
    this.#deadlineMs = askedMs + this.#ttlS * 1000;
  }

  /** Ends the lease; throws `LeaseLost` if it had ended before. */
  async release(): Promise<void> {
    await this.#call("DELETE", `${this.#path}?token=${this.token}`);
  }

  /** Releases it at the end of `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.release();
    } catch (error) {
      if (!(error instanceof LeaseLost)) {
        throw error;
      }
    }
  }
}

/**
 * A lease that renews itself until it is released or lost.
 *
 * Subscriptions with `whileHeld` end when it is lost, and its `signal` is aborted.
 */
export class HeldLease extends Lease {
  readonly #ended = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(grant: Grant) {
    super(grant);
    this.#plan(this.ttlS * RENEW_AFTER);
  }

  /** Is aborted when the lease is lost or released, with a `LeaseLost` as its reason. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  override get lost(): LeaseLost | undefined {
    const { aborted, reason } = this.#ended.signal;
    return aborted ? (reason as LeaseLost) : super.lost;
  }

  /** Ends the lease; throws `LeaseLost` if it had ended before. */
  override async release(): Promise<void> {
    if (!this.#ended.signal.aborted) {
      this.#end("was released");
      await super.release();
    }
  }

  #end(what: string, cause?: unknown): void {
    clearTimeout(this.#timer);
    const problem = cause instanceof LeaseLost ? cause.problem : undefined;
    const message = `the lease ${JSON.stringify(this.name)} ${what}`;
    this.#ended.abort(new LeaseLost(message, { problem, cause }));
  }

  #plan(pauseS: number, fault?: unknown): void {
    this.#timer = setTimeout(() => void this.#keep(fault), pauseS * 1000);
    // A program that has nothing else to do may end.
    (this.#timer as { unref?: () => void }).unref?.();
  }

  async #keep(fault: unknown): Promise<void> {
    const { leftS } = this;
    if (leftS <= 0) {
      this.#end(`was lost: it could not be renewed in time (${String(fault)})`, fault);
      return;
    }
    let pauseS = this.ttlS * RENEW_AFTER;
    try {
      await this.renew(Math.max(leftS * RENEW_AFTER, SHORTEST_TIMEOUT_S));
      fault = undefined;
    } catch (error) {
      if (this.#ended.signal.aborted) {
        return;
      }
      if (error instanceof LeaseLost) {
        this.#end("was lost: it has expired or has another holder", error);
        return;
      }
      fault = error;
      pauseS = Math.min(this.ttlS / 30, Math.max(this.leftS, 0));
    }
    if (!this.#ended.signal.aborted) {
      this.#plan(pauseS, fault);
    }
  }
}

/** Asks for a lease, and returns what a `Lease` is made of. */
export async function acquire(
  call: LeaseCall,
  path: string,
  ttlS: number,
  waitS: number,
): Promise<Grant> {
  const sent = {
    ttl_ms: Math.round(ttlS * 1000),
    // Under a name of its own the request may be repeated: it gets the same token.
    holder: await newKey(),
    ...(waitS > 0 ? { wait_ms: Math.round(waitS * 1000) } : {}),
  };
  let askedMs = performance.now();
  const granted = await call("POST", path, sent, { waitS });
  if (performance.now() - askedMs > (ttlS * 1000) / 3) {
    // It may have been granted just now, after the wait, or long ago: a renewal tells.
    const lease = new Lease({ path, granted, askedMs, call });
    askedMs = performance.now();
    await lease.renew();
  }
  return { path, granted, askedMs, call };
}

/** Waits for a lease that renews itself, for ever or at most `waitS`. */
export async function hold(
  call: LeaseCall,
  path: string,
  ttlS: number,
  waitS = Infinity,
): Promise<HeldLease> {
  const endsMs = performance.now() + waitS * 1000;
  for (;;) {
    const leftS = Math.max((endsMs - performance.now()) / 1000, 0);
    try {
      return new HeldLease(await acquire(call, path, ttlS, Math.min(leftS, LONGEST_WAIT_S)));
    } catch (error) {
      // Lost: it was granted, and the answer came too late.
      const again = error instanceof LeaseHeld || error instanceof LeaseLost;
      if (!again || performance.now() >= endsMs) {
        throw error;
      }
    }
  }
}
