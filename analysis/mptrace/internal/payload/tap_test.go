package payload_test

import (
	"bytes"
	"cmp"
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"

	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/payload"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

const up, down = mptcp.Up, mptcp.Down

// chunk is the data of one write.
type chunk struct {
	dir int
	b   []byte
}

// tap is a client connection that records its data.
type tap struct {
	net.Conn
	notes *notes
}

type notes struct {
	mu     sync.Mutex
	chunks []chunk
	opened int
}

// open opens a connection to an address.
func (n *notes) open(ctx context.Context, address string) (net.Conn, error) {
	n.mu.Lock()
	n.opened++
	n.mu.Unlock()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	return tap{c, n}, err
}

func (n *notes) add(dir int, b []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(b) > 0 {
		n.chunks = append(n.chunks, chunk{dir, bytes.Clone(b)})
	}
}

// all returns a copy of the chunks so far: a transport may read on after its
// last request.
func (n *notes) all() []chunk {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.chunks)
}

func (t tap) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.notes.add(down, b[:n])
	return n, err
}

func (t tap) Write(b []byte) (int, error) {
	t.notes.add(up, b)
	return t.Conn.Write(b)
}

// piece is the captured part of a chunk.
type piece struct {
	dir     int
	offset  uint64
	b       []byte
	timeNS  int64
	subflow int32
}

// disorder describes how a capture reorders pieces.
type disorder int

const (
	inOrder   disorder = iota
	reordered          // pieces overlap, repeat, and overtake others of their direction
	scattered          // they also overtake the answers of the other side
)

// cut splits chunks into pieces.
func cut(r *rand.Rand, chunks []chunk, how disorder) []piece {
	var out []piece
	var offset [2]uint64
	for _, c := range chunks {
		for from := 0; from < len(c.b); {
			n := min(1+r.IntN(1400), len(c.b)-from)
			lo := from
			if how != inOrder {
				lo -= r.IntN(min(lo, 100) + 1)
			}
			out = append(out, piece{dir: c.dir, offset: offset[c.dir] + uint64(lo), b: c.b[lo : from+n]})
			if how != inOrder && r.IntN(20) == 0 {
				out = append(out, out[len(out)-1])
			}
			from += n
		}
		offset[c.dir] += uint64(len(c.b))
	}
	switch how {
	case scattered:
		shuffle(r, out)
	case reordered:
		for from := 0; from < len(out); {
			n := 1
			for from+n < len(out) && out[from+n].dir == out[from].dir {
				n++
			}
			shuffle(r, out[from:from+n])
			from += n
		}
	}
	for i := range out {
		out[i].timeNS, out[i].subflow = int64(i+1)*1000, int32(r.IntN(2))
	}
	return out
}

// shuffle moves pieces by a few places.
func shuffle(r *rand.Rand, pieces []piece) {
	for i := range pieces {
		pieces[i].timeNS = int64(i + r.IntN(8))
	}
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(a.timeNS, b.timeNS) })
}

func connection(port uint16) *mptcp.Conn {
	c := &mptcp.Conn{ID: 7}
	f := &tcp.Flow{}
	f.Ends[down] = tcp.Endpoint{Addr: packet.Addr{Lo: 0xffff_0a000001}, Port: port}
	c.Subs = []*mptcp.Sub{{Conn: c, ID: 0, Flow: f, Network: "wifi"}, {Conn: c, ID: 1, Flow: &tcp.Flow{}, Network: "cellular"}}
	return c
}

// trace holds a reader's results.
type trace struct {
	objects  []tables.Object
	row      tables.Connection
	warnings tables.Warnings
}

func play(t *testing.T, o payload.Options, pieces []piece) trace {
	t.Helper()
	return playOn(t, o, connection(443), pieces)
}

func playOn(t *testing.T, o payload.Options, c *mptcp.Conn, pieces []piece) trace {
	t.Helper()
	var out trace
	o.Warnings = &out.warnings
	r := payload.New(o)
	p := r.For(c)
	frame := make([]byte, 0, 1<<16)
	for _, one := range pieces {
		frame = append(frame[:0], one.b...) // valid only during the call
		p.Data(one.dir, one.offset, frame, one.timeNS, one.subflow)
		for i := range frame {
			frame[i] = 0xaa
		}
	}
	p.End()
	out.row = tables.Connection{Client: "10.0.0.9", ClientPort: 40000, Server: "10.0.0.1", ServerPort: 443, StartNS: 1000}
	r.Describe(&out.row, c)
	if o.Objects != nil {
		out.objects = o.Objects.Rows()
	}
	return out
}
