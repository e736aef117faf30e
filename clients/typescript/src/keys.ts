/** Idempotency keys. */

import { headerValue } from "./wire.js";

const LONGEST_KEY = 255;
// `appendBulk` adds a point and the number of the batch.
export const LONGEST_BULK_KEY = 230;

/** Where Node 18 keeps what later versions and browsers have as a global. */
const NODE_CRYPTO: string = "node:crypto";

/** The key that the caller has given, or a new one. */
export async function idempotencyKey(
  given: string | undefined,
  limit = LONGEST_KEY,
): Promise<string> {
  if (given === undefined) {
    return newKey();
  }
  if (headerValue(given, "key").length > limit) {
    throw new RangeError(`key has ${given.length} bytes; the limit here is ${limit} bytes`);
  }
  return given;
}

/** A new idempotency key, unique among all clients. */
export async function newKey(): Promise<string> {
  const crypto: Crypto = globalThis.crypto ?? (await import(NODE_CRYPTO)).webcrypto;
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
