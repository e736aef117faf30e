/** What a log answers, and the options of what it is asked. */

import type { Place } from "./cursor.js";
import type { Condition } from "./events.js";
import type { Fence, Lease } from "./leases.js";
import type { RetryPolicy } from "./retry.js";

/** A moment: a `Date`, or as RFC 3339 writes it; a date alone is midnight in UTC. */
export type Time = Date | string;

/** Events that are on disk: the positions of the first and the last, and the head. */
export interface Appended {
  first: number;
  last: number;
  head: number;
  /** Whether this is the answer to an earlier attempt. */
  replayed: boolean;
}

/** Events that are in the server's memory, and on disk within milliseconds. */
export interface Accepted {
  accepted: number;
}

/** Events appended in batches; `first` and `last` are undefined if there were none. */
export interface BulkAppended {
  events: number;
  first: number | undefined;
  last: number | undefined;
  /** Whether all of them had been appended by an earlier attempt. */
  replayed: boolean;
}

/** States, the position they reflect, and the condition that protects a decision on them. */
export interface Projected<S> {
  states: S;
  position: number;
  /**
   * What `Log.append` takes as its condition. Reading it throws a RangeError if only events until
   * some time were asked for: what has come since may matter to a decision.
   */
  readonly condition: Condition;
  history: string | undefined;
  /** What the caller has appended under the `key` that was given. */
  appended: Appended | undefined;
  /** Events without a value that a projection could use, by its name; none: it is missing. */
  passedOver: Record<string, PassedOver>;
}

/** Events that a projection has passed over, and the position of the first. */
export interface PassedOver {
  events: number;
  first: number;
}

/** What the server says about a log. */
export interface LogInfo {
  name: string;
  head: number;
  diskBytes: number;
  segments: number;
  types: number;
  tags: number;
  moreTypes: boolean;
  moreTags: boolean;
  history: string | undefined;
}

export interface AppendOptions {
  /** Names a request that outlives this process; the same key must come with the same events. */
  key?: string;
  fence?: Fence;
  ack?: "durable" | "accepted";
}

export interface IngestOptions {
  type?: string;
  tags?: Iterable<string>;
  ack?: "accepted" | "durable";
}

export interface ReadOptions {
  /** Exclusive, and follows the direction: backwards, it means before. */
  after?: Place;
  /** Only events recorded at this time or later. */
  since?: Time;
  /** Only events recorded before this time. */
  until?: Time;
  limit?: number;
  backwards?: boolean;
  /** Events of one request. */
  page?: number;
}

export interface ProjectOptions {
  after?: number;
  /** Only events recorded at this time or later. */
  since?: Time;
  /** Only events recorded before this time; then there is no condition. */
  until?: Time;
  /** The key of the append that the projections are for. */
  key?: string;
}

export interface DecideOptions {
  /**
   * Names the request: a form that is sent twice gets the first answer, with `replayed`, and is
   * not decided again, whichever process had it first.
   */
  key?: string;
  policy?: RetryPolicy;
}

export interface SubscribeOptions {
  after?: Place | "start" | "end";
  /** Nothing is handed out that was recorded before. */
  since?: Time;
  /** `LeaseLost` is thrown when this lease ends, also if the server cannot be reached. */
  whileHeld?: Lease;
  /** A connection silent for this long is replaced; the server's heartbeat is 15 s by default. */
  heartbeatTimeoutS?: number;
  /** Without it, a subscription tries for ever to reconnect. */
  giveUpAfterS?: number;
}
