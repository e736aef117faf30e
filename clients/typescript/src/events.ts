/** Events, and the words of a request: queries, conditions and projections, as on the wire. */

import { Cursor } from "./cursor.js";
import { ServerFault } from "./errors.js";
import { isBytes, member, texts } from "./wire.js";

/** Anything that `JSON.stringify` takes, except NaN and infinities. */
export type Json = any;

/** An event to be appended. Its data are JSON (null if absent), or bytes. */
export interface NewEvent {
  type: string;
  data?: Json | Uint8Array;
  tags?: Iterable<string>;
  id?: string | undefined;
  metadata?: Record<string, string> | undefined;
  /** The data subject, a tag, for which all data are sealed, so that they can be erased. */
  subject?: string | undefined;
  /** A value for each of several data subjects, sealed beside data that stay clear. */
  personal?: Record<string, Json> | undefined;
}

const MEMBERS = ["type", "data", "tags", "id", "metadata", "subject", "personal"];

/** The event as the server takes it; a TypeError says what is none, at which path. */
export function eventJson(event: NewEvent, path: string): Record<string, unknown> {
  if (typeof event !== "object" || event === null) {
    throw new TypeError(`${path} is ${event === null ? "null" : typeof event}, not an event`);
  }
  const unknown = Object.keys(event).find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined) {
    throw new TypeError(
      `${path}.${unknown} is not a member of an event; its members are ${MEMBERS.join(", ")}`,
    );
  }
  const { type, data, id, metadata, subject, personal } = event;
  return {
    type,
    tags: texts(event.tags ?? [], `${path}.tags`),
    ...(isBytes(data) ? { data_base64: toBase64(data) } : { data: data ?? null }),
    ...(id === undefined ? {} : { id }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(subject === undefined ? {} : { subject }),
    ...(personal === undefined ? {} : { personal }),
  };
}

/** An event of a log. */
export class Event {
  constructor(
    readonly position: number,
    readonly type: string,
    readonly tags: readonly string[],
    readonly data: Json | Uint8Array,
    readonly recordedAt: string,
    readonly id: string | undefined,
    readonly metadata: Record<string, string>,
    readonly history: string | undefined,
    /** The data subject of all data; these are null if they were not opened. */
    readonly subject: string | undefined = undefined,
    /** The value of each data subject; null if it was not opened. */
    readonly personal: Record<string, Json> = {},
    /** Whether personal data are not shown: to this caller, or because an erasure is due. */
    readonly withheld: boolean = false,
    /** The data subjects that are erased: their data are gone. */
    readonly erased: readonly string[] = [],
    /** The data subjects whose keys the server lacks, which does not mean that they are erased. */
    readonly unavailable: readonly string[] = [],
  ) {}

  /** The place right after this event: save it once the event is processed. */
  get cursor(): Cursor {
    return new Cursor(this.position, this.history);
  }

  /** The event as the server shows it. */
  static ofJson(found: Json, history: string | undefined): Event {
    const position = member(found, "position", "number");
    const type = member(found, "type", "string");
    const encoded: string | undefined = found.data_base64;
    return new Event(
      position,
      type,
      found.tags ?? [],
      encoded === undefined ? found.data : ofBase64(encoded, position),
      found.recorded_at ?? "",
      found.id ?? undefined,
      found.metadata ?? {},
      history,
      found.subject ?? undefined,
      found.personal ?? {},
      found.withheld ?? false,
      found.erased ?? [],
      found.unavailable ?? [],
    );
  }
}

/** Matches an event that has one of the types (if any are given) and all of the tags. */
export interface QueryItem {
  types?: string[];
  tags?: string[];
}

/** Matches what one of its items matches; without items, every event. */
export interface Query {
  items: QueryItem[];
}

/** What must hold for an append, else `ConditionFailed`. */
export interface Condition {
  failIfEventsMatch?: Query;
  after?: number;
  failIfExists?: Query;
}

/** A reducer over the events of a query, run by the server. */
export interface Projection {
  query: Query;
  reduce: Json;
  init?: Json;
  strict?: boolean;
}

/** Matches every event. */
export const ALL: Query = { items: [] };

/** Matches events that have one of the types (if any are given) and all of the tags. */
export function matching(types: Iterable<string> = [], tags: Iterable<string> = []): Query {
  const item: QueryItem = {};
  const [typeList, tagList] = [texts(types, "types"), texts(tags, "tags")];
  if (typeList.length > 0) {
    item.types = typeList;
  }
  if (tagList.length > 0) {
    item.tags = tagList;
  }
  return { items: Object.keys(item).length > 0 ? [item] : [] };
}

/** Matches what one of the queries matches. */
export function anyOf(...queries: Query[]): Query {
  return queries.some((query) => query.items.length === 0)
    ? ALL
    : { items: queries.flatMap((query) => query.items) };
}

/** A condition that fails if any event matches the query. */
export function unlessExists(query: Query): Condition {
  return { failIfExists: query };
}

/** A condition that fails if any event after this position matches the query. */
export function unlessChanged(query: Query, after: number): Condition {
  return { failIfEventsMatch: query, after };
}

/**
 * A reducer over the events with one of the types and all of the tags, or of a whole query.
 *
 * `reduce` is `"count"`, `{ last: "/pointer" }` and so on, as the server's manual lists them.
 * A strict projection is refused with `Invalid` if an event has no value that it can use.
 */
export function projection(
  reduce: Json,
  types: Iterable<string> = [],
  tags: Iterable<string> = [],
  options: { query?: Query; init?: Json; strict?: boolean } = {},
): Projection {
  const query = options.query ?? matching(types, tags);
  return {
    query,
    reduce,
    ...("init" in options ? { init: options.init } : {}),
    ...(options.strict ? { strict: true } : {}),
  };
}

/** Base64 of bytes. */
export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return btoa(text);
}

function ofBase64(text: string, position: number): Uint8Array {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    throw new ServerFault(`the data of event ${position} are not base64`);
  }
}
