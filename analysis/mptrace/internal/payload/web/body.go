package web

import (
	"bytes"
	"strconv"

	"mplab/analysis/mptrace/internal/payload/stream"
)

type bodyKind uint8

const (
	ofLength bodyKind = iota
	chunked
	untilClose
)

// body reads the body of an HTTP/1.1 message (RFC 9112 §6 and §7).
type body struct {
	kind bodyKind
	left uint64 // remaining bytes of the body or the chunk
	step chunkStep
}

type chunkStep uint8

const (
	chunkSize chunkStep = iota
	chunkData
	chunkEnd
	trailers
)

// lineMax is the maximum length of a chunk-size line or a trailer.
const lineMax = 16 << 10

func bodyOf(length int64, encoding []string, response bool) body {
	switch {
	case len(encoding) > 0:
		return body{kind: chunked}
	case length >= 0:
		return body{left: uint64(length)}
	case response:
		return body{kind: untilClose}
	}
	return body{}
}

// read reads the available part of the body. It adds content bytes to content,
// trailer bytes to header, and both to t. Missing content counts too.
func (b *body) read(in *stream.Buffer, t *stream.Tally, content, header *int64) (moved, done bool, err error) {
	for {
		switch {
		case b.kind == untilClose:
			n := available(in)
			*content += int64(n)
			in.Discard(n, t)
			return n > 0, false, nil
		case b.kind == ofLength || b.step == chunkData:
			n := min(available(in), b.left)
			b.left -= n
			*content += int64(n)
			in.Discard(n, t)
			moved = moved || n > 0
			if b.left > 0 && available(in) > 0 { // a gap started or ended
				continue
			}
			if b.left > 0 || b.kind == ofLength {
				return moved, b.left == 0, nil
			}
			b.step = chunkEnd
		default:
			line := bytes.IndexByte(in.Bytes(), '\n') + 1
			if line == 0 {
				return moved, false, missing(in)
			}
			moved = true
			if b.step == trailers {
				*header += int64(line)
			}
			done, err = b.line(bytes.TrimRight(in.Bytes()[:line], "\r\n"))
			in.Discard(uint64(line), t)
			if done || err != nil {
				return moved, done, err
			}
		}
	}
}

func missing(in *stream.Buffer) error {
	if in.Cut() {
		return errHole
	}
	if len(in.Bytes()) > lineMax {
		return errSyntax
	}
	return nil
}

// line processes a line between the data of chunks.
func (b *body) line(text []byte) (done bool, err error) {
	switch b.step {
	case chunkEnd:
		if len(text) > 0 {
			return false, errSyntax
		}
		b.step = chunkSize
	case trailers:
		return len(text) == 0, nil
	default:
		size, _, _ := bytes.Cut(text, []byte{';'})
		n, err := strconv.ParseUint(string(bytes.TrimSpace(size)), 16, 63)
		if err != nil {
			return false, errSyntax
		}
		b.left, b.step = n, chunkData
		if n == 0 {
			b.step = trailers
		}
	}
	return false, nil
}

// available returns the number of bytes that can be discarded at once:
// captured, or known to be missing.
func available(in *stream.Buffer) uint64 {
	if n := in.Missing(); n > 0 {
		return n
	}
	return uint64(len(in.Bytes()))
}
