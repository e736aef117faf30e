import neo4j from "neo4j-driver";

const driver = neo4j.driver(process.argv[2] ?? "bolt://localhost:4000");
await driver.executeQuery(
  `MERGE (a:Person {name: $name}) MERGE (b:Person {name: 'Bob'})
   MERGE (a)-[:KNOWS {since: date('2020-01-02')}]->(b)`,
  { name: "Ada" }, { database: "neo4j" },
);
const found = await driver.executeQuery(
  "MATCH (:Person {name: $name})-[k:KNOWS]->(p) RETURN p.name AS friend, k.since AS since",
  { name: "Ada" }, { database: "neo4j" },
);
for (const record of found.records) console.log(`${record.get("friend")} since ${record.get("since")}`);

const session = driver.session({ database: "neo4j" });
const people = await session.executeWrite(async (tx) => { // executed again if another transaction overtakes it
  await tx.run("MATCH (p:Person) SET p.seen = coalesce(p.seen, 0) + 1");
  return (await tx.run("MATCH (p:Person) RETURN count(p) AS people")).records[0].get("people");
});
console.log(`${people} people`);
await session.close();
await driver.close();
