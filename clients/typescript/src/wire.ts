/** JSON, paths and headers: what is sent is checked before, what arrives is checked after. */

import type { Time } from "./answers.js";
import { ServerFault } from "./errors.js";
import type { Json } from "./events.js";

interface Kinds {
  number: number;
  string: string;
  boolean: boolean;
  object: Record<string, Json>;
  array: Json[];
}

/**
 * JSON as it is sent; throws for what JSON cannot say, where `JSON.stringify` would write null or
 * `{}`. The error names the place, beginning with `root`.
 */
export function jsonText(value: unknown, root = ""): string {
  // The objects that the present one is in, and their names.
  const holders: object[] = [];
  const names: string[] = [];
  return JSON.stringify(value, function (this: Record<string, unknown>, name, shown: unknown) {
    while (holders.length > 0 && holders.at(-1) !== this) {
      holders.pop();
      names.pop();
    }
    const fault = faultOf(this[name], shown);
    if (fault !== undefined) {
      const steps = [...names, name].slice(1).map((step, at) => {
        return Array.isArray(holders[at]) ? `[${step}]` : `.${step}`;
      });
      const path = `${root}${steps.join("")}`.replace(/^\./, "");
      fault.message = `${path === "" ? "the value" : path} ${fault.message}`;
      throw fault;
    }
    if (typeof shown === "object" && shown !== null) {
      holders.push(shown);
      names.push(name);
    }
    return shown;
  });
}

/** What is wrong with a value, which `toJSON` has turned into what is shown. */
function faultOf(value: unknown, shown: unknown): Error | undefined {
  if (typeof shown === "number" && !Number.isFinite(shown)) {
    return new RangeError(`is ${shown}, which JSON cannot say`);
  }
  if (typeof shown === "bigint" || typeof shown === "function" || typeof shown === "symbol") {
    return new TypeError(`is a ${typeof shown}, which JSON cannot say: send it as text`);
  }
  if (value instanceof Date && Number.isNaN(value.getTime())) {
    return new TypeError("is a Date without a time");
  }
  if (ArrayBuffer.isView(value) || (isObject(shown) && isEmptyInstance(shown))) {
    const name = (value as object).constructor?.name || "an unnamed class";
    return new TypeError(
      `is of class ${name}, which JSON cannot say: send a plain object or an array of what is in ` +
        "it; bytes can only be the whole data of an event, as a Uint8Array",
    );
  }
  return undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether `JSON.stringify` would write `{}` for something that is not an empty object. */
function isEmptyInstance(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  // A plain object of another realm has that realm's prototype.
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  return !isPlain && Object.keys(value).length === 0;
}

/** The times of a read, as it is sent. */
export function timesOf(options: { since?: Time; until?: Time }): Record<string, string> {
  const text = (time: Time): string => (typeof time === "string" ? time : time.toISOString());
  const given = Object.entries({ since: options.since, until: options.until });
  const named = given.flatMap(([name, time]) => (time === undefined ? [] : [[name, text(time)]]));
  return Object.fromEntries(named);
}

/** Whether data are bytes. */
export function isBytes(data: unknown): data is Uint8Array {
  return Object.prototype.toString.call(data) === "[object Uint8Array]";
}

/** A member of an answer; throws `ServerFault` if it is missing or of another type. */
export function member<K extends keyof Kinds>(found: Json, name: string, kind: K): Kinds[K] {
  const value: unknown = isObject(found) ? (found as Record<string, unknown>)[name] : undefined;
  const isRight =
    kind === "array"
      ? Array.isArray(value)
      : typeof value === kind && value !== null && !Array.isArray(value);
  if (!isRight) {
    const text = String(JSON.stringify(found)).slice(0, 200);
    throw new ServerFault(`the answer has no valid ${name}: ${text}`);
  }
  return value as Kinds[K];
}

/** A list of texts; a single text, which is a series of its characters, is a TypeError. */
export function texts(given: Iterable<string>, name: string): string[] {
  if (typeof given === "string") {
    throw new TypeError(`${name} must be a list of texts, not one text`);
  }
  return [...given];
}

/** Text as one segment of a path. */
export function segment(text: string, what: string): string {
  if (typeof text !== "string") {
    throw new TypeError(`${what} must be a text, not ${typeof text}`);
  }
  if (text === "" || text === "." || text === "..") {
    // `fetch` takes `.` and `..` for steps between folders, also if they are escaped.
    throw new RangeError(`${JSON.stringify(text)} cannot be ${what}`);
  }
  return encodeURIComponent(wellFormed(text));
}

/** The query of a URL, with its question mark; empty without terms. */
export function queryText(terms: Iterable<[string, string | number | undefined]>): string {
  const given = new URLSearchParams();
  for (const [name, value] of terms) {
    if (value !== undefined) {
      given.append(name, wellFormed(`${value}`));
    }
  }
  return given.toString() === "" ? "" : `?${given}`;
}

/** Text that UTF-8 can carry. The error does not show it: it may be a secret. */
export function wellFormed(text: string): string {
  const half = /\p{Surrogate}/u.exec(text)?.[0];
  if (half !== undefined) {
    const code = half.charCodeAt(0).toString(16).toUpperCase();
    throw new RangeError(
      `a text has U+${code}, half a character (a lone surrogate); UTF-8 has no such`,
    );
  }
  return text;
}

/** Text that a header can carry. No error shows it: it may be a secret. */
export function headerValue(text: string, what: string): string {
  if (typeof text !== "string") {
    throw new TypeError(`${what} must be a text, not ${typeof text}`);
  }
  if (text === "") {
    throw new RangeError(`${what} must not be empty`);
  }
  if (text !== text.trim()) {
    throw new RangeError(
      `${what} begins or ends with white space, such as the line break of a file; strip it`,
    );
  }
  if (!/^[ -~]+$/.test(text)) {
    throw new RangeError(`${what} has a character that is not printable ASCII`);
  }
  return text;
}

/** The history that an answer tells; undefined for anything but its 16 digits. */
export function historyOf(headers: Headers): string | undefined {
  const told = headers.get("wellspring-history");
  return told !== null && /^[0-9a-f]{16}$/.test(told) ? told : undefined;
}

/** The end of the log that an answer tells. */
export function positionOf(headers: Headers): number | undefined {
  const told = headers.get("wellspring-position");
  return told !== null && /^[0-9]{1,20}$/.test(told) ? Number(told) : undefined;
}
