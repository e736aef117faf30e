/** A client of the Wellspring event store. */

export type {
  Accepted,
  AppendOptions,
  Appended,
  BulkAppended,
  DecideOptions,
  IngestOptions,
  LogInfo,
  ProjectOptions,
  PassedOver,
  Projected,
  ReadOptions,
  SubscribeOptions,
  Time,
} from "./answers.js";
export { Client, type ClientOptions } from "./client.js";
export type { ConsumerKey, ConsumerOptions, ConsumerStatus } from "./consumers.js";
export { Cursor, type Place } from "./cursor.js";
export type { Database, SqliteConnection } from "./database.js";
export { Delivery, Park } from "./delivery.js";
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
export { type Fence, HeldLease, Lease } from "./leases.js";
export {
  type Link,
  type LinkChange,
  type LinkDetails,
  type LinkStats,
  Links,
  type NewLink,
} from "./links.js";
export { Log, type States } from "./log.js";
export type { Report } from "./notices.js";
export type { Handler } from "./pulls.js";
export { type Apply, type FollowOptions, ReadModel } from "./read_model.js";
export { DEFAULT_RETRY, NO_RETRY, type RetryPolicy } from "./retry.js";
export { Subscription } from "./subscription.js";
export type { Credentials, Secret } from "./transport.js";
export { Worker, type WorkerOptions } from "./worker.js";
