/** The events of an append: that they are a list, and how many of them make a request. */

import { type NewEvent, eventJson } from "./events.js";
import { jsonText } from "./wire.js";

const BULK_LINES = 10_000;
const BULK_BYTES = 8 << 20;

/**
 * Bodies of bounded size, each with its number of lines; cut by content alone, so that a repetition
 * cuts the same ones.
 */
export async function* bulkBodies(
  events: Iterable<NewEvent> | AsyncIterable<NewEvent>,
): AsyncGenerator<{ lines: number; body: string }, void> {
  let [lines, size]: [string[], number] = [[], 0];
  let index = 0;
  for await (const event of listed(events)) {
    const path = `events[${index}]`;
    const line = jsonText(eventJson(event, path), path);
    index += 1;
    lines.push(line);
    size += line.length + 1;
    if (lines.length === BULK_LINES || size >= BULK_BYTES) {
      yield { lines: lines.length, body: lines.join("\n") };
      [lines, size] = [[], 0];
    }
  }
  if (lines.length > 0) {
    yield { lines: lines.length, body: lines.join("\n") };
  }
}

/** What can be gone through; a TypeError says that it is no list of events. */
export function listed<T extends Iterable<NewEvent> | AsyncIterable<NewEvent>>(events: T): T {
  const isList = typeof events === "object" && events !== null;
  if (!isList || !(Symbol.iterator in events || Symbol.asyncIterator in events)) {
    throw new TypeError("events must be a list of events");
  }
  return events;
}
