package mptrace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"mplab/analysis/mptrace/internal/filter"
	"mplab/analysis/mptrace/internal/join/loopback"
	"mplab/analysis/mptrace/tables"
)

// only analyses files with a filter.
func only(t *testing.T, o Options, expression string, files ...string) *tables.Result {
	t.Helper()
	f, err := filter.Parse(expression)
	if err != nil {
		t.Fatal(err)
	}
	o.Filter, o.Keep = f, tables.All
	r, err := Analyse(files, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Filter != expression {
		t.Errorf("the result names the filter %q", r.Filter)
	}
	return r
}

// rowsOf returns the rows of a connection as JSON.
func rowsOf(t *testing.T, r *tables.Result, id int32) string {
	t.Helper()
	var b bytes.Buffer
	value := reflect.ValueOf(r).Elem()
	for i := range value.NumField() {
		rows := value.Field(i)
		if rows.Kind() != reflect.Slice || value.Type().Field(i).Name == "Files" {
			continue
		}
		for j := range rows.Len() {
			if rows.Index(j).Field(0).Int() != int64(id) {
				continue
			}
			line, err := json.Marshal(rows.Index(j).Interface())
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s %s\n", value.Type().Field(i).Name, line)
		}
	}
	return b.String()
}

// TestFilterKeepsConnectionsWhole: with the number or the token of a
// connection, all its rows are those of the analysis without a filter.
func TestFilterKeepsConnectionsWhole(t *testing.T) {
	for _, files := range [][]string{
		{"testdata/two-paths-wlan0.pcapng", "testdata/two-paths-rmnet0.pcapng"},
		{"testdata/phone-v1.pcapng.gz"},
		{"testdata/handmade/portreuse_noclose.pcap.gz"},
		{"testdata/handmade/subflows14.pcap.gz"},
	} {
		all := keep(t, tables.All, files...)
		step := max(1, len(all.Connections)/7)
		for i := 0; i < len(all.Connections); i += step {
			c := all.Connections[i]
			want := rowsOf(t, all, c.ConnectionID)
			expressions := []string{fmt.Sprint("connection ", c.ConnectionID), fmt.Sprintf("port %d and connection %d", c.ServerPort, c.ConnectionID)}
			if c.Token != "" {
				expressions = append(expressions, "token "+c.Token)
			}
			for _, expression := range expressions {
				r := only(t, Options{Threads: 2}, expression, files...)
				if got := rowsOf(t, r, c.ConnectionID); len(r.Connections) != 1 || got != want {
					t.Errorf("%s, %s: %d connections\n got %s\nwant %s", files[0], expression, len(r.Connections), got, want)
				}
			}
		}
	}
}

// TestFilterOfPackets: addresses and ports select the packets that have them.
func TestFilterOfPackets(t *testing.T) {
	const file = "testdata/phone-v1.pcapng.gz"
	all := keep(t, tables.All, file)
	six := 0
	for _, s := range all.Subflows {
		if s.IPVersion == 6 {
			six++
		}
	}
	r := only(t, Options{}, "address ::/0", file)
	if len(r.Subflows) != six || six == 0 || six == len(all.Subflows) {
		t.Errorf("%d of %d subflows, want %d", len(r.Subflows), len(all.Subflows), six)
	}
	port := all.Subflows[5].ClientPort
	for _, s := range only(t, Options{}, fmt.Sprint("port ", port), file).Subflows {
		if s.ClientPort != port && s.ServerPort != port {
			t.Errorf("%+v", s)
		}
	}
	if r := only(t, Options{}, "port 1", file); len(r.Connections) != 0 || r.Files[0].Packets != all.Files[0].Packets {
		t.Errorf("%+v", r)
	}
}

// TestFilterByTime: a range that has all packets changes nothing; a shorter one
// cuts connections.
func TestFilterByTime(t *testing.T) {
	const file = "testdata/two-paths-wlan0.pcapng"
	all := keep(t, tables.All, file)
	if r := only(t, Options{}, "time 0..", file); rowsOf(t, r, 0) != rowsOf(t, all, 0) {
		t.Error("a range with all packets changes the rows")
	}
	half := all.Subflows[0].DurationS / 2
	first := only(t, Options{}, fmt.Sprintf("time ..%.3f", half), file)
	second := only(t, Options{}, fmt.Sprintf("time %.3f..", half+0.000000001), file)
	if n := first.Directions[0].Segments + second.Directions[0].Segments; n != all.Directions[0].Segments || first.Directions[0].Segments == n {
		t.Errorf("%d and %d segments of %d", first.Directions[0].Segments, second.Directions[0].Segments, all.Directions[0].Segments)
	}
}

// TestFilterAfterJoin: the filter uses the addresses of the tables, not those
// of a redirect.
func TestFilterAfterJoin(t *testing.T) {
	file := raw(t, "lo.pcap", hello(0, "10.0.0.1:40000", "192.0.2.1:443")...)
	if r := only(t, Options{Loopback: &loopback.Options{}}, "connection 0", file); len(r.Connections) != 1 {
		t.Errorf("%+v", r.Connections)
	}
}

// TestFilterInFiles: sources.json and the JSON name the filter.
func TestFilterInFiles(t *testing.T) {
	dir := t.TempDir()
	r := only(t, Options{Directory: dir}, "port 4000", "testdata/two-paths-wlan0.pcapng")
	b, err := os.ReadFile(filepath.Join(dir, tables.SourcesFile))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := r.WriteJSON(&text, tables.TableConnections); err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{b, text.Bytes()} {
		var about struct{ Filter string }
		if err := json.Unmarshal(b, &about); err != nil || about.Filter != "port 4000" {
			t.Errorf("%v: %s", err, b)
		}
	}
}
