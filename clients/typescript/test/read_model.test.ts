/** Rows that follow a log: each event once, whatever kills the program. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  AnotherHistory,
  Client,
  type Database,
  type Event,
  type Log,
  type ReadModel,
  matching,
} from "../dist/index.js";
import { FileDatabase, type Tables, store } from "./file_database.js";
import { URL_OF_SERVER, freshLog, pause } from "./server.js";

function newDatabase(t: TestContext): FileDatabase {
  const folder = mkdtempSync(join(tmpdir(), "wellspring-clients-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return new FileDatabase(join(folder, "page.json"));
}

/** Follows until so many events were applied. */
async function follow<Db>(
  model: ReadModel<Db>,
  count: number,
  apply: (db: Db, event: Event) => void,
  rebuild?: (db: Db) => void,
): Promise<void> {
  let left = count;
  const counted = (db: Db, event: Event): void => {
    apply(db, event);
    left -= 1;
    if (left === 0) {
      model.stop();
    }
  };
  await model.follow(counted, rebuild === undefined ? {} : { rebuild });
  assert.equal(left, 0);
}

async function remade(log: Log, data: unknown[]): Promise<Log> {
  const other = new Client(URL_OF_SERVER).log(log.name);
  await other.drop();
  await other.create();
  await other.append(data.map((each) => ({ type: "A", data: each })));
  return other;
}

test("rows follow the log and go on where they were", async (t) => {
  const [log, database] = [await freshLog(), newDatabase(t)];
  await log.append([1, 2, 3].map((data) => ({ type: data === 2 ? "B" : "A", data })));
  await follow(log.readModel("seen", database, matching(["A"])), 2, store);
  assert.deepEqual(database.tables.seen, [[1, 1], [3, 3]]);
  assert.deepEqual(database.tables.places, { seen: `3@${log.history}` });
  setTimeout(() => void log.append([{ type: "A", data: 4 }]), 200);
  const later = new Client(URL_OF_SERVER).log(log.name);
  await follow(later.readModel("seen", database, matching(["A"])), 1, store);
  assert.deepEqual(database.tables.seen, [[1, 1], [3, 3], [4, 4]]);
});

test("a killed program leaves each event once", async (t) => {
  const [log, database] = [await freshLog(), newDatabase(t)];
  const program = fileURLToPath(new URL("./deadly.js", import.meta.url));
  const expected = (count: number): unknown[] => Array.from({ length: count }, (_, n) => [n + 1, n]);
  let appended = 0;
  for (let kill = 0; kill < 12; kill += 1) {
    const commits = `${1 + (Math.floor(kill / 2) % 3)}`;
    const words = [log.name, database.file, commits, kill % 2 === 0 ? "before" : "after"];
    const child = spawn(process.execPath, [program, ...words], { stdio: "inherit" });
    const ended = once(child, "exit");
    while (child.exitCode === null && child.signalCode === null) {
      await log.append([appended, appended + 1].map((data) => ({ type: "A", data })));
      appended += 2;
      await pause(2);
    }
    assert.deepEqual(await ended, [null, "SIGKILL"]);
    assert.deepEqual(database.tables.seen, expected(database.tables.seen.length));
  }
  const count = database.tables.seen.length;
  assert.ok(count > 0);
  await follow(log.readModel("seen", database), appended - count, store);
  assert.deepEqual(database.tables.seen, expected(appended));
});

test("a log made anew is rebuilt or told", async (t) => {
  const [log, database] = [await freshLog(), newDatabase(t)];
  await log.append([{ type: "A", data: "old" }, { type: "A", data: "old" }]);
  await follow(log.readModel("seen", database), 2, store);
  const other = await remade(log, ["new", "new", "new"]);
  const strict = new Client(URL_OF_SERVER).log(log.name).readModel("seen", database);
  await assert.rejects(strict.follow(store), AnotherHistory);
  assert.deepEqual(database.tables.seen, [[1, "old"], [2, "old"]]);
  await follow(log.readModel("seen", database), 3, store, (db) => void (db.seen = []));
  assert.deepEqual(database.tables.seen, [[1, "new"], [2, "new"], [3, "new"]]);
  assert.deepEqual(database.tables.places, { seen: `3@${other.history}` });
  // Other users of the log are told by themselves.
  await assert.rejects(log.head(), AnotherHistory);
});

test("what is thrown undoes its transaction alone", async (t) => {
  const [log, database] = [await freshLog(), newDatabase(t)];
  await log.append([0, 1, 2].map((data) => ({ type: "A", data })));
  const broken = (db: Tables, event: Event): void => {
    store(db, event);
    assert.notEqual(event.data, 2, "what is wrong");
  };
  const model = log.readModel("seen", database);
  await assert.rejects(model.follow(broken), /what is wrong/);
  await assert.rejects(model.follow(broken), /what is wrong/);
  const { length } = database.tables.seen;
  assert.ok(length < 3);
  await follow(model, 3 - length, store);
  assert.deepEqual(database.tables.seen, [[1, 0], [2, 1], [3, 2]]);
});

test("a transaction has at most five hundred events", async (t) => {
  const [log, database] = [await freshLog(), newDatabase(t)];
  await log.appendBulk(Array.from({ length: 1700 }, (_, data) => ({ type: "A", data })));
  await follow(log.readModel("seen", database), 1700, store);
  assert.ok(Math.max(...database.sizes) <= 500, `${database.sizes}`);
  assert.equal(database.tables.seen.length, 1700);
});

test("a transaction that is run again has the same events", async (t) => {
  const [log, database] = [await freshLog(), newDatabase(t)];
  await log.append([0, 1, 2, 3].map((data) => ({ type: "A", data })));
  const twice: Database<Tables> = {
    async transaction(work) {
      await work(database.tables);
      await database.transaction(work);
    },
    query: (db, sql) => database.query(db, sql),
  };
  let applied = 0;
  const model = log.readModel("seen", twice);
  await model.follow((db, event) => {
    store(db, event);
    applied += 1;
    if (event.data === 3 && applied === 8) {
      model.stop();
    }
  });
  assert.deepEqual(database.tables.seen, [[1, 0], [2, 1], [3, 2], [4, 3]]);
});

test("a transaction that does not roll back is refused", async (t) => {
  const [log, database] = [await freshLog(), newDatabase(t)];
  const careless: Database<Tables> = {
    transaction: async (work) => {
      let fault: unknown;
      await database.transaction((db) => work(db).catch((error) => void (fault = error)));
      if (fault !== undefined) {
        throw fault;
      }
    },
    query: (db, sql) => database.query(db, sql),
  };
  await assert.rejects(log.readModel("seen", careless).follow(store), /roll back/);
  assert.deepEqual(database.tables.places, {});
});

test("a name is plain", async (t) => {
  const [log, database] = [await freshLog(), newDatabase(t)];
  for (const name of ["", "a b", "o'hara", "x".repeat(101), "a\n", "?"]) {
    assert.throws(() => log.readModel(name, database), RangeError);
  }
});

const NODE_SQLITE: string = "node:sqlite";
const sqlite = await import(NODE_SQLITE).catch(() => undefined);

test("two programs with SQLite apply each event once", { skip: !sqlite }, async (t) => {
  const log = await freshLog();
  const file = newDatabase(t).file;
  const open = (): any => {
    const connection = new sqlite.DatabaseSync(file);
    t.after(() => connection.close());
    return connection;
  };
  const rows = open();
  rows.exec("PRAGMA journal_mode = wal; CREATE TABLE seen (position INTEGER, data)");
  const models = [open(), open()].map((connection) => log.readModel<any>("seen", connection));
  const programs = models.map((model) =>
    model.follow((db, event) => {
      db.prepare("INSERT INTO seen VALUES (?, ?)").run(event.position, event.data);
      if (event.type === "End") {
        models.forEach((each) => each.stop());
      }
    }),
  );
  for (let data = 0; data < 100; data += 1) {
    await log.append([{ type: "A", data }]);
  }
  const { last } = await log.append([{ type: "End" }]);
  await Promise.all(programs);
  const seen = rows.prepare("SELECT position FROM seen ORDER BY rowid").all();
  const positions = Array.from({ length: last }, (_, n) => n + 1);
  assert.deepEqual(seen.map((row: any) => row.position), positions);
});
