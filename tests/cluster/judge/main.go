// Judge reads the history of a run and says whether its registers were linearizable.
//
// It is a foreign judge: porcupine decides, and knows nothing of Wellspring. A history is a file of JSON lines, an
// operation each, as tests/cluster writes them; only those of registers are looked at. Each key is judged by itself.
//
// Exit status: 0 all keys are linearizable, 1 one of them is not, 2 the history cannot be read, 3 no verdict in time.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// A line of a history.
type line struct {
	Kind    string `json:"kind"`
	Client  int    `json:"client"`
	Node    string `json:"node"`
	Key     string `json:"key"`
	Old     uint64 `json:"old"`
	New     uint64 `json:"new"`
	Outcome string `json:"outcome"`
	StartNs int64  `json:"start_ns"`
	EndNs   int64  `json:"end_ns"`
}

func main() {
	timeout := flag.Duration("timeout", time.Minute, "for the verdict on each key")
	out := flag.String("out", "", "folder for a page on each key that is not linearizable")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: judge [-timeout 1m] [-out FOLDER] HISTORY")
		os.Exit(2)
	}
	keys, count, err := read(flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(2)
	}
	if count == 0 {
		fmt.Fprintln(os.Stderr, "judge: the history has no operation of a register")
		os.Exit(2)
	}
	os.Exit(judge(keys, count, *timeout, *out))
}

// judge gives a verdict on every key and the exit status.
func judge(keys map[string][]porcupine.Operation, count int, timeout time.Duration, out string) int {
	names := make([]string, 0, len(keys))
	for key := range keys {
		names = append(names, key)
	}
	sort.Strings(names)
	illegal, unknown, pages := 0, 0, 0
	for _, key := range names {
		result, info := porcupine.CheckOperationsVerbose(register, keys[key], timeout)
		switch result {
		case porcupine.Ok:
			continue
		case porcupine.Unknown:
			unknown++
			fmt.Printf("key %s: no verdict on %d operations within %s\n", key, len(keys[key]), timeout)
			continue
		}
		illegal++
		fmt.Printf("key %s: NOT linearizable, %d operations", key, len(keys[key]))
		if page := filepath.Join(out, "key-"+key+".html"); out != "" && pages < 10 {
			if err := porcupine.VisualizePath(register, info, page); err == nil {
				fmt.Printf(", drawn in %s", page)
				pages++
			}
		}
		fmt.Println()
	}
	fmt.Printf("porcupine: %d keys, %d operations: %d linearizable, %d not, %d without a verdict\n",
		len(keys), count, len(keys)-illegal-unknown, illegal, unknown)
	switch {
	case illegal > 0:
		return 1
	case unknown > 0:
		return 3
	}
	return 0
}

// read gives the operations of each key.
func read(path string) (map[string][]porcupine.Operation, int, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	keys, count := map[string][]porcupine.Operation{}, 0
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	for n := 1; lines.Scan(); n++ {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, 0, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		if operation, ok := l.operation(); ok {
			keys[l.Key] = append(keys[l.Key], operation)
			count++
		}
	}
	return keys, count, lines.Err()
}

// operation gives what the judge has to know of a line, unless it says nothing of a register.
func (l line) operation() (porcupine.Operation, bool) {
	operation := porcupine.Operation{ClientId: l.Client, Call: l.StartNs, Return: l.EndNs}
	switch {
	case l.Kind == "read" && l.Outcome == "done":
		operation.Input, operation.Output = input{read: true}, output{value: l.New}
	case l.Kind == "cas" && l.Outcome == "done":
		operation.Input, operation.Output = input{old: l.Old, new: l.New}, output{done: true}
	case l.Kind == "cas" && l.Outcome == "conflict":
		operation.Input, operation.Output = input{old: l.Old, new: l.New}, output{}
	case l.Kind == "cas" && l.Outcome == "unknown":
		// It may take effect at any time, also after everything else, where nobody sees it.
		operation.Input, operation.Output = input{old: l.Old, new: l.New}, output{unknown: true}
		operation.Return = math.MaxInt64
	default:
		// Reads without an answer, and writes that were refused before they were judged, say nothing.
		return operation, false
	}
	return operation, true
}
