/**
 * What can go wrong, one class for each thing that a caller can do about it.
 *
 * Every class is a `WellspringError`. The server explains an error as a problem document
 * (RFC 9457); its members are properties here, and `problem` is the whole document.
 */

/** What is known of an unsuccessful answer. */
export interface ErrorFacts {
  status?: number | undefined;
  problem?: Record<string, unknown> | undefined;
  headers?: Headers | undefined;
  cause?: unknown;
}

/** The base of all errors of this client. */
export class WellspringError extends Error {
  /** The HTTP status, if there was an answer. */
  readonly status: number | undefined;
  /** The whole problem document; empty if there was none. */
  readonly problem: Record<string, unknown>;
  /** The id under which the server's log has the request. */
  readonly requestId: string | undefined;
  /** How long to wait before another attempt, in seconds, if the server says so. */
  readonly retryAfter: number | undefined;
  /** The idempotency key of the request. Repeating it with this key is safe. */
  key: string | undefined;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = new.target.name;
    this.status = facts.status;
    this.problem = { ...facts.problem };
    this.requestId = facts.headers?.get("x-request-id") ?? undefined;
    const retry = this.problem["retry"];
    this.retryAfter = seconds(facts.headers) ?? (typeof retry === "number" ? retry : undefined);
  }

  /** The name of the problem type, such as `append-condition-failed`; may be empty. */
  get type(): string {
    return String(this.problem["type"] ?? "").split("/").pop() ?? "";
  }

  /** What is wrong, and what to do about it. */
  get detail(): string {
    return String(this.problem["detail"] ?? this.message);
  }

  /** The server's advice about a retry: `no`, `same`, `after-reread`, or seconds to wait. */
  get retry(): string | number | undefined {
    return this.problem["retry"] as string | number | undefined;
  }
}

/** The newest event in the way of an append. */
export interface ConflictPlace {
  position: number;
  clause: "failIfEventsMatch" | "failIfExists";
  item: number;
}

/** An event in the log matches the condition. Nothing was appended: read and decide again. */
export class ConditionFailed extends WellspringError {
  /** The newest event in the way. */
  get conflict(): ConflictPlace | undefined {
    return this.problem["conflict"] as ConflictPlace | undefined;
  }
}

/**
 * The log is not the one this client knew: it was restored, or made anew. Nothing was done.
 *
 * Positions, cursors and decisions from before mean nothing in it. Discard what was derived from
 * the earlier log (or find out which is right), call `Log.forgetHistory()`, and start over.
 */
export class AnotherHistory extends WellspringError {
  /** The history of the log as it is now. */
  get history(): string | undefined {
    return this.problem["history"] as string | undefined;
  }

  /** The head of the log as it is now. */
  get head(): number | undefined {
    return this.problem["head"] as number | undefined;
  }

  /** The position that was asked for, if it is greater than the head. */
  get position(): number | undefined {
    return this.problem["position"] as number | undefined;
  }
}

/** Another client holds the lease: try later, or wait for it with `waitS`. */
export class LeaseHeld extends WellspringError {
  /** How long the holder has it at most, unless it renews. */
  get remainingS(): number | undefined {
    const left = this.problem["remaining_ms"];
    return typeof left === "number" ? left / 1000 : undefined;
  }
}

/** The lease has ended. Nothing was done: acquire it again, read, and decide again. */
export class LeaseLost extends WellspringError {}

/** The credentials are missing, wrong or expired: get new ones. */
export class Unauthenticated extends WellspringError {}

/** The credentials are valid, but do not permit this: ask for the role that `detail` names. */
export class Forbidden extends WellspringError {}

/** There is no such log, event, lease or link, or no longer. */
export class NotFound extends WellspringError {}

/** The request contradicts what is there: an alias is taken, an event id is used. */
export class Conflict extends WellspringError {}

/** The request breaks a rule or a limit: correct it. */
export class Invalid extends WellspringError {
  /** The path of the member at fault, such as `events[3].tags[0]`. */
  get field(): string | undefined {
    return this.problem["field"] as string | undefined;
  }

  /** The limit that was exceeded. */
  get limit(): number | undefined {
    return this.problem["limit"] as number | undefined;
  }

  /** The line at fault of a bulk, from 1. */
  get line(): number | undefined {
    return this.problem["line"] as number | undefined;
  }
}

/** The server cannot be reached or has no room. Nothing was done: try again later. */
export class Unavailable extends WellspringError {}

/** The request may have been done, or not. Repeat it under the same `key`, or look. */
export class OutcomeUnknown extends WellspringError {}

/** The server has failed, or what answers is no Wellspring: an operator has to act. */
export class ServerFault extends WellspringError {}

/** The server's certificate is not trusted (in Node: `NODE_EXTRA_CA_CERTS`). */
export class Untrusted extends WellspringError {}

type ErrorClass = new (message: string, facts?: ErrorFacts) => WellspringError;

const BY_TYPE: Record<string, ErrorClass> = {
  "append-condition-failed": ConditionFailed,
  "another-history": AnotherHistory,
  "lease-held": LeaseHeld,
  "lease-lost": LeaseLost,
  "outcome-unknown": OutcomeUnknown,
};
const BY_STATUS: Record<number, ErrorClass> = {
  401: Unauthenticated,
  403: Forbidden,
  404: NotFound,
  410: NotFound,
  409: Conflict,
  412: Conflict,
  408: Unavailable,
  425: Unavailable,
  429: Unavailable,
  502: Unavailable,
  503: Unavailable,
  504: Unavailable,
};
const JUDGEMENTS: readonly ErrorClass[] = [
  AnotherHistory,
  ConditionFailed,
  Conflict,
  Invalid,
  LeaseHeld,
  LeaseLost,
  NotFound,
];

/** The error that an unsuccessful answer to a request stands for. */
export function errorOf(
  status: number,
  headers: Headers,
  body: string,
  changes: boolean,
): WellspringError {
  const problem = problemOf(body);
  let kind = kindOf(status, problem);
  let message = messageOf(status, problem);
  if (changes && (status >= 500 || status === 408) && !isOfServer(problem)) {
    // A gateway does not know how far the server had come.
    kind = OutcomeUnknown;
    message = `not an answer of Wellspring, and the request may have been done: ${message}`;
  }
  return new kind(message, { status, problem, headers });
}

/** Has an error of a part of a bulk, after this many lines, speak of the whole. */
export function moveLines(error: WellspringError, lines: number): void {
  const { problem, message, detail } = error;
  const line = problem["line"];
  for (const counted of ["line", "durable_lines", "durable_events"]) {
    const count = problem[counted];
    if (typeof count === "number") {
      problem[counted] = count + lines;
    }
  }
  const prefix = `line ${line}:`;
  if (typeof line === "number" && detail.startsWith(prefix)) {
    problem["detail"] = `line ${line + lines}:${detail.slice(prefix.length)}`;
    error.message = messageOf(error.status, problem);
    error.stack = error.stack?.replace(message, () => error.message) ?? "";
  }
}

/**
 * Whether an answer also says what became of earlier attempts at the same request: the server has
 * judged the request itself, and not only who sends it, or when.
 */
export function settlesDoubt(error: WellspringError): boolean {
  return JUDGEMENTS.some((kind) => error instanceof kind) && isOfServer(error.problem);
}

/** Whether the same request may succeed a moment later. */
export function isTemporary(error: WellspringError): boolean {
  if (error instanceof Unavailable || error instanceof OutcomeUnknown) {
    return true;
  }
  return error instanceof ServerFault && error.retry !== undefined && error.retry !== "no";
}

function kindOf(status: number, problem: Record<string, unknown>): ErrorClass {
  const slug = String(problem["type"] ?? "").split("/").pop() ?? "";
  const isClientError = status >= 400 && status < 500;
  const kind = BY_TYPE[slug] ?? BY_STATUS[status] ?? (isClientError ? Invalid : ServerFault);
  // Waiting does not always help.
  return kind === Unavailable && problem["retry"] === "no" ? ServerFault : kind;
}

function messageOf(status: number | undefined, problem: Record<string, unknown>): string {
  const title = `${status ?? ""} ${problem["title"] ?? ""}`.trim();
  return [title, problem["detail"]].filter(Boolean).join(": ");
}

function isOfServer(problem: Record<string, unknown>): boolean {
  return String(problem["type"] ?? "").includes("/problems/");
}

function problemOf(body: string): Record<string, unknown> {
  try {
    const document: unknown = body === "" ? {} : JSON.parse(body);
    const isObject = typeof document === "object" && document !== null && !Array.isArray(document);
    return isObject ? (document as Record<string, unknown>) : {};
  } catch {
    return { detail: body.slice(0, 200) };
  }
}

function seconds(headers: Headers | undefined): number | undefined {
  const text = headers?.get("retry-after")?.trim() ?? "";
  // It may be a date, too; only proxies send that, and backing off is as good.
  return /^[0-9]+$/.test(text) ? Number(text) : undefined;
}
