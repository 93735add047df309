package web

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"mplab/analysis/mptrace/internal/payload/stream"
	"mplab/analysis/mptrace/tables"
)

const up, down = 0, 1

// Options of a [Decoder].
type Options struct {
	Connection int32
	Secure     bool                          // URLs are https
	Network    func(subflow int32) string    // wifi, cellular, …; "" if unknown
	Objects    *tables.Stream[tables.Object] // nil: no rows, only the host name
	Pool       *stream.Pool                  // accounts for the memory of kept objects
}

// Decoder reads HTTP from both directions of a connection. It writes the rows
// of a connection in the order of the requests, at the end of the connection or
// when the pool has no room for more.
type Decoder struct {
	o        Options
	protocol protocol // nil until the client's first bytes identify it
	name     string   // protocol name for the rows
	host     string
	objects  []*object
	lost     [2]bool // the direction cannot be read any more
	done     bool
	failed   bool
	asked    bool // a request was read
}

type protocol interface {
	// advance reads the available bytes of a direction. It reports whether it
	// read any or changed its state.
	advance(dir int, in *stream.Buffer) (bool, error)
	// end closes the open messages; clean: the connection was closed in order.
	end(clean bool)
}

var (
	errHole   = errors.New("http: part of a message's frame was not captured")
	errSyntax = errors.New("http: not a message of this protocol")
)

// New returns a decoder.
func New(o Options) *Decoder {
	if o.Network == nil {
		o.Network = func(int32) string { return "" }
	}
	return &Decoder{o: o}
}

// Host returns the server's name in the first request, without port.
func (d *Decoder) Host() string { return d.host }

// Started reports whether the connection uses HTTP.
func (d *Decoder) Started() bool { return d.protocol != nil }

// Done reports whether there is nothing more to find: the connection does not
// use HTTP, or has changed to another protocol, or both directions are lost.
func (d *Decoder) Done() bool { return d.done || d.lost[up] && d.lost[down] }

// Asked reports whether a request was read. After that, Host is final.
func (d *Decoder) Asked() bool { return d.asked }

// Failed reports whether something could not be decoded.
func (d *Decoder) Failed() bool { return d.failed }

// Lost reports whether a direction is not read any more.
func (d *Decoder) Lost(dir int) bool { return d.lost[dir] || d.done }

// Lose ends a direction because of a hole or because it cannot be decrypted.
func (d *Decoder) Lose(dir int) { d.lost[dir] = true }

// Advance reads the available bytes of both directions.
func (d *Decoder) Advance(in [2]*stream.Buffer) {
	for moved := true; moved && !d.Done(); {
		moved = false
		if d.protocol == nil && !d.sniff(in[up]) {
			return
		}
		for dir := range in {
			if d.lost[dir] {
				continue
			}
			m, err := d.protocol.advance(dir, in[dir])
			if err != nil {
				d.lost[dir], d.failed, m = true, true, true
			}
			moved = moved || m
		}
	}
}

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// sniff determines the protocol. It returns false if it needs more bytes or if
// the protocol is not HTTP.
func (d *Decoder) sniff(in *stream.Buffer) bool {
	b := in.Bytes()
	n := min(len(b), len(preface))
	line := bytes.IndexByte(b, '\n')
	switch {
	case string(b[:n]) == preface[:n] && n == len(preface):
		d.protocol, d.name = newHTTP2(d), "h2"
	case string(b[:n]) != preface[:n] && (!StartsRequest(b) || line < 0 && len(b) > lineMax || line >= 0 && !isRequestLine(b[:line])):
		d.done = true
	case string(b[:n]) != preface[:n] && line >= 0:
		d.protocol, d.name = &http1{d: d}, "http/1.1"
	default:
		d.done = d.lost[up] || in.Cut()
	}
	return d.protocol != nil
}

// StartsRequest reports whether b can be the start of an HTTP request.
func StartsRequest(b []byte) bool {
	method, _, whole := bytes.Cut(b[:min(len(b), 24)], []byte{' '})
	for _, c := range method {
		if (c < 'A' || c > 'Z') && c != '-' && c != '_' {
			return false
		}
	}
	return whole && len(method) > 0 || len(b) < 24
}

func isRequestLine(line []byte) bool {
	line = bytes.TrimRight(line, "\r")
	return len(line) > 9 && bytes.HasPrefix(line[len(line)-9:], []byte(" HTTP/1."))
}

// PartialHost returns the host in the incomplete head of a request, or "".
func PartialHost(b []byte) string {
	line, rest, _ := bytes.Cut(b, []byte{'\n'})
	if !isRequestLine(line) {
		return ""
	}
	for len(rest) > 0 {
		var whole bool
		line, rest, whole = bytes.Cut(rest, []byte{'\n'})
		name, value, _ := bytes.Cut(line, []byte{':'})
		if whole && strings.EqualFold(string(name), "host") {
			return hostOf(string(bytes.TrimSpace(value)))
		}
	}
	return ""
}

// add starts an object.
func (d *Decoder) add(number int32) *object {
	o := &object{number: number}
	if d.o.Objects != nil {
		d.objects = append(d.objects, o)
		d.pay(o, objectSize)
	}
	return o
}

// pay reserves memory for an object. If the pool is full, it writes the
// complete objects; if it is still full, it ends decoding.
func (d *Decoder) pay(o *object, size int) {
	if d.o.Objects == nil || d.take(o, size) {
		return
	}
	d.flush(func(kept *object) bool { return kept.complete })
	if !d.take(o, size) {
		d.lost, d.failed = [2]bool{true, true}, true
	}
}

func (d *Decoder) take(o *object, size int) bool {
	if !d.o.Pool.Take(size) {
		return false
	}
	o.paid += size
	return true
}

// flush writes and forgets the objects that satisfy a condition.
func (d *Decoder) flush(which func(*object) bool) {
	if d.o.Objects == nil {
		return
	}
	for _, o := range d.objects {
		if which(o) {
			d.o.Objects.Add(o.row(d.o.Connection, d.name, d.o.Network))
			d.o.Pool.Give(o.paid)
		}
	}
	d.objects = slices.DeleteFunc(d.objects, which)
}

// End writes the remaining objects; clean: both sides closed in order.
func (d *Decoder) End(clean bool) {
	if d.protocol != nil {
		d.protocol.end(clean)
	}
	d.flush(func(*object) bool { return true })
}
