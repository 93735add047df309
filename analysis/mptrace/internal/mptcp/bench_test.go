package mptcp

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"mplab/analysis/mptrace/internal/fixture"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// bulk generates the packets of a download over two subflows, as captured on
// the phone: runs of segments alternately on each subflow, late on the second
// one, and an ACK with a DATA_ACK for every second segment of each.
type bulk struct {
	p       packet.Packet
	now     int64
	sent    uint64 // data
	queue   []uint64
	from    int
	seq     [2]uint32
	toACK   [2]int
	got     uint64
	pending int // 1 + the subflow of the next ACK
	turn    int
}

const (
	bulkSize = 1400
	bulkRun  = 6
	bulkLate = 60 // delay of the second subflow in segments
)

func (b *bulk) next() *packet.Packet {
	p := &b.p
	b.now += 10_000
	if b.pending > 0 {
		b.ack(b.pending - 1)
		b.pending = 0
		return p
	}
	on := b.turn / bulkRun % 2
	b.turn++
	data := b.sent
	b.sent += bulkSize
	if on == 1 {
		b.queue = append(b.queue, data)
		if len(b.queue)-b.from <= bulkLate {
			return b.next()
		}
		data = b.queue[b.from]
		if b.from++; b.from > 4*bulkLate {
			b.queue = b.queue[:copy(b.queue, b.queue[b.from:])]
			b.from = 0
		}
		b.got = data
	}
	f := &bulkFlows[on]
	p.Src, p.Dst, p.SrcPort, p.DstPort = f.server, f.phone, f.serverPort, f.phonePort
	b.fill(f.isn+b.seq[on], f.peer)
	p.Payload, p.DSS = bulkSize, packet.DSSMap|packet.DSSMap64|packet.DSSAck|packet.DSSAck64
	p.DSN, p.DataAck, p.SSN, p.DSSLen = bulkDown+data, bulkUp, b.seq[on]+1, bulkSize
	b.seq[on] += bulkSize
	if b.toACK[on]++; b.toACK[on] == 2 {
		b.toACK[on], b.pending = 0, on+1
	}
	return p
}

func (b *bulk) ack(on int) {
	p, f := &b.p, &bulkFlows[on]
	p.Src, p.Dst, p.SrcPort, p.DstPort = f.phone, f.server, f.phonePort, f.serverPort
	b.fill(f.peer, f.isn+b.seq[on])
	p.Payload, p.DSS, p.DataAck = 0, packet.DSSAck|packet.DSSAck64, bulkDown+b.got
}

func (b *bulk) fill(seq, ack uint32) {
	p := &b.p
	p.TimeNS, p.Seq, p.Ack, p.IPID, p.TSVal = b.now, seq, ack, uint16(b.now), uint32(b.now>>20)
	p.Flags, p.Window, p.Has, p.TSEcr = packet.ACK, 1000, packet.HasTimestamps|packet.HasDSS, 1
}

// bulkFlow is one of the two subflows after its handshake.
type bulkFlow struct {
	server, phone         packet.Addr
	serverPort, phonePort uint16
	isn, peer             uint32
}

var (
	bulkFlows = [2]bulkFlow{
		{fixture.Addr(server.addr), fixture.Addr(wifi.addr), server.port, wifi.port, 201, 101},
		{fixture.Addr(server.addr), fixture.Addr(lte.addr), server.port, lte.port, 401, 301},
	}
	bulkDown = (&script{version: 1}).first(keyS)
	bulkUp   = (&script{version: 1}).first(keyC)
)

// handshakes plays a script up to the start of the bulk transfer.
func handshakes(b *testing.B, set tables.Set) *script {
	k := newScript(b, 1)
	k.sink = tables.NewMemorySink(set, 0)
	k.engine = New(Options{}, k.sink, &k.warnings)
	k.tracker = newTracker(k.engine)
	k.send(wifi, server, packet.SYN, 100, 0, 0, k.capable(), windowScale(7))
	k.send(server, wifi, packet.SYN|packet.ACK, 200, 101, 0, k.capable(keyS), windowScale(7))
	k.send(wifi, server, packet.ACK, 101, 201, 0, k.capable(keyC, keyS))
	k.joinLTE()
	return k
}

var benchSet = tables.TableConnections | tables.TableSubflows | tables.TableDirections | tables.TableEvents |
	tables.TableRTT | tables.TableBursts | tables.TableReinjections | tables.TableThroughput | tables.TableACKSizes

// threadTime returns the CPU time of this thread, the right measure on a busy
// machine.
func threadTime() time.Duration {
	var u syscall.Rusage
	const thread = 1 // RUSAGE_THREAD
	if err := syscall.Getrusage(thread, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkBulk(b *testing.B) {
	var seg tcp.Segment
	for _, layers := range []string{"packets", "tcp", "mptcp"} {
		b.Run(layers, func(b *testing.B) {
			k := handshakes(b, benchSet)
			traffic := &bulk{now: k.now}
			b.ReportAllocs()
			runtime.LockOSThread()
			before := threadTime()
			for b.Loop() {
				p := traffic.next()
				if layers == "packets" {
					continue
				}
				k.tracker.Add(p, &seg)
				if layers == "mptcp" {
					k.engine.Add(&seg)
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(threadTime()-before)/float64(b.N), "cpu-ns/op")
			runtime.UnlockOSThread()
			if layers == "mptcp" {
				if c := k.end().Connections[0]; b.N > 1000 && (c.BytesDown < int64(b.N)*bulkSize/2 || k.warnings != (tables.Warnings{})) {
					b.Errorf("%+v %+v", c, k.warnings)
				}
			}
		})
	}
}
