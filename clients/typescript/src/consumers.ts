/** Consumers of a log: their definition and their state. */

import type { Time } from "./answers.js";
import type { Json } from "./events.js";
import { member, segment } from "./wire.js";

/**
 * What is delivered in the order of the log: events with the same value of a tag, nothing, or
 * everything.
 */
export type ConsumerKey = { tag: string } | "none" | "all";

/** What is absent is as the server's manual says. */
export interface ConsumerOptions {
  /** `"none"` if absent. */
  key?: ConsumerKey;
  /**
   * Counts when the consumer is created: the position after which it begins, a time, or a word;
   * `"beginning"` if absent.
   */
  begin?: number | Time | "beginning" | "now";
  /** Most consecutive events of one key in a delivery. */
  run?: number;
  maxTries?: number;
  /** The first pause after a failure, and the longest. */
  backoffS?: readonly [first: number, longest: number];
  onFailure?: "park-key" | "park-event" | "stop";
  holdS?: number;
  maxHoldS?: number;
  maxInFlight?: number;
}

/** How far a consumer has come. */
export interface ConsumerStatus {
  state: "running" | "paused" | "stopped";
  /** Positions of the log that were not looked at yet. */
  lag: number;
  openKeys: number;
  /** Deliveries that workers hold. */
  inFlight: number;
  /** Events that wait for an operator. */
  parked: number;
  /** Age of the oldest event that is not settled. */
  oldestAgeS: number | undefined;
  /** The whole answer, with the definition. */
  details: Record<string, Json>;
}

/** The path of a consumer in its log. */
export function consumerPath(name: string): string {
  return `/consumers/${segment(name, "the name of a consumer")}`;
}

/** A definition as it is sent. */
export function definitionOf(options: ConsumerOptions): Record<string, unknown> {
  const { key = "none", begin = "beginning", backoffS, ...rest } = options;
  const ms = (seconds: number | undefined): number | undefined =>
    seconds === undefined ? undefined : Math.round(seconds * 1000);
  return {
    key,
    from: begin instanceof Date ? begin.toISOString() : begin,
    run: rest.run,
    max_tries: rest.maxTries,
    backoff_ms: backoffS?.map((seconds) => ms(seconds)),
    on_failure: rest.onFailure,
    hold_ms: ms(rest.holdS),
    max_hold_ms: ms(rest.maxHoldS),
    max_in_flight: rest.maxInFlight,
  };
}

/** The status as the server shows it. */
export function statusOf(found: Json): ConsumerStatus {
  const ageMs = found?.oldest_age_ms;
  return {
    state: member(found, "state", "string") as ConsumerStatus["state"],
    lag: member(found, "lag", "number"),
    openKeys: member(found, "open_keys", "number"),
    inFlight: member(found, "in_flight", "number"),
    parked: member(found, "parked", "number"),
    oldestAgeS: typeof ageMs === "number" ? ageMs / 1000 : undefined,
    details: found,
  };
}
