package tcp

import (
	"testing"

	"mplab/analysis/mptrace/packet"
)

// TestResets: an RST ends a flow if its receiver accepts it (RFC 9293 §3.10.7,
// RFC 5961 §3.2), and a flow that continues was not ended.
func TestResets(t *testing.T) {
	scaled := func(k *talk) {
		k.send(Up, syn, -1, 0, 0, scale(7))
		k.send(Down, synAck, -1, 0, 0, scale(7))
		k.send(Up, ack, 0, 0, 0)
	}
	upload := func(k *talk, segments int) {
		for range segments {
			k.sendUp(1000)
			k.ackUp()
		}
	}
	for _, c := range []struct {
		name     string
		play     func(*talk)
		up, down int64
		closed   string
	}{
		{"of the next number", func(k *talk) {
			scaled(k)
			upload(k, 5)
			k.send(Up, rst, 5000, 0, 0)
		}, 5000, 0, "rst"},
		{"of data that is under way", func(k *talk) {
			scaled(k)
			k.sendUp(1000)
			k.sendUp(1000)
			k.send(Up, rst, 2000, 0, 0)
			k.send(Down, ack, 0, 2000, 0) // sent before the RST arrived
		}, 2000, 0, "rst"},
		{"answered by the data that was under way", func(k *talk) {
			scaled(k)
			k.sendDown(1000)
			k.send(Up, rst, 0, 0, 0)
			k.sendDown(1000)
			k.send(Up, rst, 0, 0, 0)
			k.sendDown(1000)
		}, 0, 3000, "rst"},
		{"with the number of the FIN", func(k *talk) {
			scaled(k)
			k.send(Down, fin, 0, 0, 0)
			k.send(Up, ack, 0, 1, 0)
			k.send(Down, rst, 0, 0, 0)
		}, 0, 0, "rst"},
		{"without ACK in SYN-SENT, and the SYN is answered later", func(k *talk) {
			k.send(Up, syn, -1, 0, 0)
			k.send(Down, rst, 0, 0, 0)
			k.wait(1000 * ms)
			k.open()
			upload(k, 20)
			k.wait(30e9)
			upload(k, 5)
		}, 25000, 0, "open"},
		{"of another acknowledgement in SYN-SENT", func(k *talk) {
			k.send(Up, syn, -1, 0, 0)
			k.send(Down, rst|ack, 0, -1e6, 0)
		}, 0, 0, "open"},
		{"in answer to the first of two SYNs", func(k *talk) {
			k.send(Up, syn, -1, 0, 0)
			k.send(Down, rst|ack, 0, 0, 0)
			k.wait(500 * ms)
			k.open()
			upload(k, 2)
			k.close()
		}, 2000, 0, "fin"},
		{"beyond the window", func(k *talk) {
			scaled(k)
			upload(k, 288)
			k.send(Down, rst, 1e9, 0, 0)
			k.wait(8e9)
			upload(k, 812)
		}, 1100000, 0, "open"},
		{"below what is acknowledged", func(k *talk) {
			scaled(k)
			upload(k, 3)
			k.send(Up, rst, 0, 0, 0)
		}, 3000, 0, "open"},
		{"in the window, and its addressee goes on", func(k *talk) {
			scaled(k)
			upload(k, 288)
			k.send(Down, rst, 3000, 0, 0)
			upload(k, 12)
			k.wait(8e9)
			upload(k, 800)
		}, 1100000, 0, "open"},
		{"in the window, and its addressee goes on after a minute", func(k *talk) {
			scaled(k)
			upload(k, 3)
			k.send(Down, rst, 3000, 0, 0)
			k.wait(60e9)
			upload(k, 3)
			k.close()
		}, 6000, 0, "fin"},
		{"of the next number by somebody else: the sender goes on", func(k *talk) {
			scaled(k)
			upload(k, 3)
			k.send(Up, rst, 3000, 0, 0)
			upload(k, 3)
		}, 6000, 0, "open"},
		{"in the window of a direction that nobody heard", func(k *talk) {
			k.sendUp(1000)
			k.send(Down, rst, 77, 0, 0)
		}, 1000, 0, "rst"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newTalk()
			c.play(k)
			out := k.play(Options{})
			f := out.one(t)
			if up, down := f.row(Up).UniqueBytes, f.row(Down).UniqueBytes; up != c.up || down != c.down || f.Closed() != c.closed {
				t.Errorf("%d bytes up, %d down, closed %s; want %d, %d, %s", up, down, f.Closed(), c.up, c.down, c.closed)
			}
			if row := f.subflow(); (row.ResetBy != "") != (c.closed == "rst") {
				t.Errorf("reset by %q", row.ResetBy)
			}
		})
	}
}

// TestDataAfterBothFINs: lost data is retransmitted after the FINs, while
// nothing gets through for some time.
func TestDataAfterBothFINs(t *testing.T) {
	k := newTalk()
	k.open()
	k.sendUp(100)
	k.next[Down] = 9000
	k.sendDown(2000)
	k.send(Up, ack, 100, 0, 0)
	k.send(Down, fin, 11000, 100, 0)
	k.send(Up, fin, 100, 0, 0)
	waitNS := int64(1e9)
	for seq := 0; seq < 9000; seq += 1500 {
		k.wait(waitNS)
		waitNS *= 2
		k.down(seq, 1500)
		k.send(Up, ack, 101, seq+1500, 0)
	}
	if row := k.play(Options{}).one(t).row(Down); row.UniqueBytes != 11000 || row.MissingBytes != 0 {
		t.Errorf("%+v", row)
	}
}

// TestFINSentAgainForMinutes: the flow is kept as long as its sender retries.
func TestFINSentAgainForMinutes(t *testing.T) {
	k := newTalk()
	k.open()
	k.send(Up, fin, 0, 0, 0)
	for range 5 {
		k.send(Down, fin, 0, 1, 0)
		k.wait(60e9)
	}
	k.play(Options{}).one(t)
}

// TestClockThatJumpsEndsNothing: one flow, for any time stamps.
func TestClockThatJumpsEndsNothing(t *testing.T) {
	const years = 10 * 365 * 86400 * 1e9
	for name, jump := range map[string]func(k *talk, i int){
		"ahead for good": func(k *talk, i int) {
			if i == 50 {
				k.now += years
			}
		},
		"back an hour": func(k *talk, i int) {
			if i == 50 {
				k.now -= 3700e9
			}
		},
		"ahead once": func(k *talk, i int) {
			switch i {
			case 50:
				k.now += years
			case 51:
				k.now -= years
			}
		},
	} {
		k := newTalk()
		other := newTalk()
		other.ends[Up].Port = 9
		k.open()
		for i := range 100 {
			jump(k, i)
			k.sendUp(1000)
			other.now = k.now
			other.sendUp(10) // a second flow: its packet is the first after some jumps
			k.packets = append(k.packets, other.packets...)
			other.packets = nil
			k.ackUp()
		}
		if flows := k.play(Options{}).flows; len(flows) != 2 || flows[0].row(Up).UniqueBytes != 100000 {
			t.Errorf("%s: %d flows", name, len(flows))
		}
	}
}

func TestSegmentsSayWhatBecameOfARST(t *testing.T) {
	k := newTalk()
	k.open()
	k.sendUp(1000)
	k.ackUp()
	k.send(Down, packet.RST, -5000, 0, 0)
	k.send(Down, packet.RST, 500, 0, 0)
	k.sendUp(1000)
	k.wait(100 * ms)
	k.ackUp()
	out := k.play(Options{})
	for i, seg := range out.segments {
		if seg.Ignored != (i == 5) || seg.Resumed != (i == 8) {
			t.Errorf("segment %d: ignored %v, resumed %v", i, seg.Ignored, seg.Resumed)
		}
	}
}
