/** Leases that tell: renewal, loss, lost answers, subscriptions that end with a lease. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import {
  Client,
  Lease,
  LeaseHeld,
  LeaseLost,
  NO_RETRY,
  type NewEvent,
  OutcomeUnknown,
  projection,
} from "../dist/index.js";
import {
  type FakeAnswer,
  FakeLog,
  type FakeRequest,
  QUICK,
  RealServer,
  URL_OF_SERVER,
  collect,
  freePort,
  freshLog,
  jsonAnswer,
  pause,
  problem,
  withFake,
} from "./server.js";

const SEATS = { taken: projection("count", ["Taken"]) };

function granted(token: number, ttlMs = 1000): FakeAnswer {
  const expires = "2026-01-01T00:00:00Z";
  return jsonAnswer(201, { name: "a", token, ttl_ms: ttlMs, expires_at: expires });
}

async function send(log: string, path: string, body: string, key?: string): Promise<FakeAnswer> {
  const headers = {
    "Content-Type": "application/json",
    ...(key === undefined ? {} : { "Idempotency-Key": key }),
  };
  const url = `${URL_OF_SERVER}/v1/logs/${log}${path}`;
  const answer = await fetch(url, { method: "POST", body, headers });
  return jsonAnswer(answer.status, await answer.json());
}

test("a lease renews itself", async () => {
  const answer = (): FakeAnswer => granted(7, 9_000);
  await withFake(answer, async (fake) => {
    const lease = await new Client(fake.url).log("x").holdLease("a", { ttlS: 9 });
    const endsMs = performance.now() + lease.leftS * 1000;
    while (lease.leftS > 0 && performance.now() + lease.leftS * 1000 < endsMs + 1) {
      await pause(10);
    }
    assert.ok(lease.leftS > 0, "it was renewed in time");
    assert.ok(fake.requests.some(({ method }) => method === "PUT"));
    await lease.release();
  });
});

test("a held lease keeps others out until it is released", async () => {
  const log = await freshLog();
  const lease = await log.holdLease("importer", { ttlS: 60 });
  await log.append([{ type: "A" }], undefined, { fence: lease.fence });
  await assert.rejects(log.holdLease("importer", { waitS: 0.1 }), LeaseHeld);
  await lease[Symbol.asyncDispose]();
  assert.ok(lease.lost instanceof LeaseLost && lease.signal.aborted);
  await (await log.acquireLease("importer", 3)).release();
});

test("a lost answer to an acquire leaves no orphan", async () => {
  const log = await freshLog();
  const asked: string[] = [];
  const relay = async ({ json, body }: { json: any; body: string }): Promise<FakeAnswer | null> => {
    asked.push(json.holder);
    const answer = await send(log.name, "/leases/a", body);
    return asked.length === 1 ? null : answer;
  };
  await withFake(relay, async (fake) => {
    const lease = await new Client(fake.url, { retry: QUICK }).log("x").acquireLease("a", 30);
    await log.append([{ type: "A" }], undefined, { fence: lease.fence });
  });
  assert.deepEqual(asked, [asked[0], asked[0]]);
});

test("the deadline counts from before the request", async () => {
  let arrivedMs = 0;
  const slow = async (): Promise<FakeAnswer> => {
    arrivedMs ||= performance.now();
    await pause(100);
    return granted(7, 60_000);
  };
  await withFake(slow, async (fake) => {
    const lease = await new Client(fake.url).log("x").acquireLease("a", 60);
    assert.ok(performance.now() + lease.leftS * 1000 <= arrivedMs + 60_001);
    assert.equal(fake.requests.length, 1);
  });
  // After a wait it is a renewal that tells how long it lasts.
  const late = async (): Promise<FakeAnswer> => {
    await pause(500);
    return granted(8);
  };
  await withFake(late, async (fake) => {
    await new Client(fake.url).log("x").acquireLease("a", 1, { waitS: 5 });
    assert.deepEqual(
      fake.requests.map(({ method }) => method),
      ["POST", "PUT"],
    );
  });
});

test("a subscription ends when the lease does", async () => {
  const log = await freshLog();
  await log.append([{ type: "A" }]);
  const lease = await log.holdLease("worker", { ttlS: 30 });
  const events = await log.subscribe(undefined, { whileHeld: lease });
  assert.equal((await events.next()).value?.type, "A");
  // Behind the back of its holder.
  setTimeout(() => void Lease.prototype.release.call(lease), 200);
  await assert.rejects(events.next(), LeaseLost);
  const again = await log.subscribe(undefined, { whileHeld: lease });
  await assert.rejects((async () => collect(again, 2))(), LeaseLost);
  const released = await log.holdLease("worker", { ttlS: 30 });
  const waiting = await log.subscribe(undefined, { whileHeld: released });
  await waiting.next();
  setTimeout(() => void released.release(), 200);
  await assert.rejects(waiting.next(), LeaseLost);
  await lease[Symbol.asyncDispose]();
});

test("a subscription ends though the server has gone", async () => {
  const server = new RealServer(await freePort());
  try {
    await server.start();
    const log = new Client(server.url).log("main");
    const lease = await log.holdLease("worker", { ttlS: 3 });
    const events = await log.subscribe(undefined, { whileHeld: lease });
    setTimeout(() => void server.kill(), 300);
    await assert.rejects(events.next(), LeaseLost);
    assert.ok(lease.signal.aborted);
  } finally {
    await server.stop();
  }
});

test("where no lease is known the holder goes by its own clock", async () => {
  const log = new FakeLog("0123456789abcdef", 2);
  const follower = (request: FakeRequest): FakeAnswer => {
    if (request.path.includes("/leases/")) {
      return granted(7, 60_000);
    }
    const isFenced = request.path.endsWith("/query") && request.json.fence !== undefined;
    return isFenced ? problem(503, "not-leading", { retry: 1 }) : log.answer(request);
  };
  await withFake(follower, async (fake) => {
    const followed = new Client(fake.url).log("x");
    const whileHeld = await followed.acquireLease("a", 60);
    const events = await collect(await followed.subscribe(undefined, { whileHeld }), 2);
    assert.deepEqual(events.map(({ position }) => position), [1, 2]);
  });
});

test("a form that is sent twice is decided once", async () => {
  const [log, key] = [await freshLog(), randomUUID()];
  const decided: unknown[] = [];
  const decision = ({ taken }: { taken?: unknown }): NewEvent[] => {
    decided.push(taken);
    return [{ type: "Taken" }, { type: "Paid" }];
  };
  const first = await log.decide(SEATS, decision, { key });
  const again = await new Client(URL_OF_SERVER).log(log.name).decide(SEATS, decision, { key });
  assert.deepEqual(decided, [0]);
  assert.deepEqual([first?.first, first?.last, first?.replayed], [1, 2, false]);
  assert.deepEqual([again?.first, again?.last, again?.replayed], [1, 2, true]);
  assert.equal((await log.decide(SEATS, decision, { key: randomUUID() }))?.first, 3);
});

test("of two at once the later gets the answer of the earlier", async () => {
  const [log, key] = [await freshLog(), randomUUID()];
  let [waiting, open] = [0, (): void => undefined];
  const both = new Promise<void>((resolve) => (open = resolve));
  const decide = (number: number): Promise<unknown> =>
    log.decide(
      SEATS,
      async ({ taken }) => {
        if (taken === 0) {
          waiting += 1;
          if (waiting === 2) {
            open();
          }
          await both;
        }
        return [{ type: "Taken", data: number }];
      },
      { key },
    );
  const answers = (await Promise.all([decide(1), decide(2)])) as any[];
  assert.deepEqual(
    answers.map(({ first, last }) => [first, last]),
    [
      [1, 1],
      [1, 1],
    ],
  );
  assert.deepEqual(answers.map(({ replayed }) => replayed).sort(), [false, true]);
  assert.equal((await log.head()).position, 1);
});

test("after an unknown outcome the same key finds out", async () => {
  const [log, key] = [await freshLog(), randomUUID()];
  const relay = async ({ path, body, headers }: any): Promise<FakeAnswer | null> => {
    if (path.endsWith("/append")) {
      await send(log.name, "/append", body, headers["idempotency-key"]);
      return null;
    }
    return send(log.name, "/project", body);
  };
  await withFake(relay, async (fake) => {
    const cut = new Client(fake.url, { retry: NO_RETRY }).log("x");
    await assert.rejects(cut.decide(SEATS, () => [{ type: "Taken" }], { key }), OutcomeUnknown);
    const never = (): never => assert.fail("it was decided before");
    assert.equal((await cut.decide(SEATS, never, { key }))?.first, 1);
  });
});

test("reads begin and end with times", async () => {
  const log = await freshLog();
  for (const data of [0, 1, 2, 3]) {
    await log.append([{ type: "T", data }]);
    await pause(3);
  }
  const times = (await collect(log.read(), 4)).map((event) => event.recordedAt);
  const [since, until] = [times[1]!, times[3]!];
  const datas = async (backwards: boolean): Promise<unknown[]> => {
    const found: unknown[] = [];
    for await (const event of log.read(undefined, { since, until, page: 1, backwards })) {
      found.push(event.data);
    }
    return found;
  };
  assert.deepEqual([await datas(false), await datas(true)], [[1, 2], [2, 1]]);
  const events = await log.subscribe(undefined, { since: times[2]! });
  assert.deepEqual((await collect(events, 2)).map(({ data }) => data), [2, 3]);
  const past = await log.project({ n: projection("count", ["T"]) }, { until: times[2]! });
  assert.deepEqual([past.states, past.position], [{ n: 2 }, 2]);
  assert.throws(() => past.condition, RangeError);
  const now = await log.project({ n: projection("count", ["T"]) }, { since: new Date(0) });
  assert.deepEqual(now.states, { n: 4 });
});
