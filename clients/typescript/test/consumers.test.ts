/** Workers of the real server. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Client, type Log, NotFound, Park, matching } from "../dist/index.js";
import { PATIENT, RealServer, collect, freePort, freshLog, pause } from "./server.js";

const [KEYS, EVENTS] = [7, 300];
const report = (): void => undefined;

/** Waits until a consumer has nothing left to do. */
async function settled(log: Log, name: string): Promise<void> {
  const endsMs = performance.now() + 60_000;
  for (;;) {
    const status = await log.consumer(name);
    if (status.lag === 0 && status.openKeys === status.parked) {
      return;
    }
    assert.ok(performance.now() < endsMs, JSON.stringify(status.details));
    await pause(50);
  }
}

/** Kills the server while a worker works; its events are there once for each event. */
async function workThroughKills(t: TestContext, settles: boolean): Promise<void> {
  const server = new RealServer(await freePort());
  t.after(() => server.stop());
  await server.start();
  const log = new Client(server.url, { retry: PATIENT }).log("main");
  await log.defineConsumer("mailer", matching(["Paid"]), {
    key: { tag: "customer" },
    holdS: 1,
    maxHoldS: 5,
    backoffS: [0, 0.1],
    maxTries: 255,
  });
  const worker = log.worker(
    "mailer",
    async ({ event, keys, effectKey }) => {
      const made = [{ type: "MailSent", data: event.data, tags: [`customer:${keys[0]}`] }];
      if (settles) {
        return made;
      }
      return void (await log.append(made, undefined, { key: effectKey }));
    },
    { concurrency: 6, batch: 2, report },
  );
  await worker.start();
  for (let data = 0; data < EVENTS; data += 1) {
    await log.append([{ type: "Paid", data, tags: [`customer:${data % KEYS}`] }]);
    if (data % 100 === 50) {
      await server.kill();
      await server.start();
    }
  }
  await settled(log, "mailer");
  await worker.stop();
  const sent = await collect(log.read(matching(["MailSent"])));
  for (let key = 0; key < KEYS; key += 1) {
    const mine = sent.filter(({ tags }) => tags[0] === `customer:${key}`);
    const expected = Array.from({ length: EVENTS }, (_, n) => n).filter((n) => n % KEYS === key);
    assert.deepEqual(mine.map(({ data }) => data), expected);
  }
}

test("events under effect keys are there once and in order through kills", async (t) => {
  await workThroughKills(t, false);
});

test("events that settle are there once and in order through kills", async (t) => {
  await workThroughKills(t, true);
});

test("what fails comes again and what parks waits", async () => {
  const log = await freshLog();
  await assert.rejects(log.worker("mailer", report).run(), NotFound);
  const options = { key: "all", backoffS: [0, 0] } as const;
  assert.equal(await log.defineConsumer("mailer", matching(["Paid"]), options), true);
  assert.equal(await log.defineConsumer("mailer", matching(["Paid"]), options), false);
  await log.append([0, 1, 2, 3].map((data) => ({ type: "Paid", data })));
  const seen: [unknown, number][] = [];
  const worker = log.worker(
    "mailer",
    ({ event: { data }, tries }) => {
      seen.push([data, tries]);
      if (data === 1 && tries < 3) {
        throw new Error("SMTP 451");
      }
      if (data === 2) {
        throw new Park("no such address");
      }
    },
    { concurrency: 2, report },
  );
  await worker.start();
  while ((await log.consumer("mailer")).parked === 0) {
    await pause(10);
  }
  await worker.stop();
  // What shares a key with a parked event waits for it.
  assert.deepEqual(seen, [[0, 1], [1, 1], [1, 2], [1, 3], [2, 1]]);
});

test("a slow handler keeps its delivery", async () => {
  const log = await freshLog();
  await log.defineConsumer("mailer", matching(["Paid"]), { holdS: 0.5 });
  await log.append([{ type: "Paid" }]);
  const held: unknown[] = [];
  const worker = log.worker(
    "mailer",
    async (delivery) => {
      await pause(1500);
      held.push([delivery.isHeld, delivery.tries]);
    },
    { concurrency: 2 },
  );
  await worker.start();
  await settled(log, "mailer");
  await worker.stop();
  assert.deepEqual(held, [[true, 1]]);
});
