// Bolt against HTTP on one server, in turns: the same statements by the official Go driver and by
// POST /db/neo4j/tx/commit on kept connections: go run . ADDRESS PID. Prints ratios of Bolt to HTTP:
// of what a client sees, in which the driver has its share, and of the server's processor time.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

const (
	turns   = 5
	creates = 600
	many    = 99
	rows    = 100_000
)

var (
	ctx    = context.Background()
	client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * many}}
)

type wire func(statement string, parameters map[string]any) int

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// byHTTP executes a statement and counts its rows.
func byHTTP(base string) wire {
	return func(statement string, parameters map[string]any) int {
		body, err := json.Marshal(map[string]any{"statements": []any{
			map[string]any{"statement": statement, "parameters": parameters}}})
		check(err)
		answer, err := client.Post(base+"/db/neo4j/tx/commit", "application/json", bytes.NewReader(body))
		check(err)
		content, err := io.ReadAll(answer.Body)
		check(err)
		answer.Body.Close()
		var read struct {
			Results []struct {
				Data []struct {
					Row []any `json:"row"`
				} `json:"data"`
			} `json:"results"`
			Errors []any `json:"errors"`
		}
		check(json.Unmarshal(content, &read))
		if len(read.Errors) > 0 {
			check(fmt.Errorf("%v", read.Errors))
		}
		return len(read.Results[0].Data)
	}
}

// byBolt executes a statement and counts its rows.
func byBolt(driver neo4j.DriverWithContext) wire {
	return func(statement string, parameters map[string]any) int {
		session := driver.NewSession(ctx, neo4j.SessionConfig{DatabaseName: "neo4j", FetchSize: neo4j.FetchAll})
		defer session.Close(ctx)
		result, err := session.Run(ctx, statement, parameters)
		check(err)
		count := 0
		for result.Next(ctx) {
			count++
		}
		check(result.Err())
		return count
	}
}

// create makes nodes one after another in so many clients: the p50 of one, and how many a second.
func create(send wire, clients int) (time.Duration, float64) {
	var lock sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	begun := time.Now()
	for number := range clients {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range creates / max(1, clients/10) {
				at := time.Now()
				send("CREATE (n:Bench {a: $a, b: $b})", map[string]any{"a": number, "b": i})
				lock.Lock()
				took = append(took, time.Since(at))
				lock.Unlock()
			}
		}()
	}
	all.Wait()
	rate := float64(len(took)) / time.Since(begun).Seconds()
	sort.Slice(took, func(a, b int) bool { return took[a] < took[b] })
	return took[len(took)/2], rate
}

// processorTicks is the server's processor time so far, in hundredths of a second.
func processorTicks() float64 {
	stat, err := os.ReadFile("/proc/" + os.Args[2] + "/stat")
	check(err)
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, err := strconv.ParseFloat(fields[11], 64)
	check(err)
	system, err := strconv.ParseFloat(fields[12], 64)
	check(err)
	return user + system
}

// spent is the server's processor time while something is done.
func spent(work func()) float64 {
	before := processorTicks()
	work()
	return processorTicks() - before
}

// keep leaves a row for figures.py in the file that OUT names.
func keep(name, server string, turn int, value, ticks float64) {
	file, err := os.OpenFile(os.Getenv("OUT"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	check(err)
	defer file.Close()
	check(json.NewEncoder(file).Encode(map[string]any{
		"case": name, "server": server, "round": turn, "value": value, "server_ticks": ticks}))
}

func main() {
	address := os.Args[1]
	driver, err := neo4j.NewDriverWithContext("bolt://"+address, neo4j.BasicAuth("neo4j", "none", ""),
		func(config *neo4j.Config) { config.MaxConnectionPoolSize = 2 * many })
	check(err)
	defer driver.Close(ctx)
	bolt, web := byBolt(driver), byHTTP("http://"+address)
	statement := "UNWIND range(1, $n) AS i RETURN i, 'text ' + i AS t, i * 1.5 AS f, i % 2 = 0 AS b, null AS u"
	for turn := range turns {
		for _, wire := range []struct {
			name string
			send wire
		}{{"bolt", bolt}, {"http", web}} {
			p50, _ := create(wire.send, 1)
			keep("create, 1 client", wire.name, turn, float64(p50.Nanoseconds())/1e3, 0)
			var rate float64
			ticks := spent(func() { _, rate = create(wire.send, many) })
			keep("creates", wire.name, turn, rate, ticks)
			at := time.Now()
			ticks = spent(func() {
				if count := wire.send(statement, map[string]any{"n": rows}); count != rows {
					check(fmt.Errorf("%d rows", count))
				}
			})
			keep("rows", wire.name, turn, rows/time.Since(at).Seconds(), ticks)
		}
	}
}
