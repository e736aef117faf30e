/** What a client knows of one log, and the headers that say so. */

import { AnotherHistory } from "./errors.js";
import { historyOf, positionOf } from "./wire.js";

/** The history of a log as this client knows it, and how far the client has written. */
export class Session {
  history: string | undefined;
  #seen = 0;

  constructor(
    readonly log: string,
    readonly readYourWrites: boolean,
  ) {}

  forget(): void {
    this.history = undefined;
    this.#seen = 0;
  }

  /** The header that has the server check the history. */
  identity(history: string | undefined = this.history): Record<string, string> {
    return history === undefined ? {} : { "Wellspring-History": history };
  }

  /** The header that has the server show what this client has written. */
  freshness(): Record<string, string> {
    const isAsked = this.readYourWrites && this.#seen > 0;
    return isAsked ? { "Wellspring-Min-Position": `${this.#seen}` } : {};
  }

  hasWritten(position: number): void {
    this.#seen = Math.max(this.#seen, position);
  }

  /** Remembers the first history that the server tells, and checks every later one. */
  learn(headers: Headers, expected?: string): void {
    const told = historyOf(headers);
    if (told === undefined) {
      return;
    }
    this.history ??= told;
    const right = expected ?? this.history;
    if (told !== right) {
      const problem = { history: told, head: positionOf(headers) };
      const message = `log ${this.log} has history ${told} now, not ${right}`;
      throw new AnotherHistory(message, { problem, headers });
    }
  }
}
