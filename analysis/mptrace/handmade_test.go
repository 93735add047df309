package mptrace

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mplab/analysis/mptrace/tables"
)

// figures are the true values of a capture: sums over all its connections.
type figures struct {
	connections, subflows int
	kind                  string
	up, down              int64
	again                 int64 // retransmitted
	reinjected            int64
	closed, fallback      string
	warnings              string
}

// TestHandmadeCaptures compares with the script of the captures, byte by byte:
// see testdata/README.md.
func TestHandmadeCaptures(t *testing.T) {
	for name, want := range map[string]figures{
		"clock_back1h":          {connections: 1, kind: "mptcp", subflows: 1, up: 100000, down: 0, closed: "fin 1"},
		"clock_dip10y":          {connections: 1, kind: "mptcp", subflows: 1, up: 100000, down: 0, closed: "fin 1", warnings: `{"timestamps_repaired":2}`},
		"clock_fwd10y":          {connections: 1, kind: "mptcp", subflows: 1, up: 100000, down: 0, closed: "fin 1"},
		"clock_fwd30min":        {connections: 1, kind: "mptcp", subflows: 1, up: 100000, down: 0, closed: "fin 1"},
		"clock_spike10y":        {connections: 1, kind: "mptcp", subflows: 1, up: 100000, down: 0, closed: "fin 1", warnings: `{"timestamps_repaired":2}`},
		"csum":                  {connections: 1, kind: "mptcp", subflows: 1, up: 1000, down: 0, closed: "fin 1"},
		"dsnwrap32_32":          {connections: 1, kind: "mptcp", subflows: 1, up: 100000, down: 0, closed: "fin 1"},
		"dsnwrap32_64":          {connections: 1, kind: "mptcp", subflows: 1, up: 100000, down: 0, closed: "fin 1"},
		"dsnwrap64_mid":         {connections: 1, kind: "mptcp", subflows: 1, up: 100000, down: 0, closed: "open 1"},
		"dss_late":              {connections: 1, kind: "mptcp", subflows: 1, up: 3000, down: 0, closed: "fin 1"},
		"fastclose_ack":         {connections: 1, kind: "mptcp", subflows: 1, up: 1000, down: 0, closed: "fastclose 1"},
		"fastclose_rst":         {connections: 1, kind: "mptcp", subflows: 1, up: 1000, down: 0, closed: "fastclose 1"},
		"fin_then_resume":       {connections: 1, kind: "tcp", subflows: 1, up: 100, down: 5000, closed: "fin 1"},
		"frag":                  {connections: 1, kind: "tcp", subflows: 1, up: 780, down: 0, closed: "fin 1", warnings: `{"frames_fragment":1,"segments_fragmented":1}`},
		"gre":                   {connections: 0, kind: "", subflows: 0, up: 0, down: 0, warnings: `{"frames_tunnelled":6}`},
		"halfopen":              {connections: 5, kind: "tcp", subflows: 5, up: 0, down: 0, closed: "open 4, rst 1"},
		"hdr_be_ns":             {connections: 1, kind: "tcp", subflows: 1, up: 100, down: 0, closed: "fin 1"},
		"hdr_be_us":             {connections: 1, kind: "tcp", subflows: 1, up: 100, down: 0, closed: "fin 1"},
		"hdr_le_ns":             {connections: 1, kind: "tcp", subflows: 1, up: 100, down: 0, closed: "fin 1"},
		"hdr_le_us":             {connections: 1, kind: "tcp", subflows: 1, up: 100, down: 0, closed: "fin 1"},
		"infmap_only":           {connections: 1, kind: "mptcp", subflows: 1, up: 12000, down: 1000, closed: "fin 1", fallback: "infinite-mapping"},
		"ip6_retx_05":           {connections: 1, kind: "tcp", subflows: 1, up: 1000, down: 0, again: 1000, closed: "open 1"},
		"join_after_all_closed": {connections: 1, kind: "mptcp", subflows: 2, up: 1700, down: 0, closed: "open 1"},
		"keepalive":             {connections: 1, kind: "tcp", subflows: 1, up: 100, down: 0, again: 5, closed: "open 1"},
		"link_ipv4_228":         {connections: 1, kind: "tcp", subflows: 1, up: 100, down: 0, closed: "fin 1"},
		"link_loop108":          {connections: 1, kind: "tcp", subflows: 1, up: 100, down: 0, closed: "fin 1"},
		"link_null0be":          {connections: 1, kind: "tcp", subflows: 1, up: 100, down: 0, closed: "fin 1"},
		"link_null0le":          {connections: 1, kind: "tcp", subflows: 1, up: 100, down: 0, closed: "fin 1"},
		"link_ppp9":             {connections: 1, kind: "tcp", subflows: 1, up: 100, down: 0, closed: "fin 1"},
		"link_ppp9_ff03":        {connections: 1, kind: "tcp", subflows: 1, up: 100, down: 0, closed: "fin 1"},
		"link_radiotap127":      {connections: 0, kind: "", subflows: 0, up: 0, down: 0, warnings: `{"frames_unknown_link":8}`},
		"link_raw101":           {connections: 1, kind: "tcp", subflows: 1, up: 100, down: 0, closed: "fin 1"},
		"link_raw12":            {connections: 1, kind: "tcp", subflows: 1, up: 100, down: 0, closed: "fin 1"},
		"link_sll":              {connections: 1, kind: "tcp", subflows: 1, up: 100, down: 0, closed: "fin 1"},
		"link_sll2":             {connections: 1, kind: "tcp", subflows: 1, up: 100, down: 0, closed: "fin 1"},
		"mpc_retx":              {connections: 1, kind: "mptcp", subflows: 1, up: 1000, down: 0, again: 500, closed: "fin 1"},
		"mpfail":                {connections: 1, kind: "mptcp", subflows: 1, up: 13000, down: 1000, closed: "fin 1", fallback: "mp-fail"},
		"no_third_ack":          {connections: 1, kind: "mptcp", subflows: 1, up: 500, down: 0, closed: "fin 1"},
		"portreuse_noclose":     {connections: 5, kind: "tcp", subflows: 5, up: 500, down: 1000, closed: "open 5"},
		"portreuse_sameisn":     {connections: 3, kind: "tcp", subflows: 3, up: 300, down: 600, closed: "fin 3"},
		"reinject":              {connections: 1, kind: "mptcp", subflows: 2, up: 5000, down: 0, again: 1300, reinjected: 1300, closed: "open 1"},
		"rst_blind":             {connections: 1, kind: "tcp", subflows: 1, up: 200000, down: 0, closed: "fin 1"},
		"seqwrap":               {connections: 1, kind: "tcp", subflows: 1, up: 100000, down: 1000, closed: "fin 1"},
		"signals":               {connections: 1, kind: "mptcp", subflows: 1, up: 1000, down: 0, closed: "rst 1"},
		"simopen":               {connections: 1, kind: "tcp", subflows: 1, up: 100, down: 200, closed: "fin 1"},
		"subflows14":            {connections: 1, kind: "mptcp", subflows: 15, up: 36700, down: 0, closed: "open 1"},
		"tfo":                   {connections: 1, kind: "tcp", subflows: 1, up: 500, down: 300, closed: "fin 1"},
		"tfo_rejected":          {connections: 1, kind: "tcp", subflows: 1, up: 500, down: 300, again: 500, closed: "fin 1"},
		"urgent":                {connections: 1, kind: "tcp", subflows: 1, up: 10, down: 0, closed: "fin 1"},
		"v6_ext":                {connections: 1, kind: "tcp", subflows: 1, up: 400, down: 0, closed: "fin 1"},
		"vlan":                  {connections: 1, kind: "tcp", subflows: 1, up: 200, down: 0, closed: "fin 1"},
		"ws_one":                {connections: 1, kind: "tcp", subflows: 1, up: 100, down: 0, closed: "fin 1"},
		"zwp":                   {connections: 1, kind: "tcp", subflows: 1, up: 2000, down: 0, again: 4, closed: "fin 1"},
	} {
		if got := figuresOf(t, filepath.Join("testdata", "handmade", name+".pcap.gz")); got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
}

func figuresOf(t *testing.T, file string) (f figures) {
	t.Helper()
	r := keep(t, tables.TableConnections|tables.TableSubflows|tables.TableDirections, file)
	f.connections, f.subflows = len(r.Connections), len(r.Subflows)
	kinds, fallbacks, closed := map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, c := range r.Connections {
		f.up, f.down, f.reinjected = f.up+c.BytesUp, f.down+c.BytesDown, f.reinjected+c.ReinjectedUp+c.ReinjectedDn
		kinds[c.Kind] = true
		closed[c.Closed]++
		if c.Fallback {
			fallbacks[c.FallbackCause] = true
		}
	}
	for _, d := range r.Directions {
		if d.Level == tables.LevelTCP {
			f.again += d.RetransmittedBytes
		}
	}
	f.kind = strings.Join(slices.Sorted(maps.Keys(kinds)), ",")
	f.fallback = strings.Join(slices.Sorted(maps.Keys(fallbacks)), ",")
	for i, how := range slices.Sorted(maps.Keys(closed)) {
		if i > 0 {
			f.closed += ", "
		}
		f.closed += fmt.Sprint(how, " ", closed[how])
	}
	if b, err := json.Marshal(r.Warnings); err != nil {
		t.Fatal(err)
	} else if string(b) != "{}" {
		f.warnings = string(b)
	}
	return f
}
