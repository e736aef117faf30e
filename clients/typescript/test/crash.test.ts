/** The server is killed (kill -9) under appends and under a subscription, and started again. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, type Event, projection } from "../dist/index.js";
import { PATIENT, RealServer, collect, freePort, pause } from "./server.js";

const KILLS = 3;
const LEAST = 60;

test("nothing is lost and nothing comes twice", async (t) => {
  const server = new RealServer(await freePort());
  t.after(() => server.stop());
  await server.start();
  const log = new Client(server.url, { retry: PATIENT, timeoutS: 10 }).log("main");
  const state = { stop: false };
  const append = async (writer: number): Promise<number> => {
    let number = 0;
    for (; !state.stop; number += 1) {
      const pair = [{ type: "N", data: [writer, number] }, { type: "N", data: [writer, -number] }];
      await log.append(pair);
    }
    return 2 * number;
  };
  const decide = async (): Promise<number> => {
    const count = { n: projection("count", ["Decided"]) };
    let number = 0;
    for (; !state.stop; number += 1) {
      await log.decide(count, ({ n }) => [{ type: "Decided", data: n }]);
    }
    return number;
  };
  const subscription = await new Client(server.url, { retry: PATIENT }).log("main").subscribe();
  const seen: Event[] = [];
  const reading = (async () => {
    for await (const event of subscription) {
      seen.push(event);
    }
  })();
  const writing = Promise.all([append(0), append(1), decide()]);
  for (let kill = 1; kill <= KILLS; kill += 1) {
    while ((await log.head()).position < kill * LEAST) {
      await pause(1);
    }
    await server.kill();
    await server.start();
  }
  state.stop = true;
  const done = await writing;
  const { last } = await log.append([{ type: "End" }]);
  while ((subscription.cursor?.position ?? 0) < last) {
    await pause(5);
  }
  subscription.close();
  await reading;
  const stored = await collect(log.read());
  // The server's own log `main` has events of links, too.
  const mine = stored.filter(({ type }) => type === "N" || type === "Decided");
  assert.equal(mine.length, done.reduce((sum, count) => sum + count, 0), "stored once each");
  for (const writer of [0, 1]) {
    const numbers = mine.filter((e) => e.type === "N" && e.data[0] === writer).map((e) => e.data[1]);
    const expected = Array.from({ length: numbers.length / 2 }, (_, n) => [n, n === 0 ? -0 : -n]);
    assert.deepEqual(numbers.map(Math.abs), expected.flat().map(Math.abs));
    assert.ok(numbers.every((n, index) => (index % 2 === 0 ? n >= 0 : n <= 0)));
  }
  const decided = mine.filter((event) => event.type === "Decided").map((event) => event.data);
  assert.deepEqual(decided, decided.map((_, index) => index));
  assert.deepEqual(seen, stored, "the subscription missed nothing and repeated nothing");
  assert.ok(last > KILLS * LEAST);
});
