package mptcptrace

import (
	"fmt"
	"io"
	"strings"

	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/observe/spool"
	"mplab/analysis/mptrace/tables"
)

// statistics writes rows of stats_N.csv.
type statistics struct {
	w       io.Writer
	capture string
	number  int
}

func (s statistics) row(name string, c2s, s2c any) {
	fmt.Fprintf(s.w, "%s;%d;%s;%v;%v\n", s.capture, s.number, name, c2s, s2c)
}

func (s statistics) fractions(name string, c2s, s2c float64) {
	s.row(name, fmt.Sprintf("%f", c2s), fmt.Sprintf("%f", s2c))
}

func (c *connection) stats(s statistics) {
	up, down := c.ways[mptcp.Up], c.ways[mptcp.Down]
	s.row("sfCount", len(c.subs), len(c.subs))
	s.row("firstSeq", up.first, down.first)
	s.row("lastAck", down.number(down.acked), up.number(up.acked)) // by the sender of the acknowledgement
	duration := 0.0
	if up.acks > 0 {
		duration = float64(max(up.ackNS-c.beginNS, 0)) / 1e9
	}
	s.fractions("conTime", duration, duration)
	begin := string(appendTime(nil, c.beginNS))
	s.row("beginTime", begin, begin)
	s.row("seqAcked", up.payloadAcked(), down.payloadAcked())
	var filter []string
	for i, sub := range c.subs {
		client, server := sub.ends[mptcp.Up], sub.ends[mptcp.Down]
		s.row(fmt.Sprintf("sf_%d_ipVersion", i), sub.version(), sub.version())
		s.row(fmt.Sprintf("sf_%d_ip", i), client.Addr, server.Addr)
		s.row(fmt.Sprintf("sf_%d_port", i), client.Port, server.Port)
		filter = append(filter, fmt.Sprintf("(host %s and host %s and port %d and port %d)", client.Addr, server.Addr, client.Port, server.Port))
	}
	s.row("tcpDumpFilter", strings.Join(filter, " or "), strings.Join(filter, " or "))
	c.reinjections(s)
}

// payloadAcked returns the acknowledged payload, without the number that
// DATA_FIN occupies.
func (w *way) payloadAcked() uint64 { return min(w.acked, w.highest) }

func (c *connection) reinjections(s statistics) {
	up, down := c.ways[mptcp.Up], c.ways[mptcp.Down]
	s.row("bytesReinjected", up.copies.bytes, down.copies.bytes)
	s.fractions("precentReinjected", share(up.copies.bytes, up.payloadAcked()), share(down.copies.bytes, down.payloadAcked()))
	upN, downN := up.copies.bySubflows(), down.copies.bySubflows()
	for n := range max(len(upN), len(downN)) {
		s.row(fmt.Sprintf("reinject%d", n), at(upN, n), at(downN, n))
	}
	for n := range max(len(upN), len(downN)) {
		s.fractions(fmt.Sprintf("reinject_pc_%d", n), share(at(upN, n), up.copies.rows), share(at(downN, n), down.copies.rows))
	}
	for i, sub := range c.subs {
		port := sub.ends[mptcp.Up].Port
		s.row(fmt.Sprintf("reinjectCausedBy_%d_%d", i, port), sub.caused[mptcp.Up], sub.caused[mptcp.Down])
		s.fractions(fmt.Sprintf("reinjectCausedByPc_%d_%d", i, port),
			share(sub.caused[mptcp.Up], up.copies.count), share(sub.caused[mptcp.Down], down.copies.count))
	}
}

func at(n []int64, i int) int64 {
	if i < len(n) {
		return n[i]
	}
	return 0
}

func share[T int64 | uint64](part, whole T) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// totals are the counters of file_stats.csv.
type totals struct {
	connections, joins, failed, finished int64
	fastclose                            [2]int64 // by direction
}

func (t *totals) add(c *connection, row *tables.Connection) {
	t.connections++
	for _, s := range c.subs {
		if s.joined {
			t.joins++
		}
	}
	t.failed += int64(row.SubflowsAsked - row.Subflows)
	if row.Closed == "fin" {
		t.finished++
	}
}

func (t *totals) write(f *spool.File, w *tables.Warnings) {
	for _, row := range []struct {
		name     string
		c2s, s2c int64
	}{
		{"nbConnections", t.connections, 0},
		{"sfConnections", t.joins, 0},
		{"nbFastClose", t.fastclose[mptcp.Up], t.fastclose[mptcp.Down]},
		{"finishedConnections", t.finished, 0},
		{"joinFailed", t.failed, 0},
		{"nbFastCloseSeen", t.fastclose[mptcp.Up], t.fastclose[mptcp.Down]},
		{"JoinWrongHMAC", w.HMACMismatch, 0},
		{"DiffKeyInSynack", 0, 0},
		{"connTimeOut", 0, 0},
		{"capaToJoinReuse", 0, 0},
		{"suspectJoinRejected", w.JoinUnknownToken, 0},
		{"thirdAckKeyDiff", w.KeyChanged, 0},
	} {
		fmt.Fprintf(f, "%s,%d,%d\n", row.name, row.c2s, row.s2c)
	}
	f.Close()
}
