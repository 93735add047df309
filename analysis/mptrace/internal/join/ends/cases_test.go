package ends

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mplab/analysis/mptrace/packet"
)

const msec = 1_000_000

// hand is a script of single packets that states which ones are lost.
type hand struct {
	*talk
	t int64 // true time of the last packet
}

func newHand(n *network) *hand {
	c := n.talk(0, 40_000, &wire{delay: 10 * msec}, &wire{delay: 10 * msec})
	c.six = true
	h := &hand{talk: c}
	h.t = c.open(n.start)
	return h
}

// data sends bytes [lo, hi) down after some time.
func (h *hand) data(after int64, lo, hi uint32, stamp uint32, lost bool) {
	h.t += after
	p := h.packet(Down, h.t, packet.ACK, h.seq[Down]+lo, h.seq[Up], hi-lo)
	p.TSVal = stamp
	h.sendDown(h.t, p, lost)
}

func TestCopiesAreToldApart(t *testing.T) {
	for _, c := range []struct {
		name            string
		six             bool
		play            func(h *hand)
		lost, ambiguous int64
		retransmitted   int64
		lostAt          []int64 // ms after the handshake
	}{
		{"by timestamp", true, func(h *hand) {
			h.data(10*msec, 0, 1000, 1, true)
			h.data(50*msec, 0, 1000, 2, false)
		}, 1, 0, 1, []int64{10}},
		{"by identification", false, func(h *hand) {
			h.data(10*msec, 0, 1000, 1, false)
			h.data(5*msec, 0, 1000, 1, true)
			h.data(1*msec, 0, 1000, 1, false)
		}, 1, 0, 2, []int64{15}},
		{"by the time of arrival", true, func(h *hand) {
			h.data(10*msec, 0, 1000, 1, false)
			h.data(50*msec, 0, 1000, 1, true)
		}, 1, 0, 1, []int64{60}},
		{"by the shortest delay", true, func(h *hand) {
			h.data(10*msec, 0, 1000, 1, false)
			h.data(8*msec, 0, 1000, 1, true)
		}, 1, 0, 1, []int64{18}},
		{"not at all", true, func(h *hand) {
			h.data(10*msec, 0, 1000, 1, true)
			h.data(50*msec, 0, 1000, 1, false)
		}, 1, 2, 1, nil},
		{"none of which is lost", true, func(h *hand) {
			h.down.delay = 60 * msec
			h.data(10*msec, 0, 1000, 1, false)
			h.data(5*msec, 0, 1000, 1, false)
			h.down.delay = 10 * msec
		}, 0, 0, 1, []int64{}},
		{"all of which are lost", true, func(h *hand) {
			h.data(10*msec, 0, 1000, 1, true)
			h.data(50*msec, 0, 1000, 1, true)
			h.data(50*msec, 0, 1000, 2, false)
		}, 2, 0, 2, []int64{10, 60}},
		{"of parts and the whole", true, func(h *hand) {
			h.data(10*msec, 0, 1000, 1, false)
			h.data(0, 1000, 2000, 1, true)
			h.data(0, 2000, 3000, 1, true)
			h.data(50*msec, 1000, 3000, 2, false)
		}, 2, 0, 1, []int64{10, 10}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(1)
			n.offset = 12345 * msec
			h := newHand(n)
			h.six = c.six
			start := h.t
			c.play(h)
			h.after(h.t + 200*msec)
			r := n.match(t, Options{Samples: -1})
			row := r.sum("wlan0", "down")
			if row.Lost != c.lost || row.Ambiguous != c.ambiguous || row.Retransmitted != c.retransmitted || row.Unseen != 0 || row.Duplicated != 0 {
				t.Errorf("%+v", row)
			}
			compareDelays(t, "down", delaysOf(r, "wlan0", "down"), n.truth[0][Down].delays(), c.ambiguous-c.lost*min(c.ambiguous, 1), 0.01)
			if c.lostAt == nil {
				if len(r.Losses) != 1 || !r.Losses[0].Ambiguous {
					t.Errorf("%+v", r.Losses)
				}
				return
			}
			if len(r.Losses) != len(c.lostAt) {
				t.Fatalf("%+v", r.Losses)
			}
			for i, loss := range r.Losses {
				if loss.TimeNS/1000 != n.phoneView(start+c.lostAt[i]*msec, r)/1000 || loss.Ambiguous || loss.Direction != "down" {
					t.Errorf("loss %+v, truth %d ms after the handshake", loss, c.lostAt[i])
				}
			}
		})
	}
}

// phoneView converts a true time to the phone's clock, by the estimated clock
// of the result.
func (n *network) phoneView(trueNS int64, r *Result) int64 {
	l := line{start: r.Clock.StartNS, offset: r.Clock.OffsetMS * 1e6, slope: r.Clock.DriftPPM * ppm}
	return l.phone(n.clock(proxyEnd, trueNS))
}

// translate replaces the phone's endpoint in the proxy's capture, as NAT does.
func (n *network) translate(path int32, to packet.Addr, port uint16) {
	from := address(byte(1 + path))
	for i := range n.captures[proxyEnd] {
		p := &n.captures[proxyEnd][i]
		if p.Src == from {
			p.Src, p.SrcPort = to, port
		}
		if p.Dst == from {
			p.Dst, p.DstPort = to, port
		}
	}
}

func TestFlowsBehindNAT(t *testing.T) {
	n := newNetwork(4)
	n.offset = -77e9
	for path := range int32(2) {
		flow := n.talk(path, 40_000, &wire{delay: 7e6, loss: 0.02}, &wire{delay: 7e6, jitter: 1e5, loss: 0.03})
		flow.after(flow.bulk(flow.open(n.start), 800, 1200, 0, msec))
	}
	n.finish()
	arrived := n.arrivals
	n.arrivals = nil
	n.translate(1, address(200), 61_234) // the other path has no NAT
	r := n.match(t, Options{Samples: -1})
	n.arrivals = arrived
	check(t, n, r)
	if r.Summary.FlowsNAT != 1 || r.Summary.Flows != 2 {
		t.Errorf("%+v", r.Summary)
	}
	for _, row := range r.PathEnds {
		if row.NAT != (row.Interface == "rmnet0") {
			t.Errorf("%+v", row)
		}
	}
}

func TestCapturesThatBeganLateAndEndedEarly(t *testing.T) {
	n := newNetwork(5)
	n.drift = 50e-6
	flow := n.talk(0, 40_000, &wire{delay: 5e6, jitter: 1e5}, &wire{delay: 9e6, jitter: 1e5})
	end := flow.bulk(flow.open(n.start), 3000, 1200, 0, msec)
	flow.after(end)
	n.finish()
	n.arrivals = nil
	from, to := n.start+1e9, n.start+2e9
	var middle []packet.Packet // the proxy's packets without those of the phone's handshake
	for _, p := range n.captures[proxyEnd] {
		if p.TimeNS > from && p.TimeNS < to {
			middle = append(middle, p)
		}
	}
	n.captures[proxyEnd] = middle
	n.captures[phoneEnd] = n.captures[phoneEnd][500:]
	r := n.match(t, Options{})
	up, down := r.sum("wlan0", "up"), r.sum("wlan0", "down")
	if up.Lost+down.Lost != 0 || up.NotJudged == 0 || up.Unseen > 10 || down.Unseen == 0 || down.Arrived < 900 || up.Arrived < 900 {
		t.Errorf("up %+v\ndown %+v", up, down)
	}
	if math.Abs(r.Clock.OffsetMS-r.Clock.DriftPPM*0) > 8 || !r.Clock.Known {
		t.Errorf("%+v", r.Clock)
	}
}

func TestNothingInCommon(t *testing.T) {
	n := newNetwork(6)
	flow := n.talk(0, 40_000, &wire{delay: 5e6}, &wire{delay: 9e6})
	flow.open(n.start)
	n.finish()
	for i := range n.captures[proxyEnd] {
		n.captures[proxyEnd][i].Seq += 77
	}
	_, err := match([2]opener{
		func() stream { return &list{packets: n.captures[phoneEnd]} }, func() stream { return &list{packets: n.captures[proxyEnd]} },
	}, Options{}, script)
	if !errors.Is(err, ErrNothing) {
		t.Error(err)
	}
}

func TestSubflowOfWhichNothingArrives(t *testing.T) {
	n := newNetwork(7)
	flow := n.talk(0, 40_000, &wire{delay: 5e6}, &wire{delay: 9e6})
	at := flow.open(n.start)
	dead := n.talk(1, 40_001, &wire{loss: 1}, &wire{loss: 1})
	for range 3 {
		at += 1e9
		n.send(dead.up, at, dead.packet(Up, at, packet.SYN, dead.seq[Up], 0, 0), 0)
	}
	flow.after(at)
	r := n.match(t, Options{})
	row := r.sum("rmnet0", "up")
	if row.Sent != 3 || row.Lost != 3 || r.Summary.FlowsPhone != 1 || len(r.Losses) != 3 || r.Losses[2].Seq != -1 || !r.Losses[2].Retransmission {
		t.Errorf("%+v\n%+v\n%+v", row, r.Summary, r.Losses)
	}
}

func TestPathThatTheProxyDidNotCaptureIsNotLost(t *testing.T) {
	n := newNetwork(7)
	var last *talk
	var at int64
	for path := range int32(2) {
		last = n.talk(path, 40_000+uint16(path), &wire{delay: 5e6}, &wire{delay: 5e6})
		at = last.bulk(last.open(n.start), 100, 1000, 0, msec)
		last.after(at)
	}
	n.finish()
	n.arrivals = nil
	n.captures[proxyEnd] = slices.DeleteFunc(n.captures[proxyEnd], func(p packet.Packet) bool { return p.Iface == 1 })
	r := n.match(t, Options{})
	if len(r.PathEnds) != 2 || len(r.Losses) != 0 || r.Summary.FlowsUnmatched != 1 || r.Summary.Flows != 1 {
		t.Errorf("%+v\n%+v", r.PathEnds, r.Summary)
	}
}

func TestNewLifeOfA4Tuple(t *testing.T) {
	n := newNetwork(8)
	at := n.start
	for range 3 {
		flow := n.talk(0, 40_000, &wire{delay: 7e6, loss: 0.1}, &wire{delay: 7e6, loss: 0.1})
		at = flow.bulk(flow.open(at), 300, 1000, 0, msec) + 3e9
		flow.after(at - 2e9)
	}
	r := n.match(t, Options{Samples: -1})
	check(t, n, r)
	if r.Summary.Flows != 3 {
		t.Errorf("%+v", r.Summary)
	}
}

func TestMemoryIsBoundedByMaxInFlight(t *testing.T) {
	n := newNetwork(9)
	flow := n.talk(0, 40_000, &wire{delay: 5e6}, &wire{delay: 5e6, loss: 0.9})
	at := flow.open(n.start)
	for i := range int64(5000) { // never sent again
		n.send(flow.down, at+i*10_000, flow.packet(Down, at+i*10_000, packet.ACK, flow.seq[Down]+uint32(i)*1000, flow.seq[Up], 1000), 0)
	}
	flow.after(at + 100*msec)
	r := n.match(t, Options{MaxInFlight: 100, WindowNS: 1e9})
	row, truth := r.sum("wlan0", "down"), n.truth[0][Down]
	if row.Sent != truth.sent || row.Lost != truth.lost {
		t.Errorf("lost %d of %d, truth %d of %d", row.Lost, row.Sent, truth.lost, truth.sent)
	}
}

func TestOutputs(t *testing.T) {
	n := newNetwork(10)
	flow := n.talk(0, 40_000, &wire{delay: 7e6, loss: 0.1}, &wire{delay: 7e6, loss: 0.1})
	flow.after(flow.bulk(flow.open(n.start), 300, 1000, 0, msec))
	r := n.match(t, Options{Samples: 10})
	var text, raw bytes.Buffer
	if err := errors.Join(r.WriteSummary(&text, 0), r.WriteJSON(&raw)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) != 4 || !strings.Contains(lines[0], "± 7.0") || !strings.Contains(lines[3], "wlan0  down") {
		t.Error(text.String())
	}
	var back Result
	if err := json.Unmarshal(raw.Bytes(), &struct {
		PathEnds *[]PathEnds `json:"path_ends"`
		OWD      *[]OWD      `json:"owd"`
		Losses   *[]Loss     `json:"losses"`
		Clock    *Clock      `json:"clock"`
	}{&back.PathEnds, &back.OWD, &back.Losses, &back.Clock}); err != nil {
		t.Fatalf("%v\n%s", err, raw.String())
	}
	if !reflect.DeepEqual(back.PathEnds, r.PathEnds) || !reflect.DeepEqual(back.OWD, r.OWD) || !reflect.DeepEqual(back.Losses, r.Losses) || back.Clock != r.Clock {
		t.Error(raw.String())
	}
	weights := map[string]int64{}
	for _, o := range r.OWD {
		weights[o.Direction] += int64(o.Weight)
	}
	for _, row := range r.PathEnds {
		if row.Delays != weights[row.Direction] || len(r.OWD) > 40 {
			t.Errorf("%d delays, %d by weight, %d samples", row.Delays, weights[row.Direction], len(r.OWD))
		}
	}
	dir := filepath.Join(t.TempDir(), "tables")
	if err := r.WriteFiles(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"path_ends.parquet", "owd.parquet", "losses.parquet", "reordering.parquet", "reinjection_ends.parquet", "ends.json"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
