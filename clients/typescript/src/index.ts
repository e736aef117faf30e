/** A client of the Wellspring event store. */

export { Client, type ClientOptions } from "./client.js";
export { Cursor, type Place } from "./cursor.js";
export {
  AnotherHistory,
  ConditionFailed,
  Conflict,
  type ConflictPlace,
  Forbidden,
  Invalid,
  LeaseHeld,
  LeaseLost,
  NotFound,
  OutcomeUnknown,
  ServerFault,
  Unauthenticated,
  Unavailable,
  Untrusted,
  WellspringError,
} from "./errors.js";
export {
  ALL,
  type Condition,
  Event,
  type Json,
  type NewEvent,
  type Projection,
  type Query,
  type QueryItem,
  anyOf,
  matching,
  projection,
  unlessChanged,
  unlessExists,
} from "./events.js";
export { type Fence, Lease } from "./leases.js";
export {
  type Link,
  type LinkChange,
  type LinkDetails,
  type LinkStats,
  Links,
  type NewLink,
} from "./links.js";
export {
  type Accepted,
  type AppendOptions,
  type Appended,
  type BulkAppended,
  type IngestOptions,
  Log,
  type LogInfo,
  type Projected,
  type ReadOptions,
  type States,
  type SubscribeOptions,
} from "./log.js";
export { DEFAULT_RETRY, NO_RETRY, type RetryPolicy } from "./retry.js";
export { Subscription } from "./subscription.js";
export type { Credentials, Secret } from "./transport.js";
