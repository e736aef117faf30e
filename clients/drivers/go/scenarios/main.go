// Command scenarios tries Neo4j's Go driver: scenarios URI DATABASE [NAME…]; see scenarios.txt.
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j/config"
)

var (
	ctx      = context.Background()
	uri      = os.Args[1]
	database = os.Args[2]
	driver   = connected()
)

type (
	scenario struct {
		name string
		work func()
	}
	// values is a map of Cypher.
	values = map[string]any
	// failure ends a scenario.
	failure struct{ text string }
)

// connected is a driver whose transactions are tried for long: 32 writers that return what they
// wrote need some tries each, and the driver sleeps seconds between them.
func connected() neo4j.DriverWithContext {
	auth := neo4j.BasicAuth("neo4j", "ignored", "")
	made, err := neo4j.NewDriverWithContext(uri, auth, func(c *config.Config) {
		c.MaxConnectionPoolSize = 100
		c.MaxTransactionRetryTime = 2 * time.Minute
	})
	must(err)
	return made
}

func must(err error) {
	if err != nil {
		panic(failure{err.Error()})
	}
}

func check(holds bool, format string, about ...any) {
	if !holds {
		panic(failure{fmt.Sprintf(format, about...)})
	}
}

func same(got, wanted any) {
	check(reflect.DeepEqual(got, wanted), "%T %v is not %T %v", got, got, wanted, wanted)
}

// fails demands an error whose code has the name at its end.
func fails(name string, err error) {
	check(err != nil, "no error, and not %s", name)
	known, is := err.(*neo4j.Neo4jError)
	check(is, "%T: %v", err, err)
	last := known.Code[strings.LastIndex(known.Code, ".")+1:]
	// Of time limits, newer servers say who set them.
	check(last == name || last == name+"ClientConfiguration", "%s: %s", known.Code, known.Msg)
}

func execute(text string, parameters values) (*neo4j.EagerResult, error) {
	return neo4j.ExecuteQuery(ctx, driver, text, parameters, neo4j.EagerResultTransformer,
		neo4j.ExecuteQueryWithDatabase(database))
}

func query(text string, parameters values) []*neo4j.Record {
	result, err := execute(text, parameters)
	must(err)
	return result.Records
}

func one(text string, parameters values) any {
	return query(text, parameters)[0].Values[0]
}

func count(label string) any {
	return one("MATCH (n:"+label+") RETURN count(n)", nil)
}

// session calls work with a session, and closes it.
func session(settings neo4j.SessionConfig, work func(neo4j.SessionWithContext)) {
	settings.DatabaseName = database
	made := driver.NewSession(ctx, settings)
	defer func() { must(made.Close(ctx)) }()
	work(made)
}

// auto is a statement in a session, as a transaction of its own.
func auto(s neo4j.SessionWithContext, text string) ([]*neo4j.Record, error) {
	result, err := s.Run(ctx, text, nil)
	if err != nil {
		return nil, err
	}
	return result.Collect(ctx)
}

// attempt executes one scenario: why it failed, or nothing.
func attempt(work func()) (why string) {
	defer func() {
		if thrown := recover(); thrown != nil {
			known, is := thrown.(failure)
			if !is {
				panic(thrown)
			}
			why = known.text
		}
	}()
	work()
	return ""
}

func main() {
	failed := false
	for _, each := range slices.Concat(sessions, valueScenarios, entities, transactions, failures) {
		if only := os.Args[3:]; len(only) > 0 && !slices.Contains(only, each.name) {
			continue
		}
		began := time.Now()
		if why := attempt(each.work); why == "" {
			fmt.Printf("ok %s (%.1f s)\n", each.name, time.Since(began).Seconds())
		} else {
			failed = true
			fmt.Printf("FAILED %s: %s\n", each.name, why)
		}
	}
	must(driver.Close(ctx))
	if failed {
		os.Exit(1)
	}
}
