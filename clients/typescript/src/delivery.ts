/** What a worker is given, and what it may say about it. */

import { Event, type Json } from "./events.js";
import type { Hold } from "./holds.js";
import { member } from "./wire.js";

/** Thrown by a handler: no further try helps, an operator has to look at the event. */
export class Park extends Error {
  override readonly name = "Park";
}

/** Events for a handler: one, or a run of consecutive ones if the consumer's `run` says so. */
export class Delivery {
  readonly id: string;
  readonly events: readonly [Event, ...Event[]];
  /** The values of the consumer's key: no other worker has events of these now. */
  readonly keys: readonly string[];
  /** 1 for the first try. */
  readonly tries: number;
  /** The same at each try: for receivers that know idempotency keys. */
  readonly effectKey: string;
  readonly #hold: Hold;

  constructor(found: Json, history: string | undefined, hold: Hold) {
    this.id = member(found, "delivery", "string");
    const events = member(found, "events", "array").map((each) => Event.ofJson(each, history));
    this.events = events as [Event, ...Event[]];
    this.keys = found.keys ?? [];
    this.tries = member(found, "tries", "number");
    this.effectKey = member(found, "effect_key", "string");
    this.#hold = hold;
  }

  /** The first event, and the only one unless the consumer has a `run`. */
  get event(): Event {
    return this.events[0];
  }

  /** Whether it is certain that no other worker has it now. */
  get isHeld(): boolean {
    return this.#hold.lasts;
  }

  toString(): string {
    return `delivery ${this.id} of position ${this.event.position}, try ${this.tries}`;
  }
}
