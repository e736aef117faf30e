/** Idempotency keys. */

/** Where Node 18 keeps what later versions and browsers have as a global. */
const NODE_CRYPTO: string = "node:crypto";

/** A new idempotency key, unique among all clients. */
export async function newKey(): Promise<string> {
  const crypto: Crypto = globalThis.crypto ?? (await import(NODE_CRYPTO)).webcrypto;
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
