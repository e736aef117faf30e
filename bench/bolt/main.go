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

func median(values []float64) float64 {
	sort.Float64s(values)
	return values[len(values)/2]
}

func main() {
	address := os.Args[1]
	driver, err := neo4j.NewDriverWithContext("bolt://"+address, neo4j.BasicAuth("neo4j", "none", ""),
		func(config *neo4j.Config) { config.MaxConnectionPoolSize = 2 * many })
	check(err)
	defer driver.Close(ctx)
	bolt, web := byBolt(driver), byHTTP("http://"+address)
	var latency, throughput, reading, createTicks, readTicks []float64
	for range turns {
		boltP50, _ := create(bolt, 1)
		webP50, _ := create(web, 1)
		latency = append(latency, float64(boltP50)/float64(webP50))
		var boltRate, webRate float64
		boltTicks := spent(func() { _, boltRate = create(bolt, many) })
		webTicks := spent(func() { _, webRate = create(web, many) })
		throughput = append(throughput, boltRate/webRate)
		createTicks = append(createTicks, boltTicks/webTicks)
		read := func(send wire) time.Duration {
			at := time.Now()
			statement := "UNWIND range(1, $n) AS i RETURN i, 'text ' + i AS t, i * 1.5 AS f, i % 2 = 0 AS b, null AS u"
			if count := send(statement, map[string]any{"n": rows}); count != rows {
				check(fmt.Errorf("%d rows", count))
			}
			return time.Since(at)
		}
		var byBolt, byWeb time.Duration
		boltTicks = spent(func() { byBolt = read(bolt) })
		webTicks = spent(func() { byWeb = read(web) })
		reading = append(reading, float64(byWeb)/float64(byBolt))
		readTicks = append(readTicks, boltTicks/webTicks)
		fmt.Printf("create p50 %v / %v, %d clients %.0f / %.0f a second, %d rows %v / %v\n",
			boltP50, webP50, many, boltRate, webRate, rows, byBolt, byWeb)
	}
	fmt.Printf("Bolt / HTTP, median of %d turns: create p50 %.2f, creates a second at %d clients %.2f, rows a second %.2f\n",
		turns, median(latency), many, median(throughput), median(reading))
	fmt.Printf("the server's processor time: of a create %.2f, of rows %.2f\n", median(createTicks), median(readTicks))
}
