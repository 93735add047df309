package labtest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mplab/analysis/mptrace/labtest"
)

// truth holds what is known about captures independently of them: the
// applications' counts, and the actions on the network.
type truth struct {
	Name        string              `json:"name"`
	What        string              `json:"what"`
	Kernel      string              `json:"kernel"`
	Views       map[string][]string `json:"views"` // client, server: the captures of one end
	Connections []connectionTruth   `json:"connections"`
	Rows        []rowTruth          `json:"rows"`
}

// connectionTruth holds the applications' counts of one connection. Its row is
// found by the client's port, and by Nth if the port was used several times.
type connectionTruth struct {
	ClientPort int              `json:"client_port"`
	Nth        int              `json:"nth"`
	Bytes      [2]labtest.Count `json:"bytes"` // up, down
	Expect     columns          `json:"expect"`
}

// rowTruth is an expectation about the rows of a table that match all columns
// of Where.
type rowTruth struct {
	Table  string  `json:"table"`
	View   string  `json:"view,omitempty"` // client or server; "": both
	Where  columns `json:"where"`
	Count  any     `json:"count,omitempty"` // number of rows; same notation as values of columns
	Calm   bool    `json:"calm,omitempty"`  // applies only if the machine did not stall, so not to every live run
	Expect columns `json:"expect,omitempty"`
}

// columns are values by column. A text such as ">0", "<9" or "!fin" means all
// values that are greater, less or different.
type columns map[string]any

// rows are the tables of an analysis, by name.
type rows map[string][]columns

func (t *truth) read(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, t)
}

// check compares the analysis of one view with the true values, for a live run
// or stored captures.
func (t *truth) check(test *testing.T, view string, live bool, got rows) {
	test.Helper()
	for i := range t.Connections {
		t.Connections[i].check(test, got)
	}
	if extra := len(got["connections"]) - len(t.Connections); extra != 0 {
		test.Errorf("%d connections more than there were", extra)
	}
	for _, row := range t.Rows {
		if (row.View == "" || row.View == view) && !(row.Calm && live) {
			row.check(test, got)
		}
	}
}

func (c *connectionTruth) check(test *testing.T, got rows) {
	test.Helper()
	found := selected(got["connections"], columns{"client_port": c.ClientPort})
	if len(found) <= c.Nth {
		test.Errorf("no connection %d from port %d", c.Nth, c.ClientPort)
		return
	}
	row := found[c.Nth]
	for direction, name := range []string{"bytes_up", "bytes_down"} {
		count := c.Bytes[direction]
		if got, _ := number(row[name]); got < float64(count.Received) || got > float64(count.Written) {
			test.Errorf("port %d: %s is %v; written were %d and received %d", c.ClientPort, name, row[name], count.Written, count.Received)
		}
	}
	compare(test, fmt.Sprintf("connection from port %d", c.ClientPort), row, c.Expect)
}

func (r *rowTruth) check(test *testing.T, got rows) {
	test.Helper()
	found := selected(got[r.Table], r.Where)
	if r.Count != nil && !fits(len(found), r.Count) {
		test.Errorf("%s with %v: %d rows, want %v", r.Table, r.Where, len(found), r.Count)
	}
	if r.Count == nil && len(found) == 0 {
		test.Errorf("%s has no row with %v", r.Table, r.Where)
	}
	for _, row := range found {
		compare(test, fmt.Sprintf("%s with %v", r.Table, r.Where), row, r.Expect)
	}
}

func selected(table []columns, where columns) []columns {
	return slices.DeleteFunc(slices.Clone(table), func(row columns) bool {
		for name, want := range where {
			if !fits(row[name], want) {
				return true
			}
		}
		return false
	})
}

func compare(test *testing.T, what string, row, expect columns) {
	test.Helper()
	for name, want := range expect {
		if got, known := row[name]; !known {
			test.Errorf("%s: no column %s", what, name)
		} else if !fits(got, want) {
			test.Errorf("%s: %s is %v, want %v", what, name, got, want)
		}
	}
}

// fits reports whether a value matches the expected one.
func fits(got, want any) bool {
	if text, ok := want.(string); ok && len(text) > 1 && strings.Contains("<>!", text[:1]) {
		bound, err := strconv.ParseFloat(text[1:], 64)
		value, isNumber := number(got)
		switch text[0] {
		case '<':
			return err == nil && isNumber && value < bound
		case '>':
			return err == nil && isNumber && value > bound
		}
		return fmt.Sprint(got) != text[1:]
	}
	if a, ok := number(got); ok {
		b, ok := number(want)
		return ok && a == b
	}
	return got == want
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
