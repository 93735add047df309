package ends

import (
	"math/rand/v2"
	"slices"
	"testing"

	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// network is a simulated network between phone and proxy with known true
// values.
type network struct {
	random   *rand.Rand
	offset   int64   // of the proxy's clock, ns
	drift    float64 // ns per ns
	start    int64
	captures [2][]packet.Packet // by the clocks of the ends
	arrivals map[*wire][]arrival
	truth    map[int32]*[2]truth // by path
	merge    int64               // ns; the receiving card merges packets within this time; 0: never
}

// truth holds the true counts of a path's direction.
type truth struct {
	sent, lost, wireLost, bytesLost, duplicated, retransmitted int64
	acksLost                                                   int64
	transfers                                                  []*transfer
}

// transfer is a transmission.
type transfer struct {
	sentNS, arrivedNS int64 // true times; arrivedNS: capture of its last part at the receiver
	lost              bool
}

// delays returns the delays of the arrived transmissions.
func (t *truth) delays() (ns []int64) {
	for _, one := range t.transfers {
		if !one.lost {
			ns = append(ns, one.arrivedNS-one.sentNS)
		}
	}
	return ns
}

// overtaken counts the transmissions that arrived after a later one.
func (t *truth) overtaken() (n int64) {
	slices.SortStableFunc(t.transfers, func(a, b *transfer) int { return int(a.sentNS - b.sentNS) })
	order := map[*transfer]int{}
	var arrived []*transfer
	for i, one := range t.transfers {
		if order[one] = i; !one.lost {
			arrived = append(arrived, one)
		}
	}
	slices.SortStableFunc(arrived, func(a, b *transfer) int { return int(a.arrivedNS - b.arrivedNS) })
	top := -1
	for _, one := range arrived {
		if order[one] < top {
			n++
		}
		top = max(top, order[one])
	}
	return n
}

// wire is a direction of a path.
type wire struct {
	path                    int32
	dir                     int
	delay, jitter           int64 // ns
	loss, double, overtaken float64
	busy                    int64 // arrival of the last packet that was not overtaken
	id                      uint16
}

type arrival struct {
	timeNS int64
	packet packet.Packet
	of     *transfer
	double bool
}

const simStart = 1_790_000_000_000_000_000

func newNetwork(seed uint64) *network {
	return &network{
		random: rand.New(rand.NewPCG(seed, 7)), start: simStart, arrivals: map[*wire][]arrival{}, truth: map[int32]*[2]truth{},
	}
}

// clock returns the time on an end's clock at a true time.
func (n *network) clock(end int, trueNS int64) int64 {
	if end == phoneEnd {
		return trueNS
	}
	return trueNS + n.offset + int64(n.drift*float64(trueNS-n.start))
}

func (n *network) of(w *wire) *truth {
	if n.truth[w.path] == nil {
		n.truth[w.path] = new([2]truth)
	}
	return &n.truth[w.path][w.dir]
}

// send sends a packet over a wire; mss > 0 splits it into packets of that size.
// It returns the arrival of the last one, and false if any was lost.
func (n *network) send(w *wire, timeNS int64, p packet.Packet, mss uint32) (last int64, ok bool) {
	t := n.of(w)
	t.sent++
	p.Iface = w.path
	if p.Quirks&packet.IPv6 == 0 {
		p.IPID = w.id + 1
	}
	sent := p
	sent.TimeNS = n.clock(w.dir, timeNS)
	n.captures[w.dir] = append(n.captures[w.dir], sent)
	ok = true
	one := &transfer{sentNS: timeNS}
	t.transfers = append(t.transfers, one)
	for at := uint32(0); at == 0 || at < p.Payload; at += max(mss, 1) {
		piece := p
		if mss > 0 && p.Payload > 0 {
			piece.Seq, piece.Payload = p.Seq+at, min(mss, p.Payload-at)
			if at+mss < p.Payload {
				piece.Flags &^= packet.FIN | packet.PSH
			}
		}
		w.id++
		if piece.Quirks&packet.IPv6 == 0 {
			piece.IPID = w.id
		}
		if came, arrived := n.carry(w, one, piece); arrived {
			last = max(last, came)
		} else {
			ok = false
			t.wireLost++
			t.bytesLost += int64(piece.Payload)
		}
		if mss == 0 {
			break
		}
	}
	if !ok {
		one.lost = true
		t.lost++
		if p.Payload == 0 && p.Flags&(packet.SYN|packet.FIN) == 0 {
			t.acksLost++
		}
		return 0, false
	}
	return last, true
}

func (n *network) carry(w *wire, of *transfer, p packet.Packet) (int64, bool) {
	if n.random.Float64() < w.loss {
		return 0, false
	}
	came := of.sentNS + w.delay + int64(n.random.ExpFloat64()*float64(w.jitter))
	if n.random.Float64() < w.overtaken {
		came += 4e6 + w.delay/4
	} else {
		came = max(came, w.busy+1000)
		w.busy = came
	}
	n.arrivals[w] = append(n.arrivals[w], arrival{came, p, of, false})
	if n.random.Float64() < w.double {
		n.of(w).duplicated++
		n.arrivals[w] = append(n.arrivals[w], arrival{came + 30_000, p, of, true})
	}
	return came, true
}

// finish generates the receivers' captures from the arrivals.
func (n *network) finish() {
	var wires []*wire
	for w := range n.arrivals {
		wires = append(wires, w)
	}
	slices.SortFunc(wires, func(a, b *wire) int { return int(a.path-b.path)*2 + a.dir - b.dir })
	for _, w := range wires {
		all := n.arrivals[w]
		slices.SortStableFunc(all, func(a, b arrival) int { return int(a.timeNS - b.timeNS) })
		for i := 0; i < len(all); i++ {
			p, first := all[i].packet, i
			for n.merge > 0 && i+1 < len(all) && mergeable(&p, &all[i+1].packet) && all[i+1].timeNS-all[first].timeNS < n.merge {
				i++
				p.Payload += all[i].packet.Payload
				p.Flags |= all[i].packet.Flags
			}
			for _, part := range all[first : i+1] { // captured together with the last one
				if !part.double {
					part.of.arrivedNS = max(part.of.arrivedNS, all[i].timeNS)
				}
			}
			p.TimeNS = n.clock(1-w.dir, all[i].timeNS)
			n.captures[1-w.dir] = append(n.captures[1-w.dir], p)
		}
	}
	for end := range n.captures {
		slices.SortStableFunc(n.captures[end], func(a, b packet.Packet) int { return int(a.TimeNS - b.TimeNS) })
	}
}

func mergeable(a, b *packet.Packet) bool {
	return a.Payload > 0 && b.Payload > 0 && a.Seq+a.Payload == b.Seq && a.TSVal == b.TSVal && a.SrcPort == b.SrcPort && a.DstPort == b.DstPort &&
		a.Src == b.Src && a.Payload+b.Payload < 60_000 && a.Has&packet.HasDSS == 0
}

// list is a stream of packets in memory.
type list struct {
	packets []packet.Packet
	at      int
}

func (l *list) next() *packet.Packet {
	if l.at == len(l.packets) {
		return nil
	}
	l.at++
	p := l.packets[l.at-1] // a copy: the original must not change
	return &p
}

func (l *list) iface(n int32) string { return []string{"wlan0", "rmnet0"}[n] }

func (l *list) close() {}

func (n *network) match(t *testing.T, o Options) *Result {
	t.Helper()
	n.finish()
	r, err := match([2]opener{
		func() stream { return &list{packets: n.captures[phoneEnd]} },
		func() stream { return &list{packets: n.captures[proxyEnd]} },
	}, o, script)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// scripted is a follower for simulated packets. Data is at its DSN if there is
// a mapping, otherwise at its sequence number. All flows with mappings are one
// connection.
type scripted struct {
	observer mptcp.Observer
	subs     map[key]*mptcp.Sub
	conns    map[uint16]*mptcp.Conn
	first    [2]map[uint64]*mptcp.Sub // by direction and start offset: the first carrier
	isns     map[key]uint32
	count    int32 // of ended flows
}

func script(_ Options, _ func(int32) string, observer mptcp.Observer) follower {
	return &scripted{
		observer: observer, subs: map[key]*mptcp.Sub{}, conns: map[uint16]*mptcp.Conn{}, isns: map[key]uint32{},
		first: [2]map[uint64]*mptcp.Sub{{}, {}},
	}
}

// multipathPort is the server port of the simulated MPTCP connection.
const multipathPort = 4433

func (s *scripted) add(p *packet.Packet) {
	k := keyOf(p)
	dir := mptcp.Up
	if p.SrcPort < 10_000 {
		dir, k = mptcp.Down, k.back()
	}
	if isn, ok := s.isns[k]; p.Flags&(packet.SYN|packet.ACK) == packet.SYN && ok && isn != p.Seq {
		delete(s.subs, k)
		s.count++
	}
	if p.Flags&packet.SYN != 0 {
		s.isns[keyOf(p)] = p.Seq
	}
	sub := s.subs[k]
	if sub == nil {
		conn := s.conns[k.dstPort]
		if conn == nil || k.dstPort != multipathPort {
			conn = &mptcp.Conn{ID: int32(len(s.subs)) + s.count, MPTCP: k.dstPort == multipathPort}
			s.conns[k.dstPort] = conn
		}
		flow := &tcp.Flow{Ends: [2]tcp.Endpoint{{Addr: k.src, Port: k.srcPort}, {Addr: k.dst, Port: k.dstPort}}, SYNSeen: p.Flags&packet.SYN != 0}
		sub = &mptcp.Sub{Conn: conn, ID: int32(len(conn.Subs)), Flow: flow, Additional: len(conn.Subs) > 0}
		conn.Subs = append(conn.Subs, sub)
		s.subs[k] = sub
		s.observer.Subflow(sub)
	}
	if p.Payload == 0 {
		return
	}
	if !sub.Conn.MPTCP {
		lo := uint64(p.Seq - s.isns[keyOf(p)] - 1)
		s.observer.Data(sub, dir, p.TimeNS, lo, lo+uint64(p.Payload), nil)
		return
	}
	original := s.first[dir][p.DSN]
	if original == nil {
		s.first[dir][p.DSN] = sub
	}
	s.observer.Data(sub, dir, p.TimeNS, p.DSN, p.DSN+uint64(p.Payload), original)
}

func (s *scripted) close() {
	for _, sub := range s.subs {
		s.observer.End(sub.Conn, &tables.Connection{})
	}
}

// talk is a simulated flow: the proxy sends data, the phone acknowledges.
type talk struct {
	network  *network
	up, down *wire
	key      key
	seq      [2]uint32
	mss      uint32 // MSS in the SYN
	six      bool
	bare     bool // without timestamps
}

func address(s byte) packet.Addr { return packet.Addr{Lo: 0xffff_0a000000 | uint64(s)<<8 | 1} }

func (n *network) talk(path int32, port uint16, up, down *wire) *talk {
	up.path, up.dir, down.path, down.dir = path, Up, path, Down
	return &talk{
		network: n, up: up, down: down,
		key: key{address(byte(1 + path)), address(100), port, 443},
		seq: [2]uint32{n.random.Uint32(), n.random.Uint32()},
	}
}

// packet returns a packet of the flow.
func (c *talk) packet(dir int, timeNS int64, flags uint8, seq, ack, payload uint32) packet.Packet {
	k := c.key
	if dir == Down {
		k = k.back()
	}
	p := packet.Packet{
		Src: k.src, Dst: k.dst, SrcPort: k.srcPort, DstPort: k.dstPort, Flags: flags, Seq: seq, Ack: ack, Payload: payload,
		TSVal: uint32(timeNS / 1e6), TSEcr: uint32(timeNS/1e6) - 20, Has: packet.HasTimestamps, Window: 500,
	}
	if c.bare {
		p.Has = 0
	}
	if flags&packet.SYN != 0 && c.mss > 0 {
		p.Has |= packet.HasMSS
		p.Options = []byte{2, 4, byte(c.mss >> 8), byte(c.mss)}
	}
	if c.six {
		p.Quirks |= packet.IPv6
	}
	return p
}

// sendDown sends a packet down that is certainly lost or certainly arrives.
func (c *talk) sendDown(timeNS int64, p packet.Packet, lost bool) {
	c.down.loss = 0
	if lost {
		c.down.loss = 1
	}
	c.network.send(c.down, timeNS, p, 0)
	c.down.loss = 0
}

// open performs the handshake without loss and returns its end time.
func (c *talk) open(timeNS int64) int64 {
	n := c.network
	losses := [2]float64{c.up.loss, c.down.loss}
	c.up.loss, c.down.loss = 0, 0
	syn := c.packet(Up, timeNS, packet.SYN, c.seq[Up], 0, 0)
	at, _ := n.send(c.up, timeNS, syn, 0)
	c.seq[Up]++
	synack := c.packet(Down, at, packet.SYN|packet.ACK, c.seq[Down], c.seq[Up], 0)
	synack.IPID = 0
	at, _ = n.send(c.down, at+20_000, synack, 0)
	c.seq[Down]++
	n.send(c.up, at+10_000, c.packet(Up, at, packet.ACK, c.seq[Up], c.seq[Down], 0), 0)
	c.up.loss, c.down.loss = losses[Up], losses[Down]
	return at
}

// bulk sends super-segments of size bytes down, one every gap. It repeats each
// after a timeout until it has arrived. It returns the time of the last one.
func (c *talk) bulk(timeNS int64, count int, size, mss uint32, gap int64) int64 {
	type due struct {
		timeNS int64
		seq    uint32
		again  bool
	}
	n := c.network
	var queue []due
	for i := range count {
		queue = append(queue, due{timeNS + int64(i)*gap, c.seq[Down] + uint32(i)*size, false})
	}
	last := timeNS
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		last = max(last, next.timeNS)
		if next.again {
			n.of(c.down).retransmitted++
		}
		p := c.packet(Down, next.timeNS, packet.ACK, next.seq, c.seq[Up], size)
		at, ok := n.send(c.down, next.timeNS, p, mss)
		if !ok {
			again := due{next.timeNS + 3*c.down.delay + 7e6, next.seq, true}
			i, _ := slices.BinarySearchFunc(queue, again, func(a, b due) int { return int(a.timeNS - b.timeNS) })
			queue = slices.Insert(queue, i, again)
			continue
		}
		n.send(c.up, at+5_000, c.packet(Up, at, packet.ACK, c.seq[Up], next.seq+size, 0), 0)
	}
	c.seq[Down] += uint32(count) * size
	return last
}

// after continues both captures until all packets in flight have arrived.
func (c *talk) after(timeNS int64) {
	n := c.network
	w := [2]*wire{{path: c.up.path, dir: Up, delay: c.up.delay}, {path: c.down.path, dir: Down, delay: c.down.delay}}
	for i := range int64(4) {
		for dir := range 2 {
			n.send(w[dir], timeNS+i*2e8+2e8, c.packet(dir, timeNS+i*2e8, packet.ACK, c.seq[dir], c.seq[1-dir], 0), 0)
		}
	}
}
