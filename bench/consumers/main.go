// Consumers against NATS JetStream, in turns in one run. Both servers are given; this program
// loads them, works everything off and checks the counts.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var (
	base   = flag.String("wellspring", "http://127.0.0.1:4171", "URL of the server")
	nurl   = flag.String("nats", "", "URL of nats-server with JetStream; none: it is left out")
	events = flag.Int("events", 100_000, "events of a scenario")
	rounds = flag.Int("rounds", 3, "turns of each scenario")
	kafka  = flag.String("kafka", "", "address of a Kafka broker; none: it is left out")
	only   = flag.String("only", "", "one scenario: pull, ordered, latency, settle, kafka, idle")
)

const filler = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, MaxConnsPerHost: 0}}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A request with a JSON body; the answer's body is left to the caller's buffer.
func call(method, path string, body []byte, into *bytes.Buffer) int {
	request, err := http.NewRequest(method, *base+path, bytes.NewReader(body))
	must(err)
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	must(err)
	defer answer.Body.Close()
	into.Reset()
	_, err = into.ReadFrom(answer.Body)
	must(err)
	return answer.StatusCode
}

func expect(status int, method, path string, body string, into *bytes.Buffer) {
	if got := call(method, path, []byte(body), into); got != status {
		fmt.Fprintf(os.Stderr, "%s %s: %d %s\n", method, path, got, into.String())
		os.Exit(1)
	}
}

var logs atomic.Int64

// A new log with n events, the key of each chosen by `key`.
func filledLog(n int, key func(i int) int) string {
	log := fmt.Sprintf("b%d-%d", time.Now().UnixNano()%1_000_000_000, logs.Add(1))
	var answer bytes.Buffer
	expect(201, "PUT", "/v1/logs/"+log, "", &answer)
	for at := 0; at < n; at += 1000 {
		var lines strings.Builder
		for i := at; i < n && i < at+1000; i++ {
			fmt.Fprintf(&lines, `{"type":"T","tags":["k:%d"],"data":{"n":%d,"fill":"%s"}}`+"\n", key(i), i, filler)
		}
		request, err := http.NewRequest("POST", *base+"/v1/logs/"+log+"/append", strings.NewReader(lines.String()))
		must(err)
		request.Header.Set("Content-Type", "application/x-ndjson")
		answer, err := client.Do(request)
		must(err)
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if answer.StatusCode != 200 {
			must(fmt.Errorf("append: %d", answer.StatusCode))
		}
	}
	return log
}

// A worker of the consumer c.
type worker struct {
	log, name string
	turn      int
	held      []string
	answer    bytes.Buffer
	body      bytes.Buffer
}

var marker = []byte(`{"delivery":"`)

// Settles what is held and takes more. The events are left as they came, as those of JetStream are.
func (w *worker) next(want, waitMs int) int {
	w.turn++
	w.body.Reset()
	fmt.Fprintf(&w.body, `{"worker":"%s","turn":%d,"want":%d,"wait_ms":%d,"done":[`, w.name, w.turn, want, waitMs)
	for i, name := range w.held {
		if i > 0 {
			w.body.WriteByte(',')
		}
		w.body.WriteByte('"')
		w.body.WriteString(name)
		w.body.WriteByte('"')
	}
	w.body.WriteString("]}")
	if status := call("POST", "/v1/logs/"+w.log+"/consumers/c/next", w.body.Bytes(), &w.answer); status != 200 {
		must(fmt.Errorf("next: %d %s", status, w.answer.String()))
	}
	w.held = w.held[:0]
	rest := w.answer.Bytes()
	if i := bytes.Index(rest, []byte(`"deliveries":[`)); i >= 0 {
		rest = rest[i:]
	}
	for {
		i := bytes.Index(rest, marker)
		if i < 0 {
			return len(w.held)
		}
		rest = rest[i+len(marker):]
		w.held = append(w.held, string(rest[:bytes.IndexByte(rest, '"')]))
	}
}

func define(log, terms string) {
	var answer bytes.Buffer
	expect(201, "PUT", "/v1/logs/"+log+"/consumers/c", `{"query":{"items":[{"types":["T"]}]},"max_in_flight":100000`+terms+`}`, &answer)
}

// Works a log off with so many workers; returns deliveries a second.
func workOff(log string, n, workers, want int) float64 {
	var left atomic.Int64
	left.Store(int64(n))
	begun := time.Now()
	var all sync.WaitGroup
	for i := range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			w := &worker{log: log, name: fmt.Sprintf("w%d", i)}
			for left.Load() > 0 {
				left.Add(-int64(w.next(want, 50)))
			}
			w.next(0, 0)
		}()
	}
	all.Wait()
	took := time.Since(begun).Seconds()
	var answer bytes.Buffer
	expect(200, "GET", "/v1/logs/"+log+"/consumers/c", "", &answer)
	var status struct{ Floor, Scanned, OpenKeys int }
	must(json.Unmarshal(answer.Bytes(), &status))
	if left.Load() != 0 || status.Floor < n {
		must(fmt.Errorf("%d are left, floor %d of %d", left.Load(), status.Floor, n))
	}
	return float64(n) / took
}

// JetStream, as durable as it can be made: its configuration has sync_interval always.
type stream struct {
	js     jetstream.JetStream
	stream jetstream.Stream
}

func filledStream(js jetstream.JetStream, n, partitions int, key func(i int) int) stream {
	ctx := context.Background()
	name := fmt.Sprintf("S%d", time.Now().UnixNano())
	made, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}, Storage: jetstream.FileStorage})
	must(err)
	for at := 0; at < n; at += 500 {
		var sent []jetstream.PubAckFuture
		for i := at; i < n && i < at+500; i++ {
			body := fmt.Sprintf(`{"n":%d,"fill":"%s"}`, i, filler)
			k := key(i)
			future, err := js.PublishAsync(fmt.Sprintf("%s.%d.%d", name, k%partitions, k), []byte(body))
			must(err)
			sent = append(sent, future)
		}
		<-js.PublishAsyncComplete()
		for _, future := range sent {
			select {
			case <-future.Ok():
			case err := <-future.Err():
				must(err)
			}
		}
	}
	return stream{js, made}
}

func (s stream) consumer(filter string, pending int) jetstream.Consumer {
	name := s.stream.CachedInfo().Config.Name
	config := jetstream.ConsumerConfig{Durable: fmt.Sprintf("c%d", logs.Add(1)), AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: pending, FilterSubject: name + "." + filter}
	made, err := s.stream.CreateOrUpdateConsumer(context.Background(), config)
	must(err)
	return made
}

func (s stream) remove() {
	must(s.js.DeleteStream(context.Background(), s.stream.CachedInfo().Config.Name))
}

func (s stream) workOff(n, workers, want, pending int, filter func(i int) string) float64 {
	var left atomic.Int64
	left.Store(int64(n))
	consumers := make([]jetstream.Consumer, workers)
	for i := range consumers {
		consumers[i] = s.consumer(filter(i), pending)
	}
	begun := time.Now()
	var all sync.WaitGroup
	for _, consumer := range consumers {
		all.Add(1)
		go func() {
			defer all.Done()
			for left.Load() > 0 {
				batch, err := consumer.Fetch(want, jetstream.FetchMaxWait(50*time.Millisecond))
				must(err)
				for message := range batch.Messages() {
					must(message.Ack())
					left.Add(-1)
				}
			}
		}()
	}
	all.Wait()
	took := time.Since(begun).Seconds()
	if left.Load() != 0 {
		must(fmt.Errorf("%d are left", left.Load()))
	}
	return float64(n) / took
}

func median(values []float64) float64 {
	sort.Float64s(values)
	return values[len(values)/2]
}

// keep leaves a row for figures.py in the file that OUT names.
func keep(name, server string, turn int, value float64) {
	file, err := os.OpenFile(os.Getenv("OUT"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	must(err)
	defer file.Close()
	must(json.NewEncoder(file).Encode(map[string]any{"case": name, "server": server, "round": turn, "value": value}))
}

// Runs two measurements in turns.
func inTurns(what string, ours, theirs func() float64) {
	for turn := range *rounds {
		keep(what, "wellspring", turn, ours())
		if theirs != nil {
			keep(what, "beside", turn, theirs())
		}
	}
}

func zipf(n, keys int, s float64) func(int) int {
	random := rand.New(rand.NewSource(7))
	drawn := rand.NewZipf(random, s, 1, uint64(keys-1))
	values := make([]int, n)
	for i := range values {
		values[i] = int(drawn.Uint64())
	}
	return func(i int) int { return values[i] }
}

func isWanted(name string) bool { return *only == "" || *only == name }

func main() {
	flag.Parse()
	var js jetstream.JetStream
	if *nurl != "" {
		connection, err := nats.Connect(*nurl)
		must(err)
		js, err = jetstream.New(connection, jetstream.WithPublishAsyncMaxPending(4096))
		must(err)
	}
	n := *events
	if isWanted("pull") {
		for _, want := range []int{256, 16} {
			ours := func() float64 {
				log := filledLog(n, func(i int) int { return i })
				define(log, "")
				return workOff(log, n, 1, want)
			}
			var theirs func() float64
			if js != nil {
				theirs = func() float64 {
					s := filledStream(js, n, 1, func(i int) int { return i })
					defer s.remove()
					return s.workOff(n, 1, want, 100_000, func(int) string { return ">" })
				}
			}
			inTurns(fmt.Sprintf("one worker, pulls of %d, no order", want), ours, theirs)
		}
	}
	if isWanted("ordered") {
		for _, keys := range []struct {
			name string
			of   func(int) int
		}{{"uniform", func(i int) int { return i * 7919 % 10_000 }}, {"Zipf 1.1", zipf(n, 10_000, 1.1)}} {
			ours := func() float64 {
				log := filledLog(n, keys.of)
				define(log, `,"key":{"tag":"k"}`)
				return workOff(log, n, 16, 16)
			}
			var theirs func() float64
			if js != nil {
				theirs = func() float64 {
					s := filledStream(js, n, 16, keys.of)
					defer s.remove()
					return s.workOff(n, 16, 1, 1, func(i int) string { return fmt.Sprintf("%d.>", i) })
				}
			}
			inTurns("16 workers, 10,000 ordered keys, "+keys.name, ours, theirs)
		}
	}
	if isWanted("latency") {
		ours := func() float64 { return latency(consumerReceiver) }
		inTurns("append to delivery p50, consumer and SSE", ours, func() float64 { return latency(streamReceiver) })
		if js != nil {
			inTurns("append to delivery p50, consumer and JetStream", ours, func() float64 { return natsLatency(js) })
		}
	}
	if isWanted("settle") {
		inTurns("append and settle, and plain appends, 64 clients", settling, func() float64 { return appending(64, filledLog(1, func(int) int { return 0 })) })
	}
	if isWanted("kafka") && *kafka != "" {
		inTurns("append and settle, and Kafka transactions, 64", settling, func() float64 { return kafkaTransactions(*kafka, 64) })
	}
	if isWanted("idle") {
		inTurns("appends beside 64 idle consumers, and alone", besideIdle, func() float64 { return appending(64, filledLog(1, func(int) int { return 0 })) })
	}
}

func appendOne(log string, n int, more string, answer *bytes.Buffer) {
	body := fmt.Sprintf(`{"events":[{"type":"T","tags":["k:%d"],"data":{"n":%d}}]%s}`, n, n, more)
	expect(200, "POST", "/v1/logs/"+log+"/append", body, answer)
}

// Appends of so many clients for two seconds.
func appending(clients int, log string) float64 {
	var count atomic.Int64
	deadline := time.Now().Add(2 * time.Second)
	var all sync.WaitGroup
	for range clients {
		all.Add(1)
		go func() {
			defer all.Done()
			var answer bytes.Buffer
			for time.Now().Before(deadline) {
				appendOne(log, int(count.Add(1)), "", &answer)
			}
		}()
	}
	all.Wait()
	return float64(count.Load()) / 2
}

// 64 workers append one event for each delivery that they hold.
func settling() float64 {
	const clients, each = 64, 1000
	log := filledLog(clients*each, func(i int) int { return i })
	define(log, "")
	workers := make([]*worker, clients)
	for i := range workers {
		workers[i] = &worker{log: log, name: fmt.Sprintf("w%d", i)}
		// An answer has as many deliveries as fit; what a worker has from before it goes on to hold.
		var held []string
		for len(held) < each {
			if workers[i].next(each-len(held), 1000) == 0 {
				must(fmt.Errorf("%d of %d", len(held), each))
			}
			held = append(held, workers[i].held...)
			workers[i].held = nil
		}
		workers[i].held = held
	}
	var count atomic.Int64
	begun := time.Now()
	deadline := begun.Add(2 * time.Second)
	var all sync.WaitGroup
	for _, w := range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			for i, name := range w.held {
				if time.Now().After(deadline) {
					return
				}
				more := fmt.Sprintf(`,"settles":{"consumer":"c","worker":"%s","delivery":"%s"}`, w.name, name)
				appendOne(log, i, more, &w.answer)
				count.Add(1)
			}
		}()
	}
	all.Wait()
	return float64(count.Load()) / time.Since(begun).Seconds()
}

func besideIdle() float64 {
	log := filledLog(1, func(int) int { return 0 })
	var answer bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for i := range 64 {
		path := fmt.Sprintf("/v1/logs/%s/consumers/i%d", log, i)
		expect(201, "PUT", path, `{"query":{"items":[{"types":["Other"]}]}}`, &answer)
		body := `{"worker":"w","turn":1,"wait_ms":60000}`
		request, err := http.NewRequestWithContext(ctx, "POST", *base+path+"/next", strings.NewReader(body))
		must(err)
		request.Header.Set("Content-Type", "application/json")
		go func() {
			if answer, err := client.Do(request); err == nil {
				answer.Body.Close()
			}
		}()
	}
	time.Sleep(300 * time.Millisecond)
	return appending(64, log)
}

const latencyEvents = 1000

// The median time from before an append to when the receiver has the event, in µs.
func latency(receiver func(log string, got chan<- int)) float64 {
	log := filledLog(1, func(int) int { return 0 })
	got := make(chan int, 1)
	go receiver(log, got)
	time.Sleep(300 * time.Millisecond)
	var answer bytes.Buffer
	var times []float64
	for i := range latencyEvents {
		begun := time.Now()
		go appendOne(log, i, "", &bytes.Buffer{})
		<-got
		times = append(times, float64(time.Since(begun).Microseconds()))
		time.Sleep(time.Millisecond)
	}
	_ = answer
	return median(times)
}

func consumerReceiver(log string, got chan<- int) {
	var answer bytes.Buffer
	expect(201, "PUT", "/v1/logs/"+log+"/consumers/c", `{"query":{"items":[{"types":["T"]}]},"from":"now"}`, &answer)
	w := &worker{log: log, name: "w"}
	for i := 0; i < latencyEvents; {
		for range w.next(16, 5000) {
			got <- i
			i++
		}
	}
}

func streamReceiver(log string, got chan<- int) {
	request, err := http.NewRequest("GET", *base+"/v1/logs/"+log+"/events?type=T&after=1", nil)
	must(err)
	request.Header.Set("Accept", "text/event-stream")
	answer, err := client.Do(request)
	must(err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for i := 0; i < latencyEvents && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data: ") {
			got <- i
			i++
		}
	}
}

func natsLatency(js jetstream.JetStream) float64 {
	s := filledStream(js, 0, 1, func(int) int { return 0 })
	defer s.remove()
	name := s.stream.CachedInfo().Config.Name
	consumer := s.consumer(">", 1000)
	got := make(chan int, 1)
	consuming, err := consumer.Consume(func(message jetstream.Msg) {
		message.Ack()
		got <- 1
	})
	must(err)
	defer consuming.Stop()
	time.Sleep(300 * time.Millisecond)
	var times []float64
	for i := range latencyEvents {
		begun := time.Now()
		_, err := js.PublishAsync(name+".0.0", []byte(fmt.Sprintf(`{"n":%d}`, i)))
		must(err)
		<-got
		times = append(times, float64(time.Since(begun).Microseconds()))
		time.Sleep(time.Millisecond)
	}
	return median(times)
}
