/** Against the real binary that clients/test has started. */

import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { test } from "node:test";
import {
  Client,
  ConditionFailed,
  Conflict,
  Cursor,
  type Event,
  Invalid,
  type Json,
  LeaseHeld,
  LeaseLost,
  type NewEvent,
  NotFound,
  anyOf,
  matching,
  projection,
  unlessChanged,
  unlessExists,
} from "../dist/index.js";
import { URL_OF_SERVER, collect, freshLog, randomName } from "./server.js";

const draw = (most: number): number => Math.floor(Math.random() * (most + 1));

function randomText(): string {
  const alphabet = ["a", "Z", "0", " ", "_", '"', "\\", "/", "é", "世", "\u{1f300}", "\u2028"];
  return Array.from({ length: 1 + draw(11) }, () => alphabet[draw(alphabet.length - 1)]).join("");
}

function randomJson(depth = 3): Json {
  switch (draw(depth > 0 ? 7 : 5)) {
    case 0:
      return null;
    case 1:
      return Math.random() < 0.5;
    case 2:
      return draw(2 ** 40) - 2 ** 39;
    case 3:
      return (Math.random() - 0.5) * 10 ** draw(30);
    case 4:
    case 5:
      return randomText() + ["", "\n", "\0", "\r\n", "\t"][draw(4)];
    case 6:
      return Array.from({ length: draw(4) }, () => randomJson(depth - 1));
    default:
      return Object.fromEntries(
        Array.from({ length: draw(4) }, () => [randomText(), randomJson(depth - 1)]),
      );
  }
}

function randomEvent(): NewEvent {
  return {
    type: randomText(),
    data: Math.random() < 0.2 ? new Uint8Array(randomBytes(draw(40))) : randomJson(),
    tags: [...new Set(Array.from({ length: draw(5) }, randomText))],
    ...(Math.random() < 0.5 ? { id: randomUUID() } : {}),
    ...(Math.random() < 0.3 ? { metadata: { [randomText()]: randomText() } } : {}),
  };
}

function essence(event: NewEvent | Event): unknown {
  const { type, data, id, metadata } = event;
  return { type, data, tags: [...(event.tags ?? [])].sort(), id, metadata: { ...metadata } };
}

test("random events come back as they were sent", async () => {
  const log = await freshLog();
  const sent = Array.from({ length: 300 }, randomEvent);
  for (let at = 0; at < sent.length; ) {
    const some = sent.slice(at, at + 1 + draw(39));
    await (Math.random() < 0.5 ? log.append(some) : log.appendBulk(some));
    at += some.length;
  }
  const read = await collect(log.read(undefined, { page: 37 }));
  assert.deepEqual(read.map(essence), sent.map(essence));
  assert.deepEqual(read.map((event) => event.position), sent.map((_, index) => index + 1));
  assert.deepEqual(
    await collect(log.read(undefined, { backwards: true, page: 41 })),
    [...read].reverse(),
  );
  const middle = { after: read[99]!.cursor, limit: 10, page: 3 };
  assert.deepEqual(await collect(log.read(undefined, middle)), read.slice(100, 110));
  const before = { after: 91, backwards: true, limit: 10, page: 3 };
  assert.deepEqual(await collect(log.read(undefined, before)), read.slice(80, 90).reverse());
  assert.deepEqual(await collect(log.read(undefined, { after: String(read.at(-1)!.cursor) })), []);
  assert.deepEqual(await collect(await log.subscribe(), read.length), read);
  assert.deepEqual(await log.event(7), read[6]);
  const known = read.find((event) => event.id !== undefined)!;
  assert.deepEqual(await log.eventById(known.id!), known);
});

test("a log is created, described and dropped", async () => {
  const log = await freshLog();
  assert.equal(await log.create(), false);
  await log.append([{ type: "A", data: 1 }, { type: "B", tags: ["x:1"] }]);
  const info = await log.info();
  assert.deepEqual([info.name, info.head, info.types, info.tags], [log.name, 2, 2, 1]);
  assert.equal((await log.head()).position, 2);
  assert.ok((await new Client(URL_OF_SERVER).logs()).includes(log.name));
  await log.drop();
  await assert.rejects(log.head(), (error: NotFound) => {
    assert.ok(error instanceof NotFound);
    assert.equal(error.type, "log-not-found");
    assert.ok(error.requestId);
    return true;
  });
});

test("personal data are sealed and shown until they are erased", async () => {
  const log = await freshLog();
  const [ada, eve] = [`student:${randomUUID()}`, `student:${randomUUID()}`];
  await log.append([{ type: "Enrolled", data: { name: "Ada" }, subject: ada }]);
  const personal = { [ada]: "Ada", [eve]: ["Eve"] };
  await log.append([{ type: "Paired", data: { room: 7 }, personal }]);
  let [enrolled, paired] = await collect(log.read());
  assert.deepEqual([enrolled!.data, enrolled!.subject], [{ name: "Ada" }, ada]);
  assert.deepEqual([paired!.data, paired!.personal], [{ room: 7 }, personal]);
  assert.deepEqual([paired!.subject, paired!.withheld, paired!.erased], [undefined, false, []]);
  const erasure = `${URL_OF_SERVER}/v1/subjects/${ada}?confirm=${ada}`;
  assert.equal((await fetch(erasure, { method: "DELETE" })).status, 202);
  [enrolled, paired] = await collect(log.read(undefined, { limit: 2 }));
  assert.deepEqual([enrolled!.data, enrolled!.erased, paired!.erased], [null, [ada], [ada]]);
  assert.deepEqual(paired!.personal, { [ada]: null, [eve]: ["Eve"] });
});

test("a failed condition names the event in the way", async () => {
  const log = await freshLog();
  const name = matching(["Claimed"], ["name:ada"]);
  const claim = [{ type: "Claimed", data: {}, tags: ["name:ada"] }];
  assert.equal((await log.append(claim, unlessExists(name))).first, 1);
  await assert.rejects(log.append(claim, unlessExists(name)), (error: ConditionFailed) => {
    assert.ok(error instanceof ConditionFailed);
    assert.equal(error.conflict?.position, 1);
    assert.equal(error.retry, "after-reread");
    return true;
  });
  await log.append(claim, unlessChanged(anyOf(name, matching(["Other"])), 1));
  await assert.rejects(log.append(claim, unlessChanged(name, 1)), ConditionFailed);
});

test("what breaks a rule is named", async () => {
  const log = await freshLog();
  const invalid = (expected: Partial<Invalid>) => (error: Invalid): boolean => {
    assert.ok(error instanceof Invalid, String(error));
    for (const [name, value] of Object.entries(expected)) {
      assert.equal(error[name as keyof Invalid], value);
    }
    return true;
  };
  const bad = [{ type: "A" }, { type: "B", tags: ["ok", ""] }];
  await assert.rejects(log.append(bad), invalid({ field: "events[1].tags[1]" }));
  const many = Array.from({ length: 1001 }, () => ({ type: "A" }));
  await assert.rejects(log.append(many), invalid({ status: 413, limit: 1000 }));
  const lines = Array.from({ length: 10_502 }, (_, n) => ({ type: n === 10_500 ? "" : "A" }));
  await assert.rejects(log.appendBulk(lines), (error: Invalid) => {
    invalid({ line: 10_501 })(error);
    assert.equal(error.problem["durable_lines"], 10_500);
    for (const words of [error.detail, error.message, error.stack!]) {
      assert.match(words, /line 10501: /);
      assert.doesNotMatch(words, /line 501: /);
    }
    return true;
  });
  assert.equal((await log.head()).position, 10_500);
  await assert.rejects(log.append([{ type: "A", data: { n: Number.NaN } }]), RangeError);
  assert.throws(() => matching("A"), TypeError);
});

test("the same key is the same request", async () => {
  const log = await freshLog();
  const first = await log.append([{ type: "A" }], undefined, { key: "k1" });
  const again = await log.append([{ type: "A" }], undefined, { key: "k1" });
  assert.deepEqual([first.first, first.replayed, again.replayed], [again.first, false, true]);
  const other = log.append([{ type: "B" }], undefined, { key: "k1" });
  await assert.rejects(other, (error: Invalid) => {
    assert.deepEqual([error.type, error.key], ["idempotency-key-reused", "k1"]);
    return error instanceof Invalid;
  });
  const id = randomUUID();
  await log.append([{ type: "A", data: 1, id }]);
  await assert.rejects(log.append([{ type: "A", data: 2, id }]), Conflict);
  const events = Array.from({ length: 12_000 }, (_, data) => ({ type: "Bulk", data }));
  const done = await log.appendBulk(events, { key: "b" });
  assert.deepEqual([done.events, done.last! - done.first! + 1, done.replayed], [12e3, 12e3, false]);
  assert.equal((await log.appendBulk(events, { key: "b" })).replayed, true);
  assert.equal((await log.appendBulk([], { key: "c" })).events, 0);
  const long = await log.append([{ type: "Long" }], undefined, { key: "k".repeat(255) });
  assert.equal(long.replayed, false);
  const many = Array.from({ length: 10_001 }, () => ({ type: "Long" }));
  assert.equal((await log.appendBulk(many, { key: "k".repeat(230) })).last, 22_004);
  assert.equal((await log.head()).position, 22_004);
});

test("eight clients decide at once, and no number is used twice", async () => {
  const log = await freshLog();
  const highest = { n: projection({ max: "/n" }, ["Numbered"], [], { init: 0 }) };
  const number = async (): Promise<void> => {
    for (let count = 0; count < 5; count += 1) {
      await log.decide<{ n: number }>(highest, ({ n }) => [
        { type: "Numbered", data: { n: n + 1 } },
      ]);
    }
  };
  await Promise.all(Array.from({ length: 8 }, number));
  const numbers = (await collect(log.read())).map((event) => event.data.n);
  assert.deepEqual(numbers, Array.from({ length: 40 }, (_, index) => index + 1));
  assert.equal(await log.decide(highest, () => []), undefined);
  const refusing = log.decide(highest, () => {
    throw new EvalError("a rule");
  });
  await assert.rejects(refusing, EvalError);
  const one = log.decide(highest, () => ({ type: "Numbered" }) as never);
  await assert.rejects(one, /^TypeError: events must be a list of events$/);
});

test("a projection comes with the condition that protects it", async () => {
  const log = await freshLog();
  const paid = { type: "Paid", data: { amount: 2 }, tags: ["by:ann"] };
  await log.append([paid, paid, paid]);
  const known = await log.project({
    total: projection({ sum: "/amount" }, ["Paid"]),
    last: projection({ last: "" }, [], [], { query: matching([], ["by:ann"]) }),
  });
  assert.deepEqual(known.states, { total: 6, last: { amount: 2 } });
  assert.equal(known.position, 3);
  await log.append([paid], known.condition);
  await assert.rejects(log.append([paid], known.condition), ConditionFailed);
});

test("a projection tells what it has passed over", async () => {
  const log = await freshLog();
  const paid = [{ sum: 2 }, { amount: 3 }, {}].map((data) => ({ type: "Paid", data }));
  await log.append(paid);
  const reduce = { sum: ["/amount", "/sum"] };
  const known = await log.project({ total: projection(reduce), all: projection("count") });
  assert.deepEqual(known.states, { total: 5, all: 3 });
  assert.deepEqual(known.passedOver, { total: { events: 1, first: 3 } });
  const strict = log.project({ total: projection(reduce, [], [], { strict: true }) });
  await assert.rejects(strict, /at position 3/);
});

test("a subscription shows what matches from where it is told", async () => {
  const log = await freshLog();
  await log.append(Array.from({ length: 5 }, (_, data) => ({ type: "Old", data })));
  const fresh = await log.subscribe(matching(["New"]), { after: "end" });
  const later = await log.subscribe(undefined, { after: 3 });
  await log.append([{ type: "Old", data: 5 }, { type: "New", data: 6 }]);
  const event = (await fresh.next()).value!;
  assert.deepEqual([event.position, event.data], [7, 6]);
  assert.deepEqual(fresh.cursor, event.cursor);
  assert.deepEqual((await collect(later, 4)).map((each) => each.position), [4, 5, 6, 7]);
  const resumed = await log.subscribe(undefined, { after: Cursor.parse(String(event.cursor)) });
  await log.append([{ type: "New", data: 7 }]);
  assert.equal((await resumed.next()).value!.data, 7);
  fresh.close();
  resumed.close();
});

test("a subscription that waits is closed", async () => {
  const subscription = await (await freshLog()).subscribe();
  setTimeout(() => subscription.close(), 200);
  assert.deepEqual(await collect(subscription), []);
});

test("leases exclude and fence", async () => {
  const log = await freshLog();
  const lease = await log.acquireLease("importer", 30);
  await assert.rejects(log.acquireLease("importer", 30), (error: LeaseHeld) => {
    assert.ok(error instanceof LeaseHeld);
    return error.remainingS! > 1;
  });
  await lease.renew();
  await log.append([{ type: "A" }], undefined, { fence: lease.fence });
  await lease.release();
  const late = log.append([{ type: "A" }], undefined, { fence: lease.fence });
  await assert.rejects(late, LeaseLost);
  const held = await log.acquireLease("x", 30);
  setTimeout(() => void held.release(), 200);
  await (await log.acquireLease("x", 30, { waitS: 10 })).release();
});

test("what is ingested is stored", async () => {
  const log = await freshLog();
  const clicked = { type: "Clicked", tags: ["page:home", "a&b=c"], ack: "durable" } as const;
  await log.ingest({ x: 1 }, clicked);
  await log.ingest(Uint8Array.of(255, 0), { ack: "durable" });
  await log.ingest("text");
  const accepted = await log.append([{ type: "A" }], undefined, { ack: "accepted" });
  assert.deepEqual(accepted, { accepted: 1 });
  const found = await collect(await log.subscribe(), 4);
  assert.deepEqual(found.map((e) => e.type).sort(), ["A", "Clicked", "Ingested", "Ingested"]);
  assert.deepEqual(found.find((e) => e.type === "Clicked")!.tags, ["page:home", "a&b=c"]);
  assert.ok(found.some((e) => e.data instanceof Uint8Array && e.data[0] === 255));
  assert.ok(found.some((e) => e.data === "text"));
});

test("links are created, changed, counted and deleted", async () => {
  const { links } = new Client(URL_OF_SERVER);
  const alias = randomName().slice(3, 13);
  const link = await links.create("http://example.com/a", { alias, tags: ["ts", alias] });
  assert.deepEqual([link.shortCode, link.tags], [alias, ["ts", alias]]);
  await assert.rejects(links.create("http://example.com/b", { alias }), Conflict);
  await assert.rejects(links.create("ftp://example.com"), Invalid);
  assert.equal((await links.get(alias)).clicks, 0);
  const changed = await links.change(alias, { url: "http://example.com/c", expiresAt: null });
  assert.equal(changed.originalUrl, "http://example.com/c");
  assert.equal((await links.change(alias, { enabled: false })).enabled, false);
  assert.deepEqual((await links.stats(alias, { bucket: "hour" })).series, []);
  const listed: string[] = [];
  for await (const each of links.list({ tag: alias, page: 1 })) {
    listed.push(each.shortCode);
  }
  assert.deepEqual(listed, [alias]);
  await links.delete(alias);
  await assert.rejects(links.get(alias), NotFound);
});
