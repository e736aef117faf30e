/** Workers of a consumer, against a server that misbehaves. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  AnotherHistory,
  Client,
  type Delivery,
  Forbidden,
  type Handler,
  type Json,
  type Log,
  NotFound,
  Park,
  Worker,
  type WorkerOptions,
  matching,
} from "../dist/index.js";
import { FakeConsumer } from "./consumer.js";
import { FakeServer, QUICK, freePort, jsonAnswer, pause, problem } from "./server.js";

const BUSY = jsonAnswer(503, { type: "/problems/overloaded", retry: 1 }, { "Retry-After": "0" });
const nothing = (): void => undefined;

/** A fake server with a consumer, and what a worker has told. */
class Workplace {
  readonly told: string[] = [];

  private constructor(
    readonly consumer: FakeConsumer,
    readonly server: FakeServer,
    readonly log: Log,
  ) {}

  static async open(t: TestContext, positions: number[], holdMs?: number): Promise<Workplace> {
    const consumer = new FakeConsumer(positions, holdMs);
    const server = await FakeServer.start((request) => consumer.answer(request));
    t.after(() => server.stop());
    return new Workplace(consumer, server, new Client(server.url, { retry: QUICK }).log("x"));
  }

  worker(handle: Handler, options: WorkerOptions = {}): Worker {
    const report = (message: string): void => void this.told.push(message);
    return this.log.worker("mailer", handle, { report, ...options });
  }

  /** Works until something is so. */
  async workUntil(condition: () => boolean, handle: Handler, options?: WorkerOptions) {
    const worker = this.worker(handle, options);
    await worker.start();
    await this.consumer.wait(condition);
    await worker.stop();
  }

  calls(kind: string): Json[] {
    const found = this.server.requests.filter(({ path }) => path.endsWith(`/${kind}`));
    return found.map(({ json }) => json);
  }
}

test("what returns is settled by the next call", async (t) => {
  const place = await Workplace.open(t, [4, 5, 6]);
  const seen: Delivery[] = [];
  const { settled } = place.consumer;
  await place.workUntil(
    () => settled.length === 3,
    (delivery) => void seen.push(delivery),
  );
  assert.deepEqual(settled, [[4, "done"], [5, "done"], [6, "done"]]);
  const [first] = seen;
  assert.deepEqual([first?.event.position, first?.event.data, first?.keys], [4, 4, ["0"]]);
  assert.deepEqual([first?.tries, first?.effectKey, first?.events.length], [1, "mailer-1-4", 1]);
  assert.equal(first?.isHeld, false);
  const turns = place.calls("next").map(({ turn, want }) => [turn, want]);
  assert.deepEqual(turns.slice(0, 4), [[1, 0], [2, 1], [3, 1], [4, 1]]);
  assert.deepEqual(place.calls("next")[2].done, ["1.1.abc"]);
  assert.deepEqual(place.told, []);
});

test("events are appended and settle as one", async (t) => {
  const place = await Workplace.open(t, [4]);
  await place.workUntil(
    () => place.consumer.settled.length === 1,
    async () => [{ type: "MailSent", data: { to: "ada" }, tags: ["order:1"] }],
  );
  const [sent] = place.consumer.appended;
  assert.equal(sent.events[0].type, "MailSent");
  assert.equal(sent.settles.delivery, "1.1.abc");
  assert.ok(place.server.requests.every(({ headers }) => !("idempotency-key" in headers)));
  assert.ok(place.calls("next").every((call) => call.done === undefined));
  assert.deepEqual(place.told, []);
});

test("an append whose answer is lost is repeated as it was", async (t) => {
  const place = await Workplace.open(t, [4, 5]);
  place.consumer.cut = ["append"];
  place.consumer.faults["append"] = Array.from({ length: 7 }, () => BUSY);
  await place.workUntil(
    () => place.consumer.settled.length === 2,
    () => [{ type: "A" }],
  );
  assert.deepEqual(place.consumer.settled, [[4, "appended"], [5, "appended"]]);
  const sent = place.calls("append").map((call) => JSON.stringify(call));
  assert.deepEqual([sent.length, new Set(sent).size], [10, 2]);
  assert.ok(place.told.every((line) => line.includes("server answers")), `${place.told}`);
});

test("a settled delivery is success and a lost one is told", async (t) => {
  const place = await Workplace.open(t, [4, 5, 6]);
  const answers = [problem(409, "delivery-settled"), problem(409, "delivery-lost")];
  place.consumer.faults["append"] = answers;
  await place.workUntil(
    () => place.consumer.settled.length === 1,
    () => [{ type: "A" }],
  );
  assert.deepEqual(place.consumer.settled, [[6, "appended"]]);
  assert.equal(place.told.length, 1);
  assert.match(place.told[0]!, /position 5.* was lost/);
});

test("an exception fails with its text", async (t) => {
  const place = await Workplace.open(t, [4]);
  await place.workUntil(
    () => place.consumer.settled.length === 2,
    ({ tries }) => {
      if (tries === 1) {
        throw new RangeError(`SMTP 451 ${"ö".repeat(1000)}`);
      }
    },
  );
  const [failed, done] = place.consumer.settled;
  assert.match(failed![1], /^failed: RangeError: SMTP 451 ö+$/);
  assert.ok(Buffer.byteLength(failed![1]) <= 1024 + "failed: ".length);
  assert.deepEqual(done, [4, "done"]);
  assert.match(place.told[0]!, /failed/);
});

test("what cannot be appended fails", async (t) => {
  const place = await Workplace.open(t, [4]);
  place.consumer.faults["append"] = [problem(422, "invalid-field")];
  const made: any[] = [[{ type: "A", data: NaN }], [{ typ: "A" }], true, [{ type: "A" }]];
  await place.workUntil(
    () => place.consumer.settled.length === 5,
    () => made.shift(),
  );
  const kinds = place.consumer.settled.map(([, what]) => what.split(" ")[1] ?? what);
  assert.deepEqual(kinds, ["RangeError:", "TypeError:", "TypeError:", "Invalid:", "done"]);
});

test("park parks", async (t) => {
  const place = await Workplace.open(t, [4]);
  await place.workUntil(
    () => place.consumer.settled.length === 1,
    () => {
      throw new Park("no such address");
    },
  );
  assert.deepEqual(place.consumer.settled, [[4, "park: no such address"]]);
  assert.deepEqual(place.told, []);
});

test("a lost answer repeats the same turn", async (t) => {
  const place = await Workplace.open(t, [4, 5, 6]);
  place.consumer.cut = ["next"];
  const seen: number[] = [];
  const worker = place.worker(({ event }) => {
    seen.push(event.position);
    if (event.position === 4) {
      place.consumer.cut = ["next"];
    }
  });
  await worker.start();
  await place.consumer.wait(() => place.consumer.settled.length === 3);
  await worker.stop();
  assert.deepEqual(seen, [4, 5, 6], "each once");
  const calls = place.calls("next");
  assert.deepEqual(calls[0], calls[1]);
  const turns: number[] = calls.map(({ turn }) => turn);
  assert.deepEqual(turns, [...turns].sort((a, b) => a - b));
  const repeated = turns.filter((turn) => turns.indexOf(turn) !== turns.lastIndexOf(turn));
  assert.ok(repeated.length >= 4);
});

test("outages are waited out", async (t) => {
  const place = await Workplace.open(t, [4]);
  place.consumer.faults["next"] = [null, BUSY, null, BUSY];
  await place.workUntil(() => place.consumer.settled.length === 1, nothing);
  assert.equal(place.told.length, 2, `${place.told}`);
  assert.match(place.told[0]!, /until the server answers/);
  assert.match(place.told[1]!, /answers again/);
});

test("no consumer at the start is an error", async (t) => {
  const place = await Workplace.open(t, [4]);
  const missing = problem(404, "consumer-not-found");
  place.consumer.faults["next"] = [missing, missing];
  await assert.rejects(place.worker(nothing).run(), NotFound);
  await assert.rejects(place.worker(nothing).start(), NotFound);
});

test("a server that is not there yet is waited for", async () => {
  const log = new Client(`http://127.0.0.1:${await freePort()}`, { retry: QUICK }).log("x");
  const worker = log.worker("mailer", nothing, { report: nothing });
  await worker.start();
  await pause(100);
  await worker.stop();
});

test("a lasting error ends the worker", async (t) => {
  const place = await Workplace.open(t, [4, 5]);
  const run = place.worker(nothing, { concurrency: 3 }).run();
  await place.consumer.wait(() => place.consumer.settled.length === 2);
  place.consumer.faults["next"] = Array.from({ length: 9 }, () => problem(403, "forbidden"));
  place.consumer.add(6);
  await assert.rejects(run, Forbidden);
});

test("a restored log ends the worker and counts no try", async (t) => {
  const place = await Workplace.open(t, [4, 5]);
  const handle = (): never => {
    throw new AnotherHistory("the log has another history now");
  };
  await assert.rejects(place.worker(handle, { batch: 2 }).run(), AnotherHistory);
  assert.deepEqual(place.consumer.settled, [[4, "release"], [5, "release"]]);
});

test("a refused settlement is told", async (t) => {
  const place = await Workplace.open(t, [4, 5]);
  await place.workUntil(
    () => place.consumer.settled.length === 2,
    ({ event, tries }) => {
      if (event.position === 4 && tries === 1) {
        place.consumer.lose();
      }
    },
  );
  assert.deepEqual(place.consumer.settled.sort(), [[4, "done"], [5, "done"]]);
  assert.equal(place.told.length, 1);
  assert.match(place.told[0]!, /delivery-lost/);
});

test("a settlement beside a staged append is repeated", async (t) => {
  const place = await Workplace.open(t, [4], 900);
  place.consumer.refuse["done"] = ["delivery-staged", "delivery-staged"];
  await place.workUntil(() => place.consumer.settled.length === 1, nothing);
  const waits = place.calls("next").map((call) => call.wait_ms);
  assert.deepEqual(waits.slice(2, 5), [300, 100, 100]);
  assert.deepEqual(place.told, []);
});

test("a hold is extended while a handler works", async (t) => {
  const place = await Workplace.open(t, [4], 600);
  const held: boolean[] = [];
  await place.workUntil(
    () => place.consumer.settled.length === 1,
    async (delivery) => {
      await place.consumer.wait(() => place.consumer.extended.length >= 4);
      held.push(delivery.isHeld);
    },
    { concurrency: 3 },
  );
  assert.deepEqual(held, [true]);
  assert.equal(new Set(place.consumer.extended).size, 1, "only the one that holds something");
});

test("what is settled is not extended", async (t) => {
  const place = await Workplace.open(t, [4], 300);
  await place.workUntil(() => place.calls("next").length > 6, nothing);
  assert.deepEqual([place.consumer.extended, place.told], [[], []]);
});

test("a handler can ask whether it has lost its delivery", async (t) => {
  const place = await Workplace.open(t, [4], 300);
  let hasEnded = false;
  await place.workUntil(
    () => place.consumer.settled.length === 1,
    async (delivery) => {
      if (delivery.tries === 1) {
        place.consumer.lose();
        while (delivery.isHeld) {
          await pause(10);
        }
        hasEnded = true;
      }
    },
  );
  assert.ok(hasEnded);
  assert.equal(place.told.length, 2, "that it was lost, and that its settlement was refused");
});

test("a name that another process uses is given up", async (t) => {
  const place = await Workplace.open(t, [4]);
  const worker = place.worker(nothing);
  await worker.start();
  await place.consumer.wait(() => place.consumer.settled.length === 1);
  place.consumer.faults["next"] = [problem(409, "turn-passed", { turn: 99 })];
  place.consumer.add(5);
  await place.consumer.wait(() => new Set(place.calls("next").map((c) => c.worker)).size === 2);
  // What is held under the former name cannot be settled.
  place.consumer.lose();
  await place.consumer.wait(() => place.consumer.settled.length === 2);
  await worker.stop();
  assert.equal(place.told.length, 1, `${place.told}`);
  assert.match(place.told[0]!, /another process/);
});

test("stop gives back what was not begun and waits for what runs", async (t) => {
  const place = await Workplace.open(t, [4, 5, 6]);
  let [begin, goOn] = [nothing, nothing];
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const going = new Promise<void>((resolve) => (goOn = resolve));
  const handle = (): Promise<void> => {
    begin();
    return going;
  };
  const worker = place.worker(handle, { batch: 3 });
  await worker.start();
  await begun;
  let hasStopped = false;
  const stopped = worker.stop().then(() => (hasStopped = true));
  await pause(100);
  assert.equal(hasStopped, false);
  goOn();
  await stopped;
  assert.deepEqual(place.consumer.settled, [[4, "done"], [5, "release"], [6, "release"]]);
  assert.equal(place.consumer.held.size, 0);
});

test("stop ends a wait, and gives back what had been on its way", async (t) => {
  const place = await Workplace.open(t, []);
  const worker = place.worker(nothing, { concurrency: 2 });
  await worker.start();
  await place.consumer.wait(() => place.calls("next").length === 3);
  const stopped = worker.stop();
  place.consumer.add(4);
  place.consumer.add(5);
  await stopped;
  assert.equal(place.consumer.held.size, 0);
  assert.ok(place.consumer.settled.every(([, what]) => what === "release"));
});

test("a handler may stop its worker", async (t) => {
  const place = await Workplace.open(t, [4, 5, 6]);
  const worker: Worker = place.worker(({ event }) => {
    if (event.position === 5) {
      void worker.stop();
    }
  });
  await worker.run();
  assert.deepEqual(place.consumer.settled, [[4, "done"], [5, "done"]]);
  await assert.rejects(worker.start(), /started before/);
});

test("SIGTERM stops a program", async (t) => {
  const place = await Workplace.open(t, [4, 5]);
  const program = fileURLToPath(new URL("./mailer.js", import.meta.url));
  const stdio = ["ignore", "pipe", "inherit"] as const;
  const child = spawn(process.execPath, [program, place.server.url], { stdio: [...stdio] });
  const ended = once(child, "exit");
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout! })) {
    lines.push(line);
    if (line === "4") {
      child.kill("SIGTERM");
    }
  }
  assert.deepEqual([await ended, lines], [[0, null], ["4", "ended"]]);
  assert.deepEqual(place.consumer.settled, [[4, "done"], [5, "release"]]);
});

test("a pause of the consumer is told and waited out", async (t) => {
  const place = await Workplace.open(t, [], 300);
  place.consumer.state = "paused";
  const worker = place.worker(nothing, { concurrency: 2 });
  await worker.start();
  await place.consumer.wait(() => place.calls("next").length >= 4);
  place.consumer.state = "running";
  place.consumer.add(4);
  await place.consumer.wait(() => place.consumer.settled.length === 1);
  await worker.stop();
  const lines = place.told.map((line) => line.split(": ")[1]);
  assert.deepEqual(lines, ["it is paused", "it is running"]);
});

test("handlers work at once", async (t) => {
  const positions = Array.from({ length: 20 }, (_, n) => n + 1);
  const place = await Workplace.open(t, positions);
  const warnings: Error[] = [];
  const warn = (warning: Error): void => void warnings.push(warning);
  process.on("warning", warn);
  let [working, open] = [0, nothing];
  const all = new Promise<void>((resolve) => (open = resolve));
  await place.workUntil(
    () => place.consumer.settled.length === 20,
    () => {
      working += 1;
      if (working === 20) {
        open();
      }
      return all;
    },
    { concurrency: 20 },
  );
  process.off("warning", warn);
  assert.deepEqual(warnings, []);
  assert.equal(new Set(place.calls("next").map(({ worker }) => worker)).size, 20);
});

test("a consumer is defined and tells its state", async (t) => {
  const { log, consumer } = await Workplace.open(t, [4]);
  const query = matching(["OrderPlaced"]);
  assert.equal(await log.defineConsumer("mailer", query), true);
  assert.deepEqual(consumer.definition, { query, key: "none", from: "beginning" });
  const key = { tag: "customer" };
  const isNew = await log.defineConsumer("mailer", query, {
    key,
    begin: new Date(0),
    run: 5,
    maxTries: 3,
    backoffS: [0.5, 60],
    onFailure: "park-event",
    holdS: 15,
  });
  assert.equal(isNew, false);
  assert.deepEqual(consumer.definition, {
    query,
    key,
    from: "1970-01-01T00:00:00.000Z",
    run: 5,
    max_tries: 3,
    backoff_ms: [500, 60_000],
    on_failure: "park-event",
    hold_ms: 15_000,
  });
  const status = await log.consumer("mailer");
  const told = [status.state, status.openKeys, status.oldestAgeS, status.details["scanned"]];
  assert.deepEqual(told, ["running", 1, 1.5, 99]);
});

test("a worker has at least one loop", async (t) => {
  const { log } = await Workplace.open(t, []);
  assert.throws(() => log.worker("mailer", nothing, { concurrency: 0 }), RangeError);
  assert.throws(() => log.worker("mailer", nothing, { batch: NaN }), RangeError);
});
