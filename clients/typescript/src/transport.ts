/** Requests over `fetch`, repeated where that is safe. */

import {
  OutcomeUnknown,
  ServerFault,
  Unavailable,
  Untrusted,
  WellspringError,
  errorOf,
  isTemporary,
} from "./errors.js";
import { type Json, toBase64 } from "./events.js";
import { Backoff, type RetryPolicy, sleep } from "./retry.js";

/** A secret, or what returns the current one; it is called for every request. */
export type Secret = string | (() => string | Promise<string>);

/** At most one of a token, an API key, and a name with its password. */
export interface Credentials {
  token?: Secret | undefined;
  key?: Secret | undefined;
  basic?: readonly [name: string, password: string] | undefined;
}

/** A request, and whether it may be repeated. */
export interface Request {
  method: string;
  path: string;
  body?: string | Uint8Array | undefined;
  headers?: Record<string, string>;
  /** Whether a repetition does no harm; true if absent. */
  isSafe?: boolean;
  /** Whether it matters if a request without an answer was done. */
  changes?: boolean;
  timeoutS?: number;
}

/** A successful answer. */
export class Answer {
  constructor(
    readonly status: number,
    readonly headers: Headers,
    readonly body: string,
  ) {}

  /** The body as JSON. */
  json(): Json {
    try {
      return JSON.parse(this.body);
    } catch {
      const status = this.status;
      throw new ServerFault(`the answer is not JSON: ${this.body.slice(0, 200)}`, { status });
    }
  }
}

/** Codes of Node's `fetch` for a request that was never sent. */
const NOT_SENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);
const NOT_TRUSTED = /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;

/** The way to one server. */
export class Transport {
  readonly url: string;
  readonly #credentials: Credentials;
  readonly #fetch: typeof fetch;

  constructor(
    url: string,
    credentials: Credentials,
    readonly timeoutS: number,
    readonly retry: RetryPolicy,
    fetcher: typeof fetch,
  ) {
    const parts = new URL(url);
    if (!["http:", "https:"].includes(parts.protocol) || parts.search !== "") {
      throw new RangeError(`not the URL of a server: ${url}`);
    }
    if (parts.username !== "" || parts.password !== "") {
      throw new RangeError("give credentials as token, key or basic, not in the URL");
    }
    const { token, key, basic } = credentials;
    if ([token, key, basic].filter((given) => given !== undefined).length > 1) {
      throw new RangeError("give one of token, key and basic");
    }
    this.url = url.replace(/\/+$/, "");
    this.#credentials = credentials;
    this.#fetch = fetcher;
  }

  /**
   * Sends a request, again where that is safe and may help.
   *
   * Throws the last error; `OutcomeUnknown` if an attempt at a change may have been done.
   */
  async exchange(request: Request): Promise<Answer> {
    const backoff = new Backoff(this.retry);
    let doubt: WellspringError | undefined;
    for (;;) {
      try {
        return await this.#attempt(request);
      } catch (error) {
        if (!(error instanceof WellspringError)) {
          throw error;
        }
        if (error instanceof OutcomeUnknown || error.status === 500) {
          doubt = error;
        }
        const isFinal = !isTemporary(error);
        const mayRepeat = !isFinal && request.isSafe !== false;
        const pauseS = mayRepeat ? backoff.nextPauseS(error.retryAfter) : undefined;
        if (pauseS === undefined) {
          if (doubt === undefined || isFinal || request.changes !== true || doubt === error) {
            throw error;
          }
          const message = `no attempt was confirmed, and one may have been done: ${error.message}`;
          throw new OutcomeUnknown(message, { problem: doubt.problem, cause: error });
        }
        await sleep(pauseS);
      }
    }
  }

  /** Sends a request whose answer is a stream; never repeated. */
  async open(request: Request, controller: AbortController): Promise<Response> {
    const timer = setTimeout(() => controller.abort(), this.#timeoutMs(request));
    try {
      const response = await this.#send(request, controller.signal);
      if (response.status !== 200 || response.body === null) {
        const body = await response.text().catch(() => "");
        throw errorOf(response.status, response.headers, body);
      }
      return response;
    } finally {
      clearTimeout(timer);
    }
  }

  async #attempt(request: Request): Promise<Answer> {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), this.#timeoutMs(request));
    try {
      const response = await this.#send(request, controller.signal);
      let body: string;
      try {
        body = await response.text();
      } catch (fault) {
        throw this.#lost(request, fault);
      }
      if (!response.ok) {
        throw errorOf(response.status, response.headers, body);
      }
      return new Answer(response.status, response.headers, body);
    } finally {
      clearTimeout(timer);
    }
  }

  async #send(request: Request, signal: AbortSignal): Promise<Response> {
    const headers = new Headers({
      Accept: "application/json",
      ...(await this.#authorization()),
      ...request.headers,
    });
    const { method, body } = request;
    try {
      return await this.#fetch(this.url + request.path, {
        method,
        headers,
        signal,
        credentials: "omit",
        cache: "no-store",
        redirect: "manual",
        ...(body === undefined ? {} : { body: body as BodyInit }),
      });
    } catch (fault) {
      throw this.#lost(request, fault);
    }
  }

  #lost(request: Request, fault: unknown): WellspringError {
    const cause = (fault as { cause?: { code?: unknown } } | undefined)?.cause;
    const code = typeof cause?.code === "string" ? cause.code : "";
    const facts = { cause: fault };
    if (NOT_TRUSTED.test(code)) {
      return new Untrusted(`${this.url}: the certificate is not trusted (${code})`, facts);
    }
    if (NOT_SENT.has(code)) {
      return new Unavailable(`cannot connect to ${this.url} (${code})`, facts);
    }
    const isLate = (fault as { name?: unknown } | undefined)?.name === "AbortError";
    const what = isLate ? "no answer in time" : `connection lost (${code || String(fault)})`;
    const kind = request.changes === true ? OutcomeUnknown : Unavailable;
    return new kind(`${this.url}: ${what}`, facts);
  }

  #timeoutMs(request: Request): number {
    return (request.timeoutS ?? this.timeoutS) * 1000;
  }

  async #authorization(): Promise<Record<string, string>> {
    const { token, key, basic } = this.#credentials;
    if (token !== undefined) {
      return { Authorization: `Bearer ${await valueOf(token)}` };
    }
    if (key !== undefined) {
      return { "X-API-Key": await valueOf(key) };
    }
    if (basic !== undefined) {
      const pair = new TextEncoder().encode(basic.join(":"));
      return { Authorization: `Basic ${toBase64(pair)}` };
    }
    return {};
  }
}

async function valueOf(secret: Secret): Promise<string> {
  return typeof secret === "string" ? secret : await secret();
}
