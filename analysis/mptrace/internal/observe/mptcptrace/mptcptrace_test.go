package mptcptrace

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"mplab/analysis/mptrace/internal/fixture"
	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/source"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// begin is the start time; its fraction of a microsecond is truncated.
const begin = 1_700_000_000_000_000_999

// connect returns an MPTCP connection with two subflows; the server opened the
// second one.
func connect(id int32) *mptcp.Conn {
	c := &mptcp.Conn{ID: id, MPTCP: true}
	one := &tcp.Flow{Ends: [2]tcp.Endpoint{fixture.End("10.0.0.1:4000"), fixture.End("10.9.0.9:80")}, StartNS: begin}
	two := &tcp.Flow{Ends: [2]tcp.Endpoint{fixture.End("[2001:db8::9]:80"), fixture.End("[2001:db8::1]:4001")}, StartNS: begin}
	c.Subs = []*mptcp.Sub{{Conn: c, Flow: one}, {Conn: c, ID: 1, Flow: two, Additional: true, Turned: true}}
	return c
}

// segment returns a segment at ms milliseconds after begin.
func segment(ms int64, flags uint8, lo, hi uint64, ack uint32) *tcp.Segment {
	return &tcp.Segment{Packet: &packet.Packet{TimeNS: begin + ms*1e6, Flags: flags, Ack: ack, Payload: uint32(hi - lo)}, Lo: lo, Hi: hi}
}

// capable adds MP_CAPABLE to a segment.
func capable(s *tcp.Segment, option string) *tcp.Segment {
	s.Packet.Has, s.Packet.Options = packet.HasCapable|packet.HasWindowScale, []byte(option)
	return s
}

const (
	keyC, keyS = "\x01\x02\x03\x04\x05\x06\x07\x08", "\x11\x12\x13\x14\x15\x16\x17\x18"
	scale      = "\x03\x03\x07"
)

// TestFiles plays a short connection and compares every file.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	o, err := New(dir, "a.pcap", &tables.Warnings{HMACMismatch: 3})
	if err != nil {
		t.Fatal(err)
	}
	plain := &mptcp.Conn{ID: 0}
	plain.Subs = []*mptcp.Sub{{Conn: plain, Flow: &tcp.Flow{}}}
	o.Subflow(plain.Subs[0])
	o.Data(plain.Subs[0], mptcp.Up, begin, 0, 10, nil)
	o.Segment(plain.Subs[0], mptcp.Up, segment(0, packet.ACK, 1, 11, 1))
	o.End(plain, &tables.Connection{})

	c := connect(1)
	a, b := c.Subs[0], c.Subs[1]
	o.Subflow(a)
	o.Segment(a, mptcp.Up, capable(segment(0, packet.SYN, 0, 0, 0), scale+"\x1e\x04\x01\x81"))
	o.Segment(a, mptcp.Down, capable(segment(10, packet.SYN|packet.ACK, 0, 0, 1), "\x03\x03\x05\x1e\x0c\x01\x81"+keyS))
	o.Segment(a, mptcp.Up, capable(segment(20, packet.ACK, 0, 0, 1), "\x1e\x14\x01\x81"+keyC+keyS))
	at := func(ms int64) int64 { return begin + ms*1e6 }

	o.Data(a, mptcp.Up, at(30), 0, 1000, nil)
	o.Segment(a, mptcp.Up, segment(30, packet.ACK, 1, 1001, 1))
	o.Subflow(b)
	o.Event(b, &tables.Event{Event: "add-addr", Direction: "down", Address: "10.9.0.10", AddressID: tables.Just(int32(2))})
	o.Data(b, mptcp.Up, at(40), 1000, 2000, nil)
	o.Segment(b, mptcp.Up, segment(40, packet.ACK, 1, 1001, 1))
	o.Data(a, mptcp.Up, at(50), 500, 1000, a) // a TCP retransmission that includes data of b
	o.Data(a, mptcp.Up, at(50), 1000, 1500, b)
	o.Segment(a, mptcp.Up, segment(50, packet.ACK, 501, 1501, 1))
	o.Ack(a, mptcp.Up, at(60), 1000, 5000)
	o.Segment(a, mptcp.Down, segment(60, packet.ACK, 1, 1, 1001))
	o.Data(b, mptcp.Down, at(65), 0, 100, nil)
	o.Ack(b, mptcp.Up, at(65), 2000, 4000)
	o.Segment(b, mptcp.Down, segment(65, packet.ACK, 1, 101, 1001))
	o.Event(b, &tables.Event{Event: "remove-addr", Direction: "up", AddressID: tables.Just(int32(4))})
	o.Event(a, &tables.Event{Event: "mp-fastclose", Direction: "up"})
	o.End(c, &tables.Connection{Subflows: 2, SubflowsAsked: 3, Closed: "fin"})
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}

	up, down := int(initial(0x0102030405060708, 1)), int(initial(0x1112131415161718, 1))
	n := func(base, offset int) string { return strconv.Itoa(base + 1 + offset) }
	const s = "1700000000."
	for name, want := range map[string]string{
		"c2s_seq_0.csv": s + "030000," + n(up, 0) + ",1,1," + n(up, 1000) + ",-1\n" +
			s + "040000," + n(up, 1000) + ",2,1," + n(up, 2000) + ",-1\n" +
			s + "050000," + n(up, 500) + ",1,1," + n(up, 1000) + ",-1\n" +
			s + "050000," + n(up, 1000) + ",1,1," + n(up, 1500) + ",2\n" +
			s + "060000," + n(up, 1000) + ",1,0,0,-1\n" +
			s + "065000," + n(up, 2000) + ",2,0,0,-1\n",
		"s2c_seq_0.csv":          s + "065000," + n(down, 0) + ",2,1," + n(down, 100) + ",-1\n",
		"c2s_map_reinject_0.csv": "id,n\n1,2\n",
		"c2s_acksize_0.csv":      s + "060000,1000,1,0,0,-1\n" + s + "065000,1000,2,0,0,-1\n",
		"s2c_acksize_0.csv":      "",
		"c2s_rtt_ack_ts_0.csv":   s + "060000,30.000000,2,0,0\n" + s + "065000,25.000000,2,0,0\n",
		"c2s_rtt_seq_ts_0.csv":   s + "030000,30.000000,2,0,0\n" + s + "040000,25.000000,2,0,0\n",
		"c2s_rtt_seq_num_0.csv":  n(up, 0) + ",30.000000,2,0,0\n" + n(up, 1000) + ",25.000000,2,0,0\n",
		"c2s_flight_0.csv": s + "030000,1000,2,0,0,-1\n" + s + "030000,1000,3,0,0,-1\n" +
			s + "040000,2000,2,0,0,-1\n" + s + "040000,2000,3,0,0,-1\n" +
			s + "050000,2000,2,0,0,-1\n" + s + "050000,2500,3,0,0,-1\n" +
			s + "060000,5000,1,0,0,-1\n" + s + "060000,1000,2,0,0,-1\n" + s + "060000,1500,3,0,0,-1\n" +
			s + "065000,4000,1,0,0,-1\n" + s + "065000,500,3,0,0,-1\n",
		"s2c_flight_0.csv": s + "065000,100,2,0,0,-1\n" + s + "065000,100,3,0,0,-1\n",
		"c2s_flight_per_flow_0.csv": s + "030000,0,1,1,1000,-1\n" +
			s + "040000,0,1,1,1000,-1\n" + s + "040000,1000,2,1,2000,-1\n" +
			s + "050000,0,1,1,1500,-1\n" + s + "050000,1500,2,1,2500,-1\n" +
			s + "060000,0,1,1,500,-1\n" + s + "060000,500,2,1,1500,-1\n" +
			s + "065000,0,1,1,500,-1\n",
		"c2s_gput_0.csv": s + "065000,0.200000,2,0,0\n",
		"s2c_gput_0.csv": "",
		"c2s_sf_0.csv":   "1,2000,0\n2,1000,100\n",
		"s2c_sf_0.csv":   "1,2000,0\n2,1000,100\n",
		"add_addr_0.csv": "0,10.9.0.10\n",
		"rm_addr_0.csv":  "1,4\n",
		"mptcptrace.log": Differences,
		"mptcptrace.out": "MPTCP connection 0 with id 0\n" +
			"\tSubflow 0 with wscale : 7 5 IPv4 sport 4000 dport 80 saddr 10.0.0.1 daddr 10.9.0.9\n" +
			"\tSubflow 1 with wscale : 0 0 IPv6 sport 4001 dport 80 saddr 2001:db8::1 daddr 2001:db8::9\n",
		"file_stats.csv": "nbConnections,1,0\nsfConnections,1,0\nnbFastClose,1,0\nfinishedConnections,1,0\njoinFailed,1,0\n" +
			"nbFastCloseSeen,1,0\nJoinWrongHMAC,3,0\nDiffKeyInSynack,0,0\nconnTimeOut,0,0\n" +
			"capaToJoinReuse,0,0\nsuspectJoinRejected,0,0\nthirdAckKeyDiff,0,0\n",
		"s2c_rtt_ack_ts_0.csv": "", "s2c_rtt_seq_ts_0.csv": "", "s2c_rtt_seq_num_0.csv": "",
		"s2c_flight_per_flow_0.csv": s + "065000,0,2,1,100,-1\n",
	} {
		if got := fixture.Read(t, dir, name); got != want {
			t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
		}
	}
	stats := fixture.Read(t, dir, "stats_0.csv")
	for _, want := range []string{
		"sfCount;2;2", fmt.Sprintf("firstSeq;%d;%d", up, down), "lastAck;" + n(down, 0) + ";" + n(up, 2000), "conTime;0.045000;0.045000",
		"beginTime;1700000000.020000;1700000000.020000", "seqAcked;2000;0", "sf_0_ipVersion;4;4", "sf_1_ip;2001:db8::1;2001:db8::9",
		"sf_1_port;4001;80", "bytesReinjected;500;0", "precentReinjected;0.250000;0.000000", "reinject1;1;1", "reinject2;1;0",
		"reinject31;0;0", "reinject_pc_2;0.500000;0.000000", "reinjectCausedBy_1_4001;1;0", "reinjectCausedByPc_1_4001;1.000000;0.000000",
	} {
		if !strings.Contains(stats, "a.pcap;0;"+want+"\n") {
			t.Errorf("no %q in\n%s", want, stats)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 22+4 {
		t.Errorf("%d files", len(entries))
	}
}

// TestNumbersBeyond32Bits: numbers do not wrap at 4 GiB. The keys are unknown,
// so numbers start at 1.
func TestNumbersBeyond32Bits(t *testing.T) {
	dir := t.TempDir()
	o, err := New(dir, "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := connect(0)
	a := c.Subs[0]
	o.Subflow(a)
	const far = 5 << 32
	o.Data(a, mptcp.Down, begin, far, far+1000, nil)
	o.Segment(a, mptcp.Down, segment(0, packet.ACK, far, far+1000, 1))
	o.Ack(a, mptcp.Down, begin, far+1001, 100) // with the DATA_FIN
	o.Segment(a, mptcp.Up, segment(1, packet.ACK, 1, 1, 1001))
	o.End(c, &tables.Connection{})
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	stats := fixture.Read(t, dir, "stats_0.csv")
	for _, want := range []string{"firstSeq;0;0", "lastAck;21474837482;1", "seqAcked;0;21474837480"} {
		if !strings.Contains(stats, want) {
			t.Errorf("no %q in\n%s", want, stats)
		}
	}
	if got := fixture.Read(t, dir, "s2c_seq_0.csv"); !strings.Contains(got, ",21474836481,1,1,21474837481,-1\n") {
		t.Error(got)
	}
}

// TestKeysThatComeWithData: the third packet of the handshake was lost, and the
// first data contains the keys for its own rows.
func TestKeysThatComeWithData(t *testing.T) {
	dir := t.TempDir()
	o, _ := New(dir, "a", nil)
	c := connect(0)
	o.Subflow(c.Subs[0])
	o.Data(c.Subs[0], mptcp.Up, begin, 0, 10, nil)
	o.Segment(c.Subs[0], mptcp.Up, capable(segment(0, packet.ACK, 1, 11, 1), "\x1e\x16\x01\x81"+keyC+keyS+"\x00\x0a"))
	o.End(c, &tables.Connection{})
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	first := initial(0x0102030405060708, 1)
	if got, want := fixture.Read(t, dir, "c2s_seq_0.csv"), fmt.Sprintf("1700000000.000000,%d,1,1,%d,-1\n", first+1, first+11); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestGoodput: 1000 bytes per millisecond are 1 MB/s in each series.
func TestGoodput(t *testing.T) {
	dir := t.TempDir()
	o, _ := New(dir, "a", nil)
	c := connect(0)
	for i := range int64(600) {
		o.Ack(c.Subs[0], mptcp.Up, begin+i*1e6, uint64(i)*1000, 0)
		o.Segment(c.Subs[0], mptcp.Down, segment(i, packet.ACK, 1, 1, 1))
	}
	o.End(c, &tables.Connection{})
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.Lines(fixture.Read(t, dir, "c2s_gput_0.csv")) {
		fields := strings.Split(strings.TrimSpace(line), ",")
		if len(fields) != 5 || fields[1] != "1.000000" {
			t.Fatalf("%q", line)
		}
		count[fields[2]]++
	}
	if count["1"] != 2 || count["2"] != 599 || count["3"] != 350 {
		t.Errorf("%v", count)
	}
}

// TestManyConnections: 6600 files are written concurrently, of which 64 may be
// open.
func TestManyConnections(t *testing.T) {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Skip(err)
	}
	few := old
	few.Cur = 64
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Skip(err)
	}
	defer func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old) }()
	const connections = 300
	dir := t.TempDir()
	o, _ := New(dir, "a", nil)
	conns := make([]*mptcp.Conn, connections)
	for i := range conns {
		conns[i] = connect(int32(2 * i))
	}
	for k := range uint64(5) {
		for i, c := range conns {
			ns := begin + int64(k)*1e9 + int64(i)
			o.Data(c.Subs[k%2], mptcp.Up, ns, k*100, k*100+100, nil)
			o.Segment(c.Subs[k%2], mptcp.Up, segment(int64(k), packet.ACK, k*100, k*100+100, 1))
		}
	}
	for _, c := range conns {
		o.End(c, &tables.Connection{})
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(fixture.Read(t, dir, fmt.Sprintf("c2s_seq_%d.csv", connections-1)), "\n"); got != 5 {
		t.Errorf("%d rows of the last connection", got)
	}
}

// TestAgreesWithTheTables reads a capture of two paths: the values that
// analysis scripts read from the files agree with the tables.
func TestAgreesWithTheTables(t *testing.T) {
	dir := t.TempDir()
	var warnings tables.Warnings
	o, err := New(dir, "two-paths", &warnings)
	if err != nil {
		t.Fatal(err)
	}
	in := source.Open([]string{"../../../testdata/two-paths-wlan0.pcapng", "../../../testdata/two-paths-rmnet0.pcapng"}, source.Options{})
	defer in.Close()
	sink := tables.NewMemorySink(tables.All, 0)
	engine := mptcp.New(mptcp.Options{Observer: o}, sink, &warnings)
	tracker := tcp.NewTracker(tcp.Options{OnEnd: engine.EndFlow, OnRetransmission: engine.Retransmission})
	var block source.Block
	var seg tcp.Segment
	wire := map[uint32]bool{} // starts of mappings
	for in.Next(&block) {
		for p := range in.Packets(&block) {
			if p.Has&packet.HasDSS != 0 && p.DSS&packet.DSSMap != 0 && p.Payload > 0 {
				wire[uint32(p.DSN)] = true
			}
			tracker.Add(p, &seg)
			engine.Add(&seg)
		}
	}
	tracker.Close()
	engine.Close()
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	number := 0
	for _, row := range sink.Result(nil, warnings).Connections {
		if row.Kind != "mptcp" {
			continue
		}
		up, down := sums(t, fixture.Read(t, dir, fmt.Sprintf("c2s_seq_%d.csv", number))), sums(t, fixture.Read(t, dir, fmt.Sprintf("s2c_seq_%d.csv", number)))
		if up.fresh != row.BytesUp || down.fresh != row.BytesDown || up.reinjected != row.ReinjectedUp || down.reinjected != row.ReinjectedDn {
			t.Errorf("connection %d: %d up, %d down, reinjected %d and %d; the tables say %d and %d, %d and %d",
				number, up.fresh, down.fresh, up.reinjected, down.reinjected, row.BytesUp, row.BytesDown, row.ReinjectedUp, row.ReinjectedDn)
		}
		want := fmt.Sprintf("seqAcked;%d;%d\n", row.BytesUp, row.BytesDown)
		if got := fixture.Read(t, dir, fmt.Sprintf("stats_%d.csv", number)); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
		number++
		for lo := range up.begins {
			delete(wire, uint32(lo))
		}
		for lo := range down.begins {
			delete(wire, uint32(lo))
		}
	}
	if len(wire) > 0 {
		t.Errorf("%d mappings begin at numbers that no row has", len(wire))
	}
	if number == 0 {
		t.Error("no connection of MPTCP")
	}
}

type sum struct {
	fresh, reinjected int64
	begins            map[int64]bool
}

// sums adds up the rows of seq as scripts do: data counts as new if no earlier
// row had it.
func sums(t *testing.T, rows string) sum {
	t.Helper()
	s := sum{begins: map[int64]bool{}}
	seen := map[int64]bool{}
	for line := range strings.Lines(rows) {
		f := strings.Split(strings.TrimSpace(line), ",")
		lo, err1 := strconv.ParseInt(f[1], 10, 64)
		hi, err2 := strconv.ParseInt(f[4], 10, 64)
		if len(f) != 6 || err1 != nil || err2 != nil {
			t.Fatalf("%q", line)
		}
		if f[3] == "0" {
			continue
		}
		s.begins[lo] = true
		if f[5] != "-1" {
			s.reinjected += hi - lo
		}
		for at := lo; at < hi; at++ {
			if !seen[at] {
				seen[at] = true
				s.fresh++
			}
		}
	}
	return s
}
