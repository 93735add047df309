package tcp

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"mplab/analysis/mptrace/packet"
)

// audit checks invariants for arbitrary packets.
type audit struct {
	t       testing.TB
	packets int64
	first   int64
	fresh   map[*Flow]*[2]int64
	records map[*Flow]*[2]int64
	ended   map[*Flow]bool
}

func newAudit(t testing.TB) *audit {
	return &audit{t, 0, 0, map[*Flow]*[2]int64{}, map[*Flow]*[2]int64{}, map[*Flow]bool{}}
}

func (a *audit) options(o Options) Options {
	o.OnEnd, o.OnRetransmission = a.end, a.record
	return o
}

func (a *audit) segment(s *Segment) {
	if s.Late {
		return
	}
	a.packets++
	if s.First {
		a.first++
		a.fresh[s.Flow], a.records[s.Flow] = new([2]int64), new([2]int64)
	}
	if a.ended[s.Flow] {
		a.t.Fatal("a segment after the end of its flow")
	}
	var fresh uint64
	switch s.Fresh {
	case All:
		fresh = s.Hi - s.Lo
	case Some:
		last := s.Lo
		for _, g := range s.Gaps {
			if g.Lo < last || g.Hi <= g.Lo || g.Hi > s.Hi {
				a.t.Fatalf("gaps %v of [%d, %d)", s.Gaps, s.Lo, s.Hi)
			}
			fresh += g.Len()
			last = g.Hi
		}
		if fresh == 0 || fresh == s.Hi-s.Lo {
			a.t.Fatalf("%d of %d bytes are some", fresh, s.Hi-s.Lo)
		}
	}
	if s.Duplicate && (fresh > 0 || s.Acked > 0) {
		a.t.Fatal("a copy counts")
	}
	if uint32(s.Hi-s.Lo) != s.Packet.Payload && s.Packet.Flags&packet.RST == 0 && !s.Duplicate {
		a.t.Fatalf("payload [%d, %d), want %d bytes", s.Lo, s.Hi, s.Packet.Payload)
	}
	a.fresh[s.Flow][s.Dir] += int64(fresh)
	if s.Flow.streams != nil {
		a.ring(&s.Flow.streams[s.Dir])
	}
}

// ring checks the order of the segments in flight.
func (a *audit) ring(s *stream) {
	r := &s.sent
	if r.head-r.oldest > r.tail-r.oldest || r.tail-r.oldest > uint32(len(r.buf)) {
		a.t.Fatalf("ring %d, %d, %d of %d", r.oldest, r.head, r.tail, len(r.buf))
	}
	for i := r.head; i != r.tail; i++ {
		if e := r.at(i); e.hi <= s.acked || (i != r.head && e.hi <= r.at(i-1).hi) || e.lastNS < e.firstNS {
			a.t.Fatalf("segment %d in flight, %d acknowledged: %+v", i-r.head, s.acked, *e)
		}
	}
}

func (a *audit) record(r *Retransmission) {
	if a.ended[r.Flow] || r.Bytes == 0 || r.Cause == NotRetransmitted || r.SinceLastNS > r.SinceFirstNS {
		a.t.Fatalf("%+v", r)
	}
	a.records[r.Flow][r.Dir]++
}

func (a *audit) end(f *Flow) {
	if a.ended[f] {
		a.t.Fatal("ended twice")
	}
	a.ended[f] = true
	a.packets -= f.subflow().Duplicates
	for dir := range uint8(2) {
		r := f.row(dir)
		a.packets -= r.Segments
		if r.Bytes != r.UniqueBytes+r.RetransmittedBytes || r.UniqueBytes != a.fresh[f][dir] {
			a.t.Fatalf("%d bytes, %d unique (%d were fresh), %d retransmitted", r.Bytes, r.UniqueBytes, a.fresh[f][dir], r.RetransmittedBytes)
		}
		if n := a.records[f][dir]; n != r.RetransmittedSegments+r.HoleSegments || r.Spurious > n ||
			n > r.RTO+r.Fast+r.Recovery+r.TailProbe+r.Probe+r.Unneeded+r.UnknownCause {
			a.t.Fatalf("%d records, %+v", n, r)
		}
		if r.MissingBytes < 0 || r.FlightMax < 0 || r.DataSegments > r.WireSegments || r.DSACKs > r.SACKs || r.SegmentMin > r.SegmentMax ||
			r.RTTMinMS.Value > r.RTTP50MS.Value || r.RTTP50MS.Value > r.RTTMaxMS.Value || r.WindowMin.Value > r.WindowMax.Value {
			a.t.Fatalf("%+v", r)
		}
		var weight, acks int64
		for i := range f.RTT(dir).Kept() {
			weight += int64(f.RTT(dir).Weight(i))
		}
		f.ACKSizes(dir).Each(func(_, count int64) { acks += count })
		if weight != r.RTTSamples || acks < r.RTTSamples {
			a.t.Fatalf("%d samples of weight %d, %d acknowledgements", r.RTTSamples, weight, acks)
		}
	}
}

func (a *audit) close() {
	if a.packets != 0 || int64(len(a.ended)) != a.first {
		a.t.Fatalf("%d packets are in no row; %d flows began, %d ended", a.packets, a.first, len(a.ended))
	}
}

// TestAnyDelivery sends a stream over a bad network: segments are lost,
// duplicated and reordered, before and after the capture, until all data has
// arrived.
func TestAnyDelivery(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		k := newTalk()
		k.isn[Up] = random.Uint32()
		k.open()
		size := 1 + random.IntN(50000)
		deliver(k, random, size)
		a := newAudit(t)
		tracker := NewTracker(a.options(Options{Samples: 10}))
		var seg Segment
		for i := range k.packets {
			tracker.Add(&k.packets[i], &seg)
			a.segment(&seg)
		}
		tracker.Close()
		a.close()
		row := seg.Flow.row(Up)
		if row.UniqueBytes != int64(size) || row.MissingBytes != 0 || seg.Flow.streams[Up].floor() != seg.Lo-uint64(seg.Packet.Seq-k.packets[2].Seq)+uint64(size) && seg.Dir == Up {
			t.Fatalf("%d bytes, want %d: %+v", row.UniqueBytes, size, row)
		}
	}
}

// deliver sends size bytes upstream. The capture sees each segment zero or more
// times; the receiver acknowledges the received data.
func deliver(k *talk, random *rand.Rand, size int) {
	seen, has := make([]bool, size), make([]bool, size)
	type piece struct{ lo, hi int }
	var flight []piece
	for lo := 0; lo < size; {
		hi := min(size, lo+1+random.IntN(1460))
		flight = append(flight, piece{lo, hi})
		lo = hi
	}
	floor := 0
	for len(flight) > 0 {
		i := random.IntN(min(4, len(flight)))
		p := flight[i]
		if random.IntN(10) == 0 { // lost before the capture
			continue
		}
		k.send(Up, ack, p.lo, 0, p.hi-p.lo)
		for b := p.lo; b < p.hi; b++ {
			seen[b] = true
		}
		if random.IntN(10) == 0 { // lost after it
			continue
		}
		for b := p.lo; b < p.hi; b++ {
			has[b] = true
		}
		for floor < size && has[floor] {
			floor++
		}
		k.ack(floor)
		if random.IntN(10) > 0 { // otherwise it is sent again
			flight = append(flight[:i], flight[i+1:]...)
		}
	}
}

// FuzzTracker plays arbitrary packets of a few flows.
func FuzzTracker(f *testing.F) {
	k := newTalk()
	k.open(scale(7), mss(1460))
	for i := range 20 {
		k.sendUp(100)
		if i%5 == 0 {
			k.next[Up] += 100
			k.ack(50*i, k.sack(60*i, 70*i))
		}
	}
	k.up(100, 700)
	k.close()
	f.Add(encode(k.packets))
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(playAny)
}

// playAny plays packets from the fuzzer's data.
func playAny(t *testing.T, data []byte) {
	a := newAudit(t)
	tracker := NewTracker(a.options(Options{Samples: 3, MaxFlows: 3, IdleNS: 100e9, ClosedNS: 10e9}))
	now := int64(1e18)
	var seg Segment
	for len(data) >= fuzzRecord {
		p := decode(data, &now)
		data = data[fuzzRecord:]
		tracker.Add(&p, &seg)
		a.segment(&seg)
	}
	tracker.Close()
	a.close()
}

// TestAnyPackets plays packets of a few flows with likely and unlikely fields.
func TestAnyPackets(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	pick := func(values ...int) int { return values[random.IntN(len(values))] }
	for range 2000 {
		var data []byte
		edge := [2]int{pick(0, 1000, 1<<32-500), pick(0, 1<<32-3000)}
		for range random.IntN(150) {
			dir := random.IntN(2)
			seq := edge[dir] + pick(0, 0, 0, 0, 100, -100, 100*random.IntN(10), -1, -100*random.IntN(20), pick(0, 1<<20, 1<<23, 1<<31, random.IntN(1<<32)))
			ack := edge[1-dir] - pick(0, 0, 0, 100, 100*random.IntN(20), -1, pick(0, -5000, random.IntN(1<<32)))
			payload := pick(0, 0, 100, 100, 100, 200, 1, random.IntN(65536))
			if random.IntN(4) > 0 {
				edge[dir] = max(edge[dir], min(seq, edge[dir]+10000)+payload)
			}
			var r [fuzzRecord]byte
			r[0] = byte(pick(16, 16, 16, 16, 16, 16, 16, 0x50, 0x50, 24, 17, 2, 18, 4, 20, random.IntN(256)))
			r[1] = byte(dir | pick(0, 0, 0, 2, 4)&7 | random.IntN(32)<<3)
			binary.BigEndian.PutUint32(r[2:], uint32(seq))
			binary.BigEndian.PutUint32(r[6:], uint32(ack))
			binary.BigEndian.PutUint16(r[10:], uint16(payload))
			binary.BigEndian.PutUint16(r[12:], uint16(random.IntN(65536)>>random.IntN(16)))
			r[14], r[15] = byte(random.IntN(256)), byte(random.IntN(256))
			data = append(data, r[:]...)
		}
		playAny(t, data)
	}
}

// fuzzRecord is the size of a packet in the fuzzer's data: flags, endpoint and
// direction, seq, ack, payload, time, first byte of options, identification.
const fuzzRecord = 16

func decode(b []byte, now *int64) packet.Packet {
	*now += int64(binary.BigEndian.Uint16(b[12:])) << (b[1] >> 3) >> 4
	p := packet.Packet{
		TimeNS: *now, Src: packet.Addr{Lo: 0xffff0a000001}, Dst: packet.Addr{Lo: 0xffff0a000002}, SrcPort: 5000 + uint16(b[1]>>1&3), DstPort: 80,
		Flags: b[0], Seq: binary.BigEndian.Uint32(b[2:]), Ack: binary.BigEndian.Uint32(b[6:]),
		Payload: uint32(binary.BigEndian.Uint16(b[10:])), Window: uint16(b[14]) << 4, IPID: uint16(b[15] >> 1),
	}
	if b[1]&1 != 0 {
		p.Src, p.Dst, p.SrcPort, p.DstPort = p.Dst, p.Src, p.DstPort, p.SrcPort
	}
	if b[15]&1 != 0 {
		p.Has |= packet.HasTimestamps
		p.TSVal, p.TSEcr = uint32(b[14]), uint32(b[13])
	}
	if b[0]&0x40 != 0 { // a SACK block around the acknowledgement
		p.Has |= packet.HasSACK
		p.Options = []byte{5, 10}
		p.Options = binary.BigEndian.AppendUint32(p.Options, p.Ack+uint32(b[14]))
		p.Options = binary.BigEndian.AppendUint32(p.Options, p.Ack+uint32(b[13]))
	}
	return p
}

// encode is approximately the inverse of decode.
func encode(packets []packet.Packet) []byte {
	var b []byte
	for _, p := range packets {
		var r [fuzzRecord]byte
		r[0] = p.Flags
		if p.Has&packet.HasSACK != 0 {
			r[0] |= 0x40
		}
		if p.SrcPort < p.DstPort {
			r[1] = 1
		}
		r[1] |= 10 << 3
		binary.BigEndian.PutUint32(r[2:], p.Seq)
		binary.BigEndian.PutUint32(r[6:], p.Ack)
		binary.BigEndian.PutUint16(r[10:], uint16(p.Payload))
		r[12], r[14], r[15] = 10, 40, byte(p.IPID<<1)
		b = append(b, r[:]...)
	}
	return b
}
