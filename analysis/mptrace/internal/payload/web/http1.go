package web

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"mplab/analysis/mptrace/internal/payload/stream"
)

// headMax is the maximum size of a message head.
const headMax = 256 << 10

// http1 reads HTTP/1.0 and HTTP/1.1.
type http1 struct {
	d       *Decoder
	reader  *bufio.Reader
	halves  [2]half1
	queue   []*object // objects with incomplete responses
	count   int32
	upgrade bool // the last request can change the protocol: stop reading the client until the response
	h2c     string
}

// half1 is one direction.
type half1 struct {
	object  *object // object with an open body; nil: a head comes next
	body    body
	scanned int // bytes of the buffer without the end of the head
}

func (h *http1) advance(dir int, in *stream.Buffer) (moved bool, err error) {
	half := &h.halves[dir]
	for {
		if half.object != nil {
			tally, count := &half.object.request, &half.object.requestBody
			if dir == down {
				tally, count = &half.object.response, &half.object.responseBody
			}
			read, done, err := half.body.read(in, tally, count, &half.object.header)
			moved = moved || read
			if err != nil || !done {
				return moved, err
			}
			h.finish(dir)
			continue
		}
		if h.waits(dir) {
			return moved, nil
		}
		head, err := half.head(in)
		if head == 0 || err != nil {
			return moved, err
		}
		moved = true
		if dir == up {
			err = h.request(in, head)
		} else {
			err = h.response(in, head)
		}
		if err != nil || h.d.done || h.d.protocol != h {
			return moved, err
		}
	}
}

// waits reports whether a direction depends on the other: the length of a
// response depends on its request, and the bytes after an upgrade are not
// HTTP/1.1.
func (h *http1) waits(dir int) bool {
	if dir == up {
		return h.upgrade
	}
	return len(h.queue) == 0 && !h.d.lost[up]
}

// head returns the length of the next head, or 0 if it is incomplete.
func (half *half1) head(in *stream.Buffer) (int, error) {
	b := in.Bytes()
	if blank := len(b) - len(bytes.TrimLeft(b, "\r\n")); blank > 0 && half.scanned == 0 { // RFC 9112 §2.2
		in.Discard(uint64(blank), nil)
		b = in.Bytes()
	}
	for from := max(half.scanned-3, 0); ; {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			break
		}
		from += i + 1
		if from >= 2 && b[from-2] == '\n' || from >= 3 && b[from-2] == '\r' && b[from-3] == '\n' {
			half.scanned = 0
			return from, nil
		}
	}
	half.scanned = len(b)
	if in.Cut() {
		return 0, errHole
	}
	if len(b) > headMax {
		return 0, errSyntax
	}
	return 0, nil
}

func (h *http1) parser(head []byte) *bufio.Reader {
	if h.reader == nil {
		h.reader = bufio.NewReader(nil)
	}
	h.reader.Reset(bytes.NewReader(head))
	return h.reader
}

func (h *http1) request(in *stream.Buffer, head int) error {
	r, err := http.ReadRequest(h.parser(in.Bytes()[:head]))
	if err != nil {
		return errSyntax
	}
	h.count++
	o := h.d.add(h.count)
	o.asked, o.method, o.url = true, r.Method, h.url(r)
	o.header += int64(head)
	in.Discard(uint64(head), &o.request)
	h.d.named(r.Host)
	h.queue = append(h.queue, o)
	h.d.pay(o, len(o.url))
	if r.Method == http.MethodConnect || httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade") {
		h.upgrade = true
		h.h2c = r.Header.Get("Http2-Settings")
	}
	h.halves[up] = half1{object: o, body: bodyOf(r.ContentLength, r.TransferEncoding, false)}
	return nil
}

func (h *http1) url(r *http.Request) string {
	if r.URL.IsAbs() || r.Method == http.MethodConnect {
		return r.RequestURI
	}
	scheme := "http://"
	if h.d.o.Secure {
		scheme = "https://"
	}
	return scheme + r.Host + r.RequestURI
}

func (h *http1) response(in *stream.Buffer, head int) error {
	method := http.MethodGet
	if len(h.queue) > 0 {
		method = h.queue[0].method
	}
	r, err := http.ReadResponse(h.parser(in.Bytes()[:head]), &http.Request{Method: method})
	if err != nil {
		return errSyntax
	}
	if len(h.queue) == 0 { // the request was not captured
		h.count++
		h.queue = append(h.queue, h.d.add(h.count))
	}
	o := h.queue[0]
	o.header += int64(head)
	if r.StatusCode < 200 && r.StatusCode != http.StatusSwitchingProtocols {
		in.Discard(uint64(head), &o.response)
		return nil
	}
	var first stream.Tally
	in.Discard(uint64(head), &first)
	o.response.Merge(&first)
	o.answeredNS, o.status, o.kind = first.FirstNS, r.StatusCode, r.Header.Get("Content-Type")
	if r.StatusCode == http.StatusSwitchingProtocols || method == http.MethodConnect && r.StatusCode < 300 {
		h.change(o, r)
		return nil
	}
	h.halves[down] = half1{object: o, body: bodyOf(r.ContentLength, r.TransferEncoding, true)}
	if method == http.MethodHead || r.StatusCode == http.StatusNoContent || r.StatusCode == http.StatusNotModified {
		h.halves[down].body = body{}
	}
	return nil
}

// change leaves HTTP/1.1, for HTTP/2 in clear text (RFC 7540 §3.2), whose first
// stream is the request, or for another protocol.
func (h *http1) change(o *object, r *http.Response) {
	h.queue = nil
	settings, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(h.h2c, "="))
	if !strings.EqualFold(r.Header.Get("Upgrade"), "h2c") || h.h2c == "" || err != nil {
		o.complete, h.d.done = true, true
		return
	}
	two := newHTTP2(h.d)
	two.upgraded(o, settings)
	h.d.protocol, h.d.name = two, "h2"
}

// finish ends the message whose body is complete.
func (h *http1) finish(dir int) {
	o := h.halves[dir].object
	h.halves[dir].object = nil
	if dir == up {
		return
	}
	o.complete = true
	if len(h.queue) > 0 && h.queue[0] == o {
		h.queue = slices.Delete(h.queue, 0, 1)
	}
	if len(h.queue) == 0 {
		h.upgrade = false // the response is HTTP/1.1
	}
}

func (h *http1) end(clean bool) {
	if half := &h.halves[down]; half.object != nil && half.body.kind == untilClose {
		half.object.complete = clean
	}
}

// named stores the authority of the first request.
func (d *Decoder) named(authority string) {
	if !d.asked {
		d.asked, d.host = true, hostOf(authority)
	}
}

// hostOf removes the port from an authority.
func hostOf(authority string) string {
	host := authority
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.Contains(host[i:], "]") && strings.Count(host, ":") == strings.Count(host[:i], ":")+1 {
		host = host[:i]
	}
	return strings.Trim(host, "[]")
}
