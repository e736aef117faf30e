/**
 * A place in a log, as text that a consumer can save: a position, and the history of the log it
 * belongs to, if the server told it.
 *
 * `String(cursor)` is `42@00c0ffee00c0ffee`, or `42` without a history; `Cursor.parse` reads both.
 */
export class Cursor {
  constructor(
    readonly position: number,
    readonly history?: string | undefined,
  ) {}

  toString(): string {
    return this.history === undefined ? `${this.position}` : `${this.position}@${this.history}`;
  }

  toJSON(): string {
    return this.toString();
  }

  /** Reads what `toString` has written; throws a RangeError for anything else. */
  static parse(text: string): Cursor {
    const [, position, history] = /^([0-9]{1,16})(?:@(.+))?$/.exec(text.trim()) ?? [];
    if (position === undefined) {
      throw new RangeError(`not a cursor: ${JSON.stringify(text)}`);
    }
    return new Cursor(Number(position), history);
  }
}

/** A cursor, its text, or a bare position, which is not checked against a history. */
export type Place = Cursor | string | number;

/** The cursor that a place stands for. */
export function cursorAt(place: Place): Cursor {
  if (place instanceof Cursor) {
    return place;
  }
  return typeof place === "string" ? Cursor.parse(place) : new Cursor(place);
}
