/** The identity of a log: a consumer is told when the log is not the one it knew. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { AnotherHistory, Client, Cursor, type Log, projection } from "../dist/index.js";
import { FakeLog, FakeServer, QUICK, URL_OF_SERVER, collect, freshLog } from "./server.js";

const [OLD, NEW] = ["00000000000000aa", "00000000000000bb"];
const COUNT = { n: projection("count") };

async function fakeLog(t: TestContext): Promise<{ fake: FakeLog; server: FakeServer; log: Log }> {
  const fake = new FakeLog(OLD, 6);
  const server = await FakeServer.start((request) => fake.answer(request));
  t.after(() => server.stop());
  return { fake, server, log: new Client(server.url, { retry: QUICK }).log("x") };
}

/** Checks that an action fails because the log has the new history. */
async function told(action: Promise<unknown>, head = 3, position?: number): Promise<void> {
  await assert.rejects(action, (error: AnotherHistory) => {
    assert.ok(error instanceof AnotherHistory, String(error));
    assert.deepEqual([error.history, error.head], [NEW, head]);
    assert.equal(error.position, position);
    return true;
  });
}

async function follow(log: Log, after: Cursor | string | number) {
  const followed = await log.subscribe(undefined, { after });
  try {
    return await followed.next();
  } finally {
    followed.close();
  }
}

test("the first history is remembered and sent", async (t) => {
  const { server, log } = await fakeLog(t);
  assert.deepEqual(await log.head(), new Cursor(6, OLD));
  assert.equal(server.requests[0]!.headers["wellspring-history"], undefined);
  const read = await collect(log.read(undefined, { after: 4 }));
  assert.deepEqual(read.map((event) => `${event.cursor}`), [`5@${OLD}`, `6@${OLD}`]);
  assert.equal(server.requests[1]!.headers["wellspring-history"], OLD);
  assert.equal(log.history, OLD);
});

test("everything on a restored log is told", async (t) => {
  const { fake, log } = await fakeLog(t);
  const cursor = await log.head();
  fake.restore(NEW, 3);
  const event = { type: "A" };
  await told(log.append([event]));
  await told(log.appendBulk([event]));
  await told(log.ingest({}));
  await told(collect(log.read()));
  await told(log.project(COUNT));
  await told(log.decide(COUNT, () => [event]));
  await told(follow(log, cursor));
  assert.equal(fake.head, 3, "nothing was done");
  log.forgetHistory();
  assert.equal((await collect(log.read())).length, 3);
  assert.equal(log.history, NEW);
  await told(collect(log.read(undefined, { after: String(cursor) })));
});

test("a saved cursor is checked by another process", async (t) => {
  const { fake, server, log } = await fakeLog(t);
  const saved = JSON.parse(JSON.stringify(await log.head())) as string;
  assert.equal(saved, `6@${OLD}`);
  fake.restore(NEW, 30);
  const later = new Client(server.url, { retry: QUICK }).log("x");
  await told(follow(later, saved), 30);
  await told(collect(later.read(undefined, { after: saved })), 30);
});

test("a bare position ahead of the log is told", async (t) => {
  const { fake, log } = await fakeLog(t);
  fake.restore(NEW, 3);
  await told(collect(log.read(undefined, { after: 6 })), 3, 6);
  await told(follow(log, 6), 3, 6);
});

test("a log restored between projection and append is told", async (t) => {
  const { fake, log } = await fakeLog(t);
  const decided = log.decide(COUNT, () => {
    fake.restore(NEW, 3);
    log.forgetHistory(); // As another task might that has noticed first.
    return [{ type: "A" }];
  });
  await told(decided);
  assert.equal(fake.head, 3);
});

test("a log restored under a subscription is told at the next connection", async (t) => {
  const { fake, log } = await fakeLog(t);
  // The fake ends every stream after the events it has.
  const followed = await log.subscribe();
  for (let count = 0; count < 6; count += 1) {
    await followed.next();
  }
  assert.equal(String(followed.cursor), `6@${OLD}`);
  fake.restore(NEW, 9);
  await told(followed.next(), 9);
});

test("a server that does not check is checked", async (t) => {
  const fake = new FakeLog(OLD, 6);
  const server = await FakeServer.start((request) => {
    delete request.headers["wellspring-history"];
    return fake.answer(request);
  });
  t.after(() => server.stop());
  const log = new Client(server.url, { retry: QUICK }).log("x");
  const cursor = await log.head();
  fake.restore(NEW, 9);
  await told(collect(log.read(undefined, { after: cursor })), 9);
  await told(follow(log, cursor), 9);
  log.forgetHistory();
  assert.equal((await follow(log, 0)).value!.history, NEW);
});

test("a server without histories is used as it is", async (t) => {
  const { fake, server, log } = await fakeLog(t);
  fake.restore(undefined, 6);
  assert.deepEqual(await log.head(), new Cursor(6));
  const followed = await collect(await log.subscribe(undefined, { after: 4 }), 2);
  assert.deepEqual(followed.map((event) => `${event.cursor}`), ["5", "6"]);
  const read = await collect(log.read(undefined, { after: `5@${OLD}` }));
  assert.deepEqual(read.map((event) => event.position), [6]);
  await log.append([{ type: "A" }]);
  assert.equal(server.requests.at(-1)!.headers["wellspring-history"], undefined);
});

test("cursors are text", () => {
  for (const text of ["0", "42", `42@${OLD}`]) {
    assert.equal(String(Cursor.parse(text)), text);
  }
  for (const text of ["", "x", "-1", "1@", "@a", "1.5", "start", "²"]) {
    assert.throws(() => Cursor.parse(text), RangeError);
  }
});

test("a real log made anew is told from the old one", async (t) => {
  const answer = await fetch(`${URL_OF_SERVER}/v1/logs/main/head`);
  if (answer.headers.get("wellspring-history") === null) {
    t.skip("this server sends no Wellspring-History");
    return;
  }
  const log = await freshLog();
  await log.append([1, 2, 3, 4, 5].map((data) => ({ type: "A", data })));
  const cursor = await log.head();
  assert.equal((await log.info()).history, cursor.history);
  const other = new Client(URL_OF_SERVER).log(log.name);
  await other.drop();
  await other.create();
  assert.notEqual((await other.head()).history, cursor.history);
  const actions: (() => Promise<unknown>)[] = [
    () => log.head(),
    () => log.append([{ type: "A" }]),
    () => log.appendBulk([{ type: "A" }]),
    () => log.ingest({}),
    () => log.decide(COUNT, () => [{ type: "A" }]),
    () => collect(log.read(undefined, { after: cursor })),
    () => follow(log, cursor),
    () => follow(other, String(cursor)),
    () => follow(other, 5),
    () => collect(other.read(undefined, { after: 5 })),
  ];
  for (const action of actions) {
    await assert.rejects(action, (error: AnotherHistory) => {
      assert.ok(error instanceof AnotherHistory, `${action}: ${error}`);
      assert.deepEqual([error.history, error.head], [other.history, 0], String(action));
      return true;
    });
  }
  log.forgetHistory();
  await log.append([{ type: "A" }]);
  assert.equal((await follow(log, 0)).value!.history, other.history);
});
