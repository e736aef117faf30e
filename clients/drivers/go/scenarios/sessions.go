package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

var (
	failures = []scenario{
		{"error-syntax", func() { fails("SyntaxError", failed("RETRUN 1")) }},
		{"error-arithmetic", func() { fails("ArithmeticError", failed("RETURN 1/0")) }},
		{"error-parameter", func() { fails("ParameterMissing", failed("RETURN $missing")) }},
		{"error-constraint", errorConstraint},
		{"error-database", errorDatabase},
		{"error-access-mode", errorAccessMode},
	}
	sessions = []scenario{
		{"connect", connect},
		{"bookmarks", bookmarks},
		{"system", system},
		{"rows-100000", rows},
		{"interleaved", interleaved},
		{"metadata", metadata},
		{"unconsumed", unconsumed},
		{"explain", explain},
	}
)

func failed(text string) error {
	_, err := execute(text, nil)
	return err
}

func errorConstraint() {
	query("CREATE CONSTRAINT once FOR (n:Once) REQUIRE n.id IS UNIQUE", nil)
	query("CREATE (:Once {id: 1})", nil)
	fails("ConstraintValidationFailed", failed("CREATE (:Once {id: 1})"))
	same(count("Once"), int64(1))
}

func errorDatabase() {
	_, err := neo4j.ExecuteQuery(ctx, driver, "RETURN 1", nil, neo4j.EagerResultTransformer,
		neo4j.ExecuteQueryWithDatabase("elsewhere"))
	fails("DatabaseNotFound", err)
}

func errorAccessMode() {
	session(sessionConfig{AccessMode: neo4j.AccessModeRead}, func(s neo4j.SessionWithContext) {
		_, err := auto(s, "CREATE (:ReadOnly)")
		fails("AccessMode", err)
		_, err = s.ExecuteRead(ctx, unit("CREATE (:ReadOnly)"))
		fails("AccessMode", err)
		same(well(auto(s, "RETURN 1"))[0].Values[0], int64(1))
	})
	same(count("ReadOnly"), int64(0))
}

func connect() {
	must(driver.VerifyConnectivity(ctx))
	info, err := driver.GetServerInfo(ctx)
	must(err)
	check(strings.HasPrefix(info.Agent(), "Neo4j/"), "%s", info.Agent())
	// A database need not be named.
	result, err := neo4j.ExecuteQuery(ctx, driver, "RETURN 1", nil, neo4j.EagerResultTransformer)
	must(err)
	same(result.Records[0].Values[0], int64(1))
}

func bookmarks() {
	create := func(after neo4j.Bookmarks, seen int64) (left neo4j.Bookmarks) {
		session(sessionConfig{Bookmarks: after}, func(s neo4j.SessionWithContext) {
			same(well(auto(s, "MATCH (n:Marked) RETURN count(n)"))[0].Values[0], seen)
			well(auto(s, "CREATE (:Marked)"))
			left = s.LastBookmarks()
		})
		return left
	}
	first := create(nil, 0)
	second := create(first, 1)
	check(len(first) > 0 && !slices.Equal(first, second), "%v, %v", first, second)
	create(neo4j.CombineBookmarks(first, second), 2)
	session(sessionConfig{Bookmarks: neo4j.BookmarksFromRawValues("no bookmark")}, func(s neo4j.SessionWithContext) {
		_, err := auto(s, "RETURN 1")
		fails("InvalidBookmark", err)
	})
}

func system() {
	ask := func(text string) []*neo4j.Record {
		result, err := neo4j.ExecuteQuery(ctx, driver, text, nil, neo4j.EagerResultTransformer,
			neo4j.ExecuteQueryWithDatabase("system"))
		must(err)
		return result.Records
	}
	names := []any{}
	for _, row := range ask("SHOW DATABASES") {
		names = append(names, row.AsMap()["name"])
	}
	check(slices.Contains(names, any(database)) && slices.Contains(names, any("system")), "%v", names)
	got := ask("CALL dbms.components()")[0].AsMap()
	same(got["name"], "Neo4j Kernel")
	check(strings.HasPrefix(got["versions"].([]any)[0].(string), "5."), "%v", got)
}

func rows() {
	read := func(fetch int, text string) (rows, total int64) {
		session(sessionConfig{FetchSize: fetch}, func(s neo4j.SessionWithContext) {
			result, err := s.Run(ctx, text, nil)
			must(err)
			for result.Next(ctx) {
				rows, total = rows+1, total+result.Record().Values[0].(int64)
			}
			must(result.Err())
		})
		return rows, total
	}
	number, total := read(1000, "UNWIND range(1, 100000) AS x RETURN x, 'row ' + x AS text, [x, x] AS list")
	same([]int64{number, total}, []int64{100_000, 5_000_050_000})
	number, _ = read(1, "UNWIND range(1, 10000) AS x RETURN x")
	same(number, int64(10_000))
}

func interleaved() {
	session(sessionConfig{FetchSize: 2}, func(s neo4j.SessionWithContext) {
		tx := begin(s)
		run := func(text string) neo4j.ResultWithContext {
			result, err := tx.Run(ctx, text, nil)
			must(err)
			return result
		}
		first, second := run("UNWIND range(1, 100) AS x RETURN x"), run("UNWIND range(101, 200) AS x RETURN x")
		for n := range int64(100) {
			check(first.Next(ctx) && second.Next(ctx), "a result ends early")
			same([]any{first.Record().Values[0], second.Record().Values[0]}, []any{n + 1, n + 101})
		}
		for outer := run("UNWIND range(1, 5) AS x RETURN x"); outer.Next(ctx); {
			well(inside(tx, fmt.Sprintf("CREATE (:Nested {n: %d})", outer.Record().Values[0])))
		}
		must(tx.Commit(ctx))
	})
	same(count("Nested"), int64(5))
}

func metadata() {
	sent := values{"app": "scenarios", "step": int64(1)}
	session(sessionConfig{}, func(s neo4j.SessionWithContext) {
		tx := begin(s, neo4j.WithTxMetadata(sent))
		same(well(inside(tx, "CALL tx.getMetaData() YIELD metadata RETURN metadata"))[0].Values[0], sent)
		must(tx.Commit(ctx))
		result, err := s.Run(ctx, "CALL tx.getMetaData()", nil, neo4j.WithTxMetadata(sent))
		must(err)
		record, err := result.Single(ctx)
		must(err)
		same(record.Values[0], sent)
	})
}

func unconsumed() {
	const many = "UNWIND range(1, 20000) AS x RETURN x"
	session(sessionConfig{FetchSize: 10}, func(s neo4j.SessionWithContext) {
		result, err := s.Run(ctx, many, nil)
		must(err)
		check(result.Next(ctx), "no row")
		same(well(auto(s, "RETURN 1"))[0].Values[0], int64(1))
		_, err = s.Run(ctx, many, nil)
		must(err)
	})
	session(sessionConfig{FetchSize: 10}, func(s neo4j.SessionWithContext) {
		tx := begin(s)
		_, err := tx.Run(ctx, many, nil)
		must(err)
		_, err = tx.Run(ctx, "CREATE (:Unconsumed)", nil)
		must(err)
		must(tx.Commit(ctx))
	})
	same(count("Unconsumed"), int64(1))
}

func explain() {
	plan := summary("EXPLAIN MATCH (n:Explained) RETURN n").Plan()
	check(plan != nil && plan.Operator() != "", "no plan")
	query("EXPLAIN CREATE (:Explained)", nil)
	same(count("Explained"), int64(0))
}
