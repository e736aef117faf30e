/** Retries, errors and keys, against a server that misbehaves. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Client,
  ConditionFailed,
  Conflict,
  Forbidden,
  Invalid,
  NO_RETRY,
  NotFound,
  OutcomeUnknown,
  ServerFault,
  Unauthenticated,
  Unavailable,
  WellspringError,
} from "../dist/index.js";
import {
  type Answering,
  type FakeServer,
  QUICK,
  freePort,
  inTurn,
  jsonAnswer,
  pause,
  problem,
  sseMessage,
  withFake,
} from "./server.js";

const DONE = { first: 1, last: 1, head: 1, replayed: false };
const BUSY = jsonAnswer(503, { type: "/problems/overloaded", retry: "same" });

test("an append is repeated as it was, under one key", async () => {
  const gateway = { status: 502, headers: {}, body: "<h1>Bad gateway</h1>" };
  const answers = [null, BUSY, gateway, jsonAnswer(200, DONE)];
  await withFake(inTurn(...answers), async (fake) => {
    const log = new Client(fake.url, { retry: QUICK }).log("x");
    assert.equal((await log.append([{ type: "A", data: "ö" }])).last, 1);
    assert.equal(fake.requests.length, 4);
    assert.equal(new Set(fake.requests.map((request) => request.body)).size, 1);
    const keys = new Set(fake.requests.map((request) => request.headers["idempotency-key"]));
    assert.equal(keys.size, 1);
    await log.append([{ type: "A", data: "ö" }]);
    assert.ok(!keys.has(fake.requests.at(-1)!.headers["idempotency-key"]));
  });
});

test("an append in doubt says so and names its key", async () => {
  const append = (fake: FakeServer) =>
    new Client(fake.url, { retry: QUICK }).log("x").append([{ type: "A" }]);
  await withFake(inTurn(null, BUSY), async (fake) => {
    await assert.rejects(append(fake), (error: WellspringError) => {
      assert.ok(error instanceof OutcomeUnknown, String(error));
      assert.equal(error.key, fake.requests[0]!.headers["idempotency-key"]);
      return true;
    });
    assert.equal(fake.requests.length, 5);
  });
  await withFake(inTurn(BUSY), (fake) => assert.rejects(append(fake), Unavailable));
  // A definite answer settles the doubt.
  const refused = inTurn(null, problem(409, "append-condition-failed"));
  await withFake(refused, (fake) => assert.rejects(append(fake), ConditionFailed));
});

test("what is not safe is sent once", async () => {
  await withFake(inTurn(null), async (fake) => {
    const client = new Client(fake.url, { retry: QUICK });
    await assert.rejects(client.log("x").ingest({}), OutcomeUnknown);
    await assert.rejects(client.log("x").drop(), OutcomeUnknown);
    await assert.rejects(client.links.change("abc", { enabled: false }), OutcomeUnknown);
    assert.equal(fake.requests.length, 3);
    await assert.rejects(client.log("x").head(), Unavailable);
    assert.equal(fake.requests.length, 8);
  });
});

test("an answer of a gateway leaves a change in doubt", async () => {
  const page = { headers: { "Content-Type": "text/html" }, body: "<h1>Gateway</h1>" };
  const gateways = [408, 500, 502, 503, 504, 520].map((status) => ({ status, ...page }));
  gateways.push(jsonAnswer(502, { type: "about:blank", detail: "not ours" }) as never);
  gateways.push(jsonAnswer(504, { message: "Endpoint request timed out" }) as never);
  for (const gateway of gateways) {
    await withFake(inTurn(gateway), async (fake) => {
      const client = new Client(fake.url, { retry: QUICK });
      const log = client.log("x");
      const append = log.append([{ type: "A" }], undefined, { key: "mine" });
      await assert.rejects(append, (error: OutcomeUnknown) => {
        assert.ok(error instanceof OutcomeUnknown, String(error));
        assert.deepEqual([error.key, error.status], ["mine", gateway.status]);
        assert.match(error.message, /may have been done/);
        return true;
      });
      assert.equal(fake.requests.length, 5);
      await assert.rejects(log.create(), OutcomeUnknown);
      assert.equal(fake.requests.length, 10);
      await assert.rejects(log.acquireLease("x", 1), OutcomeUnknown);
      assert.equal(new Set(fake.requests.slice(10).map(({ body }) => body)).size, 1);
      assert.equal(fake.requests.length, 15);
      await assert.rejects(log.ingest(1), OutcomeUnknown);
      await assert.rejects(log.drop(), OutcomeUnknown);
      await assert.rejects(client.links.delete("a"), OutcomeUnknown);
      assert.equal(fake.requests.length, 18, "what is not safe is sent once");
    });
    await withFake(inTurn(gateway, jsonAnswer(200, DONE)), async (fake) => {
      const log = new Client(fake.url, { retry: QUICK }).log("x");
      assert.equal((await log.append([{ type: "A" }])).last, 1);
    });
  }
  const reads: [number, typeof WellspringError, number][] = [
    [503, Unavailable, 5],
    [502, Unavailable, 5],
    [504, Unavailable, 5],
    [500, ServerFault, 1],
  ];
  for (const [status, kind, attempts] of reads) {
    await withFake(inTurn({ status, ...page }), async (fake) => {
      await assert.rejects(new Client(fake.url, { retry: QUICK }).log("x").head(), kind);
      assert.equal(fake.requests.length, attempts);
    });
  }
});

test("only a judgement of the server settles a doubt", async () => {
  const answers: [Parameters<typeof inTurn>[0], typeof WellspringError][] = [
    [problem(401, "unauthenticated"), OutcomeUnknown],
    [problem(403, "forbidden"), OutcomeUnknown],
    [problem(503, "detached"), OutcomeUnknown],
    [{ status: 404, headers: {}, body: "no backend" }, OutcomeUnknown],
    [problem(422, "idempotency-key-reused"), Invalid],
    [problem(404, "log-not-found"), NotFound],
  ];
  for (const [answer, kind] of answers) {
    await withFake(inTurn(null, answer!), async (fake) => {
      const append = new Client(fake.url, { retry: QUICK }).log("x").append([{ type: "A" }]);
      await assert.rejects(append, (error: Error) => error.constructor === kind);
      assert.equal(fake.requests.length, 2);
    });
  }
});

test("Retry-After is honoured, and time is bounded", async () => {
  const busy = jsonAnswer(503, { type: "/problems/overloaded" }, { "Retry-After": "1" });
  await withFake(inTurn(busy, jsonAnswer(200, { head: 5 })), async (fake) => {
    const begunMs = performance.now();
    assert.equal((await new Client(fake.url, { retry: QUICK }).log("x").head()).position, 5);
    assert.ok(performance.now() - begunMs >= 990);
  });
  const late = jsonAnswer(429, { type: "/problems/ingest-full", retry: 60 });
  await withFake(inTurn(late), async (fake) => {
    const begunMs = performance.now();
    const head = new Client(fake.url, { retry: QUICK }).log("x").head();
    await assert.rejects(head, (error: WellspringError) => error.retryAfter === 60);
    assert.ok(performance.now() - begunMs < 1000);
  });
});

test("each problem has the class of its remedy", async () => {
  const expected: [number, string, unknown][] = [
    [400, "malformed-json", Invalid],
    [401, "unauthenticated", Unauthenticated],
    [403, "forbidden", Forbidden],
    [404, "log-not-found", NotFound],
    [409, "alias-taken", Conflict],
    [410, "link-deleted", NotFound],
    [413, "too-large", Invalid],
    [422, "invalid", Invalid],
    [500, "corrupt", ServerFault],
    [503, "detached", ServerFault],
    [501, "search-not-built", ServerFault],
  ];
  for (const [status, slug, kind] of expected) {
    await withFake(inTurn(problem(status, slug, { field: "a.b" })), async (fake) => {
      const head = new Client(fake.url, { retry: QUICK }).log("x").head();
      await assert.rejects(head, (error: WellspringError) => {
        assert.equal(error.constructor, kind, slug);
        assert.deepEqual([error.type, error.status, error.problem["field"]], [slug, status, "a.b"]);
        return true;
      });
      assert.equal(fake.requests.length, 1, slug);
    });
  }
  await withFake(inTurn({ status: 200, headers: {}, body: "<html>" }), async (fake) => {
    await assert.rejects(new Client(fake.url).log("x").head(), ServerFault);
  });
  const moved = { status: 302, headers: { Location: "http://127.0.0.1:1/" }, body: "" };
  await withFake(inTurn(moved), async (fake) => {
    await assert.rejects(new Client(fake.url).log("x").head(), ServerFault);
  });
});

test("nothing listens", async () => {
  const log = new Client(`http://127.0.0.1:${await freePort()}`, { retry: NO_RETRY }).log("x");
  await assert.rejects(log.head(), Unavailable);
  await assert.rejects(log.append([{ type: "A" }]), Unavailable);
  await assert.rejects(log.ingest(1), Unavailable);
});

test("a silent server is not waited for longer than told", async () => {
  const silent: Answering = async () => {
    await pause(1000);
    return jsonAnswer(200, { head: 1 });
  };
  await withFake(silent, async (fake) => {
    const log = new Client(fake.url, { retry: NO_RETRY, timeoutS: 0.1 }).log("x");
    await assert.rejects(log.head(), Unavailable);
    await assert.rejects(log.ingest(1), OutcomeUnknown);
  });
});

test("a connection is kept", async () => {
  await withFake(inTurn(jsonAnswer(200, { head: 1 })), async (fake) => {
    const log = new Client(fake.url, { retry: NO_RETRY }).log("x");
    for (let count = 0; count < 5; count += 1) {
      await log.head();
    }
    const connections = new Set(fake.requests.map((request) => request.port)).size;
    assert.ok(connections < fake.requests.length, `${connections} connections`);
  });
});

test("own writes are read, unless turned off", async () => {
  const answer: Answering = ({ path }) =>
    jsonAnswer(200, path.endsWith("append") ? { ...DONE, last: 41, head: 99 } : { head: 99 });
  await withFake(answer, async (fake) => {
    for (const [readYourWrites, expected] of [[true, "41"], [false, undefined]] as const) {
      const log = new Client(fake.url, { readYourWrites }).log("x");
      await log.append([{ type: "A" }]);
      await log.head();
      assert.equal(fake.requests.at(-1)!.headers["wellspring-min-position"], expected);
    }
  });
});

test("a silent subscription is replaced and resumes", async () => {
  const asked: number[] = [];
  const answer: Answering = ({ json }) => {
    asked.push(json.after);
    let body: (string | number)[] = [sseMessage(10), 5000];
    if (json.after === 0) {
      body = [": wellspring\n\n", sseMessage(1), sseMessage(2).slice(0, -1), 5000];
    } else if (json.after === 1) {
      body = ['event: position\nid: 9\ndata: {"position":9}\n\n', 5000];
    }
    return { status: 200, headers: { "Content-Type": "text/event-stream" }, body };
  };
  await withFake(answer, async (fake) => {
    const log = new Client(fake.url, { retry: QUICK }).log("x");
    const followed = await log.subscribe(undefined, { heartbeatTimeoutS: 0.3 });
    const [first, second] = [await followed.next(), await followed.next()];
    assert.deepEqual([first.value!.position, second.value!.position], [1, 10]);
    assert.deepEqual(asked, [0, 1, 9]);
    followed.close();
    assert.deepEqual(await followed.next(), { done: true, value: undefined });
  });
});

test("a subscription gives up when told to, and at what a retry does not mend", async () => {
  const nowhere = new Client(`http://127.0.0.1:${await freePort()}`, { retry: QUICK }).log("x");
  await assert.rejects((await nowhere.subscribe(undefined, { giveUpAfterS: 0.2 })).next(), Unavailable);
  await withFake(inTurn(problem(401, "unauthenticated")), async (fake) => {
    const followed = await new Client(fake.url, { retry: QUICK }).log("x").subscribe();
    await assert.rejects(followed.next(), Unauthenticated);
  });
});

test("a subscription ends at an answer that is no stream", async () => {
  const html = { status: 200, headers: { "Content-Type": "text/html" }, body: "<html></html>" };
  const bare = { status: 200, headers: {}, body: "hi" };
  for (const answer of [html, bare, jsonAnswer(200, {})]) {
    await withFake(inTurn(answer), async (fake) => {
      const log = new Client(fake.url, { retry: QUICK }).log("x");
      for (const options of [{}, { giveUpAfterS: 60 }]) {
        const followed = await log.subscribe(undefined, options);
        await assert.rejects(followed.next(), (error: ServerFault) => {
          assert.match(error.message, /not a stream of events/);
          return error instanceof ServerFault;
        });
      }
      assert.equal(fake.requests.length, 2);
    });
  }
});

test("only comments and messages are signs of life", async () => {
  const headers = { "Content-Type": "text/event-stream; charset=utf-8" };
  const stream = (piece: string) => inTurn({ status: 200, headers, body: [piece] });
  await withFake(stream("data: begun\n"), async (fake) => {
    const log = new Client(fake.url, { retry: QUICK }).log("x");
    const followed = await log.subscribe(undefined, { giveUpAfterS: 0.3 });
    await assert.rejects(followed.next(), Unavailable);
  });
  const position = 'event: position\nid: 9\ndata: {"position":9}\n\n';
  for (const sign of [": heartbeat\n", position]) {
    await withFake(stream(sign), async (fake) => {
      const log = new Client(fake.url, { retry: QUICK }).log("x");
      const followed = await log.subscribe(undefined, { giveUpAfterS: 0.3 });
      setTimeout(() => followed.close(), 1000);
      assert.deepEqual(await followed.next(), { done: true, value: undefined });
    });
  }
});

test("what follows a broken message is not handed out", async () => {
  const body = [`id: 1\ndata: {"position\n\n${sseMessage(2)}`, 5000];
  const stream = { status: 200, headers: { "Content-Type": "text/event-stream" }, body };
  await withFake(inTurn(stream), async (fake) => {
    const followed = await new Client(fake.url, { retry: QUICK }).log("x").subscribe();
    for (let count = 0; count < 2; count += 1) {
      await assert.rejects(followed.next(), ServerFault);
    }
    assert.deepEqual(fake.requests.map(({ json }) => json.after), [0, 0]);
  });
});

test("calls of next that overlap hand out each event once", async () => {
  const body = [1, 2, 3, 4].map((position) => sseMessage(position));
  const stream = { status: 200, headers: { "Content-Type": "text/event-stream" }, body };
  await withFake(inTurn(stream), async (fake) => {
    const followed = await new Client(fake.url, { retry: QUICK }).log("x").subscribe();
    const found = await Promise.all([1, 2, 3, 4].map(() => followed.next()));
    assert.deepEqual(found.map((each) => each.value!.position), [1, 2, 3, 4]);
    followed.close();
  });
});
