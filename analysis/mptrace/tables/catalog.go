package tables

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Set is a set of tables.
type Set uint16

// The tables.
const (
	TableConnections Set = 1 << iota
	TableSubflows
	TableDirections
	TableRTT
	TableRetransmissions
	TableReinjections
	TableBursts
	TableThroughput
	TableACKSizes
	TableEvents
	TablePoints
	TableObjects

	// All contains every table. Small contains the tables whose size does not
	// depend on the amount of payload.
	All   = 1<<iota - 1
	Small = TableConnections | TableSubflows | TableDirections | TableEvents | TableReinjections | TableRetransmissions | TableObjects
)

// Names returns the names of the tables in the set, in the order of the
// catalog.
func (s Set) Names() []string {
	var names []string
	for i := range catalog {
		if s&catalog[i].set != 0 {
			names = append(names, catalog[i].Name)
		}
	}
	return names
}

// ParseSet is the inverse of Names; "all" selects every table. The error names
// the unknown table and lists the known ones.
func ParseSet(names []string) (Set, error) {
	var s Set
	for _, name := range names {
		at := slices.IndexFunc(catalog, func(t description) bool { return t.Name == name })
		switch {
		case name == "all":
			s = All
		case at < 0:
			return 0, fmt.Errorf("no table is called %q; there are %s", name, strings.Join(Set(All).Names(), ", "))
		default:
			s |= catalog[at].set
		}
	}
	return s, nil
}

// description documents a table.
type description struct {
	Name    string
	Doc     string
	Columns []columnDescription
	set     Set
}

// columnDescription documents a column.
type columnDescription struct {
	Name     string
	Type     string // int64, int32, float64, string, bool or timestamp
	Unit     string // empty for a name, a number without unit, or a boolean
	Nullable bool
	Doc      string
}

// catalog lists the tables in the order in which every output lists them.
var catalog = []description{
	describe[Connection](TableConnections, "connections", "one row per TCP connection, or per Multipath TCP connection with all its subflows"),
	describe[Subflow](TableSubflows, "subflows", "one row per TCP 4-tuple of a connection; a plain TCP connection has one"),
	describe[Direction](TableDirections, "directions",
		"what each side sent, two rows per subflow (level tcp) and two per MPTCP connection by data sequence number (level mptcp)"),
	describe[RTT](TableRTT, "rtt", "samples of round trips from the capture to the receiver of data and back, thinned beyond --samples per direction"),
	describe[Retransmission](TableRetransmissions, "retransmissions", "one row per segment that TCP sent again or that filled a hole"),
	describe[Reinjection](TableReinjections, "reinjections", "one row per range of data that another subflow had carried before"),
	describe[Burst](TableBursts, "bursts", "runs of consecutive new data of an MPTCP connection on one subflow, thinned beyond --samples per direction"),
	describe[Throughput](TableThroughput, "throughput", "what each direction carried in windows of 250 segments with payload"),
	describe[ACKSize](TableACKSizes, "acks", "how many acknowledgements acknowledged how many bytes for the first time"),
	describe[Event](TableEvents, "events", "moments in the life of connections and subflows, in the order of time within a connection"),
	describe[Point](TablePoints, "points", "points of time-sequence diagrams, thinned beyond --samples per direction; "+
		"of connections with less than 100 kB of data each way the first 100,000 rows only, unless --samples is −1"),
	describe[Object](TableObjects, "objects", "one row per HTTP request with its response; only from captures that hold payload"),
}

// slots returns the streams of a sink in the order of the catalog.
func (s *Sink) slots() []slot {
	return []slot{
		of(&s.Connections), of(&s.Subflows), of(&s.Directions), of(&s.RTT), of(&s.Retransmissions), of(&s.Reinjections),
		of(&s.Bursts), of(&s.Throughput), of(&s.ACKSizes), of(&s.Events), of(&s.Points), of(&s.Objects),
	}
}

// describe reads the columns of a row from its struct tags.
func describe[R any](set Set, name, doc string) description {
	t := description{Name: name, Doc: doc, set: set}
	for field := range reflect.TypeFor[R]().Fields() {
		c := columnDescription{Name: field.Tag.Get("json"), Unit: field.Tag.Get("unit"), Doc: field.Tag.Get("doc")}
		kind := field.Type
		if kind.Kind() == reflect.Struct { // Maybe
			c.Nullable, kind = true, kind.Field(0).Type
		}
		c.Type = kind.String()
		if c.Unit == "ns" { // since 1970 UTC; durations have other units
			c.Type = "timestamp"
		}
		t.Columns = append(t.Columns, c)
	}
	return t
}
