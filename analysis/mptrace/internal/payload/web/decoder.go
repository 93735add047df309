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
	Network    func(subflow int32) string    // wifi, cellular, …; "" when not known
	Objects    *tables.Stream[tables.Object] // nil: no rows, the host's name alone
	Pool       *stream.Pool                  // pays for the objects that are kept
}

// Decoder reads HTTP from both directions of a connection. The rows of a
// connection follow each other in the order of the requests: they are written
// at its end, or when the pool has no room for more.
type Decoder struct {
	o        Options
	protocol protocol // nil until the client's first bytes told
	name     string   // of the protocol
	host     string
	objects  []*object
	lost     [2]bool // nothing more can be read of the direction
	done     bool
	failed   bool
	asked    bool // a request was read
}

type protocol interface {
	// advance reads what there is of a direction; it says whether it read
	// something or learnt that it cannot.
	advance(dir int, in *stream.Buffer) (bool, error)
	// end closes what is open; clean: the connection was closed in order.
	end(clean bool)
}

var (
	errHole   = errors.New("http: part of a message's frame was not captured")
	errSyntax = errors.New("http: not a message of this protocol")
)

// New returns a decoder that has read nothing.
func New(o Options) *Decoder {
	if o.Network == nil {
		o.Network = func(int32) string { return "" }
	}
	return &Decoder{o: o}
}

// Host is the server's name as the first request has it, without its port.
func (d *Decoder) Host() string { return d.host }

// Started says whether the connection was found to speak HTTP.
func (d *Decoder) Started() bool { return d.protocol != nil }

// Done says that there is nothing more to find: the connection does not speak
// HTTP, or changed to another protocol.
func (d *Decoder) Done() bool { return d.done || d.lost[up] && d.lost[down] }

// Asked says whether a request was read; after it Host is final.
func (d *Decoder) Asked() bool { return d.asked }

// Failed says whether something could not be decoded.
func (d *Decoder) Failed() bool { return d.failed }

// Lost says whether nothing more is read of a direction.
func (d *Decoder) Lost(dir int) bool { return d.lost[dir] || d.done }

// Lose tells that no more of a direction comes, because of a hole or because
// it cannot be decrypted.
func (d *Decoder) Lose(dir int) { d.lost[dir] = true }

// Advance reads what there is in both directions.
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

// sniff chooses the protocol; false when it cannot tell yet, or never will.
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

// StartsRequest says whether a request of HTTP may begin so.
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

// PartialHost finds the host in the head of a request that was not captured
// to its end; empty when it is not there.
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

// add begins an object.
func (d *Decoder) add(number int32) *object {
	o := &object{number: number}
	if d.o.Objects != nil {
		d.objects = append(d.objects, o)
		d.pay(o, objectSize)
	}
	return o
}

// pay asks the pool for the memory of an object. Where there is none, what is
// complete is written; when that does not help either, decoding ends.
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

// flush writes and forgets those objects that a condition holds for.
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

// End writes the objects that are left; clean: both sides closed in order.
func (d *Decoder) End(clean bool) {
	if d.protocol != nil {
		d.protocol.end(clean)
	}
	d.flush(func(*object) bool { return true })
}
