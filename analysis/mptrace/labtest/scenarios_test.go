package labtest_test

import (
	"fmt"
	"net/netip"
	"time"

	"mplab/analysis/mptrace/labtest"
)

// scenario is a test case with connections in a lab.
type scenario struct {
	name, what string
	options    labtest.Options
	run        func(*stage)
}

var (
	onePath   = labtest.Options{NoSecondSubflow: true}
	checksums = labtest.Options{Checksum: true}
)

// Moderate transfers keep the captures small.
const (
	some = 60_001
	more = 200_003
)

var scenarios = []scenario{
	{"tcp", "plain TCP, both directions", onePath, func(s *stage) {
		p := s.connect(labtest.Dial{}, columns{"kind": "tcp", "mptcp_version": -1, "fallback": false, "subflows": 1, "closed": "fin"})
		s.must(p.Exchange(some, more), p.Close())
	}},
	{"two-subflows", "two subflows, both directions", labtest.Options{}, func(s *stage) {
		p := s.multipath(columns{"kind": "mptcp", "mptcp_version": 1, "fallback": false, "fallback_cause": "", "subflows": 2, "subflows_asked": 2,
			"subflows_used": 2, "checksum": false, "closed": "fin"})
		s.must(p.Exchange(some, more), p.Close())
		s.row(rowTruth{Table: "connections", View: "client", Expect: columns{"interfaces": "wlan0,rmnet0"}})
		s.row(rowTruth{Table: "connections", View: "server", Expect: columns{"interfaces": "s1,s2"}})
		s.row(rowTruth{Table: "subflows", Where: columns{"role": "additional"}, Count: 1,
			Expect: columns{"established": true, "hmac": "ok", "opened_by": "client", "backup": false, "syn_retries": 0, "closed": "fin"}})
	}},
	{"upload", "upload over two subflows", labtest.Options{}, func(s *stage) {
		p := s.multipath(columns{"subflows_used": 2, "closed": "fin"})
		s.must(p.Move(labtest.Up, more), p.Close())
	}},
	{"half-close", "the client says FIN and goes on to receive", labtest.Options{}, func(s *stage) {
		p := s.multipath(columns{"closed": "fin"})
		s.must(p.Move(labtest.Up, some), p.Client.CloseWrite())
		time.Sleep(100 * time.Millisecond)
		s.must(p.Move(labtest.Down, more), p.Close())
		s.event("data-fin", "up", nil)
		s.event("data-fin", "down", nil)
	}},
	{"ipv6", "both subflows over IPv6", labtest.Options{}, func(s *stage) {
		p := s.joined(labtest.Dial{Multipath: true, To: netip.AddrPortFrom(labtest.Server6[labtest.WLAN], port)}, columns{"client": "fd01::1", "subflows": 2, "subflows_used": 2})
		s.must(p.Exchange(some, more), p.Close())
		s.row(rowTruth{Table: "subflows", Where: columns{"ip_version": 6}, Count: 2})
	}},
	{"backup-join", "the second subflow is opened as backup and not used", onePath, func(s *stage) {
		p := s.backup(columns{"subflows": 2})
		s.must(p.Exchange(some, more), p.Close())
		s.row(rowTruth{Table: "subflows", Where: columns{"role": "additional"}, Count: 1, Expect: columns{"backup": true}})
		s.row(rowTruth{Table: "subflows", Where: columns{"role": "additional"}, Calm: true, Expect: columns{"used": false}})
	}},
	{"backup-prio", "MP_PRIO makes the second subflow a backup during the transfer", labtest.Options{}, func(s *stage) {
		p := s.multipath(columns{"subflows": 2, "subflows_used": 2})
		s.during(func() error { return p.Exchange(some, more) }, 40*time.Millisecond, func() error {
			return s.Client.IP(fmt.Sprintf("mptcp endpoint change %s backup", labtest.Client4[labtest.RMNET]))
		})
		s.must(p.Close())
		s.row(rowTruth{Table: "subflows", Where: columns{"role": "additional"}, Expect: columns{"backup": true}})
		s.event("mp-prio", "up", columns{"value": 1})
	}},
	{"add-addr", "the server announces its second address, is joined there, and takes it back during the transfer", onePath, func(s *stage) {
		address := labtest.Server4[labtest.RMNET].String()
		s.must(s.Server.IP(fmt.Sprintf("mptcp endpoint add %s id 7 dev s2 signal", address)))
		p := s.multipath(columns{"subflows": 2, "subflows_used": 2})
		s.during(func() error { return p.Exchange(some, more) }, 40*time.Millisecond, func() error {
			return s.Server.IP("mptcp endpoint delete id 7")
		})
		s.must(p.Close())
		s.event("add-addr", "down", columns{"address": address, "address_id": 7})
		s.event("add-addr-echo", "up", columns{"address": address, "address_id": 7})
		s.event("remove-addr", "down", columns{"address_id": 7})
		s.row(rowTruth{Table: "subflows", Where: columns{"role": "additional"}, Count: 1, Expect: columns{"server": address, "opened_by": "client"}})
	}},
	{"remove-addr", "the client loses the address of its second subflow during the transfer", onePath, func(s *stage) {
		s.must(s.Client.IP(fmt.Sprintf("mptcp endpoint add %s id 5 dev rmnet0 subflow", labtest.Client4[labtest.RMNET])))
		p := s.multipath(columns{"subflows": 2, "subflows_used": 2})
		s.during(func() error { return p.Exchange(some, more) }, 40*time.Millisecond, func() error {
			return s.Client.IP("mptcp endpoint delete id 5")
		})
		s.must(p.Close())
		s.row(rowTruth{Table: "events", Where: columns{"event": "mp-join", "direction": "up", "address_id": 5}})
		s.event("remove-addr", "up", columns{"address_id": 5})
	}},
	{"link-down", "wlan0 goes down during the download; what it had not delivered comes again over rmnet0, which was a backup", onePath, func(s *stage) {
		s.must(s.Server.Set("net.mptcp.stale_loss_cnt", "1")) // instead of four timeouts, which take three seconds
		p := s.backup(columns{"handovers": 1, "subflows_used": 2, "closed": "fin"})
		s.during(func() error { return p.Move(labtest.Down, 2*more) }, 30*time.Millisecond, func() error {
			return s.Client.IP("link set wlan0 down")
		})
		s.must(p.Close())
		s.event("handover", "down", columns{"subflow_id": 1, "value": 0})
		s.row(rowTruth{Table: "connections", View: "server", Expect: columns{"reinjected_down": ">0"}})
	}},
	{"black-hole", "the path of wlan0 swallows all packets from within the download on, for the backup rmnet0 to go on", onePath, func(s *stage) {
		s.must(s.Server.Set("net.mptcp.stale_loss_cnt", "1")) // instead of four timeouts, which take three seconds
		p := s.backup(columns{"handovers": 1, "subflows_used": 2})
		s.during(func() error { return p.Move(labtest.Down, 2*more) }, 30*time.Millisecond, func() error {
			s.Paths[labtest.WLAN].Set(labtest.BlackHole())
			return nil
		})
		s.must(p.Close())
		s.row(rowTruth{Table: "connections", View: "server", Expect: columns{"reinjected_down": ">0"}})
		s.row(rowTruth{Table: "directions", View: "server", Where: columns{"subflow_id": 0, "direction": "down"}, Expect: columns{"rto": ">0"}})
	}},
	{"path-lost", "the path of wlan0 swallows all packets while both subflows carry data", labtest.Options{}, func(s *stage) {
		p := s.multipath(columns{"handovers": 0, "subflows_used": 2})
		s.during(func() error { return p.Move(labtest.Down, 2*more) }, 30*time.Millisecond, func() error {
			s.Paths[labtest.WLAN].Set(labtest.BlackHole())
			return nil
		})
		s.must(p.Close())
		s.row(rowTruth{Table: "connections", View: "server", Expect: columns{"reinjected_down": ">0"}})
	}},
	{"loss", "2 % of the segments with payload are lost on both paths", labtest.Options{}, func(s *stage) {
		s.Paths[labtest.WLAN].Set(labtest.Lossy(0.02, 1))
		s.Paths[labtest.RMNET].Set(labtest.Lossy(0.02, 2))
		p := s.multipath(columns{"subflows_used": 2})
		s.must(p.Exchange(some, 2*more), p.Close())
		s.row(rowTruth{Table: "directions", View: "server", Where: columns{"level": "tcp", "direction": "down", "subflow_id": 0},
			Expect: columns{"retransmitted_segments": ">0", "fast": ">0"}})
		s.row(rowTruth{Table: "directions", View: "client", Where: columns{"level": "tcp", "direction": "down", "subflow_id": 0},
			Expect: columns{"hole_segments": ">0"}})
		s.row(rowTruth{Table: "directions", Where: columns{"level": "tcp", "direction": "up", "subflow_id": 0},
			Expect: columns{"sack_permitted": true, "sacks": ">0"}})
	}},
	{"fallback-server", "the server speaks TCP alone", labtest.Options{}, func(s *stage) {
		s.listen(false)
		p := s.connect(labtest.Dial{Multipath: true}, columns{"kind": "mptcp", "fallback": true, "fallback_cause": "handshake", "subflows": 1, "closed": "fin"})
		s.must(p.Exchange(some, more), p.Close())
	}},
	{"fallback-stripped", "a middlebox removes MP_CAPABLE from SYN and SYN/ACK", labtest.Options{}, func(s *stage) {
		s.Paths[labtest.WLAN].Set(labtest.Stripping(labtest.Capable))
		p := s.connect(labtest.Dial{Multipath: true}, columns{"subflows": 1, "closed": "fin"})
		s.must(p.Exchange(some, more), p.Close())
		s.row(rowTruth{Table: "connections", View: "client", Expect: columns{"kind": "mptcp", "fallback": true, "fallback_cause": "handshake"}})
		s.row(rowTruth{Table: "connections", View: "server", Expect: columns{"kind": "tcp", "fallback": false, "fallback_cause": ""}})
	}},
	{"fallback-data", "a middlebox removes the options of Multipath TCP from all but SYN and SYN/ACK", labtest.Options{}, func(s *stage) {
		s.Paths[labtest.WLAN].Set(labtest.OnTCP(func(_ int, g labtest.Segment) bool {
			if g.Flags()&labtest.SYN == 0 {
				g.Strip()
			}
			return true
		}))
		p := s.connect(labtest.Dial{Multipath: true}, columns{"kind": "mptcp", "fallback": true, "fallback_cause": "no-dss", "subflows": 1})
		s.must(p.Exchange(some, more), p.Close())
	}},
	{"checksum", "checksums in the data sequence signals", checksums, func(s *stage) {
		p := s.multipath(columns{"checksum": true, "fallback": false, "subflows_used": 2})
		s.must(p.Exchange(some, more), p.Close())
	}},
	{"fallback-fail", "a middlebox changes payload under checksums on the only subflow: the client says MP_FAIL",
		labtest.Options{Checksum: true, NoSecondSubflow: true}, func(s *stage) {
			p := s.connect(labtest.Dial{Multipath: true}, columns{"checksum": true, "fallback": true, "fallback_cause": "mp-fail", "subflows": 1})
			s.must(p.Exchange(some, some))
			s.Paths[labtest.WLAN].Set(altering(labtest.Down))
			p.Deadline(time.Second)
			s.must(p.Write(labtest.Down, some))
			_ = p.Read(labtest.Down, some) // Linux may discard altered data: then the transfer never ends
			p.Abort()
			s.event("mp-fail", "up", nil)
		}},
	{"subflow-fail", "a middlebox changes payload under checksums on the second of two subflows: it is reset", checksums, func(s *stage) {
		p := s.multipath(columns{"checksum": true, "fallback": false, "fallback_cause": "", "subflows": 2, "reinjected_down": ">0"})
		s.Paths[labtest.RMNET].Set(altering(labtest.Down))
		s.must(p.Move(labtest.Down, more), p.Close())
		s.row(rowTruth{Table: "subflows", Where: columns{"role": "additional"}, Expect: columns{"closed": "rst", "reset_by": "client"}})
		s.event("mp-fail", "up", nil)
	}},
	{"join-refused", "the server has room for one join: it resets the second, and takes it when the first has gone", labtest.Options{}, func(s *stage) {
		s.must(s.Server.IP("mptcp limits set subflow 1"))
		p := s.multipath(columns{"subflows_asked": 4, "subflows_used": 2})
		s.must(s.Client.IP("addr add 10.1.0.3/24 dev wlan0", "mptcp endpoint add 10.1.0.3 id 9 dev wlan0 subflow"))
		s.must(s.Client.WaitCounter("EstabResets", 1))
		s.must(s.Client.IP("mptcp endpoint delete id 9", "mptcp endpoint flush"))
		time.Sleep(200 * time.Millisecond)
		s.must(s.Client.IP(fmt.Sprintf("mptcp endpoint add %s id 8 dev rmnet0 subflow", labtest.Client4[labtest.RMNET])), p.WaitSubflows(1))
		time.Sleep(80 * time.Millisecond)
		s.must(p.Exchange(some, more), p.Close())
		s.row(rowTruth{Table: "subflows", Where: columns{"client": "10.1.0.3"}, Count: 1,
			Expect: columns{"role": "additional", "closed": "rst", "reset_by": "server", "used": false}})
	}},
	{"join-hmac", "a middlebox changes the HMAC in the SYN/ACK of the join: the client resets it", labtest.Options{}, func(s *stage) {
		s.Paths[labtest.RMNET].Set(labtest.OnTCP(func(_ int, g labtest.Segment) bool {
			g.Alter(labtest.Join, func(option []byte) {
				if len(option) == 16 {
					option[4] ^= 0xff
				}
			})
			return true
		}))
		p := s.connect(labtest.Dial{Multipath: true}, columns{"subflows": 1, "subflows_asked": 2, "subflows_used": 1})
		s.must(p.Exchange(1000, 2000))
		time.Sleep(150 * time.Millisecond)
		s.must(p.Exchange(some, more), p.Close())
		s.row(rowTruth{Table: "subflows", View: "client", Where: columns{"role": "additional"}, Count: 1,
			Expect: columns{"established": false, "hmac": "wrong", "closed": "rst", "reset_by": "client"}})
	}},
	{"join-lost", "the first SYN of the join is lost", labtest.Options{}, func(s *stage) {
		s.Paths[labtest.RMNET].Set(dropFirst(labtest.Up, 1, func(g labtest.Segment) bool { return g.Flags()&labtest.SYN != 0 }))
		p := s.multipath(columns{"subflows": 2, "subflows_asked": 2})
		s.must(p.Exchange(some, more), p.Close())
		s.row(rowTruth{Table: "subflows", View: "client", Where: columns{"role": "additional"}, Expect: columns{"syn_retries": 1, "rtt_handshake_ms": nil}})
		s.row(rowTruth{Table: "subflows", View: "server", Where: columns{"role": "additional"}, Expect: columns{"syn_retries": 0}})
	}},
	{"syn-lost", "the first SYN and the first SYN/ACK are lost, and a port is closed", onePath, func(s *stage) {
		if c, err := s.DialOnly(labtest.Dial{To: netip.AddrPortFrom(labtest.Server4[labtest.WLAN], closedPort), Port: 30001}); err == nil {
			_ = c.Close()
			s.Fatal("a closed port answered")
		}
		s.truth.Connections = append(s.truth.Connections, connectionTruth{ClientPort: 30001,
			Expect: columns{"server_port": closedPort, "closed": "rst", "subflows": 0, "subflows_asked": 1}})
		s.pairs = append(s.pairs, new(labtest.Pair))
		isSYN := func(g labtest.Segment) bool { return g.Flags()&labtest.SYN != 0 }
		s.Paths[labtest.WLAN].Set(dropFirst(labtest.Up, 1, isSYN))
		p := s.connect(labtest.Dial{}, columns{"closed": "fin", "syn_seen": true})
		s.must(p.Exchange(some, some), p.Close())
		s.Paths[labtest.WLAN].Set(dropFirst(labtest.Down, 1, isSYN))
		q := s.connect(labtest.Dial{}, columns{"closed": "fin", "syn_seen": true})
		s.must(q.Exchange(some, some), q.Close())
		s.row(rowTruth{Table: "subflows", View: "client", Where: columns{"client_port": p.ClientPort},
			Expect: columns{"syn_retries": 1, "syn_ack_retries": 0, "rtt_handshake_ms": nil}})
		s.row(rowTruth{Table: "subflows", View: "server", Where: columns{"client_port": q.ClientPort},
			Expect: columns{"syn_ack_retries": ">0", "rtt_handshake_ms": nil}})
		s.row(rowTruth{Table: "subflows", Where: columns{"client_port": 30001}, Expect: columns{"established": false, "reset_by": "server"}})
	}},
	{"port-reuse", "two connections one after the other between the same ports, over TCP and over Multipath TCP", labtest.Options{}, func(s *stage) {
		for _, multipath := range []bool{false, true} {
			for n := range 2 {
				d := labtest.Dial{Multipath: multipath, From: labtest.Client4[labtest.WLAN], Port: 31000}
				if multipath {
					d.Port++
				}
				p := s.connect(d, columns{"closed": "fin", "syn_seen": true})
				s.must(p.Exchange(int64(some+n), int64(some+7+n)))
				s.must(serverCloses(p))
				time.Sleep(50 * time.Millisecond)
			}
		}
	}},
	{"fastclose", "the client aborts the connection after its transfer", labtest.Options{}, func(s *stage) {
		p := s.multipath(columns{"closed": "fastclose", "subflows": 2})
		s.must(p.Exchange(some, more))
		time.Sleep(100 * time.Millisecond)
		s.must(p.Client.SetLinger(0), p.Client.Close())
		time.Sleep(100 * time.Millisecond)
		s.event("mp-fastclose", "up", nil)
	}},
	{"reset", "the server aborts plain TCP after its transfer", onePath, func(s *stage) {
		p := s.connect(labtest.Dial{}, columns{"closed": "rst"})
		s.must(p.Exchange(some, some))
		time.Sleep(50 * time.Millisecond)
		s.must(p.Server.SetLinger(0), p.Server.Close())
		time.Sleep(50 * time.Millisecond)
		s.row(rowTruth{Table: "subflows", Expect: columns{"closed": "rst", "reset_by": "server"}})
	}},
	{"zero-window", "the client does not read for a while, over TCP and over Multipath TCP", onePath, func(s *stage) {
		for _, multipath := range []bool{false, true} {
			p := s.connect(labtest.Dial{Multipath: multipath, ClientBuffer: 32 << 10}, columns{"closed": "fin"})
			sent := make(chan error, 1)
			go func() { sent <- p.Write(labtest.Down, more) }()
			time.Sleep(600 * time.Millisecond)
			s.must(p.Read(labtest.Down, more), <-sent, p.Close())
			s.row(rowTruth{Table: "directions", Where: columns{"level": "tcp", "direction": "up", "connection_id": len(s.pairs) - 1},
				Expect: columns{"zero_windows": ">0"}})
		}
		s.event("zero-window", "up", nil)
		s.event("window-open", "up", nil)
	}},
}

// serverCloses closes in order, the server first.
func serverCloses(p *labtest.Pair) error {
	p.Client, p.Server = p.Server, p.Client
	return p.Close()
}

// altering changes a byte of the first large payload and updates the TCP
// checksum.
func altering(direction int) labtest.Middlebox {
	altered := false
	return labtest.OnTCP(func(d int, g labtest.Segment) bool {
		if b := g.Payload(); d == direction && len(b) > 1000 && !altered {
			b[500] ^= 0xff
			g.Seal()
			altered = true
		}
		return true
	})
}

// dropFirst drops the first n segments of a kind in a direction.
func dropFirst(direction, n int, which func(labtest.Segment) bool) labtest.Middlebox {
	return labtest.OnTCP(func(d int, g labtest.Segment) bool {
		if d != direction || n == 0 || !which(g) {
			return true
		}
		n--
		return false
	})
}
