package main

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// What is asked of a register: its value, or to become new if it is old. 0 is the value before the first write.
type input struct {
	read     bool
	old, new uint64
}

// What was answered: the value; or whether it was written, which may be unknown.
type output struct {
	value         uint64
	done, unknown bool
}

// A register under compare-and-swap. Its state is its value.
var register = porcupine.Model{
	Init: func() interface{} { return uint64(0) },
	Step: func(state, in, out interface{}) (bool, interface{}) {
		value, asked, answer := state.(uint64), in.(input), out.(output)
		switch {
		case asked.read:
			return answer.value == value, value
		case answer.unknown:
			if value == asked.old {
				return true, asked.new
			}
			return true, value
		case answer.done:
			return value == asked.old, asked.new
		default:
			return value != asked.old, value
		}
	},
	DescribeOperation: func(in, out interface{}) string {
		asked, answer := in.(input), out.(output)
		switch {
		case asked.read:
			return fmt.Sprintf("read: %d", answer.value)
		case answer.unknown:
			return fmt.Sprintf("%d → %d: no answer", asked.old, asked.new)
		case answer.done:
			return fmt.Sprintf("%d → %d: done", asked.old, asked.new)
		default:
			return fmt.Sprintf("%d → %d: refused", asked.old, asked.new)
		}
	},
	DescribeState: func(state interface{}) string { return fmt.Sprint(state) },
}
