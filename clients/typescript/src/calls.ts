/** The requests of one log, and the history that their answers tell. */

import type { Cursor } from "./cursor.js";
import { WellspringError } from "./errors.js";
import type { Json } from "./events.js";
import type { RetryPolicy } from "./retry.js";
import type { Session } from "./session.js";
import type { Answer, Transport } from "./transport.js";
import { jsonText, segment } from "./wire.js";

/** Sends requests to a log, and has its session check what they are told. */
export class LogCalls {
  readonly path: string;

  constructor(readonly transport: Transport, name: string, readonly session: Session) {
    this.path = `/v1/logs/${segment(name, "the name of a log")}`;
  }

  async read(method: string, path: string, sent?: unknown, history?: string): Promise<Answer> {
    const answer = await this.transport.exchange({
      method,
      path: this.path + path,
      body: sent === undefined ? undefined : jsonText(sent),
      headers: {
        ...this.session.identity(history),
        ...this.session.freshness(),
        ...(sent === undefined ? {} : { "Content-Type": "application/json" }),
      },
    });
    this.session.learn(answer.headers, history);
    return answer;
  }

  /** Appends under a key, which errors then name; `read` reads the answer. */
  async keyed<T>(
    body: string,
    kind: string,
    key: string,
    history: string | undefined,
    read: (found: Json) => T,
  ): Promise<T> {
    const identity = this.session.identity(history);
    try {
      const answer = await this.transport.exchange({
        method: "POST",
        path: `${this.path}/append`,
        body,
        headers: { ...identity, "Content-Type": kind, "Idempotency-Key": key },
        changes: true,
      });
      this.session.learn(answer.headers, history);
      return read(answer.json());
    } catch (error) {
      if (error instanceof WellspringError) {
        error.key = key;
      }
      throw error;
    }
  }

  async change(
    method: string,
    path: string,
    body?: string | Uint8Array,
    kind = "application/json",
    options: { isSafe?: boolean; timeoutS?: number } = {},
  ): Promise<Answer> {
    const answer = await this.transport.exchange({
      method,
      path: this.path + path,
      body,
      headers: {
        ...this.session.identity(),
        ...(body === undefined ? {} : { "Content-Type": kind }),
      },
      changes: true,
      isSafe: false,
      ...options,
    });
    this.session.learn(answer.headers);
    return answer;
  }

  /** Sends a worker's request: the same one has its effect once. */
  async consume(
    path: string,
    body: string,
    options: { retry?: RetryPolicy; timeoutS?: number; signal?: AbortSignal | undefined } = {},
  ): Promise<Answer> {
    const { retry, timeoutS, signal } = options;
    const request = {
      method: "POST",
      path: this.path + path,
      body,
      headers: { ...this.session.identity(), "Content-Type": "application/json" },
      changes: true,
      timeoutS,
      signal,
    };
    const answer = await this.transport.exchange(request, retry);
    this.session.learn(answer.headers);
    return answer;
  }

  async openStream(
    wanted: Record<string, unknown>,
    after: Cursor,
    timeoutS: number,
    controller: AbortController,
  ): Promise<ReadableStream<Uint8Array>> {
    const request = {
      method: "POST",
      path: `${this.path}/query`,
      body: jsonText({ ...wanted, after: after.position }),
      headers: {
        // No freshness is asked for: own writes will come. A server that has lost them since must
        // say that its log is behind `after`, instead of being waited for.
        ...this.session.identity(after.history),
        Accept: "text/event-stream",
        "Content-Type": "application/json",
      },
      timeoutS,
    };
    const response = await this.transport.open(request, controller);
    try {
      this.session.learn(response.headers, after.history);
    } catch (error) {
      controller.abort();
      throw error;
    }
    return response.body as ReadableStream<Uint8Array>;
  }
}
