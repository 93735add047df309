package web

import (
	"encoding/binary"
	"strconv"

	"golang.org/x/net/http2/hpack"

	"mplab/analysis/mptrace/internal/payload/stream"
)

// block is a header block, from HEADERS or PUSH_PROMISE to the last
// CONTINUATION.
type block struct {
	id       uint32 // 0: none
	promised uint32
	end      bool // END_STREAM is set
	text     []byte
	tally    stream.Tally
}

func (b *block) add(kind, flags uint8, id uint32, payload []byte) error {
	if id == 0 || (kind == frameContinuation) != (b.id != 0) || len(b.text)+len(payload) > frameMax {
		return errSyntax
	}
	if kind != frameContinuation {
		b.id, b.end = id, kind == frameHeaders && flags&flagEndStream != 0
		if flags&flagPadded != 0 {
			if len(payload) == 0 || len(payload) < 1+int(payload[0]) {
				return errSyntax
			}
			payload = payload[1 : len(payload)-int(payload[0])]
		}
		skip := 0
		switch {
		case kind == framePushPromise:
			skip = 4
		case flags&flagPriority != 0:
			skip = 5
		}
		if len(payload) < skip {
			return errSyntax
		}
		if kind == framePushPromise {
			b.promised = binary.BigEndian.Uint32(payload) &^ (1 << 31)
		}
		payload = payload[skip:]
	}
	b.text = append(b.text, payload...)
	return nil
}

// fields holds the used header fields and the HPACK decoder.
type fields struct {
	decoder *hpack.Decoder
	table   uint32 // largest allowed size so far

	method, scheme, authority, path, kind string
	status                                int
}

// tableDefault is the default size of the dynamic table (RFC 9113 §6.5.2).
const tableDefault = 4096

func (f *fields) init() {
	f.table = tableDefault
	f.decoder = hpack.NewDecoder(tableDefault, f.take)
	f.decoder.SetMaxStringLength(frameMax)
}

// allow permits a larger dynamic table. A smaller one is not enforced, because
// blocks encoded before the change can still be in flight.
func (f *fields) allow(size uint32) {
	f.table = max(f.table, min(size, tableMax))
	f.decoder.SetAllowedMaxDynamicTableSize(f.table)
}

// decode reads a header block.
func (f *fields) decode(text []byte) error {
	f.method, f.scheme, f.authority, f.path, f.kind, f.status = "", "", "", "", "", 0
	if _, err := f.decoder.Write(text); err != nil {
		return err
	}
	return f.decoder.Close()
}

func (f *fields) take(field hpack.HeaderField) {
	switch field.Name {
	case ":method":
		f.method = field.Value
	case ":scheme":
		f.scheme = field.Value
	case ":authority":
		f.authority = field.Value
	case ":path":
		f.path = field.Value
	case ":status":
		f.status, _ = strconv.Atoi(field.Value)
	case "host":
		if f.authority == "" {
			f.authority = field.Value
		}
	case "content-type":
		f.kind = field.Value
	}
}

func (f *fields) url(secure bool) string {
	if f.path == "" { // CONNECT
		return f.authority
	}
	scheme := f.scheme
	switch {
	case scheme != "":
	case secure:
		scheme = "https"
	default:
		scheme = "http"
	}
	return scheme + "://" + f.authority + f.path
}
