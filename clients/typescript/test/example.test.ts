/** The example `examples/consumer.mjs`, run as a reader would. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { URL_OF_SERVER, freshLog } from "./server.js";

const EXAMPLE = fileURLToPath(new URL("../../../examples/consumer.mjs", import.meta.url));

function consume(log: string, file: string): ChildProcess {
  const env = { ...process.env, WELLSPRING_URL: URL_OF_SERVER };
  const stdio = ["ignore", "pipe", "pipe"] as const;
  return spawn(process.execPath, [EXAMPLE, log, file], { env, stdio: [...stdio] });
}

/** The first lines that a consumer prints; then it is interrupted, and has to end well. */
async function firstLines(consumer: ChildProcess, count: number): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of createInterface({ input: consumer.stdout! })) {
    lines.push(line);
    if (lines.length === count) {
      break;
    }
  }
  const ended = once(consumer, "exit");
  consumer.kill("SIGINT");
  assert.deepEqual(await ended, [0, null]);
  return lines;
}

test("the consumer goes on where it was, and not with another log", async (t) => {
  const log = await freshLog();
  const folder = mkdtempSync(join(tmpdir(), "wellspring-clients-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "cursor");
  await log.append([{ type: "A", data: 1 }, { type: "A", data: 2 }]);
  assert.deepEqual(await firstLines(consume(log.name, file), 2), ["1 A 1", "2 A 2"]);
  assert.match(readFileSync(file, "utf8"), /^2(@[0-9a-f]{16})?$/);
  await log.append([{ type: "A", data: 3 }]);
  assert.deepEqual(await firstLines(consume(log.name, file), 1), ["3 A 3"]);
  if (log.history === undefined) {
    t.diagnostic("this server sends no Wellspring-History");
    return;
  }
  await log.drop();
  await log.create();
  const consumer = consume(log.name, file);
  const [code] = await once(consumer, "exit");
  assert.equal(code, 3);
});
