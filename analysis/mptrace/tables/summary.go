package tables

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// shown is how many connections a summary shows when nobody says.
const shown = 20

// WriteSummary writes the result for people: the largest connections (limit of
// them; 0: 20, negative: all) in the order of their begin, and totals of all.
// It needs connections, subflows and directions.
func (r *Result) WriteSummary(w io.Writer, limit int) error {
	out := bufio.NewWriter(w)
	for i := range r.Files {
		r.Files[i].summary(out)
	}
	if len(r.Connections) == 0 {
		fmt.Fprintln(out, "no TCP connections")
	} else {
		s := newSummary(r)
		s.connections(out, limit)
		s.totals(out)
	}
	if err := r.Warnings.summary(out); err != nil {
		return err
	}
	return out.Flush()
}

func (f *File) summary(w io.Writer) {
	fmt.Fprintf(w, "%s: %s, %d of TCP", f.Name, count(f.Packets, "packet"), f.TCP)
	if names := strings.Join(f.Interfaces, ", "); names != "" {
		fmt.Fprintf(w, ", on %s", names)
	}
	if f.Dropped > 0 {
		fmt.Fprintf(w, ", %d lost by the capture", f.Dropped)
	}
	if f.Partial {
		fmt.Fprintf(w, "; not read to its end: %s", f.Error)
	}
	fmt.Fprintln(w)
}

func (w *Warnings) summary(out io.Writer) error {
	b, err := json.Marshal(w)
	if err != nil || string(b) == "{}" {
		return err
	}
	text := strings.NewReplacer("{", "", "}", "", `"`, "", ",", ", ", ":", " ", "_", " ").Replace(string(b))
	fmt.Fprintf(out, "\nnot used or in doubt: %s\n", text)
	return nil
}

// summary brings the rows of a connection together.
type summary struct {
	*Result
	subflows  map[int32][]*Subflow
	transport map[[2]int32]sent // by connection and subflow; NoSubflow: level mptcp
}

// sent is what both directions did.
type sent struct {
	bytes, retransmitted, reinjected int64

	rtt     Maybe[float64] // median of the direction with more samples
	samples int64
}

func newSummary(r *Result) *summary {
	s := &summary{r, make(map[int32][]*Subflow), make(map[[2]int32]sent)}
	for i := range r.Subflows {
		row := &r.Subflows[i]
		s.subflows[row.ConnectionID] = append(s.subflows[row.ConnectionID], row)
	}
	for i := range r.Directions {
		row := &r.Directions[i]
		key := [2]int32{row.ConnectionID, row.SubflowID}
		t := s.transport[key]
		t.bytes += row.Bytes
		t.retransmitted += row.RetransmittedBytes
		t.reinjected += row.ReinjectedBytes
		if row.RTTP50MS.Known && row.RTTSamples > t.samples {
			t.rtt, t.samples = row.RTTP50MS, row.RTTSamples
		}
		s.transport[key] = t
	}
	return s
}

func (s *summary) connections(w io.Writer, limit int) {
	rows := s.largest(limit)
	var text bytes.Buffer
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nconnection\tkind\tclient\tserver\tstart s\tduration s\tup\tdown\tRTT ms\tretransmitted\treinjected\tclosed\tnetwork\tnote")
	for _, c := range rows {
		s.connection(t, c)
	}
	t.Flush()
	for row := range strings.Lines(text.String()) {
		fmt.Fprintln(w, strings.TrimRight(row, " \n"))
	}
	if more := len(s.Connections) - len(rows); more > 0 {
		fmt.Fprintf(w, "… and %d more, which carried less\n", more)
	}
}

// largest are the connections that carried most, in the order of their begin.
func (s *summary) largest(limit int) []*Connection {
	rows := make([]*Connection, len(s.Connections))
	for i := range rows {
		rows[i] = &s.Connections[i]
	}
	if limit == 0 {
		limit = shown
	}
	if limit < 0 || limit >= len(rows) {
		return rows
	}
	slices.SortStableFunc(rows, func(a, b *Connection) int { return cmp.Compare(b.BytesUp+b.BytesDown, a.BytesUp+a.BytesDown) })
	rows = rows[:limit]
	slices.SortFunc(rows, func(a, b *Connection) int { return cmp.Compare(a.ConnectionID, b.ConnectionID) })
	return rows
}

// connection writes a line for a connection, and one for each subflow of MPTCP.
func (s *summary) connection(w io.Writer, c *Connection) {
	kind, level := c.Kind, int32(0)
	if c.Kind == "mptcp" {
		level = NoSubflow
		if c.MPTCPVersion >= 0 {
			kind += " v" + strconv.Itoa(int(c.MPTCPVersion))
		}
	}
	var retransmitted int64
	for _, sub := range s.subflows[c.ConnectionID] {
		retransmitted += s.transport[[2]int32{c.ConnectionID, sub.SubflowID}].retransmitted
	}
	rtt := s.transport[[2]int32{c.ConnectionID, level}].rtt
	line(w, strconv.Itoa(int(c.ConnectionID)), kind, address(c.Client, c.ClientPort), address(c.Server, c.ServerPort), s.since(c.StartNS),
		seconds(c.DurationS), size(c.BytesUp), size(c.BytesDown), milliseconds(rtt), some(retransmitted), some(c.ReinjectedUp+c.ReinjectedDn),
		c.Closed, c.Networks, c.notes())
	if c.Kind != "mptcp" {
		return
	}
	for _, sub := range s.subflows[c.ConnectionID] {
		s.subflow(w, sub)
	}
}

func (s *summary) subflow(w io.Writer, sub *Subflow) {
	t := s.transport[[2]int32{sub.ConnectionID, sub.SubflowID}]
	rtt := t.rtt
	if !rtt.Known {
		rtt = sub.RTTHandshakeMS
	}
	where := sub.Network
	if where == "" {
		where = sub.Interface
	}
	line(w, "  ."+strconv.Itoa(int(sub.SubflowID)), sub.Role, address(sub.Client, sub.ClientPort), address(sub.Server, sub.ServerPort),
		s.since(sub.StartNS), seconds(sub.DurationS), size(sub.UniqueUp), size(sub.UniqueDown), milliseconds(rtt), some(t.retransmitted), some(t.reinjected),
		sub.Closed, where, sub.notes())
}

func line(w io.Writer, cells ...string) {
	fmt.Fprintln(w, strings.Join(cells, "\t"))
}

func (c *Connection) notes() string {
	var notes []string
	if c.Host != "" {
		notes = append(notes, c.Host)
	}
	if c.Destination != "" {
		notes = append(notes, "to "+address(c.Destination, c.DestPort))
	}
	if c.Application != "" {
		notes = append(notes, "of "+c.Application)
	}
	if c.Fallback {
		notes = append(notes, "fell back: "+c.FallbackCause)
	}
	if c.Handovers > 0 {
		notes = append(notes, count(int64(c.Handovers), "handover"))
	}
	if !c.SYNSeen {
		notes = append(notes, "began before the capture")
	}
	return strings.Join(notes, ", ")
}

func (s *Subflow) notes() string {
	var notes []string
	if s.Backup {
		notes = append(notes, "backup")
	}
	switch {
	case !s.Established:
		notes = append(notes, "not established")
	case !s.Used:
		notes = append(notes, "not used")
	}
	if s.OpenedBy == "server" {
		notes = append(notes, "opened by the server")
	}
	if s.HMAC == "wrong" {
		notes = append(notes, "wrong HMAC")
	}
	return strings.Join(notes, ", ")
}

// totals tells of all connections, shown or not.
func (s *summary) totals(w io.Writer) {
	var mptcp, fallback, several, handovers, up, down, reinjected, bytes, retransmitted int64
	for i := range s.Connections {
		c := &s.Connections[i]
		up, down, reinjected = up+c.BytesUp, down+c.BytesDown, reinjected+c.ReinjectedUp+c.ReinjectedDn
		handovers += int64(c.Handovers)
		if c.Kind == "mptcp" {
			mptcp++
		}
		if c.Fallback {
			fallback++
		}
		if c.SubflowsUsed > 1 {
			several++
		}
	}
	for key, t := range s.transport {
		if key[1] != NoSubflow {
			bytes, retransmitted = bytes+t.bytes, retransmitted+t.retransmitted
		}
	}
	fmt.Fprintf(w, "\n%s: %d of MPTCP (%d used several subflows, %d fell back), %d of TCP\n",
		count(int64(len(s.Connections)), "connection"), mptcp, several, fallback, int64(len(s.Connections))-mptcp)
	fmt.Fprintf(w, "%s up, %s down; %s retransmitted (%s), %s reinjected (%s); %s\n", size(up), size(down),
		size(retransmitted), percent(retransmitted, bytes), size(reinjected), percent(reinjected, up+down), count(handovers, "handover"))
	s.networks(w)
}

// networks tells how the payload was spread over the networks.
func (s *summary) networks(w io.Writer) {
	var names []string
	var all int64
	carried := make(map[string]int64)
	for i := range s.Subflows {
		sub := &s.Subflows[i]
		name := cmp.Or(sub.Network, sub.Interface, "unknown")
		if _, ok := carried[name]; !ok {
			names = append(names, name)
		}
		carried[name] += sub.UniqueUp + sub.UniqueDown
		all += sub.UniqueUp + sub.UniqueDown
	}
	if len(names) < 2 {
		return
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(carried[b], carried[a]), cmp.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %s (%s)", name, size(carried[name]), percent(carried[name], all))
	}
	fmt.Fprintf(w, "by network: %s\n", strings.Join(names, ", "))
}

// since is the time since the first packet of all.
func (s *summary) since(ns int64) string { return seconds(float64(ns-s.Connections[0].StartNS) / 1e9) }

func address(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 3, 64) }

// milliseconds has three digits or more.
func milliseconds(v Maybe[float64]) string {
	if !v.Known {
		return ""
	}
	digits := 3
	for limit := 1.0; digits > 0 && v.Value >= limit; limit *= 10 {
		digits--
	}
	return strconv.FormatFloat(v.Value, 'f', digits, 64)
}

// some is a size, or nothing for none.
func some(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return size(bytes)
}

// size writes bytes with three digits and a decimal unit.
func size(bytes int64) string {
	v, unit := float64(bytes), 0
	for ; v >= 999.5 && unit < len(units)-1; unit++ {
		v /= 1000
	}
	digits := 0
	if unit > 0 && v < 99.95 {
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + " " + units[unit]
}

var units = []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}

func percent(part, whole int64) string {
	if whole == 0 {
		return "0 %"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64) + " %"
}

func count(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.FormatInt(n, 10) + " " + what
}
