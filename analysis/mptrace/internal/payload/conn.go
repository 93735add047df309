package payload

import (
	"strings"

	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/payload/proxied"
	"mplab/analysis/mptrace/internal/payload/stream"
	"mplab/analysis/mptrace/internal/payload/tlsread"
	"mplab/analysis/mptrace/internal/payload/web"
)

const up, down = mptcp.Up, mptcp.Down

// connSize is the approximate memory of a connection that is being read,
// without its buffered payload.
const connSize = 1 << 10

// conn reads the payload of a connection: pieces in order, then the proxy's
// preamble, TLS and HTTP. work is nil when there is nothing more to find.
type conn struct {
	*work
}

type work struct {
	r     *Reader
	c     *mptcp.Conn
	in    [2]stream.Assembler
	first int // size of the client's first piece, if it was at offset 0
	limit int // maximum buffered bytes per direction

	layers   []proxied.Preamble // nested proxies; the last one is the application
	layer    [2]int             // current layer of each direction
	ready    [2]bool            // the application's bytes come next
	target   proxied.Target
	protocol protocol
	session  *tlsread.Session
	plain    [2]stream.Buffer // decrypted bytes
	decoder  *web.Decoder
	skip     uint64  // DNS over TCP: remaining bytes of an oversized message
	broken   [2]bool // the direction is not read any more
	done     bool    // nothing more to find
	failed   bool
}

// protocol is the protocol after the preamble.
type protocol uint8

const (
	unknown protocol = iota
	overTLS
	overHTTP
	overDNS
)

func newConn(r *Reader, c *mptcp.Conn) *conn {
	w := &work{r: r, c: c, limit: r.o.MaxBegin, layers: make([]proxied.Preamble, 1)}
	for dir := range w.in {
		w.in[dir], w.plain[dir] = stream.NewAssembler(r.pool), stream.NewBuffer(r.pool)
	}
	return &conn{w}
}

// Data adds captured bytes.
func (c *conn) Data(dir int, offset uint64, b []byte, timeNS int64, subflow int32) {
	w := c.work
	if w == nil || w.in[dir].Ended() {
		return
	}
	if dir == up && offset == 0 && w.first == 0 {
		w.first = len(b)
	}
	w.in[dir].Add(offset, b, timeNS, subflow)
	c.work = w.turn(dir)
}

// Skip adds bytes that were not captured.
func (c *conn) Skip(dir int, offset, size uint64, timeNS int64, subflow int32) {
	w := c.work
	if w == nil || w.in[dir].Ended() {
		return
	}
	w.in[dir].Skip(offset, size, timeNS, subflow)
	c.work = w.turn(dir)
}

// End writes the results.
func (c *conn) End() {
	w := c.work
	if w == nil {
		return
	}
	c.work = nil
	for dir := range w.in {
		if w.in[dir].Waiting() {
			w.hole(dir)
		}
	}
	w.lose(up)
	w.advance()
	w.close(w.clean())
}

// turn reads the available bytes and buffers the rest. It returns nil if there
// is nothing more to find.
func (w *work) turn(dir int) *work {
	w.advance()
	if !w.in[dir].Settle(w.limit) {
		w.hole(dir)
		w.advance()
	}
	if !w.over() {
		return w
	}
	w.close(false)
	return nil
}

func (w *work) over() bool {
	switch {
	case w.done || w.broken[up] && (w.broken[down] || w.protocol == unknown):
		return true
	case w.protocol == overDNS:
		return w.broken[down]
	case w.decoder != nil:
		return w.decoder.Done()
	}
	return false
}

// server returns the port of the server that the application connects to.
func (w *work) server() uint16 {
	if w.target.Port != 0 {
		return w.target.Port
	}
	if len(w.c.Subs) == 0 || w.c.Subs[0].Flow == nil {
		return 0
	}
	end := mptcp.Down
	if w.c.Subs[0].Turned {
		end = mptcp.Up
	}
	return w.c.Subs[0].Flow.Ends[end].Port
}

// clean reports whether the connection was closed in order.
func (w *work) clean() bool {
	if w.session != nil && w.session.Closed(down) {
		return true
	}
	for _, s := range w.c.Subs {
		if s.Flow != nil && s.Flow.Closed() == "fin" {
			return true
		}
	}
	return false
}

// hole ends a direction with missing bytes.
func (w *work) hole(dir int) {
	w.failed = w.failed || w.decoder != nil && w.decoder.Started()
	w.lose(dir)
}

// lose ends a direction; no more of it is read.
func (w *work) lose(dir int) {
	if dir == up && !w.broken[up] {
		w.partial()
	}
	w.broken[dir] = true
	w.in[dir].End()
	if w.decoder != nil {
		w.decoder.Lose(dir)
	}
}

// close writes the objects and releases the memory.
func (w *work) close(clean bool) {
	if w.decoder != nil {
		w.decoder.End(clean)
		w.failed = w.failed || w.decoder.Failed()
	}
	for dir := range w.in {
		w.in[dir].End()
		w.plain[dir].Release()
	}
	w.r.pool.Give(connSize)
	if w.failed && w.r.o.Objects != nil {
		w.r.o.Warnings.PayloadUndecodable++
	}
}

// facts returns the findings about the connection.
func (w *work) facts() *facts {
	f := w.r.known[w.c]
	if f == nil {
		f = &facts{}
		w.r.known[w.c] = f
	}
	return f
}

// name stores the server's name, unless one is known.
func (w *work) name(host, source string) {
	if f := w.facts(); host != "" && f.host == "" {
		f.host, f.source = strings.ToLower(host), source
	}
}

func (w *work) network(subflow int32) string {
	for _, s := range w.c.Subs {
		if s.ID == subflow {
			return s.Network
		}
	}
	return ""
}
