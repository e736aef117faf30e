/** What a caller gives is checked before it is sent, and no error shows a secret. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Client, Event, type Json, type Log, type NewEvent } from "../dist/index.js";
import { FakeServer, freshLog, jsonAnswer } from "./server.js";

const DONE = { first: 1, last: 1, head: 1, replayed: false };
let fake: FakeServer;
let client: Client;
let log: Log;

before(async () => {
  fake = await FakeServer.start(() => jsonAnswer(200, DONE));
  client = new Client(fake.url);
  log = client.log("x");
});
after(() => fake.stop());

/** Nothing is sent, and the error is of a class and has these words. */
async function refused(
  kind: new (message: string) => Error,
  words: RegExp,
  action: () => unknown,
): Promise<void> {
  const before = fake.requests.length;
  await assert.rejects(
    async () => action(),
    (error: Error) => {
      assert.ok(error instanceof kind, String(error));
      assert.match(error.message, words);
      assert.doesNotMatch(`${error.stack} ${String(error.cause)}`.split("\n")[0]!, /hush/);
      return true;
    },
  );
  assert.equal(fake.requests.length, before, "nothing was sent");
}

test("a secret that no header can carry is refused and not shown", async () => {
  const secrets: [string, RegExp][] = [
    ["hush\n", /strip it/],
    ["hu\nsh", /ASCII/],
    ["hush€", /ASCII/],
    ["", /not be empty/],
  ];
  for (const [secret, words] of secrets) {
    for (const name of ["token", "key"]) {
      await refused(RangeError, words, () => new Client(fake.url, { [name]: secret }));
      const later = new Client(fake.url, { [name]: async () => secret });
      await refused(RangeError, words, () => later.log("x").head());
    }
  }
  for (const password of ["hush\n", "hush\ud800"]) {
    await refused(RangeError, /^(basic|a text) has/, () => {
      new Client(fake.url, { basic: ["ann", password] });
    });
  }
  const none = new Client(fake.url, { token: () => undefined as never });
  await refused(TypeError, /^token must be a text, not undefined/, () => none.log("x").head());
});

test("an idempotency key is checked", async () => {
  const events = [{ type: "A" }];
  for (const append of [
    (key: string) => log.append(events, undefined, { key }),
    (key: string) => log.appendBulk(events, { key }),
    (key: string) => client.links.create("http://example.com", { key }),
  ]) {
    await refused(RangeError, /key must not be empty/, () => append(""));
    await refused(RangeError, /strip it/, () => append("k\n"));
    await refused(RangeError, /ASCII/, () => append("ключ"));
    await refused(TypeError, /key must be a text, not number/, () => append(5 as never));
    await refused(RangeError, /256 bytes; .* 2(55|30) bytes/, () => append("k".repeat(256)));
  }
  const long = "k".repeat(231);
  await refused(RangeError, /231 bytes; the limit here is 230/, () =>
    log.appendBulk(events, { key: long }),
  );
});

test("what is no event is named", async () => {
  const event = { type: "A" };
  const read = new Event(1, "A", [], null, "", undefined, {}, undefined);
  const wrong: [unknown, RegExp][] = [
    ["A", /^events\[1\] is string, not an event/],
    [null, /^events\[1\] is null, not an event/],
    [{ type: "A", tag: ["x:1"] }, /^events\[1\]\.tag is not a member .* type, data, tags, id, m/],
    [{ typ: "A" }, /^events\[1\]\.typ is not a member/],
    [read, /^events\[1\]\.position is not a member/],
    [{ type: "A", tags: "abc" }, /^events\[1\]\.tags must be a list of texts/],
  ];
  for (const append of [
    (events: unknown) => log.append(events as NewEvent[]),
    (events: unknown) => log.appendBulk(events as NewEvent[]),
  ]) {
    for (const [each, words] of wrong) {
      await refused(TypeError, words, () => append([event, each]));
    }
    for (const none of [event, "text", null, undefined]) {
      await refused(TypeError, /events must be a list/, () => append(none));
    }
  }
});

test("data that JSON would lose are refused at their path", async () => {
  class Hidden {
    readonly #amount = 1;
    get amount(): number {
      return this.#amount;
    }
  }
  const bytes = Uint8Array.of(1, 2);
  const lost: Json[] = [
    bytes.buffer,
    new DataView(new ArrayBuffer(2)),
    new Blob(["x"]),
    new Map([["a", 1]]),
    new Set([1]),
    new Uint16Array([1]),
    new Uint8ClampedArray([1]),
    new Float64Array(0),
    Promise.resolve(1),
    /x/,
    new Hidden(),
    new Date(Number.NaN),
    10n,
    () => 1,
    Symbol("x"),
  ];
  for (const data of lost) {
    await refused(TypeError, /^events\[0\]\.data is /, () => log.append([{ type: "A", data }]));
    await refused(TypeError, /^data is /, () => log.ingest(data));
  }
  for (const inner of [...lost, bytes, Buffer.from("hi")]) {
    const data = [1, { empty: {}, list: [[], { x: 1 }, inner] }];
    const path = /^events\[0\]\.data\[1\]\.list\[2\] is /;
    await refused(TypeError, path, () => log.append([{ type: "A", data }]));
    await refused(TypeError, path, () => log.appendBulk([{ type: "A", data }]));
  }
  const infinite = [{ type: "A" }, { type: "A", data: { a: [Infinity] } }];
  await refused(RangeError, /^events\[1\]\.data\.a\[0\] is Infinity/, () => log.append(infinite));
});

test("data that JSON keeps are stored", async () => {
  class Money {
    constructor(readonly amount: number) {}
  }
  const foreign = Object.create(Object.create(null) as object) as object;
  const twice = { x: 1 };
  const kept: [Json, Json][] = [
    [new Money(2), { amount: 2 }],
    [{ at: new Date(0) }, { at: "1970-01-01T00:00:00.000Z" }],
    [{ a: undefined, b: [] }, { b: [] }],
    [Object.create(null), {}],
    [foreign, {}],
    [[twice, twice, [twice]], [{ x: 1 }, { x: 1 }, [{ x: 1 }]]],
    [Buffer.from("hi"), Uint8Array.of(104, 105)],
    [new Uint8Array(0), new Uint8Array(0)],
    ["half \ud800", "half \ud800"],
    [undefined, null],
  ];
  const real = await freshLog();
  await real.append(kept.map(([data]) => ({ type: "A", data })));
  const stored: Json[] = [];
  for await (const event of real.read()) {
    stored.push(event.data);
  }
  assert.deepEqual(stored, kept.map(([, data]) => data));
});

test("one text is no list of tags", async () => {
  const { links } = client;
  const tags = "abc" as never;
  const words = /tags must be a list of texts/;
  await refused(TypeError, words, () => log.ingest(1, { tags }));
  await refused(TypeError, words, () => links.create("http://example.com", { tags }));
  await refused(TypeError, words, () => links.change("a", { tags }));
});

test("seconds are whole", async () => {
  for (const expiresInS of [1.5, Number.NaN, Infinity]) {
    const words = /expiresInS must be a whole number/;
    const create = () => client.links.create("http://example.com", { expiresInS });
    await refused(RangeError, words, create);
  }
});

test("a name is one segment of a path", async () => {
  const { links } = client;
  for (const name of ["", ".", "..", "\ud800"]) {
    for (const action of [
      () => client.log(name),
      () => log.eventById(name),
      () => log.acquireLease(name, 1),
      () => links.get(name),
      () => links.change(name, { enabled: true }),
      () => links.delete(name),
      () => links.stats(name),
    ]) {
      await refused(RangeError, /cannot be|half a character/, action);
    }
  }
  for (const position of ["../head", "1", 1.5, undefined]) {
    const words = /position must be an integer/;
    await refused(TypeError, words, () => log.event(position as never));
  }
  await refused(TypeError, /must be a text/, () => client.log(null as never));
  await refused(RangeError, /half a character/, () => log.ingest(1, { tags: ["\ud800"] }));
});
