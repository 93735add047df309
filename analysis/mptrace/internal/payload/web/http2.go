package web

import (
	"encoding/binary"

	"mplab/analysis/mptrace/internal/payload/stream"
)

// Frame types and flags of HTTP/2, RFC 9113 §6.
const (
	frameData         = 0
	frameHeaders      = 1
	frameReset        = 3
	frameSettings     = 4
	framePushPromise  = 5
	frameGoAway       = 7
	frameContinuation = 9

	flagEndStream  = 0x1
	flagACK        = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20

	settingHeaderTableSize = 1
)

const (
	frameHeader = 9
	frameMax    = 1 << 20 // of frames other than DATA
	streamsMax  = 1 << 16 // open at one time
	tableMax    = 1 << 20 // of a dynamic header table
)

// http2 reads HTTP/2.
type http2 struct {
	d       *Decoder
	halves  [2]half2
	streams map[uint32]*stream2
	highest uint32 // highest stream number that the client opened
}

// stream2 is an open stream.
type stream2 struct {
	object *object
	ended  [2]bool
}

// half2 is one direction.
type half2 struct {
	begun  bool // the preface was read
	fields fields
	block  block
	data   data
}

// data is the current DATA frame.
type data struct {
	stream  *stream2 // nil: unknown or closed
	id      uint32
	left    uint64
	padding uint64
	end     bool
	open    bool
	padded  bool // the length of the padding comes next
}

func newHTTP2(d *Decoder) *http2 {
	h := &http2{d: d, streams: map[uint32]*stream2{}}
	for dir := range h.halves {
		h.halves[dir].fields.init()
	}
	h.halves[down].begun = true // the server's preface is a frame
	return h
}

// upgraded adds the request that asked for the upgrade as stream 1.
func (h *http2) upgraded(o *object, settings []byte) {
	o.status, o.answeredNS = 0, 0
	o.number, h.highest = 1, 1
	h.streams[1] = &stream2{object: o, ended: [2]bool{up: true}}
	h.settings(up, settings)
}

func (h *http2) advance(dir int, in *stream.Buffer) (moved bool, err error) {
	half := &h.halves[dir]
	if !half.begun {
		if len(in.Bytes()) < len(preface) {
			return false, whole(in)
		}
		if string(in.Bytes()[:len(preface)]) != preface {
			return false, errSyntax
		}
		in.Discard(uint64(len(preface)), nil)
		half.begun, moved = true, true
	}
	for {
		if half.data.open {
			read, done, err := h.readData(dir, in)
			moved = moved || read
			if err != nil || !done {
				return moved, err
			}
			continue
		}
		b := in.Bytes()
		if len(b) < frameHeader {
			return moved, whole(in)
		}
		size, kind, flags := uint64(b[0])<<16|uint64(b[1])<<8|uint64(b[2]), b[3], b[4]
		id := binary.BigEndian.Uint32(b[5:]) &^ (1 << 31)
		if half.block.id != 0 && (kind != frameContinuation || id != half.block.id) {
			return moved, errSyntax
		}
		if kind == frameData {
			h.openData(dir, in, size, flags, id)
			moved = true
			continue
		}
		if size > frameMax {
			return moved, errSyntax
		}
		if uint64(len(b)) < frameHeader+size {
			return moved, whole(in)
		}
		moved = true
		if err := h.frame(dir, in, kind, flags, id, b[frameHeader:frameHeader+size]); err != nil {
			return moved, err
		}
	}
}

// whole returns errHole if a gap follows, and nil otherwise.
func whole(in *stream.Buffer) error {
	if in.Cut() {
		return errHole
	}
	return nil
}

func (h *http2) openData(dir int, in *stream.Buffer, size uint64, flags uint8, id uint32) {
	d := data{id: id, left: size, open: true, end: flags&flagEndStream != 0, padded: flags&flagPadded != 0, stream: h.streams[id]}
	if d.stream == nil && dir == down && id > h.highest && id&1 == 1 {
		d.stream = h.open(id)
	}
	in.Discard(frameHeader, d.tally(dir))
	h.halves[dir].data = d
}

func (d *data) tally(dir int) *stream.Tally {
	if d.stream == nil {
		return nil
	}
	return d.stream.object.tally(dir)
}

func (o *object) tally(dir int) *stream.Tally {
	if dir == up {
		return &o.request
	}
	return &o.response
}

func (h *http2) readData(dir int, in *stream.Buffer) (moved, done bool, err error) {
	d := &h.halves[dir].data
	if d.padded && d.left > 0 {
		if len(in.Bytes()) == 0 {
			return false, false, whole(in)
		}
		d.padding = uint64(in.Bytes()[0])
		in.Discard(1, d.tally(dir))
		d.padded, moved = false, true
		if d.left--; d.padding > d.left {
			return true, false, errSyntax
		}
	}
	for d.left > 0 {
		n := min(available(in), d.left)
		if n == 0 {
			return moved, false, nil
		}
		if d.left > d.padding {
			n = min(n, d.left-d.padding)
			d.content(dir, int64(n))
		}
		in.Discard(n, d.tally(dir))
		d.left -= n
		moved = true
	}
	d.open = false
	if d.end && d.stream != nil {
		h.ended(dir, d.id, d.stream)
	}
	return true, true, nil
}

// content counts body bytes.
func (d *data) content(dir int, n int64) {
	switch {
	case d.stream == nil:
	case dir == up:
		d.stream.object.requestBody += n
	default:
		d.stream.object.responseBody += n
	}
}

// frame processes a complete frame.
func (h *http2) frame(dir int, in *stream.Buffer, kind, flags uint8, id uint32, payload []byte) error {
	size := uint64(frameHeader + len(payload))
	half := &h.halves[dir]
	switch kind {
	case frameHeaders, framePushPromise, frameContinuation:
		err := half.block.add(kind, flags, id, payload)
		in.Discard(size, &half.block.tally)
		if err == nil && flags&flagEndHeaders != 0 {
			err = h.headers(dir)
		}
		return err
	case frameReset:
		h.reset(id)
	case frameGoAway:
		if len(payload) >= 8 && dir == down {
			h.goAway(binary.BigEndian.Uint32(payload) &^ (1 << 31))
		}
	case frameSettings:
		if flags&flagACK == 0 {
			h.settings(dir, payload)
		}
	}
	in.Discard(size, nil)
	return nil
}

// settings processes SETTINGS: the header table size of one side bounds the
// encoder of the other side.
func (h *http2) settings(dir int, payload []byte) {
	for ; len(payload) >= 6; payload = payload[6:] {
		if binary.BigEndian.Uint16(payload) == settingHeaderTableSize {
			h.halves[1-dir].fields.allow(binary.BigEndian.Uint32(payload[2:]))
		}
	}
}

// headers processes a complete header block.
func (h *http2) headers(dir int) error {
	half := &h.halves[dir]
	b := half.block
	half.block = block{}
	if err := half.fields.decode(b.text); err != nil {
		return errSyntax
	}
	if b.promised != 0 {
		return h.promise(&b, &half.fields)
	}
	s := h.streams[b.id]
	if s == nil && b.id > h.highest && b.id&1 == 1 {
		if s = h.open(b.id); s == nil {
			return errSyntax
		}
	}
	if s == nil { // closed before
		return nil
	}
	s.object.header += b.tally.Bytes
	if dir == up {
		h.highest = max(h.highest, b.id)
		s.object.request.Merge(&b.tally)
		if !s.object.asked {
			h.request(s.object, &half.fields)
		}
	} else {
		s.object.response.Merge(&b.tally)
		if half.fields.status >= 200 && s.object.status == 0 {
			s.object.status, s.object.kind, s.object.answeredNS = half.fields.status, half.fields.kind, b.tally.FirstNS
		}
	}
	if b.end {
		h.ended(dir, b.id, s)
	}
	return nil
}

func (h *http2) request(o *object, f *fields) {
	o.asked, o.method, o.url = true, f.method, f.url(h.d.o.Secure)
	h.d.named(f.authority)
	h.d.pay(o, len(o.url))
}

// promise opens the stream of a server push (RFC 9113 §8.4).
func (h *http2) promise(b *block, f *fields) error {
	if h.streams[b.promised] != nil || b.promised&1 == 1 {
		return errSyntax
	}
	s := h.open(b.promised)
	if s == nil {
		return errSyntax
	}
	s.ended[up] = true
	s.object.header = b.tally.Bytes
	s.object.request = b.tally
	h.request(s.object, f)
	return nil
}

// open starts a stream. It returns nil if there are too many.
func (h *http2) open(id uint32) *stream2 {
	if len(h.streams) >= streamsMax {
		return nil
	}
	s := &stream2{object: h.d.add(int32(id))}
	h.streams[id] = s
	return s
}

func (h *http2) ended(dir int, id uint32, s *stream2) {
	s.ended[dir] = true
	if dir == down && s.object.status != 0 {
		s.object.complete = true
	}
	if s.ended[up] && s.ended[down] {
		delete(h.streams, id)
	}
}

func (h *http2) reset(id uint32) {
	if s := h.streams[id]; s != nil && s.object.asked {
		delete(h.streams, id)
	}
}

// goAway forgets the streams that the server will not process.
func (h *http2) goAway(last uint32) {
	for id, s := range h.streams {
		if id > last && id&1 == 1 && s.object.asked {
			delete(h.streams, id)
		}
	}
}

func (h *http2) end(bool) {}
