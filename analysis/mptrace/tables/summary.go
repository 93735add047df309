package tables

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// shown is the default number of connections in a summary, so that it fits on a
// screen.
const shown = 8

// mostShown bounds a summary of all connections.
const mostShown = 100_000

// ErrConnections means that all connections were requested, but there are more
// than [NewSummary] allows.
var ErrConnections = fmt.Errorf("more than %d connections", mostShown)

// Summary collects a report for people: totals of all connections, and the
// connections with the most bytes. Its memory does not grow with the number of
// connections, unless all must be shown.
type Summary struct {
	Filter    string // the rows are of segments that match it; empty: of all
	Rewritten bool   // the addresses are not those of the packets

	limit      int // negative: all
	subflows   map[int32][]Subflow
	directions map[int32][]Direction // of connections whose row has not arrived yet
	largest    largest
	finish     func() // takes the last rows
	totals     totals
}

// NewSummary makes a summary that shows limit connections; 0: 8, negative:
// all, at most 100,000.
func NewSummary(limit int) *Summary {
	if limit == 0 {
		limit = shown
	}
	return &Summary{
		limit: limit, subflows: map[int32][]Subflow{}, directions: map[int32][]Direction{},
		totals: totals{carried: map[string]int64{}},
	}
}

// Watch subscribes the summary to the rows of a sink. The sink must not have
// rows yet.
func (s *Summary) Watch(sink *Sink) {
	show(&sink.Subflows, nil, func(rows []Subflow) {
		for _, row := range rows {
			s.subflows[row.ConnectionID] = append(s.subflows[row.ConnectionID], row)
		}
	})
	show(&sink.Directions, nil, func(rows []Direction) {
		for _, row := range rows {
			s.directions[row.ConnectionID] = append(s.directions[row.ConnectionID], row)
		}
	})
	// The row of a connection follows those of its subflows.
	others := func() {
		sink.Subflows.look()
		sink.Directions.look()
	}
	show(&sink.Connections, others, func(rows []Connection) {
		for i := range rows {
			s.add(&rows[i])
		}
	})
	s.finish = sink.Connections.look
}

// connected is a connection with its rows.
type connected struct {
	Connection
	subflows []Subflow
	sent     map[int32]*[2]Direction // by subflow, NoSubflow included
}

// largest is a heap of connections with the smallest byte count on top.
type largest []*connected

func (l largest) Len() int           { return len(l) }
func (l largest) Less(i, j int) bool { return l[i].carriedLess(l[j]) }
func (l largest) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *largest) Push(c any)        { *l = append(*l, c.(*connected)) }
func (l *largest) Pop() any {
	n := len(*l) - 1
	c := (*l)[n]
	*l = (*l)[:n]
	return c
}

func (c *connected) carriedLess(other *connected) bool {
	mine, others := c.BytesUp+c.BytesDown, other.BytesUp+other.BytesDown
	return mine < others || mine == others && c.ConnectionID > other.ConnectionID
}

func (s *Summary) add(row *Connection) {
	c := &connected{Connection: *row, subflows: s.subflows[row.ConnectionID], sent: map[int32]*[2]Direction{}}
	for i := range s.directions[row.ConnectionID] {
		d := &s.directions[row.ConnectionID][i]
		if c.sent[d.SubflowID] == nil {
			c.sent[d.SubflowID] = new([2]Direction)
		}
		c.sent[d.SubflowID][slices.Index(Directions[:], d.Direction)] = *d
	}
	delete(s.subflows, row.ConnectionID)
	delete(s.directions, row.ConnectionID)
	s.totals.add(c)
	switch {
	case s.limit < 0 && len(s.largest) < mostShown, len(s.largest) < s.limit:
		heap.Push(&s.largest, c)
	case s.largest[0].carriedLess(c):
		s.largest[0] = c
		heap.Fix(&s.largest, 0)
	}
}

// Write writes the summary as text: missing payload, totals, and the
// connections in the order of their first packets. It returns [ErrConnections]
// if all connections were requested and there are too many.
func (s *Summary) Write(w io.Writer, files []File, warnings *Warnings) error {
	s.finish()
	t := &s.totals
	if s.limit < 0 && t.connections > mostShown {
		return ErrConnections
	}
	out := bufio.NewWriter(w)
	for i := range files {
		files[i].summary(out)
	}
	if s.Filter != "" {
		fmt.Fprintf(out, "only packets that match --filter %q\n", s.Filter)
	}
	t.missing(out, warnings)
	if t.connections == 0 {
		fmt.Fprintln(out, "no TCP connections")
	} else {
		t.write(out)
		s.connections(out)
		if !s.Rewritten {
			s.displayFilters(out)
		}
	}
	warnings.summary(out)
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

// summary writes all warnings with their units.
func (w *Warnings) summary(out io.Writer) {
	var texts []string
	value := reflect.ValueOf(*w)
	for i := range value.NumField() {
		if n := value.Field(i).Int(); n > 0 {
			field := value.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			text := fmt.Sprintf("%s %d %s", name, n, field.Tag.Get("unit"))
			if hint := field.Tag.Get("hint"); hint != "" {
				text += " (" + hint + ")"
			}
			texts = append(texts, text)
		}
	}
	if len(texts) > 0 {
		fmt.Fprintf(out, "\nnot used or in doubt: %s\n", strings.Join(texts, ", "))
	}
}

// missing writes the amount of payload that the numbers do not include.
func (t *totals) missing(w io.Writer, warnings *Warnings) {
	var texts []string
	tell := func(bytes int64, what string) {
		if bytes > 0 {
			texts = append(texts, size(bytes)+" "+what)
		}
	}
	tell(warnings.LateBytes, "came after the end of their connections (late_bytes)")
	tell(warnings.UnmappedBytes, "have no known place in their connections (unmapped_bytes)")
	tell(t.side[0].missing+t.side[1].missing, "were never captured (missing_bytes)")
	if len(texts) > 0 {
		fmt.Fprintf(w, "\nWARNING: payload is missing from the numbers below: %s\n", strings.Join(texts, ", "))
	}
}

// headings are the columns of a summary. Columns without any value are omitted.
var headings = []string{
	"connection", "kind", "client", "server", "start s", "duration s", "up", "down", "Mbit/s up", "Mbit/s down", "sent again up", "sent again down",
	"path RTT ms", "RTT ms min/median/p95", "data ACK ms", "join ms", "reinjected", "closed", "network", "note",
}

func (s *Summary) connections(w io.Writer) {
	slices.SortFunc(s.largest, func(a, b *connected) int { return cmp.Compare(a.ConnectionID, b.ConnectionID) })
	if n := len(s.largest); int64(n) < s.totals.connections {
		fmt.Fprintf(w, "\nthe %d of %d connections that carried most, in the order of their first packets:\n", n, s.totals.connections)
	} else {
		fmt.Fprintf(w, "\n%s in the order of first packets:\n", count(s.totals.connections, "connection"))
	}
	lines := [][]string{headings}
	for _, c := range s.largest {
		lines = append(lines, s.connection(c))
		if c.Kind == "mptcp" {
			for i := range c.subflows {
				lines = append(lines, s.subflow(c, &c.subflows[i]))
			}
		}
	}
	var text bytes.Buffer
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, cells := range lines {
		var used []string
		for i, cell := range cells {
			if slices.ContainsFunc(lines[1:], func(cells []string) bool { return cells[i] != "" }) {
				used = append(used, cell)
			}
		}
		fmt.Fprintln(t, strings.Join(used, "\t"))
	}
	t.Flush()
	for row := range strings.Lines(text.String()) {
		fmt.Fprintln(w, strings.TrimRight(row, " \n"))
	}
	fmt.Fprintln(w, "sent again: seen twice, or lost before the capture, with the share of the payload of that direction; path RTT: SYN to third ACK")
}

// connection returns the table line of a connection.
func (s *Summary) connection(c *connected) []string {
	kind, level := c.Kind, int32(0)
	if c.Kind == "mptcp" {
		level = NoSubflow
		if c.MPTCPVersion >= 0 {
			kind += " v" + strconv.Itoa(int(c.MPTCPVersion))
		}
	}
	sent := c.directionsOf(level)
	var again, payload [2]int64
	for id, both := range c.sent {
		for dir := range both {
			if id != NoSubflow {
				again[dir], payload[dir] = again[dir]+both[dir].again(), payload[dir]+both[dir].Bytes
			}
		}
	}
	path, rtt, dataACK := "", "", ""
	switch {
	case level == NoSubflow:
		dataACK = longer(sent)
	case len(c.subflows) > 0:
		path, rtt = milliseconds(c.subflows[0].RTTHandshakeMS), pathRTT(&c.subflows[0], sent)
	}
	return []string{
		strconv.Itoa(int(c.ConnectionID)), kind, address(c.Client, c.ClientPort), address(c.Server, c.ServerPort), s.since(c.StartNS),
		seconds(c.DurationS), size(c.BytesUp), size(c.BytesDown), rate(&sent[0]), rate(&sent[1]), share(again[0], payload[0]), share(again[1], payload[1]),
		path, rtt, dataACK, milliseconds(c.JoinDelayMS), some(c.ReinjectedUp + c.ReinjectedDn), c.Closed, c.Networks, c.notes(),
	}
}

func (s *Summary) subflow(c *connected, sub *Subflow) []string {
	sent := c.directionsOf(sub.SubflowID)
	return []string{
		"  ." + strconv.Itoa(int(sub.SubflowID)), sub.Role, address(sub.Client, sub.ClientPort), address(sub.Server, sub.ServerPort), s.since(sub.StartNS),
		seconds(sub.DurationS), size(sub.UniqueUp), size(sub.UniqueDown), rate(&sent[0]), rate(&sent[1]),
		share(sent[0].again(), sent[0].Bytes), share(sent[1].again(), sent[1].Bytes),
		milliseconds(sub.RTTHandshakeMS), pathRTT(sub, sent), "", milliseconds(sub.JoinDelayMS), some(sent[0].ReinjectedBytes + sent[1].ReinjectedBytes),
		sub.Closed, cmp.Or(sub.Network, sub.Interface), sub.notes(),
	}
}

func (c *connected) directionsOf(subflow int32) *[2]Direction {
	if both := c.sent[subflow]; both != nil {
		return both
	}
	return new([2]Direction)
}

// again returns the retransmitted payload: seen twice, or lost before the
// capture.
func (d *Direction) again() int64 { return d.RetransmittedBytes + d.HoleBytes }

// share returns a part of the payload with its percentage, or "" for 0.
func share(part, whole int64) string {
	if part == 0 {
		return ""
	}
	return size(part) + " " + percent(part, whole)
}

// rate returns the throughput in Mbit/s with at least three digits.
func rate(d *Direction) string {
	if !d.ThroughputB.Known || d.UniqueBytes == 0 {
		return ""
	}
	return milliseconds(Just(d.ThroughputB.Value / 1e6))
}

// minSamples is the minimum number of samples for a statement about a path.
const minSamples = 10

// pathRTT returns minimum, median and 95 % quantile of the round trips, for the
// direction whose samples cover the path. A direction counts if its minimum is
// at least half the round trip of the handshake. In a capture at the receiver,
// the samples only cover the delay of its acknowledgements.
func pathRTT(sub *Subflow, sent *[2]Direction) string {
	best := -1
	for i := range sent {
		d := &sent[i]
		if d.RTTSamples >= minSamples && sub.RTTHandshakeMS.Known && d.RTTMinMS.Value >= sub.RTTHandshakeMS.Value/2 &&
			(best < 0 || d.RTTSamples > sent[best].RTTSamples) {
			best = i
		}
	}
	if best < 0 {
		return ""
	}
	d := &sent[best]
	return milliseconds(d.RTTMinMS) + "/" + milliseconds(d.RTTP50MS) + "/" + milliseconds(d.RTTP95MS) + " " + Directions[best]
}

// longer returns the median time until a DATA_ACK, for the direction with more
// samples.
func longer(sent *[2]Direction) string {
	dir := 0
	if sent[1].RTTSamples > sent[0].RTTSamples {
		dir = 1
	}
	if !sent[dir].RTTP50MS.Known {
		return ""
	}
	return milliseconds(sent[dir].RTTP50MS) + " " + Directions[dir]
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

// totals are sums over all connections, shown or not.
type totals struct {
	connections, mptcp, fallback, several, handovers, reinjected int64
	startNS                                                      int64 // of the first connection
	side                                                         [2]sideTotals
	networks                                                     []string
	carried                                                      map[string]int64 // by network
	client, server, handshakes                                   int64            // by place of capture
}

type sideTotals struct {
	unique, payload, again, missing int64
}

func (t *totals) add(c *connected) {
	if t.connections == 0 || c.StartNS < t.startNS {
		t.startNS = c.StartNS
	}
	t.connections++
	t.side[0].unique += c.BytesUp
	t.side[1].unique += c.BytesDown
	t.reinjected += c.ReinjectedUp + c.ReinjectedDn
	t.handovers += int64(c.Handovers)
	if c.Kind == "mptcp" {
		t.mptcp++
	}
	if c.Fallback {
		t.fallback++
	}
	if c.SubflowsUsed > 1 {
		t.several++
	}
	for id, both := range c.sent {
		if id == NoSubflow {
			continue
		}
		for dir := range both {
			d := &both[dir]
			t.side[dir].payload += d.Bytes
			t.side[dir].again += d.again()
			t.side[dir].missing += d.MissingBytes
		}
	}
	for i := range c.subflows {
		t.subflow(&c.subflows[i])
	}
}

func (t *totals) subflow(sub *Subflow) {
	name := cmp.Or(sub.Network, sub.Interface, "unknown")
	if _, ok := t.carried[name]; !ok {
		t.networks = append(t.networks, name)
	}
	t.carried[name] += sub.UniqueUp + sub.UniqueDown
	if !sub.RTTHandshakeMS.Known || !sub.RTTServerMS.Known || sub.OpenedBy == "server" {
		return
	}
	t.handshakes++
	switch part := sub.RTTServerMS.Value / sub.RTTHandshakeMS.Value; {
	case part >= 0.75:
		t.client++
	case part <= 0.25:
		t.server++
	}
}

// write writes the totals.
func (t *totals) write(w io.Writer) {
	up, down := &t.side[0], &t.side[1]
	fmt.Fprintf(w, "\n%s: %d of MPTCP (%d used several subflows, %d fell back), %d of TCP\n",
		count(t.connections, "connection"), t.mptcp, t.several, t.fallback, t.connections-t.mptcp)
	fmt.Fprintf(w, "%s up, %s down; sent again: %s up (%s), %s down (%s)", size(up.unique), size(down.unique),
		size(up.again), percent(up.again, up.payload), size(down.again), percent(down.again, down.payload))
	if t.mptcp > 0 {
		fmt.Fprintf(w, "; %s reinjected (%s); %s", size(t.reinjected), percent(t.reinjected, up.unique+down.unique), count(t.handovers, "handover"))
	}
	fmt.Fprintln(w)
	t.writeNetworks(w)
	if t.handshakes > 0 {
		fmt.Fprintf(w, "captured %s\n", t.place())
	}
}

// place returns where the captures were made. It compares the parts of the
// handshake round trips before and after the capture point.
func (t *totals) place() string {
	const most = 0.8
	switch limit := most * float64(t.handshakes); {
	case float64(t.client) >= limit:
		return fmt.Sprintf("at the client, by %d of %s", t.client, count(t.handshakes, "handshake"))
	case float64(t.server) >= limit:
		return fmt.Sprintf("at the server, by %d of %s", t.server, count(t.handshakes, "handshake"))
	}
	return fmt.Sprintf("on the path or at several places: %d of %s say at the client, %d at the server", t.client, count(t.handshakes, "handshake"), t.server)
}

// writeNetworks writes how the payload was distributed over the networks.
func (t *totals) writeNetworks(w io.Writer) {
	names := t.networks
	if len(names) < 2 {
		return
	}
	var all int64
	for _, bytes := range t.carried {
		all += bytes
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(t.carried[b], t.carried[a]), cmp.Compare(a, b)) })
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = fmt.Sprintf("%s %s (%s)", name, size(t.carried[name]), percent(t.carried[name], all))
	}
	fmt.Fprintf(w, "by network: %s\n", strings.Join(texts, ", "))
}

// since returns the time since the first packet of all captures.
func (s *Summary) since(ns int64) string { return seconds(float64(ns-s.totals.startNS) / 1e9) }

func address(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 3, 64) }

// milliseconds formats a value with at least three digits.
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

// some returns a size, or "" for 0.
func some(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return size(bytes)
}

// size formats bytes with three digits and a decimal unit.
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
