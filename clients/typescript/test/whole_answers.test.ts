/** Answers that break off are not believed. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AnotherHistory,
  Client,
  NO_RETRY,
  OutcomeUnknown,
  ServerFault,
  Unavailable,
} from "../dist/index.js";
import { QUICK, jsonAnswer, withFake, withRaw } from "./server.js";

const HISTORY = "00000000000000aa";
const DONE = JSON.stringify({ first: 7, last: 8, head: 9, replayed: false });
const HEAD =
  `HTTP/1.1 200 OK\r\nWellspring-History: ${HISTORY}\r\nwellspring-position: 9\r\n` +
  "content-type: application/json\r\n";
const WHOLE = `${HEAD}content-length: ${DONE.length}\r\n\r\n${DONE}`;
const OLD_HEAD = `${HEAD.replace("HTTP/1.1", "HTTP/1.0")}\r\n`;
const EVENTS = [{ type: "A" }];

test("an answer that is cut anywhere is asked for again", async () => {
  for (let cut = 0; cut < WHOLE.length; cut += 1) {
    await withRaw([WHOLE.slice(0, cut), WHOLE], async (raw) => {
      const log = new Client(raw.url, { retry: QUICK }).log("x");
      const { first, last, head } = await log.append(EVENTS);
      assert.deepEqual([raw.connections, first, last, head, log.history], [2, 7, 8, 9, HISTORY]);
    });
  }
});

test("a change whose answer is cut may have been done", async () => {
  for (const mark of ["HTTP/1.1 2", "200 OK", "content-ty", "00000", '"last']) {
    const cut = WHOLE.slice(0, WHOLE.indexOf(mark) + mark.length);
    await withRaw([cut], async (raw) => {
      const log = new Client(raw.url, { retry: NO_RETRY }).log("x");
      const append = log.append(EVENTS, undefined, { key: "mine" });
      await assert.rejects(append, (error: OutcomeUnknown) => {
        assert.equal(error.key, "mine");
        return error instanceof OutcomeUnknown;
      });
      await assert.rejects(log.ingest(1), OutcomeUnknown);
      await assert.rejects(log.drop(), OutcomeUnknown);
      await assert.rejects(log.create(), OutcomeUnknown);
      await assert.rejects(log.head(), Unavailable);
      assert.equal(log.history, undefined);
    });
  }
});

test("an answer without a length is whole if its JSON is", async () => {
  for (let cut = 0; cut < DONE.length; cut += 1) {
    await withRaw([OLD_HEAD + DONE.slice(0, cut), OLD_HEAD + DONE], async (raw) => {
      const log = new Client(raw.url, { retry: QUICK }).log("x");
      assert.deepEqual([(await log.append(EVENTS)).last, raw.connections], [8, 2]);
    });
  }
  await withRaw([OLD_HEAD + DONE.slice(0, -1)], async (raw) => {
    const append = new Client(raw.url, { retry: QUICK }).log("x").append(EVENTS);
    await assert.rejects(append, OutcomeUnknown);
    assert.equal(raw.connections, 5);
  });
});

test("a problem that is cut is not taken for another", async () => {
  const document = '{"type":"/problems/append-condition-failed","title":"x"}';
  const head = "HTTP/1.0 409 Conflict\r\ncontent-type: application/problem+json\r\n\r\n";
  await withRaw([head + document.slice(0, 30), WHOLE], async (raw) => {
    const log = new Client(raw.url, { retry: QUICK }).log("x");
    assert.equal((await log.append(EVENTS)).last, 8);
  });
});

test("a history has sixteen digits", async () => {
  const told = (history: string, position: string) => {
    const headers = { "Wellspring-History": history, "Wellspring-Position": position };
    return jsonAnswer(200, { head: 1 }, headers);
  };
  const [odd, other] = [told("00000000", "x"), told("b".repeat(16), "many")];
  const left = [odd, told(HISTORY, "1"), odd, other];
  await withFake(() => left.shift()!, async (fake) => {
    const log = new Client(fake.url, { retry: NO_RETRY }).log("x");
    assert.equal((await log.head()).history, undefined);
    assert.equal(log.history, undefined);
    assert.equal((await log.head()).history, HISTORY);
    assert.equal((await log.head()).history, undefined);
    await assert.rejects(log.head(), (error: AnotherHistory) => {
      assert.deepEqual([error.history, error.head], ["b".repeat(16), undefined]);
      return error instanceof AnotherHistory;
    });
  });
});

test("an answer that lacks what was asked for is a fault of the server", async () => {
  for (const document of [{}, [], null, 1, { first: "1" }, { head: true, events: 1 }]) {
    await withFake(() => jsonAnswer(200, document), async (fake) => {
      const client = new Client(fake.url, { retry: QUICK });
      const log = client.log("x");
      for (const action of [
        () => log.append(EVENTS),
        () => log.append(EVENTS, undefined, { ack: "accepted" }),
        () => log.appendBulk(EVENTS),
        () => log.head(),
        () => log.info(),
        () => log.read().next(),
        () => log.event(1),
        () => log.project({}),
        () => log.acquireLease("x", 1),
        () => client.logs(),
        () => client.links.create("http://example.com"),
        () => client.links.get("a"),
        () => client.links.stats("a"),
        () => client.links.list().next(),
      ]) {
        await assert.rejects(action as () => Promise<unknown>, ServerFault);
      }
      const append = log.append(EVENTS, undefined, { key: "mine" });
      await assert.rejects(append, (error: ServerFault) => error.key === "mine");
    });
  }
});
