/** How long a loop of a worker holds its deliveries, and when it has to say that it lives. */

/** How often a hold is extended, and tried again, in parts of it. */
export const EXTEND_AFTER = 1 / 3;
const RETRY_AFTER = 1 / 30;

/** Until when deliveries are certain to be held, by a clock that is never set. */
export class Hold {
  deadlineMs = 0;

  get lasts(): boolean {
    return performance.now() < this.deadlineMs;
  }
}

/** The deliveries of one loop. */
export class HeldDeliveries {
  holdMs = 0;
  readonly #ids = new Set<string>();
  #hold = new Hold();
  #changes = 0;
  #signedMs = 0;
  #triedMs = 0;

  /** Takes note of a turn: nothing is held but what its answer has given. */
  take(hold: Hold, ids: string[], askedMs: number, holdMs: number): void {
    this.lose();
    this.#hold = hold;
    ids.forEach((id) => this.#ids.add(id));
    this.#sign(askedMs, holdMs);
  }

  /** Whether it is not settled yet. */
  has(delivery: string): boolean {
    return this.#ids.has(delivery);
  }

  /** Takes note that a delivery was settled, or lost. */
  forget(delivery: string): void {
    this.#ids.delete(delivery);
    this.#changes += 1;
  }

  /** Takes note that nothing is held any more. */
  lose(): void {
    this.#ids.clear();
    this.#hold.deadlineMs = 0;
    this.#changes += 1;
  }

  /** When the hold has to be extended; undefined if nothing is held. */
  get dueMs(): number | undefined {
    if (this.#ids.size === 0) {
      return undefined;
    }
    const firstMs = this.#signedMs + this.holdMs * EXTEND_AFTER;
    return Math.max(firstMs, this.#triedMs + this.holdMs * RETRY_AFTER);
  }

  /** Begins an extension: how long it may take, and what ends it with the answer. */
  extend(): { timeoutMs: number; end: (held: number, holdMs: number) => boolean } {
    const [askedMs, changes] = [performance.now(), this.#changes];
    this.#triedMs = askedMs;
    const end = (held: number, holdMs: number): boolean => {
      if (changes !== this.#changes) {
        return false; // It is about what was held before.
      }
      if (held === 0) {
        this.lose();
        return true;
      }
      this.#sign(askedMs, holdMs);
      return false;
    };
    return { timeoutMs: Math.max((this.#hold.deadlineMs - askedMs) * EXTEND_AFTER, 50), end };
  }

  #sign(askedMs: number, holdMs: number): void {
    // The server has counted from a later moment.
    this.#signedMs = askedMs;
    this.holdMs = holdMs;
    this.#hold.deadlineMs = askedMs + holdMs;
    this.#changes += 1;
  }
}
