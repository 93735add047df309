package payload

import (
	"net/netip"
	"strings"

	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/payload/names"
	"mplab/analysis/mptrace/internal/payload/proxied"
	"mplab/analysis/mptrace/internal/payload/stream"
	"mplab/analysis/mptrace/internal/payload/tlskeys"
	"mplab/analysis/mptrace/tables"
)

// Options of a [Reader]. Zero values select the defaults.
type Options struct {
	Keys     *tlskeys.Log                  // nil: TLS is not decrypted
	Log      *proxied.Log                  // of the agent or the proxy; nil: none
	Table    *proxied.Table                // cipher of a ShadowSocks proxy; nil: none
	Objects  *tables.Stream[tables.Object] // web objects; nil: names only
	Warnings *tables.Warnings              // nil: not counted

	MaxBytes int // buffer limit per direction while a hole is open; default 4 MiB
	MaxTotal int // buffer limit of all connections together; default 64 MiB
	MaxNames int // maximum number of addresses with names from DNS; default 32768
	MaxBegin int // buffer limit per direction before the protocol is known; default 16 KiB
}

// Reader creates a payload reader for each connection and describes connections
// by the findings. Its methods For and Describe fit the fields Payload and
// Describe of mptcp.Options. It is not safe for concurrent use.
type Reader struct {
	o       Options
	pool    *stream.Pool
	dns     *names.DNS
	scratch []byte
	known   map[*mptcp.Conn]*facts
}

// facts are the findings from a connection's payload; they are kept until its
// row is written.
type facts struct {
	host   string
	source string
	target proxied.Target
}

// New returns a reader.
func New(o Options) *Reader {
	for _, d := range []struct {
		field *int
		value int
	}{{&o.MaxBytes, 4 << 20}, {&o.MaxTotal, 64 << 20}, {&o.MaxNames, 1 << 15}, {&o.MaxBegin, 16 << 10}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.Warnings == nil {
		o.Warnings = &tables.Warnings{}
	}
	return &Reader{o: o, pool: stream.NewPool(o.MaxTotal), dns: names.NewDNS(o.MaxNames), known: map[*mptcp.Conn]*facts{}}
}

// For returns the payload reader of a connection.
func (r *Reader) For(c *mptcp.Conn) mptcp.Payload {
	if !r.pool.Take(connSize) {
		return nothing{}
	}
	return newConn(r, c)
}

// Kept returns the memory in bytes that the current connections hold.
func (r *Reader) Kept() int { return r.pool.Used() }

// UDP processes the payload of a UDP datagram from port 53.
func (r *Reader) UDP(b []byte, timeNS int64) { r.dns.Answer(b, timeNS) }

// Describe fills in the columns host, host_source, destination,
// destination_port and application. Call it once per connection, after its
// payload has ended.
func (r *Reader) Describe(row *tables.Connection, c *mptcp.Conn) {
	f := facts{}
	if known := r.known[c]; known != nil {
		f = *known
		delete(r.known, c)
	}
	client, server := point(row.Client, row.ClientPort), point(row.Server, row.ServerPort)
	if found, ok := r.o.Log.Find(client, server, row.StartNS); ok {
		row.Application = found.Application
		if !f.target.Known() && found.Destination.IsValid() {
			f.target = proxied.Target{Addr: found.Destination.Addr(), Port: found.Destination.Port()}
		}
	}
	row.Destination, row.DestPort = f.target.Destination(), int32(f.target.Port)
	if f.host == "" && f.target.Host != "" {
		f.host, f.source = f.target.Host, "proxy"
	}
	if f.host == "" {
		address := server.Addr()
		if f.target.Addr.IsValid() {
			address = f.target.Addr
		}
		if f.host = r.dns.Name(address, row.StartNS); f.host != "" {
			f.source = "dns"
		}
	}
	row.Host, row.HostSource = strings.ToValidUTF8(f.host, "\uFFFD"), f.source
}

func point(address string, port int32) netip.AddrPort {
	addr, _ := netip.ParseAddr(address)
	return netip.AddrPortFrom(addr, uint16(port))
}

// nothing discards payload.
type nothing struct{}

func (nothing) Data(int, uint64, []byte, int64, int32) {}
func (nothing) Skip(int, uint64, uint64, int64, int32) {}
func (nothing) End()                                   {}
