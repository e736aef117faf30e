#!/usr/bin/env node
// A consumer that keeps its place in a file, in JavaScript with the client in clients/typescript.
//
//   node examples/consumer.mjs LOG CURSOR_FILE
//
// Prints every event of LOG as a line, and then each new one, until Ctrl-C. Started again, it goes
// on after the last event that it printed. If the log was restored from a backup or made anew
// meanwhile, it says so and exits with 3 instead of skipping or repeating events: what it printed
// came from another log. Delete CURSOR_FILE to start over.
//
// WELLSPRING_URL is the server (default http://127.0.0.1:4000), WELLSPRING_TOKEN a token or API key.
// Build the client once: (cd clients/typescript && npm ci && npm run build)

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { AnotherHistory, Client } from "../clients/typescript/dist/index.js";

const [name, file] = process.argv.slice(2);
if (name === undefined || file === undefined) {
  console.error("usage: node examples/consumer.mjs LOG CURSOR_FILE");
  process.exit(64);
}

/** The cursor of the last run: `42@4f1c09d2a87b4e6f`. */
function savedCursor() {
  try {
    return readFileSync(file, "utf8");
  } catch (fault) {
    if (fault.code === "ENOENT") {
      return "start";
    }
    throw fault;
  }
}

/** Replaces the file as a whole: a crash leaves the old cursor or the new one. */
function saveCursor(cursor) {
  writeFileSync(`${file}.new`, String(cursor));
  renameSync(`${file}.new`, file);
}

const token = process.env.WELLSPRING_TOKEN?.trim() || undefined;
const log = new Client(process.env.WELLSPRING_URL, { token }).log(name);
try {
  const events = await log.subscribe(undefined, { after: savedCursor() });
  process.once("SIGINT", () => events.close());
  for await (const event of events) {
    // After a crash between these two lines the event is printed once more: at least once.
    console.log(`${event.position} ${event.type} ${JSON.stringify(event.data)}`);
    saveCursor(event.cursor);
  }
} catch (error) {
  if (error instanceof AnotherHistory) {
    console.error(`log ${name} has another history now (${error.history}, head ${error.head})`);
    process.exit(3);
  }
  throw error;
}
