package tables

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// update writes the generated files: go test ./tables -update.
var update = flag.Bool("update", false, "write schema.json and arrowschemas.go")

const schemaFile = "../schema.json"

// example has a connection over two paths, a later plain one that ended first,
// and one that fell back.
func example() *Result {
	s := NewMemorySink(All, 0)
	fillExample(s)
	return s.Result(exampleFiles, exampleWarnings)
}

var exampleFiles = []File{
	{Name: "a.pcapng", Packets: 3, TCP: 2, Interfaces: []string{"wlan0", "rmnet0"}, Partial: true, Error: "cut short", Dropped: 4},
	{Name: "b.pcap", Packets: 1, TCP: 1, Interfaces: []string{}},
}

var exampleWarnings = Warnings{OptionsCut: 2}

func fillExample(s *Sink) {
	s.Subflows.Add(Subflow{ConnectionID: 1, Network: "wifi", UniqueDown: 1e6, Established: true, Used: true, RTTHandshakeMS: Just(20.0), RTTServerMS: Just(19.0)})
	s.Directions.Add(Direction{ConnectionID: 1, Level: LevelTCP, Direction: "down", Bytes: 1e6, UniqueBytes: 999_500, RTTP50MS: Just(0.01), RTTMinMS: Just(0.01),
		RTTSamples: 500, MissingBytes: 5000, ThroughputB: Just(9.87e6)})
	s.Directions.Add(Direction{ConnectionID: 1, Level: LevelTCP, Direction: "up", Bytes: 999, UniqueBytes: 999, RTTSamples: 10, RTTMinMS: Just(18.0), RTTP50MS: Just(21.5),
		RTTP95MS: Just(30.0)})
	s.Connections.Add(Connection{ConnectionID: 1, Kind: "tcp", Client: "10.0.0.1", ClientPort: 4000, Server: "2001:db8::1", ServerPort: 443,
		BytesUp: 999, BytesDown: 999_500, StartNS: 2e9, SYNSeen: true, Closed: "rst", Host: "example.org"})
	s.Subflows.Add(Subflow{ConnectionID: 0, Role: "initial", Network: "wifi", UniqueDown: 9e6, Established: true, Used: true, StartNS: 1e9})
	s.Subflows.Add(Subflow{ConnectionID: 0, SubflowID: 1, Role: "additional", Interface: "rmnet0", UniqueDown: 3e6,
		Established: true, Backup: true, OpenedBy: "server", RTTHandshakeMS: Just(50.04), StartNS: 2e9})
	s.Subflows.Add(Subflow{ConnectionID: 0, SubflowID: 2, Role: "additional", Network: "wifi", HMAC: "wrong", StartNS: 2e9})
	s.Directions.Add(Direction{ConnectionID: 0, SubflowID: 0, Level: LevelTCP, Direction: "down", Bytes: 9e6, UniqueBytes: 9e6, RetransmittedBytes: 90_000,
		HoleBytes: 900_000, RTTP50MS: Just(12.34), RTTSamples: 5})
	s.Directions.Add(Direction{ConnectionID: 0, SubflowID: 0, Level: LevelTCP, Direction: "up"})
	s.Connections.Add(Connection{ConnectionID: 0, Kind: "mptcp", MPTCPVersion: 1, Client: "10.0.0.1", ClientPort: 4001, Server: "10.9.0.9", ServerPort: 80,
		BytesDown: 12_345_678, ReinjectedDn: 1000, Handovers: 2, StartNS: 1e9, DurationS: 1.5, SubflowsUsed: 2, Closed: "fin", Networks: "wifi,cellular",
		Destination: "dl.lab", DestPort: 80, Application: "curl"})
	s.Directions.Add(Direction{ConnectionID: 0, SubflowID: NoSubflow, Level: LevelMPTCP, Direction: "down", Bytes: 9e6, UniqueBytes: 9e6,
		RTTP50MS: Just(0.123), RTTSamples: 4, ThroughputB: Just(65.8e6)})
	s.Connections.Add(Connection{ConnectionID: 2, Kind: "mptcp", MPTCPVersion: -1, Fallback: true, FallbackCause: "no-dss", StartNS: 3e9,
		SYNSeen: true, Closed: "open"})
	s.Events.Add(Event{ConnectionID: 0, Event: "syn", TimeNS: 1, AddressID: Just(int32(3))})
	s.Events.Add(Event{ConnectionID: 0, Event: "fin", TimeNS: 2})
}

func TestResultIsSortedByConnection(t *testing.T) {
	r := example()
	for i, c := range r.Connections {
		if int(c.ConnectionID) != i {
			t.Errorf("connection %d is at %d", c.ConnectionID, i)
		}
	}
	if r.Subflows[2].SubflowID != 2 || r.Subflows[3].ConnectionID != 1 || r.Events[0].Event != "syn" {
		t.Errorf("rows of one connection changed their order: %+v", r.Subflows)
	}
}

// TestJSON: the output can be read back, and unwanted tables are missing.
func TestJSON(t *testing.T) {
	r := example()
	var b bytes.Buffer
	if err := r.WriteJSON(&b, All); err != nil {
		t.Fatal(err)
	}
	var back Result
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || !reflect.DeepEqual(&back, r) {
		t.Errorf("%v\n%+v\nwant\n%+v", err, &back, r)
	}
	b.Reset()
	if err := r.WriteJSON(&b, TableConnections|TableEvents); err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b.Bytes(), &members); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"schema": true, "connections": true, "events": true, "files": true, "warnings": true, "subflows": false, "rtt": false,
	} {
		if _, there := members[name]; there != want {
			t.Errorf("%s: %v", name, there)
		}
	}
	if string(members["warnings"]) != `{"options_cut":2}` || !strings.Contains(b.String(), `"address_id":null`) {
		t.Error(b.String())
	}
}

func TestJSONOfNothing(t *testing.T) {
	var b bytes.Buffer
	if err := (&Result{}).WriteJSON(&b, Small); err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(b.Bytes(), &members); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(Small.Names(), "files") {
		if rows, ok := members[name].([]any); !ok || len(rows) != 0 {
			t.Errorf("%s: %v", name, members[name])
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no more paper") }

func TestErrorOfThePrinter(t *testing.T) {
	if err := example().WriteJSON(broken{}, Small); err == nil {
		t.Error("JSON was written to nowhere")
	}
	summary := NewSummary(0)
	var sink Sink
	summary.Watch(&sink)
	fillExample(&sink)
	if err := summary.Write(broken{}, exampleFiles, &exampleWarnings); err == nil {
		t.Error("a summary was written to nowhere")
	}
}

// summaryOf returns the summary of the rows that fill adds.
func summaryOf(t *testing.T, limit int, files []File, w Warnings, fill func(*Sink)) string {
	t.Helper()
	summary := NewSummary(limit)
	var sink Sink
	summary.Watch(&sink)
	fill(&sink)
	var b bytes.Buffer
	if err := summary.Write(&b, files, &w); err != nil {
		t.Fatal(err)
	}
	if rows := cap(sink.Connections.rows) + cap(sink.Subflows.rows) + cap(sink.Directions.rows); rows > 10*watched {
		t.Errorf("%d rows are kept", rows)
	}
	return b.String()
}

// TestSummary compares the whole text.
func TestSummary(t *testing.T) {
	const want = `a.pcapng: 3 packets, 2 of TCP, on wlan0, rmnet0, 4 lost by the capture; not read to its end: cut short
b.pcap: 1 packet, 1 of TCP

WARNING: payload is missing from the numbers below: 5.0 kB were never captured (missing_bytes)

3 connections: 2 of MPTCP (1 used several subflows, 1 fell back), 1 of TCP
999 B up, 13.3 MB down; sent again: 0 B up (0.0 %), 990 kB down (9.9 %); 1.0 kB reinjected (0.0 %); 2 handovers
by network: wifi 10.0 MB (76.9 %), rmnet0 3.0 MB (23.1 %)
captured at the client, by 1 of 1 handshake

3 connections in the order of first packets:
connection  kind        client         server             start s  duration s  up     down     Mbit/s down  sent again down  path RTT ms  RTT ms min/median/p95  data ACK ms  reinjected  closed  network        note
0           mptcp v1    10.0.0.1:4001  10.9.0.9:80        0.000    1.500       0 B    12.3 MB  65.8         990 kB 11.0 %                                        0.123 down   1.0 kB      fin     wifi,cellular  to dl.lab:80, of curl, 2 handovers, began before the capture
  .0        initial     :0             :0                 0.000    0.000       0 B    9.0 MB                990 kB 11.0 %                                                                         wifi
  .1        additional  :0             :0                 1.000    0.000       0 B    3.0 MB                                 50.0                                                                 rmnet0         backup, not used, opened by the server
  .2        additional  :0             :0                 1.000    0.000       0 B    0 B                                                                                                         wifi           not established, wrong HMAC
1           tcp         10.0.0.1:4000  [2001:db8::1]:443  1.000    0.000       999 B  1.0 MB   9.87                          20.0         18.0/21.5/30.0 up                               rst                    example.org
2           mptcp       :0             :0                 2.000    0.000       0 B    0 B                                                                                                 open                   fell back: no-dss
sent again: seen twice, or lost before the capture, with the share of the payload of that direction; path RTT: SYN to third ACK

not used or in doubt: options_cut 2 segments
`
	if got := summaryOf(t, 0, exampleFiles, exampleWarnings, fillExample); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestSummaryTellsWhatIsMissing: missing bytes are reported before all numbers.
func TestSummaryTellsWhatIsMissing(t *testing.T) {
	got := summaryOf(t, 0, nil, Warnings{SegmentsLate: 1624, LateBytes: 812_000, UnmappedBytes: 70}, func(s *Sink) {
		s.Directions.Add(Direction{Level: LevelTCP, Direction: "up", MissingBytes: 9000})
		s.Connections.Add(Connection{Kind: "tcp"})
	})
	for _, want := range []string{
		"\nWARNING: payload is missing from the numbers below: 812 kB came after the end of their connections (late_bytes), " +
			"70 B have no known place in their connections (unmapped_bytes), 9.0 kB were never captured (missing_bytes)\n\n1 connection: ",
		"\nnot used or in doubt: segments_late 1624 packets, late_bytes 812000 bytes, unmapped_bytes 70 bytes\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "handover") || strings.Contains(got, "reinjected") {
		t.Errorf("plain TCP has no handovers:\n%s", got)
	}
}

// TestRoundTripsOfThePath: samples from the receiver's capture are excluded.
func TestRoundTripsOfThePath(t *testing.T) {
	sub := &Subflow{RTTHandshakeMS: Just(20.0)}
	path := Direction{RTTSamples: 10, RTTMinMS: Just(19.0), RTTP50MS: Just(22.0), RTTP95MS: Just(40.0)}
	own := Direction{RTTSamples: 9999, RTTMinMS: Just(0.005), RTTP50MS: Just(0.006), RTTP95MS: Just(0.1)}
	few := path
	few.RTTSamples = 9
	for name, c := range map[string]struct {
		sub  *Subflow
		sent [2]Direction
		want string
	}{
		"a download, captured by its receiver": {sub, [2]Direction{path, own}, "19.0/22.0/40.0 up"},
		"an upload, captured by its sender":    {sub, [2]Direction{path, few}, "19.0/22.0/40.0 up"},
		"too few samples":                      {sub, [2]Direction{few, own}, ""},
		"no handshake":                         {&Subflow{}, [2]Direction{path, own}, ""},
	} {
		if got := pathRTT(c.sub, &c.sent); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestPlaceOfTheCapture: derived from the parts of the handshakes.
func TestPlaceOfTheCapture(t *testing.T) {
	for want, server := range map[string][]float64{
		"captured at the client, by 5 of 5 handshakes":                                                    {19, 19, 20, 18, 16},
		"captured at the server, by 4 of 5 handshakes":                                                    {1, 2, 1, 3, 19},
		"captured on the path or at several places: 1 of 3 handshakes say at the client, 1 at the server": {1, 19, 10},
	} {
		got := summaryOf(t, 0, nil, Warnings{}, func(s *Sink) {
			for _, ms := range server {
				s.Subflows.Add(Subflow{RTTHandshakeMS: Just(20.0), RTTServerMS: Just(ms)})
			}
			s.Connections.Add(Connection{Kind: "tcp"})
		})
		if !strings.Contains(got, "\n"+want+"\n") {
			t.Errorf("want %s:\n%s", want, got)
		}
	}
}

// TestSummaryOfMany: the largest connections are shown, and all are counted,
// independent of the order in which they end.
func TestSummaryOfMany(t *testing.T) {
	fill := func(s *Sink) {
		for i := range 5000 {
			id := int32(i * 3 % 5000)
			s.Subflows.Add(Subflow{ConnectionID: id})
			s.Directions.Add(Direction{ConnectionID: id, Level: LevelTCP, Direction: "up"})
			s.Directions.Add(Direction{ConnectionID: id, Level: LevelTCP, Direction: "down"})
			s.Connections.Add(Connection{ConnectionID: id, Kind: "tcp", BytesUp: int64(id) * 7919 % 5000, SYNSeen: true})
		}
	}
	for limit, lines := range map[int]int{0: 8, 3: 3, -1: 5000, 9999: 5000} {
		text := summaryOf(t, limit, nil, Warnings{}, fill)
		if got := strings.Count(text, "  tcp "); got != lines {
			t.Errorf("limit %d: %d lines", limit, got)
		}
		if more := fmt.Sprintf("\nthe %d of 5000 connections that carried most, in the order of their first packets:\n", lines); strings.Contains(text, more) != (lines < 5000) {
			t.Errorf("limit %d: %s", limit, text)
		}
		if !strings.Contains(text, "5000 connections: 0 of MPTCP") {
			t.Errorf("limit %d: %s", limit, text)
		}
	}
	if text := summaryOf(t, 2, nil, Warnings{}, fill); !strings.Contains(text, "5.0 kB") || strings.Contains(text, "\n0 ") {
		t.Errorf("not the largest:\n%s", text)
	}
}

func TestSummaryOfNothing(t *testing.T) {
	if got := summaryOf(t, 0, nil, Warnings{}, func(*Sink) {}); got != "no TCP connections\n" {
		t.Errorf("%q", got)
	}
}

// TestTooManyConnections: a summary of all connections is bounded.
func TestTooManyConnections(t *testing.T) {
	summary := NewSummary(-1)
	var sink Sink
	summary.Watch(&sink)
	for i := range mostShown + 1 {
		sink.Connections.Add(Connection{ConnectionID: int32(i)})
	}
	if err := summary.Write(io.Discard, nil, &Warnings{}); !errors.Is(err, ErrConnections) || len(summary.largest) > mostShown {
		t.Error(err)
	}
}

// TestTooManyRows: a sink keeps rows up to its limit.
func TestTooManyRows(t *testing.T) {
	s := NewMemorySink(TableConnections|TableSubflows, 10)
	for i := range 100 {
		s.Connections.Add(Connection{ConnectionID: int32(i)})
		s.Subflows.Next().SubflowID = 3
		if (s.Err() != nil) != (i >= 5) || i >= 5 && !errors.Is(s.Err(), ErrRows) {
			t.Fatalf("after %d rows: %v", 2*i+2, s.Err())
		}
	}
	if n := len(s.Connections.Rows()) + len(s.Subflows.Rows()); n != 10 {
		t.Errorf("%d rows", n)
	}
}

// TestEveryColumnIsExplained: names are unique, types are known, units are the
// documented ones, and each column has a meaning.
func TestEveryColumnIsExplained(t *testing.T) {
	for _, table := range catalog {
		names := map[string]bool{}
		for _, c := range table.Columns {
			_, known := parquetTypes[c.Type]
			if names[c.Name] || c.Name == "" || c.Doc == "" || !known {
				t.Errorf("%s: %+v", table.Name, c)
			}
			names[c.Name] = true
			for suffix, unit := range map[string]string{"_ns": "ns", "_ms": "ms", "_bps": "bit/s"} {
				if strings.HasSuffix(c.Name, suffix) && c.Unit != unit {
					t.Errorf("%s.%s is in %q", table.Name, c.Name, c.Unit)
				}
			}
		}
		if !names["connection_id"] || table.Columns[0].Name != "connection_id" {
			t.Errorf("%s does not begin with connection_id", table.Name)
		}
	}
}

// TestSchemaFile: the file for other programs matches the code.
func TestSchemaFile(t *testing.T) {
	var b bytes.Buffer
	if err := WriteSchemaJSON(&b); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(schemaFile, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	had, err := os.ReadFile(schemaFile)
	if err != nil || !bytes.Equal(had, b.Bytes()) {
		t.Errorf("%s is not that of the rows (%v); go test ./tables -update writes it", schemaFile, err)
	}
	var schema struct {
		Schema int
		Tables map[string]struct {
			Doc     string
			Columns []columnDescription
		}
	}
	if err := json.Unmarshal(b.Bytes(), &schema); err != nil {
		t.Fatal(err)
	}
	for _, table := range catalog {
		got := schema.Tables[table.Name]
		if schema.Schema != Schema || got.Doc != table.Doc || !slices.Equal(got.Columns, table.Columns) {
			t.Errorf("%s: %+v", table.Name, got)
		}
	}
}

func TestSchemaMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := WriteSchemaMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	columns := 0
	for _, table := range catalog {
		columns += len(table.Columns)
	}
	if got := strings.Count(b.String(), "\n| `"); got != columns {
		t.Errorf("%d columns of %d", got, columns)
	}
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "|") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 5 {
			t.Errorf("%q", line)
		}
	}
}

func TestSet(t *testing.T) {
	all, err := ParseSet([]string{"all"})
	if err != nil || all != All || len(all.Names()) != len(catalog) {
		t.Errorf("%v, %v", all.Names(), err)
	}
	some, err := ParseSet([]string{"rtt", "connections"})
	if err != nil || some != TableRTT|TableConnections || !slices.Equal(some.Names(), []string{"connections", "rtt"}) {
		t.Errorf("%v, %v", some.Names(), err)
	}
	_, err = ParseSet([]string{"rtts"})
	if err == nil || !strings.Contains(err.Error(), `"rtts"`) || !strings.Contains(err.Error(), "subflows, directions, rtt,") {
		t.Errorf("%v", err)
	}
}

// TestStreamsThatNobodyWants: unwanted streams accept rows anyway.
func TestStreamsThatNobodyWants(t *testing.T) {
	s := NewMemorySink(TableConnections, 0)
	fillAll(s, 3)
	if len(s.Connections.Rows()) != 3 || s.Points != nil || s.Points.Rows() != nil || s.Result(nil, Warnings{}).Points != nil {
		t.Errorf("%+v", s)
	}
}
