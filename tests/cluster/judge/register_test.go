package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// verdict writes a history and gives the exit status of the judge.
func verdict(t *testing.T, lines ...string) int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "history.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, count, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	return judge(keys, count, time.Minute, "")
}

const (
	first   = `{"kind":"cas","client":1,"key":"a","old":0,"new":1,"outcome":"done","start_ns":0,"end_ns":10}`
	unknown = `{"kind":"cas","client":2,"key":"a","old":1,"new":2,"outcome":"unknown","start_ns":20,"end_ns":30}`
)

func TestAHistoryInOrderIsLinearizable(t *testing.T) {
	read := `{"kind":"read","client":1,"key":"a","new":1,"outcome":"done","start_ns":11,"end_ns":12}`
	other := `{"kind":"read","client":1,"key":"b","new":0,"outcome":"done","start_ns":11,"end_ns":12}`
	lost := `{"kind":"cas","client":3,"key":"a","old":0,"new":3,"outcome":"conflict","start_ns":11,"end_ns":12}`
	if status := verdict(t, first, read, other, lost); status != 0 {
		t.Fatal(status)
	}
}

func TestAStaleReadIsNot(t *testing.T) {
	stale := `{"kind":"read","client":2,"key":"a","new":0,"outcome":"done","start_ns":11,"end_ns":12}`
	if status := verdict(t, first, stale); status != 1 {
		t.Fatal(status)
	}
}

func TestTwoWinnersAreNot(t *testing.T) {
	second := `{"kind":"cas","client":2,"key":"a","old":0,"new":2,"outcome":"done","start_ns":0,"end_ns":10}`
	if status := verdict(t, first, second); status != 1 {
		t.Fatal(status)
	}
}

func TestARefusalWithoutAReasonIsNot(t *testing.T) {
	refused := `{"kind":"cas","client":2,"key":"a","old":1,"new":2,"outcome":"conflict","start_ns":20,"end_ns":30}`
	if status := verdict(t, first, refused); status != 1 {
		t.Fatal(status)
	}
}

func TestWhatIsUnknownMayTakeEffectLateOrNever(t *testing.T) {
	before := `{"kind":"read","client":1,"key":"a","new":1,"outcome":"done","start_ns":40,"end_ns":50}`
	after := `{"kind":"read","client":1,"key":"a","new":2,"outcome":"done","start_ns":60,"end_ns":70}`
	back := `{"kind":"read","client":1,"key":"a","new":1,"outcome":"done","start_ns":80,"end_ns":90}`
	if status := verdict(t, first, unknown, before); status != 0 {
		t.Fatal(status)
	}
	if status := verdict(t, first, unknown, before, after); status != 0 {
		t.Fatal(status)
	}
	if status := verdict(t, first, unknown, before, after, back); status != 1 {
		t.Fatal(status)
	}
}
