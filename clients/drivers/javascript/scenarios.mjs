// Scenarios of Neo4j's JavaScript driver: node scenarios.mjs URI DATABASE [NAME…]; see ../scenarios.txt.
import assert from "node:assert/strict";
import neo4j from "neo4j-driver";

const [uri, database, ...only] = process.argv.slice(2);
const auth = neo4j.auth.basic("neo4j", "ignored");
// 32 writers that return what they wrote need some tries each, and the driver sleeps seconds between them.
const settings = { useBigInt: true, maxConnectionPoolSize: 100, maxTransactionRetryTime: 120_000 };
const driver = neo4j.driver(uri, auth, settings);
const { DateTime, LocalDateTime, LocalTime, Time, Duration, Point } = neo4j.types;
const { Date: Day } = neo4j.types;

const query = async (text, parameters = {}) =>
  (await driver.executeQuery(text, parameters, { database })).records;
const one = async (text, parameters) => (await query(text, parameters))[0].get(0);
const count = (label) => one(`MATCH (n:${label}) RETURN count(n)`);

/** Runs with a session, and closes it. */
async function inSession(work, more = {}) {
  const session = driver.session({ database, ...more });
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}

const single = async (result) => (await result).records[0].get(0);

async function echo(value, same = assert.deepStrictEqual) {
  same(await one("RETURN $v", { v: value }), value);
  const [alone, { k }] = await one("RETURN [$v, {k: $v}]", { v: value });
  same(alone, value);
  same(k, value);
}

/** Times and points are equal if their kinds and texts are. */
function sameText(got, wanted) {
  assert.equal(got.constructor.name, wanted.constructor.name);
  assert.equal(got.toString(), wanted.toString());
}

/** The work fails, with a code that has `name` at its end. */
async function fails(name, work) {
  await assert.rejects(work, (error) => {
    const last = String(error.code).split(".").pop();
    // Of time limits, newer servers say who set them.
    assert.ok(last === name || last === `${name}ClientConfiguration`, `${error.code}: ${error.message}`);
    return true;
  });
}

async function conflict(label, statement, each, read) {
  await query(`CREATE (:${label} {n: 0})`);
  const seen = [];
  const writer = () =>
    inSession(async (session) => {
      for (let n = 0; n < each; n++) seen.push(await session.executeWrite(async (tx) => read(await tx.run(statement))));
    });
  await Promise.all(Array.from({ length: 32 }, writer));
  assert.equal(await one(`MATCH (n:${label}) RETURN n.n`), BigInt(32 * each));
  return seen;
}

const values = {
  async "values-scalar"() {
    for (const value of [null, true, false, 0n, -1n, 1.5, -0.5, Infinity, -Infinity, "", 'ä€𝄞\n"\\', "x".repeat(70_000)]) await echo(value);
    assert.ok(Number.isNaN(await one("RETURN $v", { v: NaN })));
    for (const bytes of [[], [0, 1, -1], Array.from({ length: 70_000 }, (_, n) => n % 100)])
      assert.deepEqual([...(await one("RETURN $v", { v: Int8Array.from(bytes) }))], bytes);
  },

  async "values-integer-64"() {
    for (const bits of [4n, 7n, 8n, 15n, 16n, 31n, 32n, 53n, 63n])
      for (const value of [2n ** bits - 1n, -(2n ** bits), 1n - 2n ** bits]) await echo(value);
  },

  async "values-nested"() {
    await echo([]);
    await echo({});
    await echo([1n, [2n, [3.5, ["x", null]]], { a: { b: [{ c: true }] } }]);
    const map = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`k${n}`, BigInt(n)]));
    await echo({ list: Array.from({ length: 1000 }, (_, n) => BigInt(n)), map });
  },

  async "values-temporal"() {
    const moment = [2024, 7, 2, 3, 4, 5, 678_000_009];
    for (const value of [
      new Day(2024, 2, 29), new Day(1, 1, 1), new Day(9999, 12, 31),
      new LocalTime(1, 2, 3, 4), new Time(23, 59, 59, 999_999_999, -5400),
      new LocalDateTime(...moment), new LocalDateTime(1900, 1, 1, 0, 0, 0, 0),
      new DateTime(...moment, 5400), new DateTime(...moment, 7200, "Europe/Berlin"),
      new DateTime(2024, 1, 2, 3, 4, 5, 6, 3600, "Europe/Berlin"),
      new Duration(14, -3, 70, 5), new Duration(0, 0, -1, 999_999_999), new Duration(0, 0, 0, 0),
    ]) await echo(value, sameText);
    const [row] = await query("RETURN $v.timezone AS zone, $v.year AS year", { v: new DateTime(...moment, 7200, "Europe/Berlin") });
    assert.deepEqual(row.toObject(), { zone: "Europe/Berlin", year: 2024n });
  },

  async "values-spatial"() {
    const points = [new Point(4326n, 1, 2), new Point(4979n, 1, 2, 3), new Point(7203n, -1.5, 2), new Point(9157n, 1, 2, 3)];
    for (const value of points) await echo(value, sameText);
    assert.equal(await one("RETURN $v.srid", { v: points[0] }), 4326n);
  },

  async "values-stored"() {
    const properties = {
      int: 2n ** 63n - 1n, float: 0.1, text: "ä", yes: true, ints: [1n, 2n], texts: ["a", "b"],
      date: new Day(2024, 2, 29), time: new Time(1, 2, 3, 4, 3600), local: new LocalDateTime(2024, 1, 2, 3, 4, 5, 0),
      zoned: new DateTime(2024, 7, 2, 0, 0, 0, 0, 7200, "Europe/Berlin"), duration: new Duration(1, 2, 3, 0),
      point: new Point(4326n, 1, 2), points: [new Point(4326n, 3, 4)],
    };
    await query("CREATE (n:Stored) SET n = $properties", { properties });
    const got = (await one("MATCH (n:Stored) RETURN n")).properties;
    assert.deepEqual(Object.keys(got).sort(), Object.keys(properties).sort());
    for (const key in properties) assert.equal(String(got[key]), String(properties[key]), key);
    await query("CREATE (n:StoredBytes {b: $b})", { b: Int8Array.of(0, -1) });
    assert.deepEqual([...(await one("MATCH (n:StoredBytes) RETURN n.b"))], [0, -1]);
  },
};

const entities = {
  async node() {
    const got = await one("CREATE (n:Node:Second {name: 'Ada', born: 1815}) RETURN n");
    assert.deepEqual([...got.labels].sort(), ["Node", "Second"]);
    assert.deepEqual({ ...got.properties }, { name: "Ada", born: 1815n });
    assert.equal((await one("MATCH (n:Node) RETURN n")).elementId, got.elementId);
  },

  async relationship() {
    const [row] = await query("CREATE (:Rel {n: 1})-[r:KNOWS {since: 2020}]->(:Rel {n: 2}) RETURN r, startNode(r) AS a, endNode(r) AS b");
    const { r, a, b } = row.toObject();
    assert.deepEqual([r.type, { ...r.properties }], ["KNOWS", { since: 2020n }]);
    assert.deepEqual([r.startNodeElementId, r.endNodeElementId], [a.elementId, b.elementId]);
  },

  async path() {
    await query("CREATE (:Path {n: 1})-[:NEXT {n: 1}]->(:Path {n: 2})<-[:PREVIOUS {n: 2}]-(:Path {n: 3})");
    const there = await one("MATCH p = (:Path {n: 1})-[:NEXT]->()<-[:PREVIOUS]-() RETURN p");
    const back = await one("MATCH p = (:Path {n: 3})-[:PREVIOUS]->()<-[:NEXT]-() RETURN p");
    for (const [got, numbers] of [[there, [1n, 2n, 3n]], [back, [3n, 2n, 1n]]]) {
      assert.deepEqual([got.start, ...got.segments.map((s) => s.end)].map((n) => n.properties.n), numbers);
      for (const { start, relationship, end } of got.segments) {
        const along = relationship.startNodeElementId === start.elementId;
        const ends = along ? [start, end] : [end, start];
        assert.deepEqual([relationship.startNodeElementId, relationship.endNodeElementId], ends.map((n) => n.elementId));
        assert.equal(ends[0].properties.n, relationship.type === "NEXT" ? 1n : 3n);
      }
    }
    assert.equal((await one("MATCH p = (n:Path {n: 1}) RETURN p")).segments.length, 0);
    const twice = await one("MATCH (a:Path {n: 1}) CREATE p = (a)-[:LOOP]->(a) RETURN p");
    assert.equal(twice.start.elementId, twice.end.elementId);
  },

  async "element-ids"() {
    const [row] = await query("CREATE (a:Ids)-[r:OF]->(b:Ids) RETURN a, r, b, elementId(a) AS ea, elementId(r) AS er");
    const { a, r, b, ea, er } = row.toObject();
    assert.deepEqual([a.elementId, r.elementId], [ea, er]);
    assert.notEqual(ea, b.elementId);
    assert.equal((await one("MATCH (n) WHERE elementId(n) = $id RETURN n", { id: ea })).elementId, ea);
  },
};

const transactions = {
  async "auto-commit"() {
    await inSession(async (session) => {
      await session.run("CREATE (:Auto)");
      await session.run("CREATE (:Auto)");
      const { records } = await session.run("UNWIND range(1, 3) AS x RETURN x");
      assert.deepEqual(records.map((r) => r.get("x")), [1n, 2n, 3n]);
    });
    assert.equal(await count("Auto"), 2n);
  },

  async explicit() {
    await inSession(async (session) => {
      const tx = await session.beginTransaction();
      await tx.run("CREATE (:Explicit {n: 1})");
      assert.equal(await single(tx.run("MATCH (n:Explicit) RETURN count(n)")), 1n);
      assert.equal(await count("Explicit"), 0n);
      await tx.run("MATCH (n:Explicit) SET n.n = n.n + 1");
      await tx.commit();
    });
    assert.equal(await one("MATCH (n:Explicit) RETURN n.n"), 2n);
  },

  async managed() {
    await inSession(async (session) => {
      const made = await session.executeWrite((tx) => single(tx.run("CREATE (n:Managed) RETURN elementId(n)")));
      assert.equal(await session.executeRead((tx) => single(tx.run("MATCH (n:Managed) RETURN elementId(n)"))), made);
    });
  },

  async counters() {
    const summary = async (text) => (await driver.executeQuery(text, {}, { database })).summary;
    const made = await summary("CREATE (a:Counters {n: 1, m: 2})-[:R]->(:Counters:Other)");
    const { nodesCreated, relationshipsCreated, propertiesSet, labelsAdded } = made.counters.updates();
    assert.deepEqual([nodesCreated, relationshipsCreated, propertiesSet, labelsAdded], [2, 1, 2, 3]);
    assert.ok(made.counters.containsUpdates() && made.queryType === "w");
    const gone = (await summary("MATCH (a:Counters) REMOVE a:Other DETACH DELETE a")).counters.updates();
    assert.deepEqual([gone.nodesDeleted, gone.relationshipsDeleted, gone.labelsRemoved], [2, 1, 1]);
    for (const [text, counter] of [
      ["CREATE INDEX counters_n FOR (n:Counters) ON (n.n)", "indexesAdded"], ["DROP INDEX counters_n", "indexesRemoved"],
      ["CREATE CONSTRAINT counters_u FOR (n:Counters) REQUIRE n.u IS UNIQUE", "constraintsAdded"],
      ["DROP CONSTRAINT counters_u", "constraintsRemoved"],
    ]) assert.equal((await summary(text)).counters.updates()[counter], 1, counter);
    const read = await summary("MATCH (n:Counters) RETURN n");
    assert.deepEqual([read.counters.containsUpdates(), read.queryType, read.database.name], [false, "r", database]);
  },

  async "conflict-returning"() {
    const statement = "MATCH (n:Returning) SET n.n = n.n + 1 RETURN n.n";
    const seen = await conflict("Returning", statement, 2, (result) => Number(result.records[0].get(0)));
    assert.deepEqual(seen.sort((a, b) => a - b), Array.from({ length: 64 }, (_, n) => n + 1));
  },

  "conflict-silent": () => conflict("Silent", "MATCH (n:Silent) SET n.n = n.n + 1", 10, () => null),

  async "rollback-explicit"() {
    await inSession(async (session) => {
      for (const end of ["rollback", "close"]) {
        const tx = await session.beginTransaction();
        await tx.run("CREATE (:Rolled)");
        await tx[end]();
      }
      assert.equal(await single(session.run("MATCH (n:Rolled) RETURN count(n)")), 0n);
    });
  },

  async "rollback-error"() {
    await inSession(async (session) => {
      const tx = await session.beginTransaction();
      await tx.run("CREATE (:RolledByError)");
      await fails("ArithmeticError", () => tx.run("RETURN 1/0"));
      await tx.close();
      const own = new Error("the program's own");
      const work = async (tx) => {
        await tx.run("CREATE (:RolledByError)");
        throw own;
      };
      await assert.rejects(session.executeWrite(work), own);
      assert.equal(await single(session.run("MATCH (n:RolledByError) RETURN count(n)")), 0n);
    });
  },

  async "rollback-closed"() {
    const other = neo4j.driver(uri, auth, settings);
    const tx = await other.session({ database }).beginTransaction();
    await tx.run("CREATE (:Closed)");
    await other.close();
    assert.equal(await count("Closed"), 0n);
  },

  async "rollback-timeout"() {
    const busy = "UNWIND range(1, 100000) AS x UNWIND range(1, 100000) AS y RETURN count(x + y)";
    await inSession(async (session) => {
      let tx = await session.beginTransaction({ timeout: 500 });
      await tx.run("CREATE (:Late)");
      await fails("TransactionTimedOut", () => tx.run(busy));
      await tx.close();
      tx = await session.beginTransaction({ timeout: 300 });
      await tx.run("CREATE (:Late)");
      await new Promise((done) => setTimeout(done, 1000));
      await fails("TransactionTimedOut", () => tx.run("CREATE (:Late)"));
      await tx.close();
    });
    assert.equal(await count("Late"), 0n);
  },
};

const errors = {
  "error-syntax": () => fails("SyntaxError", () => query("RETRUN 1")),
  "error-arithmetic": () => fails("ArithmeticError", () => query("RETURN 1/0")),
  "error-parameter": () => fails("ParameterMissing", () => query("RETURN $missing")),

  async "error-constraint"() {
    await query("CREATE CONSTRAINT once FOR (n:Once) REQUIRE n.id IS UNIQUE");
    await query("CREATE (:Once {id: 1})");
    await fails("ConstraintValidationFailed", () => query("CREATE (:Once {id: 1})"));
    assert.equal(await count("Once"), 1n);
  },

  "error-database": () => fails("DatabaseNotFound", () => driver.executeQuery("RETURN 1", {}, { database: "elsewhere" })),

  async "error-access-mode"() {
    const reading = async (session) => {
      await fails("AccessMode", () => session.run("CREATE (:ReadOnly)"));
      await fails("AccessMode", () => session.executeRead((tx) => tx.run("CREATE (:ReadOnly)")));
      assert.equal(await single(session.run("RETURN 1")), 1n);
    };
    await inSession(reading, { defaultAccessMode: neo4j.session.READ });
    assert.equal(await count("ReadOnly"), 0n);
  },
};

const sessions = {
  async connect() {
    const { agent } = await driver.getServerInfo();
    assert.ok(agent.startsWith("Neo4j/"), agent);
    // A database need not be named.
    assert.equal((await driver.executeQuery("RETURN 1")).records[0].get(0), 1n);
  },

  async bookmarks() {
    const create = async (session) => (await session.run("CREATE (:Marked)"), session.lastBookmarks());
    const first = await inSession(create);
    const second = await inSession(async (session) => {
      assert.equal(await single(session.run("MATCH (n:Marked) RETURN count(n)")), 1n);
      return create(session);
    }, { bookmarks: first });
    assert.notDeepEqual(first, second);
    const seen = (session) => session.executeRead((tx) => single(tx.run("MATCH (n:Marked) RETURN count(n)")));
    assert.equal(await inSession(seen, { bookmarks: [...first, ...second] }), 2n);
    await inSession((session) => fails("InvalidBookmark", () => session.run("RETURN 1")), { bookmarks: ["no bookmark"] });
  },

  async system() {
    const system = async (text) => (await driver.executeQuery(text, {}, { database: "system" })).records;
    const names = (await system("SHOW DATABASES")).map((r) => r.get("name"));
    assert.ok(names.includes(database) && names.includes("system"), names);
    const [got] = await system("CALL dbms.components()");
    assert.equal(got.get("name"), "Neo4j Kernel");
    assert.ok(got.get("versions")[0].startsWith("5."));
  },

  async "rows-100000"() {
    const read = (session) => async (text) => {
      let rows = 0, total = 0n;
      for await (const row of session.run(text)) (rows += 1), (total += row.get("x"));
      return [rows, total];
    };
    const text = "UNWIND range(1, 100000) AS x RETURN x, 'row ' + x AS text, [x, x] AS list";
    assert.deepEqual(await inSession((s) => read(s)(text), { fetchSize: 1000 }), [100_000, 5_000_050_000n]);
    const [rows] = await inSession((s) => read(s)("UNWIND range(1, 10000) AS x RETURN x"), { fetchSize: 1 });
    assert.equal(rows, 10_000);
  },

  async interleaved() {
    await inSession(async (session) => {
      const tx = await session.beginTransaction();
      const [first, second] = [1, 101].map((from) => tx.run(`UNWIND range(${from}, ${from + 99}) AS x RETURN x`)[Symbol.asyncIterator]());
      for (let n = 1n; n <= 100n; n++) {
        assert.equal((await first.next()).value.get("x"), n);
        assert.equal((await second.next()).value.get("x"), n + 100n);
      }
      for await (const row of tx.run("UNWIND range(1, 5) AS x RETURN x")) await tx.run("CREATE (:Nested {n: $n})", { n: row.get("x") });
      await tx.commit();
    }, { fetchSize: 2 });
    assert.equal(await count("Nested"), 5n);
  },

  async metadata() {
    const metadata = { app: "scenarios", step: 1n };
    await inSession(async (session) => {
      const tx = await session.beginTransaction({ metadata });
      assert.deepEqual({ ...(await single(tx.run("CALL tx.getMetaData() YIELD metadata RETURN metadata"))) }, metadata);
      await tx.commit();
      assert.deepEqual({ ...(await single(session.run("CALL tx.getMetaData()", {}, { metadata }))) }, metadata);
    });
  },

  async unconsumed() {
    await inSession(async (session) => {
      const rows = session.run("UNWIND range(1, 20000) AS x RETURN x")[Symbol.asyncIterator]();
      assert.equal((await rows.next()).value.get("x"), 1n);
    }, { fetchSize: 10 });
    await inSession(async (session) => {
      const tx = await session.beginTransaction();
      await tx.run("UNWIND range(1, 20000) AS x RETURN x")[Symbol.asyncIterator]().next();
      await tx.run("CREATE (:Unconsumed)");
      await tx.commit();
    }, { fetchSize: 10 });
    assert.equal(await count("Unconsumed"), 1n);
  },

  async explain() {
    const { summary } = await driver.executeQuery("EXPLAIN MATCH (n:Explained) RETURN n", {}, { database });
    assert.ok(summary.plan.operatorType);
    await query("EXPLAIN CREATE (:Explained)");
    assert.equal(await count("Explained"), 0n);
  },
};

let failed = 0;
for (const [name, work] of Object.entries({ ...sessions, ...values, ...entities, ...transactions, ...errors })) {
  if (only.length && !only.includes(name)) continue;
  const began = performance.now();
  try {
    await work();
    console.log(`ok ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}: ${error.code ?? ""} ${only.length ? error.stack : error.message}`);
  }
}
await driver.close();
process.exit(failed ? 1 : 0);
