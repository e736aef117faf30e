/** Exclusive leases, and the fence that keeps a former holder from appending. */

import type { Json } from "./events.js";
import { member } from "./wire.js";

/** Makes an append fail with `LeaseLost` unless the lease is held with this token. */
export interface Fence {
  lease: string;
  token: number;
}

/** Sends a request about a lease to its log. */
export type LeaseCall = (
  method: "PUT" | "DELETE",
  path: string,
  body?: Record<string, unknown>,
) => Promise<Json>;

/**
 * A lease that this client holds until `expiresAt`, unless renewed.
 *
 * It does not renew itself: without a `fence` on its appends, a holder that was paused too long
 * does not know that it lost the lease.
 */
export class Lease {
  readonly name: string;
  readonly token: number;
  readonly ttlS: number;
  #expiresAt: string;
  readonly #path: string;
  readonly #call: LeaseCall;

  constructor(path: string, granted: Json, call: LeaseCall) {
    this.name = member(granted, "name", "string");
    this.token = member(granted, "token", "number");
    this.ttlS = member(granted, "ttl_ms", "number") / 1000;
    this.#expiresAt = member(granted, "expires_at", "string");
    this.#path = path;
    this.#call = call;
  }

  /** When it ends, unless renewed (RFC 3339). */
  get expiresAt(): string {
    return this.#expiresAt;
  }

  /** What `Log.append` takes as `fence`. */
  get fence(): Fence {
    return { lease: this.name, token: this.token };
  }

  /** Holds the lease for `ttlS` from now; throws `LeaseLost` if it has ended. */
  async renew(): Promise<void> {
    const sent = { token: this.token, ttl_ms: Math.round(this.ttlS * 1000) };
    this.#expiresAt = member(await this.#call("PUT", this.#path, sent), "expires_at", "string");
  }

  /** Ends the lease; throws `LeaseLost` if it had ended before. */
  async release(): Promise<void> {
    await this.#call("DELETE", `${this.#path}?token=${this.token}`);
  }
}
