/// <reference lib="esnext.disposable" preserve="true" />
/** A program's loops that take deliveries of a consumer. */

import type { LogCalls } from "./calls.js";
import { newKey } from "./keys.js";
import { Notices, type Report } from "./notices.js";
import { type Handler, Puller } from "./pulls.js";

export interface WorkerOptions {
  /** Most deliveries that are handled at the same time; 1 if absent. */
  concurrency?: number;
  /** How many deliveries are taken at once, to be handled in turn and settled together. */
  batch?: number;
  /** Takes lines about failures, lost deliveries and outages; `console.warn` if absent. */
  report?: Report;
}

/** What is used of `process`, which browsers do not have. */
interface Signals {
  pid: number;
  listenerCount(name: string): number;
  once(name: string, listener: () => void): unknown;
  off(name: string, listener: () => void): unknown;
}

/**
 * Calls a handler with the deliveries of a consumer; `Log.worker` makes one.
 *
 * `run` is all that a program needs. Within a larger program, `start` and `stop`.
 */
export class Worker {
  readonly #calls: LogCalls;
  readonly #consumer: string;
  readonly #handle: Handler;
  readonly #batch: number;
  readonly #concurrency: number;
  readonly #notices: Notices;
  #pullers: Puller[] = [];
  #isStopped = false;
  #ended: Promise<void> | undefined;
  #fault: { error: unknown } | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(calls: LogCalls, consumer: string, handle: Handler, options: WorkerOptions) {
    const { concurrency = 1, batch = 1, report = console.warn } = options;
    if (!(concurrency >= 1 && batch >= 1)) {
      throw new RangeError("concurrency and batch must be at least 1");
    }
    this.#calls = calls;
    this.#consumer = consumer;
    this.#handle = handle;
    [this.#batch, this.#concurrency] = [batch, concurrency];
    this.#notices = new Notices(consumer, report);
  }

  /**
   * Works until `stop`, SIGTERM, or an error that waiting does not mend, which it throws.
   *
   * SIGTERM does what `stop` does, if the program does not handle it otherwise. A second one ends
   * the program.
   */
  async run(): Promise<void> {
    const { process } = globalThis as { process?: Signals };
    const stop = (): void => this.#halt();
    const isHandled = (process?.listenerCount("SIGTERM") ?? 1) > 0;
    if (!isHandled) {
      process?.once("SIGTERM", stop);
    }
    try {
      await this.start();
      await this.#ended;
      this.#throwFault();
    } finally {
      process?.off("SIGTERM", stop);
    }
  }

  /** Begins to work. Throws `NotFound` if there is no such consumer. */
  async start(): Promise<void> {
    if (this.#pullers.length > 0 || this.#isStopped) {
      throw new Error("this worker was started before");
    }
    const parts = {
      calls: this.#calls,
      consumer: this.#consumer,
      handle: this.#handle,
      batch: this.#batch,
      changed: () => this.#plan(),
      notices: this.#notices,
    };
    // The name tells an operator where to look, and is never used again.
    const { pid = 0 } = (globalThis as { process?: Signals }).process ?? {};
    const name = `${pid}-${(await newKey()).slice(0, 16)}`;
    const numbers = Array.from({ length: this.#concurrency }, (_, number) => number + 1);
    const pullers = numbers.map((number) => new Puller(parts, `${name}.${number}`));
    this.#pullers = pullers;
    if (this.#isStopped) {
      this.#halt();
    }
    await pullers[0]!.look();
    const works = pullers.map((puller) => this.#work(puller));
    this.#ended = Promise.all(works).then(() => clearTimeout(this.#timer));
  }

  /**
   * Gives back what was not begun, without counting a try, and waits for what runs. Throws what has
   * ended the worker before. A handler may call it, but not wait for it.
   */
  async stop(): Promise<void> {
    this.#halt();
    await this.#ended;
    this.#throwFault();
  }

  /** Stops at the end of `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #halt(): void {
    this.#isStopped = true;
    this.#pullers.forEach((puller) => puller.stop());
  }

  async #work(puller: Puller): Promise<void> {
    try {
      await puller.work();
    } catch (error) {
      this.#notices.say(`the worker ends: ${String(error)}`);
      this.#fault ??= { error };
      this.#halt();
    }
  }

  #throwFault(): void {
    const fault = this.#fault;
    this.#fault = undefined;
    if (fault !== undefined) {
      throw fault.error;
    }
  }

  /** Plans the next extension of what is held. */
  #plan(): void {
    clearTimeout(this.#timer);
    const dues = this.#pullers.flatMap(({ held }) => held.dueMs ?? []);
    if (dues.length > 0) {
      const pauseMs = Math.max(Math.min(...dues) - performance.now(), 0);
      this.#timer = setTimeout(() => void this.#extend(), Math.ceil(pauseMs));
    }
  }

  async #extend(): Promise<void> {
    const nowMs = performance.now();
    const due = this.#pullers.filter(({ held }) => (held.dueMs ?? Infinity) <= nowMs);
    await Promise.all(due.map((puller) => puller.extend()));
    this.#plan();
  }
}
