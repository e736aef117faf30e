package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

func main() {
	uri := "bolt://localhost:4000"
	if len(os.Args) > 1 {
		uri = os.Args[1]
	}
	ctx := context.Background()
	driver, err := neo4j.NewDriverWithContext(uri, neo4j.NoAuth())
	check(err)
	defer driver.Close(ctx)

	database := neo4j.ExecuteQueryWithDatabase("neo4j")
	name := map[string]any{"name": "Ada"}
	_, err = neo4j.ExecuteQuery(ctx, driver,
		`MERGE (a:Person {name: $name}) MERGE (b:Person {name: 'Bob'})
		 MERGE (a)-[:KNOWS {since: date('2020-01-02')}]->(b)`,
		name, neo4j.EagerResultTransformer, database)
	check(err)
	found, err := neo4j.ExecuteQuery(ctx, driver,
		"MATCH (:Person {name: $name})-[k:KNOWS]->(p) RETURN p.name AS friend, k.since AS since",
		name, neo4j.EagerResultTransformer, database)
	check(err)
	for _, record := range found.Records {
		row := record.AsMap()
		fmt.Println(row["friend"], "since", row["since"])
	}

	session := driver.NewSession(ctx, neo4j.SessionConfig{DatabaseName: "neo4j"})
	defer session.Close(ctx)
	// Executed again if another transaction overtakes it.
	people, err := session.ExecuteWrite(ctx, func(tx neo4j.ManagedTransaction) (any, error) {
		if _, err := tx.Run(ctx, "MATCH (p:Person) SET p.seen = coalesce(p.seen, 0) + 1", nil); err != nil {
			return nil, err
		}
		result, err := tx.Run(ctx, "MATCH (p:Person) RETURN count(p) AS people", nil)
		if err != nil {
			return nil, err
		}
		record, err := result.Single(ctx)
		if err != nil {
			return nil, err
		}
		return record.Values[0], nil
	})
	check(err)
	fmt.Println(people, "people")
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
