package tcp

import (
	"testing"

	"mplab/analysis/mptrace/internal/interval"
	"mplab/analysis/mptrace/packet"
)

const (
	syn    = packet.SYN
	synAck = packet.SYN | packet.ACK
	ack    = packet.ACK
	fin    = packet.FIN | packet.ACK
	rst    = packet.RST
)

func TestHandshake(t *testing.T) {
	for _, c := range []struct {
		name        string
		play        func(*talk)
		flows       int
		client      uint16 // port
		established bool
		synSeen     bool
		rttMS       float64 // 0: unknown
		retries     [2]int32
		closed      string
	}{
		{"whole", func(k *talk) { k.open(); k.close() }, 1, 40000, true, true, 2, [2]int32{}, "fin"},
		{"SYN twice", func(k *talk) {
			k.send(Up, syn, -1, 0, 0)
			k.wait(1000 * ms)
			k.open()
		}, 1, 40000, true, true, 0, [2]int32{1, 0}, "open"},
		{"SYN/ACK twice", func(k *talk) {
			k.send(Up, syn, -1, 0, 0)
			k.send(Down, synAck, -1, 0, 0)
			k.send(Down, synAck, -1, 0, 0)
			k.send(Up, ack, 0, 0, 0)
		}, 1, 40000, true, true, 0, [2]int32{0, 1}, "open"},
		{"SYN without answer", func(k *talk) { k.send(Up, syn, -1, 0, 0) }, 1, 40000, false, true, 0, [2]int32{}, "open"},
		{"a third SYN/ACK right behind the second", func(k *talk) {
			k.send(Up, syn, -1, 0, 0)
			k.send(Up, syn, -1, 0, 0)
			k.send(Down, synAck, -1, 0, 0, ident(0))
			k.wait(1000 * ms)
			k.send(Down, synAck, -1, 0, 0, ident(0))
			k.now -= ms - 50e3
			k.send(Down, synAck, -1, 0, 0, ident(0), func(p *packet.Packet) { p.Checksum-- })
			k.send(Up, ack, 0, 0, 0)
		}, 1, 40000, true, true, 0, [2]int32{1, 2}, "open"},
		{"both of two SYNs answered at once", func(k *talk) {
			k.send(Up, syn, -1, 0, 0)
			k.send(Up, syn, -1, 0, 0)
			k.send(Down, synAck, -1, 0, 0, ident(0))
			k.now -= ms - 1000
			k.send(Down, synAck, -1, 0, 0, ident(0), func(p *packet.Packet) { p.Checksum-- })
			k.send(Up, ack, 0, 0, 0)
		}, 1, 40000, true, true, 0, [2]int32{1, 1}, "open"},
		{"refused", func(k *talk) {
			k.send(Up, syn, -1, 0, 0)
			k.send(Down, rst|ack, -1, 0, 0)
		}, 1, 40000, false, true, 0, [2]int32{}, "rst"},
		{"both open at once", func(k *talk) {
			k.send(Up, syn, -1, 0, 0)
			k.send(Down, syn, -1, 0, 0)
			k.send(Up, synAck, -1, 0, 0)
			k.send(Down, synAck, -1, 0, 0)
			k.sendUp(10)
			k.ackUp()
		}, 1, 40000, true, true, 4, [2]int32{}, "open"},
		{"SYN/ACK first", func(k *talk) {
			k.send(Down, synAck, -1, 0, 0)
			k.send(Up, ack, 0, 0, 0)
		}, 1, 40000, true, false, 0, [2]int32{}, "open"},
		{"SYN late", func(k *talk) {
			k.send(Down, synAck, -1, 0, 0)
			k.send(Up, syn, -1, 0, 0)
			k.send(Up, ack, 0, 0, 0)
		}, 1, 40000, true, true, 1, [2]int32{}, "open"},
		{"SYN after the first payload", func(k *talk) {
			k.up(0, 10)
			k.send(Up, syn, -1, 0, 0)
			k.up(10, 10)
		}, 1, 40000, true, true, 0, [2]int32{}, "open"},
		{"begun before the capture", func(k *talk) { k.sendDown(100); k.ackDown() }, 1, 40000, true, false, 0, [2]int32{}, "open"},
		{"RST alone", func(k *talk) { k.send(Down, rst, 0, 0, 0) }, 1, 40000, false, false, 0, [2]int32{}, "rst"},
		{"RST after both FINs", func(k *talk) { k.open(); k.close(); k.send(Up, rst, 0, 0, 0) }, 1, 40000, true, true, 2, [2]int32{}, "fin"},
		{"one FIN", func(k *talk) { k.open(); k.send(Up, fin, 0, 0, 0) }, 1, 40000, true, true, 2, [2]int32{}, "open"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newTalk()
			c.play(k)
			out := k.play(Options{})
			if len(out.flows) != c.flows {
				t.Fatalf("%d flows, want %d", len(out.flows), c.flows)
			}
			f := out.flows[0]
			s := f.subflow()
			if f.Ends[Up].Port != c.client || s.Established != c.established || s.SYNSeen != c.synSeen || f.SYNSeen != c.synSeen ||
				s.RTTHandshakeMS.Value != c.rttMS || s.RTTHandshakeMS.Known != (c.rttMS != 0) ||
				s.SYNRetries != c.retries[0] || s.SYNACKRetries != c.retries[1] || s.Closed != c.closed {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestReuseOfTheFourTuple(t *testing.T) {
	again := func(k *talk, isn uint32) {
		k.isn[Up] = isn
		k.next = [2]int{}
		k.open()
	}
	for _, c := range []struct {
		name  string
		play  func(*talk)
		flows int
	}{
		{"another number", func(k *talk) { k.open(); again(k, 77) }, 2},
		{"another number after a SYN alone", func(k *talk) { k.send(Up, syn, -1, 0, 0); again(k, 77) }, 2},
		{"the same number while opening", func(k *talk) {
			k.send(Up, syn, -1, 0, 0)
			k.wait(3000 * ms)
			again(k, isnUp)
		}, 1},
		{"the same number soon after the handshake", func(k *talk) { k.open(); k.send(Up, syn, -1, 0, 0) }, 1},
		{"the same number long after the handshake", func(k *talk) { k.open(); k.wait(1500 * ms); again(k, isnUp) }, 2},
		{"the same number long after FIN", func(k *talk) { k.open(); k.sendUp(10); k.close(); k.wait(1500 * ms); again(k, isnUp) }, 2},
		{"the same number long after RST", func(k *talk) {
			k.send(Up, syn, -1, 0, 0)
			k.send(Down, rst|ack, 0, 0, 0)
			k.wait(1500 * ms)
			again(k, isnUp)
		}, 2},
		{"the same number soon after RST", func(k *talk) {
			k.send(Up, syn, -1, 0, 0)
			k.send(Down, rst|ack, 0, 0, 0)
			k.wait(500 * ms)
			k.send(Up, syn, -1, 0, 0)
		}, 1},
		{"a SYN/ACK that answers nothing", func(k *talk) {
			k.open()
			k.isn[Down] = 5
			k.isn[Up] = 99
			k.send(Down, synAck, -1, 0, 0)
		}, 2},
		{"turned round", func(k *talk) { k.open(); k.sendDown(10); k.isn[Down] = 5; k.send(Down, syn, -1, 0, 0) }, 2},
		{"silent for an hour", func(k *talk) { k.open(); k.wait(3601e9); k.sendUp(10) }, 1},
		{"silent for an hour, with other numbers", func(k *talk) { k.open(); k.wait(3601e9); k.up(1e8, 10) }, 2},
		{"silent for an hour, before a SYN", func(k *talk) { k.send(Up, syn, -1, 0, 0); k.wait(3601e9); k.send(Up, syn, -1, 0, 0) }, 2},
		{"silent for most of an hour", func(k *talk) { k.open(); k.wait(3500e9); k.sendUp(10) }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newTalk()
			c.play(k)
			if out := k.play(Options{}); len(out.flows) != c.flows {
				t.Errorf("%d flows, want %d", len(out.flows), c.flows)
			}
		})
	}
}

func TestEndOfFlows(t *testing.T) {
	play := func(wait int64, end func(*talk)) int {
		k := newTalk()
		k.open()
		end(k)
		tracker, ended := (*Tracker)(nil), 0
		tracker = NewTracker(Options{OnEnd: func(*Flow) { ended++ }})
		var seg Segment
		for i := range k.packets {
			tracker.Add(&k.packets[i], &seg)
		}
		other := k.packets[0]
		other.SrcPort = 9
		tick := func(sinceNS int64) { // the trace time advances
			p := other
			p.TimeNS = k.now + sinceNS
			tracker.Add(&p, &seg)
		}
		for since := int64(1000e9); since < wait; since += 1000e9 {
			tick(since)
		}
		for i := range int64(3) {
			tick(wait + i*2e9)
		}
		return ended
	}
	reset := func(k *talk) { k.send(Up, rst, 0, 0, 0) }
	fins := func(k *talk) {
		k.send(Up, fin, 0, 0, 0)
		k.send(Down, fin, 0, 1, 0)
	}
	open := func(*talk) {}
	for _, c := range []struct {
		name  string
		wait  int64
		end   func(*talk)
		ended int
	}{
		{"closed and kept", 5e8, (*talk).close, 0},
		{"closed for seconds", 5e9, (*talk).close, 1},
		{"reset for seconds", 5e9, reset, 1},
		{"the last FIN is not acknowledged, for seconds", 60e9, fins, 0},
		{"the last FIN is not acknowledged, for minutes", 130e9, fins, 1},
		{"reset by a number ahead, for seconds", 60e9, func(k *talk) { k.send(Up, rst, 100, 0, 0) }, 0},
		{"reset by a number beyond the window", 300e9, func(k *talk) { k.send(Up, rst, 1e9, 0, 0) }, 0},
		{"open for minutes", 600e9, open, 0},
		{"idle for more than an hour", 4501e9, open, 1},
	} {
		if got := play(c.wait, c.end); got != c.ended {
			t.Errorf("%s: %d ended, want %d", c.name, got, c.ended)
		}
	}
}

func TestOneStampOutOfPlaceEndsNothing(t *testing.T) {
	k := newTalk()
	k.open()
	other := k.packets[0]
	other.SrcPort, other.TimeNS = 9, k.now+1e17
	k.packets = append(k.packets, other)
	k.sendUp(10)
	k.close()
	if out := k.play(Options{}); len(out.flows) != 2 {
		t.Errorf("%d flows, want 2", len(out.flows))
	}
}

func TestPayloadOfSYNAndRST(t *testing.T) {
	k := newTalk()
	k.send(Up, syn, -1, 0, 100) // TCP Fast Open
	k.send(Down, synAck, -1, 100, 0)
	k.next[Up] = 100
	k.sendUp(50)
	k.send(Down, rst|ack, 0, 150, 30)
	out := k.play(Options{})
	f := out.one(t)
	up, down := f.row(Up), f.row(Down)
	if up.Bytes != 150 || up.UniqueBytes != 150 || up.MissingBytes != 0 || up.RetransmittedBytes != 0 || up.InitialWindow != 100 {
		t.Errorf("%+v", up)
	}
	if down.Bytes != 0 || down.RSTs != 1 || down.Segments != 2 || out.segments[1].Acked != 100 {
		t.Errorf("%+v", down)
	}
	if s := out.segments[0]; s.Fresh != All || s.Hi-s.Lo != 100 || uint32(s.Lo) != isnUp+1 {
		t.Errorf("%+v", s)
	}
}

// TestNumbersOfSegments: numbers of both directions, as far as known.
func TestNumbersOfSegments(t *testing.T) {
	k := newTalk()
	k.open()
	k.sendDown(1000) // wraps around
	k.down(1500, 100)
	k.ack(0)
	out := k.play(Options{})
	f := out.one(t)
	down, up := firstTurn|uint64(isnDown), firstTurn|uint64(isnUp)
	syn, synAck, third, data, answer := out.segments[0], out.segments[1], out.segments[2], out.segments[4], out.segments[5]
	if syn.Lo != up+1 || syn.Ack != 0 || synAck.Lo != down+1 || synAck.Ack != up+1 || third.Ack != down+1 {
		t.Errorf("handshake: %+v %+v %+v", syn, synAck, third)
	}
	if data.Lo != down+1501 || data.Lo < 2<<32 || data.Ack != up+1 || f.streams[Down].floor() != down+1001 || f.streams[Up].floor() != up+1 {
		t.Errorf("data: %+v, floor %x", data, f.streams[Down].floor())
	}
	if synAck.Established || !third.Established || !answer.Established {
		t.Error("established too early or too late")
	}
	k = newTalk()
	k.down(500, 100)
	out = k.play(Options{})
	if s := out.segments[0]; s.Ack != 0 || s.Lo == 0 || out.one(t).row(Down).MissingBytes != 0 {
		t.Errorf("%+v: a number of a direction without packets", s)
	}
}

func TestFilledHolesAreMissing(t *testing.T) {
	k := newTalk()
	k.open()
	for range interval.MaxSpans + 10 {
		k.next[Up] += 10
		k.sendUp(10)
	}
	f := k.play(Options{}).one(t)
	row := f.row(Up)
	if f.Filled(Up) == 0 || f.Filled(Down) != 0 || row.UniqueBytes != row.Bytes || row.MissingBytes != row.UniqueBytes {
		t.Errorf("%d filled, %+v", f.Filled(Up), row)
	}
}

func TestCloseEndsInTheOrderOfBeginning(t *testing.T) {
	k := newTalk()
	for i := range 50 {
		k.ends[Up].Port = uint16(1000 + i*7919%50)
		if i%3 == 0 {
			k.open()
		} else {
			k.send(Up, syn, -1, 0, 0)
		}
	}
	out := k.play(Options{})
	for i := 1; i < len(out.flows); i++ {
		if out.flows[i].StartNS < out.flows[i-1].StartNS {
			t.Fatal("out of order")
		}
	}
	if len(out.flows) != 50 {
		t.Errorf("%d flows", len(out.flows))
	}
}

// TestLatePackets: packets long after the close are late until a SYN starts a
// new flow. Two minutes later the flow is forgotten.
func TestLatePackets(t *testing.T) {
	for _, c := range []struct {
		name        string
		waitNS      int64
		flags       uint8
		late, begun int
	}{
		{"an ACK", 20e9, packet.ACK, 1, 1},
		{"a SYN", 20e9, packet.SYN, 0, 2},
		{"an ACK at once", 1e9, packet.ACK, 0, 1},
		{"an ACK minutes later", 200e9, packet.ACK, 0, 2},
	} {
		k := newTalk()
		k.open()
		k.close()
		k.wait(c.waitNS)
		k.send(Up, c.flags, 900, 1, 0)
		late, begun := 0, 0
		tracker := NewTracker(Options{})
		var seg Segment
		for i := range k.packets {
			p := k.packets[i]
			if i == len(k.packets)-1 { // another flow advances the trace time
				other := p
				other.SrcPort, other.Flags = 9, packet.SYN
				for range 3 {
					tracker.Add(&other, &seg)
					other.TimeNS += 2e9
				}
			}
			tracker.Add(&p, &seg)
			if seg.Late {
				late++
			} else if seg.First {
				begun++
			}
		}
		if late != c.late || begun != c.begun {
			t.Errorf("%s: %d late, %d flows", c.name, late, begun)
		}
	}
}
