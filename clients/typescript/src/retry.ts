/** How often and how long a request is repeated. */

/**
 * Exponential backoff with full jitter, bounded in number and in time.
 *
 * Only what is safe to repeat is repeated: reads, and writes under an idempotency key.
 */
export interface RetryPolicy {
  /** Most attempts, the first included. */
  attempts: number;
  /** No attempt begins later than this after the first. */
  totalS: number;
  /** Longest pause after the first attempt; it doubles with each further one. */
  firstS: number;
  /** Longest pause, unless the server asks for a longer one (`Retry-After`). */
  longestS: number;
}

export const DEFAULT_RETRY: RetryPolicy = { attempts: 10, totalS: 30, firstS: 0.05, longestS: 2 };

/** Never repeats a request. */
export const NO_RETRY: RetryPolicy = { ...DEFAULT_RETRY, attempts: 1 };

/** The pauses between the attempts of one request. */
export class Backoff {
  readonly #policy: RetryPolicy;
  readonly #begunMs = performance.now();
  #failures = 0;

  constructor(policy: RetryPolicy) {
    this.#policy = policy;
  }

  /** How long to wait after another failure, in seconds; undefined to give up. */
  nextPauseS(retryAfterS = 0): number | undefined {
    const { attempts, totalS, firstS, longestS } = this.#policy;
    this.#failures += 1;
    if (this.#failures >= attempts) {
      return undefined;
    }
    const doublings = Math.min(this.#failures - 1, 30);
    const pauseS = retryAfterS + Math.random() * Math.min(firstS * 2 ** doublings, longestS);
    const passedS = (performance.now() - this.#begunMs) / 1000;
    return passedS + pauseS > totalS ? undefined : pauseS;
  }
}

/** Waits; shorter if the signal comes. */
export function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, seconds * 1000);
    signal?.addEventListener("abort", done);
  });
}
