/** Events, and the words of a request: queries, conditions and projections, as on the wire. */

import { Cursor } from "./cursor.js";

/** Anything that `JSON.stringify` takes, except NaN and infinities. */
export type Json = any;

/** An event to be appended. Its data are JSON (null if absent), or bytes. */
export interface NewEvent {
  type: string;
  data?: Json | Uint8Array;
  tags?: Iterable<string>;
  id?: string | undefined;
  metadata?: Record<string, string> | undefined;
}

/** The event as the server takes it. */
export function eventJson(event: NewEvent): Record<string, unknown> {
  const { type, data, id, metadata } = event;
  if (typeof event.tags === "string") {
    throw new TypeError("tags must be a list of texts, not one text");
  }
  return {
    type,
    tags: [...(event.tags ?? [])],
    ...(data instanceof Uint8Array ? { data_base64: toBase64(data) } : { data: data ?? null }),
    ...(id === undefined ? {} : { id }),
    ...(metadata === undefined ? {} : { metadata }),
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
  ) {}

  /** The place right after this event: save it once the event is processed. */
  get cursor(): Cursor {
    return new Cursor(this.position, this.history);
  }

  /** The event as the server shows it. */
  static ofJson(found: Json, history: string | undefined): Event {
    const encoded: string | undefined = found.data_base64;
    return new Event(
      found.position,
      found.type,
      found.tags ?? [],
      encoded === undefined ? found.data : ofBase64(encoded),
      found.recorded_at ?? "",
      found.id ?? undefined,
      found.metadata ?? {},
      history,
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
}

/** Matches every event. */
export const ALL: Query = { items: [] };

/** Matches events that have one of the types (if any are given) and all of the tags. */
export function matching(types: Iterable<string> = [], tags: Iterable<string> = []): Query {
  if (typeof types === "string" || typeof tags === "string") {
    throw new TypeError("types and tags must be lists of texts, not one text");
  }
  const item: QueryItem = {};
  const [typeList, tagList] = [[...types], [...tags]];
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
 */
export function projection(
  reduce: Json,
  types: Iterable<string> = [],
  tags: Iterable<string> = [],
  options: { query?: Query; init?: Json } = {},
): Projection {
  const query = options.query ?? matching(types, tags);
  return { query, reduce, ...("init" in options ? { init: options.init } : {}) };
}

/** JSON text; throws for what JSON cannot say, where `JSON.stringify` would write null. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (name, member: unknown) => {
    if (typeof member === "number" && !Number.isFinite(member)) {
      throw new RangeError(`${name || "the value"} is ${member}, which JSON cannot say`);
    }
    return member;
  });
}

/** Base64 of bytes. */
export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return btoa(text);
}

function ofBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
