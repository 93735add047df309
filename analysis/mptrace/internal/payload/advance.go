package payload

import (
	"encoding/binary"

	"mplab/analysis/mptrace/internal/payload/proxied"
	"mplab/analysis/mptrace/internal/payload/stream"
	"mplab/analysis/mptrace/internal/payload/tlsread"
	"mplab/analysis/mptrace/internal/payload/web"
)

// layersMax is the maximum number of nested proxies.
const layersMax = 4

// advance reads all available bytes of both directions.
func (w *work) advance() {
	if !w.decipher() {
		return
	}
	for dir := range w.in {
		w.enter(dir)
	}
	if w.protocol == unknown && w.ready[up] && !w.broken[up] {
		w.choose()
	}
	switch w.protocol {
	case overTLS:
		w.readTLS()
	case overHTTP:
		w.readHTTP()
	case overDNS:
		w.readDNS()
	}
}

// decipher determines whether the bytes are those of a ShadowSocks connection,
// and returns false if it needs more bytes. A connection that is recognised as
// another protocol in clear text is not ShadowSocks, unless the client's first
// piece is exactly one request.
func (w *work) decipher() bool {
	if w.r.o.Table == nil || w.layers[0].Kind != proxied.Unknown {
		return true
	}
	b := w.in[up].Bytes()
	if len(b) == 0 {
		return false
	}
	const longest = 1 + 1 + 255 + 2
	target, size, ok := proxied.ShadowSocks(w.r.o.Table.Decode(b[:min(len(b), longest)]))
	if exact := ok && size > 0 && size == w.first; !exact {
		var clear proxied.Preamble
		clear.Read(up, b)
		switch {
		case clear.Kind == proxied.Unknown:
			return false
		case clear.Kind != proxied.None || isTLS(b) || web.StartsRequest(b):
			return true
		case !ok:
			return true
		case size == 0:
			return false
		}
	}
	w.layers[0] = proxied.Preamble{Kind: proxied.TableCipher, Target: target}
	w.in[up].Discard(uint64(size), nil)
	for dir := range w.in {
		w.in[dir].Translate(w.r.o.Table.Bytes())
	}
	return true
}

// enter reads the messages between clients and proxies, through nested proxies.
func (w *work) enter(dir int) {
	for !w.ready[dir] && !w.broken[dir] {
		in := &w.in[dir]
		p := &w.layers[w.layer[dir]]
		n, progress := p.Read(dir, in.Bytes())
		in.Discard(uint64(n), nil)
		if dir == up && p.Target.Known() {
			w.target = p.Target
			w.facts().target = p.Target
		}
		switch {
		case progress == proxied.More && !in.Cut():
			return
		case progress != proxied.Ready || w.layer[dir]+1 == layersMax:
			w.lose(dir)
		case p.Kind == proxied.None:
			w.ready[dir] = true
		default:
			if w.layer[dir]++; w.layer[dir] == len(w.layers) {
				w.layers = append(w.layers, proxied.Preamble{})
			}
		}
	}
}

func isTLS(b []byte) bool { return b[0] == 22 && (len(b) < 2 || b[1] == 3) }

// choose determines the protocol from the client's first bytes.
func (w *work) choose() {
	b := w.in[up].Bytes()
	objects := w.r.o.Objects != nil
	switch {
	case w.server() == 53:
		w.protocol = overDNS
		w.lose(up)
	case len(b) == 0:
	case isTLS(b):
		w.protocol = overTLS
		w.session = tlsread.New(w.r.o.Keys, &w.r.scratch)
		if objects && w.r.o.Keys != nil {
			w.decoder, w.limit = w.newDecoder(true), w.r.o.MaxBytes
		}
	default:
		w.protocol = overHTTP
		w.decoder = w.newDecoder(false)
		if objects {
			w.limit = w.r.o.MaxBytes
		}
	}
	if !objects && (w.protocol == overTLS || w.protocol == overHTTP) { // only the client sends the server's name
		w.lose(down)
	}
}

func (w *work) newDecoder(secure bool) *web.Decoder {
	return web.New(web.Options{Connection: w.c.ID, Secure: secure, Network: w.network, Objects: w.r.o.Objects, Pool: w.r.pool})
}

// readTLS decrypts records as long as one direction makes progress.
func (w *work) readTLS() {
	for moved := true; moved && !w.done; {
		moved = false
		for dir := range w.in {
			if w.broken[dir] || !w.ready[dir] {
				continue
			}
			in := &w.in[dir].Buffer
			before := len(in.Bytes())
			err := w.session.Advance(dir, in, func(plain []byte, runs []stream.Run) { w.decrypted(dir, plain, runs) })
			moved = moved || len(in.Bytes()) != before
			w.named()
			if err != nil {
				w.undecryptable(dir, err)
			}
		}
	}
	if w.decoder != nil { // losing one direction can unblock the other
		w.decoder.Advance([2]*stream.Buffer{&w.plain[up], &w.plain[down]})
	}
}

// named stores the server name of the ClientHello.
func (w *work) named() {
	hello, ok := w.session.Hello()
	if !ok {
		return
	}
	w.name(hello.ServerName, "sni")
	w.done = w.done || w.decoder == nil
}

func (w *work) decrypted(dir int, plain []byte, runs []stream.Run) {
	if w.decoder.Lost(dir) {
		return
	}
	w.plain[dir].AppendRuns(plain, runs)
	w.decoder.Advance([2]*stream.Buffer{&w.plain[up], &w.plain[down]})
	if w.decoder.Lost(dir) {
		w.plain[dir].Release()
	}
	if w.plain[dir].Size() > w.limit || !w.plain[dir].Settle() {
		w.plain[dir].Release()
		w.failed = true
		w.decoder.Lose(dir)
	}
}

func (w *work) undecryptable(dir int, err error) {
	_, hello := w.session.Hello()
	switch {
	case err == tlsread.ErrNoKeys || !hello && err == tlsread.ErrMalformed:
		w.done = true
	default:
		w.failed = w.failed || hello
		w.lose(dir)
	}
}

// readHTTP reads HTTP in clear text.
func (w *work) readHTTP() {
	in := [2]*stream.Buffer{&w.in[up].Buffer, &w.in[down].Buffer}
	if !w.ready[down] || w.broken[down] {
		in[down] = &w.plain[down] // which is empty
	}
	w.decoder.Advance(in)
	w.name(w.decoder.Host(), "http")
	w.done = w.r.o.Objects == nil && w.decoder.Asked()
	for dir := range w.in {
		if w.decoder.Lost(dir) && !w.broken[dir] {
			w.lose(dir)
		}
	}
}

// readDNS reads the answers of DNS over TCP (RFC 7766 §8). It skips messages
// that exceed the memory of a direction.
func (w *work) readDNS() {
	in := &w.in[down].Buffer
	for w.ready[down] && !w.broken[down] {
		n := min(w.skip, uint64(len(in.Bytes())))
		in.Discard(n, nil)
		w.skip -= n
		b := in.Bytes()
		if w.skip > 0 || len(b) < 2 || len(b) < 2+int(binary.BigEndian.Uint16(b)) {
			if in.Cut() {
				w.lose(down)
			} else if len(b) >= 2 && 2+int(binary.BigEndian.Uint16(b)) > w.limit/2 {
				w.skip = 2 + uint64(binary.BigEndian.Uint16(b))
				continue
			}
			return
		}
		message := b[2 : 2+int(binary.BigEndian.Uint16(b))]
		var t stream.Tally
		text := append(w.r.scratch[:0], message...)
		in.Discard(uint64(2+len(message)), &t)
		w.r.dns.Answer(text, t.LastNS)
	}
}

// partial reads the server's name from an incomplete first message.
func (w *work) partial() {
	in := &w.in[up].Buffer
	switch {
	case w.protocol == overTLS:
		if _, whole := w.session.Hello(); !whole {
			w.name(w.session.Partial(in).ServerName, "sni")
		}
	case w.protocol == overHTTP && w.decoder.Host() == "":
		w.name(web.PartialHost(in.Bytes()), "http")
	}
}
