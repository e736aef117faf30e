import sys
from neo4j import GraphDatabase

uri = sys.argv[1] if len(sys.argv) > 1 else "bolt://localhost:4000"
with GraphDatabase.driver(uri) as driver:
    driver.execute_query(
        """MERGE (a:Person {name: $name}) MERGE (b:Person {name: 'Bob'})
           MERGE (a)-[:KNOWS {since: date('2020-01-02')}]->(b)""",
        name="Ada", database_="neo4j",
    )
    found = driver.execute_query(
        "MATCH (:Person {name: $name})-[k:KNOWS]->(p) RETURN p.name AS friend, k.since AS since",
        name="Ada", database_="neo4j",
    )
    for record in found.records:
        print(record["friend"], "since", record["since"])

    def count(tx):  # executed again if another transaction overtakes it
        tx.run("MATCH (p:Person) SET p.seen = coalesce(p.seen, 0) + 1")
        return tx.run("MATCH (p:Person) RETURN count(p) AS people").single()["people"]

    with driver.session(database="neo4j") as session:
        print(session.execute_write(count), "people")
