package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

var transactions = []scenario{
	{"auto-commit", autoCommit},
	{"explicit", explicit},
	{"managed", managed},
	{"counters", counters},
	{"conflict-returning", conflictReturning},
	{"conflict-silent", conflictSilent},
	{"rollback-explicit", rollbackExplicit},
	{"rollback-error", rollbackError},
	{"rollback-closed", rollbackClosed},
	{"rollback-timeout", rollbackTimeout},
}

type sessionConfig = neo4j.SessionConfig

func begin(s neo4j.SessionWithContext, settings ...func(*neo4j.TransactionConfig)) neo4j.ExplicitTransaction {
	tx, err := s.BeginTransaction(ctx, settings...)
	must(err)
	return tx
}

// inside is a statement of a transaction, and its rows.
func inside(tx neo4j.ManagedTransaction, text string) ([]*neo4j.Record, error) {
	result, err := tx.Run(ctx, text, nil)
	if err != nil {
		return nil, err
	}
	return result.Collect(ctx)
}

func well(rows []*neo4j.Record, err error) []*neo4j.Record {
	must(err)
	return rows
}

func autoCommit() {
	session(sessionConfig{}, func(s neo4j.SessionWithContext) {
		well(auto(s, "CREATE (:Auto)"))
		_, err := s.Run(ctx, "CREATE (:Auto)", nil)
		must(err)
		rows := well(auto(s, "UNWIND range(1, 3) AS x RETURN x"))
		same([]any{len(rows), rows[2].Values[0]}, []any{3, int64(3)})
	})
	same(count("Auto"), int64(2))
}

func explicit() {
	session(sessionConfig{}, func(s neo4j.SessionWithContext) {
		tx := begin(s)
		well(inside(tx, "CREATE (:Explicit {n: 1})"))
		same(well(inside(tx, "MATCH (n:Explicit) RETURN count(n)"))[0].Values[0], int64(1))
		same(count("Explicit"), int64(0))
		well(inside(tx, "MATCH (n:Explicit) SET n.n = n.n + 1"))
		must(tx.Commit(ctx))
	})
	same(one("MATCH (n:Explicit) RETURN n.n", nil), int64(2))
}

// unit is work of a managed transaction: the first value of a statement's first row.
func unit(text string) neo4j.ManagedTransactionWork {
	return func(tx neo4j.ManagedTransaction) (any, error) {
		rows, err := inside(tx, text)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		return rows[0].Values[0], nil
	}
}

func managed() {
	session(sessionConfig{}, func(s neo4j.SessionWithContext) {
		made, err := s.ExecuteWrite(ctx, unit("CREATE (n:Managed) RETURN elementId(n)"))
		must(err)
		found, err := s.ExecuteRead(ctx, unit("MATCH (n:Managed) RETURN elementId(n)"))
		must(err)
		same(found, made)
	})
}

func summary(text string) neo4j.ResultSummary {
	result, err := execute(text, nil)
	must(err)
	return result.Summary
}

func counters() {
	made := summary("CREATE (a:Counters {n: 1, m: 2})-[:R]->(:Counters:Other)")
	c := made.Counters()
	same([]int{c.NodesCreated(), c.RelationshipsCreated(), c.PropertiesSet(), c.LabelsAdded()}, []int{2, 1, 2, 3})
	check(c.ContainsUpdates() && made.StatementType() == neo4j.StatementTypeWriteOnly, "type %v", made.StatementType())
	c = summary("MATCH (a:Counters) REMOVE a:Other DETACH DELETE a").Counters()
	same([]int{c.NodesDeleted(), c.RelationshipsDeleted(), c.LabelsRemoved()}, []int{2, 1, 1})
	same(summary("CREATE INDEX counters_n FOR (n:Counters) ON (n.n)").Counters().IndexesAdded(), 1)
	same(summary("DROP INDEX counters_n").Counters().IndexesRemoved(), 1)
	same(summary("CREATE CONSTRAINT counters_u FOR (n:Counters) REQUIRE n.u IS UNIQUE").Counters().ConstraintsAdded(), 1)
	same(summary("DROP CONSTRAINT counters_u").Counters().ConstraintsRemoved(), 1)
	read := summary("MATCH (n:Counters) RETURN n")
	check(!read.Counters().ContainsUpdates() && read.StatementType() == neo4j.StatementTypeReadOnly, "a read that writes")
	same(read.Database().Name(), database)
}

// conflict has 32 writers add to one counter: the driver's own loop repeats what was overtaken.
func conflict(label, statement string, each int) (seen []any) {
	query("CREATE (:"+label+" {n: 0})", nil)
	var lock sync.Mutex
	var all sync.WaitGroup
	var failed []error
	for range 32 {
		all.Add(1)
		go func() {
			defer all.Done()
			s := driver.NewSession(ctx, sessionConfig{DatabaseName: database})
			defer s.Close(ctx)
			for range each {
				got, err := s.ExecuteWrite(ctx, unit(statement))
				lock.Lock()
				seen, failed = append(seen, got), append(failed, err)
				lock.Unlock()
			}
		}()
	}
	all.Wait()
	must(errors.Join(failed...))
	same(one("MATCH (n:"+label+") RETURN n.n", nil), int64(32*each))
	return seen
}

func conflictReturning() {
	seen := conflict("Returning", "MATCH (n:Returning) SET n.n = n.n + 1 RETURN n.n", 2)
	slices.SortFunc(seen, func(a, b any) int { return int(a.(int64) - b.(int64)) })
	for n, each := range seen {
		same(each, int64(n+1))
	}
}

func conflictSilent() {
	conflict("Silent", "MATCH (n:Silent) SET n.n = n.n + 1", 10)
}

func rollbackExplicit() {
	session(sessionConfig{}, func(s neo4j.SessionWithContext) {
		tx := begin(s)
		well(inside(tx, "CREATE (:Rolled)"))
		must(tx.Rollback(ctx))
		tx = begin(s)
		well(inside(tx, "CREATE (:Rolled)"))
		must(tx.Close(ctx))
		same(well(auto(s, "MATCH (n:Rolled) RETURN count(n)"))[0].Values[0], int64(0))
	})
}

func rollbackError() {
	session(sessionConfig{}, func(s neo4j.SessionWithContext) {
		tx := begin(s)
		well(inside(tx, "CREATE (:RolledByError)"))
		_, err := inside(tx, "RETURN 1/0")
		fails("ArithmeticError", err)
		must(tx.Close(ctx))
		own := errors.New("the program's own")
		_, err = s.ExecuteWrite(ctx, func(tx neo4j.ManagedTransaction) (any, error) {
			well(inside(tx, "CREATE (:RolledByError)"))
			return nil, own
		})
		check(errors.Is(err, own), "%v", err)
		same(well(auto(s, "MATCH (n:RolledByError) RETURN count(n)"))[0].Values[0], int64(0))
	})
}

func rollbackClosed() {
	other := connected()
	tx := begin(other.NewSession(ctx, sessionConfig{DatabaseName: database}))
	well(inside(tx, "CREATE (:Closed)"))
	must(other.Close(ctx))
	same(count("Closed"), int64(0))
}

func rollbackTimeout() {
	session(sessionConfig{}, func(s neo4j.SessionWithContext) {
		tx := begin(s, neo4j.WithTxTimeout(500*time.Millisecond))
		well(inside(tx, "CREATE (:Late)"))
		_, err := inside(tx, fmt.Sprintf("UNWIND range(1, %d) AS x UNWIND range(1, %[1]d) AS y RETURN count(x + y)", 100_000))
		fails("TransactionTimedOut", err)
		must(tx.Close(ctx))
		tx = begin(s, neo4j.WithTxTimeout(300*time.Millisecond))
		well(inside(tx, "CREATE (:Late)"))
		time.Sleep(time.Second)
		_, err = inside(tx, "CREATE (:Late)")
		fails("TransactionTimedOut", err)
		must(tx.Close(ctx))
	})
	same(count("Late"), int64(0))
}
