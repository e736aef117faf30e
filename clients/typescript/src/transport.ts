/** Requests over `fetch`, repeated where that is safe. */

import {
  OutcomeUnknown,
  ServerFault,
  Unavailable,
  Untrusted,
  WellspringError,
  errorOf,
  isTemporary,
  settlesDoubt,
} from "./errors.js";
import { type Json, toBase64 } from "./events.js";
import { Backoff, type RetryPolicy, sleep } from "./retry.js";
import { headerValue, wellFormed } from "./wire.js";

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
  timeoutS?: number | undefined;
  /** Ends the wait for the answer, which is then lost. */
  signal?: AbortSignal | undefined;
}

/** The connection ended before the answer did. */
class CutShort extends Error {
  override readonly name = "CutShort";
}

/** A successful answer. */
export class Answer {
  readonly #body: string;
  readonly #document: { value: Json } | undefined;

  constructor(
    readonly status: number,
    readonly headers: Headers,
    body: string,
  ) {
    this.#body = body;
    this.#document = documentOf(headers, body);
  }

  /** The body as JSON. */
  json(): Json {
    if (this.#document === undefined) {
      const status = this.status;
      throw new ServerFault(`the answer is not JSON: ${this.#body.slice(0, 200)}`, { status });
    }
    return this.#document.value;
  }
}

function documentOf(headers: Headers, body: string): { value: Json } | undefined {
  const isEmpty = headers.get("content-length") === "0";
  const saysJson = !isEmpty && mediaTypeOf(headers).includes("json");
  try {
    return body !== "" || saysJson ? { value: JSON.parse(body) } : undefined;
  } catch {
    if (!saysJson) {
      return undefined;
    }
    // A gateway that speaks HTTP/1.0, or has stored what it got, hides where the answer ended.
    throw new CutShort("the answer says that it is JSON, and is not");
  }
}

function mediaTypeOf(headers: Headers): string {
  return (headers.get("content-type") ?? "").split(";", 1)[0]!.trim().toLowerCase();
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
    for (const [what, secret] of Object.entries({ token, key })) {
      if (secret !== undefined && typeof secret !== "function") {
        headerValue(secret, what);
      }
    }
    if (basic !== undefined) {
      basicOf(basic);
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
  async exchange(request: Request, retry: RetryPolicy = this.retry): Promise<Answer> {
    const backoff = new Backoff(retry);
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
          const isSettled = doubt === undefined || (isFinal && settlesDoubt(error));
          if (isSettled || request.changes !== true || doubt === error) {
            throw error;
          }
          const message = `no attempt was confirmed, and one may have been done: ${error.message}`;
          throw new OutcomeUnknown(message, { problem: doubt?.problem, cause: error });
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
        throw errorOf(response.status, response.headers, body, request.changes === true);
      }
      const type = mediaTypeOf(response.headers);
      if (type !== "text/event-stream") {
        controller.abort();
        const kind = type === "" ? "no type" : `type ${type}`;
        const message = `${this.url}: the answer is of ${kind}, not a stream of events`;
        throw new ServerFault(message, { status: 200, headers: response.headers });
      }
      return response;
    } finally {
      clearTimeout(timer);
    }
  }

  async #attempt(request: Request): Promise<Answer> {
    const controller = new AbortController();
    const abort = (): void => controller.abort();
    const timer = setTimeout(abort, this.#timeoutMs(request));
    request.signal?.addEventListener("abort", abort);
    if (request.signal?.aborted) {
      abort();
    }
    try {
      const response = await this.#send(request, controller.signal);
      let body: string;
      let answer: Answer;
      try {
        body = await response.text();
        answer = new Answer(response.status, response.headers, body);
      } catch (fault) {
        throw this.#lost(request, fault);
      }
      if (!response.ok) {
        throw errorOf(response.status, response.headers, body, request.changes === true);
      }
      return answer;
    } finally {
      request.signal?.removeEventListener("abort", abort);
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
      return { Authorization: `Bearer ${await valueOf(token, "token")}` };
    }
    if (key !== undefined) {
      return { "X-API-Key": await valueOf(key, "key") };
    }
    if (basic !== undefined) {
      return { Authorization: basicOf(basic) };
    }
    return {};
  }
}

async function valueOf(secret: Secret, what: string): Promise<string> {
  return headerValue(typeof secret === "function" ? await secret() : secret, what);
}

function basicOf(nameAndPassword: readonly [name: string, password: string]): string {
  const pair = nameAndPassword.join(":");
  if (/[\0-\x1f\x7f]/.test(pair)) {
    throw new RangeError(
      "basic has a control character, such as the line break at the end of a file; remove it",
    );
  }
  return `Basic ${toBase64(new TextEncoder().encode(wellFormed(pair)))}`;
}
