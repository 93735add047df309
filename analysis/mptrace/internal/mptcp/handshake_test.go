package mptcp

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// The numbers of the next two tests were computed with Python's hashlib and
// hmac.

func TestTokenAndIDSN(t *testing.T) {
	for _, c := range []struct {
		version int32
		key     uint64
		token   uint32
		idsn    uint64
	}{
		{0, 0, 0x05fe4057, 0xac558654f107c7e9},
		{0, keyC, 0xdd5783bc, 0x3a95ed6e4ebb4ad5},
		{1, 0, 0xaf5570f5, 0xe5b2328de0e83dfc},
		{1, keyC, 0x66840dda, 0xf5a101d3d29d6f72},
	} {
		if token, idsn := tokenAndIDSN(c.version, c.key); token != c.token || idsn != c.idsn {
			t.Errorf("version %d, key %x: token %08x, idsn %016x", c.version, c.key, token, idsn)
		}
	}
}

func TestJoinHMAC(t *testing.T) {
	for version, want := range []string{
		"cf00d776f8523ecb7ccacf880aeaa5af0d57bb5f",
		"ff22cd5c5dd98630a1c6942aef70bcee216d86172edec69ad8d787ea18d9caaf",
	} {
		if got := hex.EncodeToString(joinHMAC(int32(version), keyC, keyS, 7, 8)); got != want {
			t.Errorf("version %d: %s", version, got)
		}
	}
}

// TestHandshakes opens connections with parts of the handshake missing. The
// following data shows whether the keys are known.
func TestHandshakes(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint8) {
		const syn, synAck, ack = 1, 2, 4
		for lost := range 8 {
			k := newScript(t, version)
			first := k.capable()
			if version == 0 {
				first = k.capable(keyC)
			}
			if lost&syn == 0 {
				k.send(wifi, server, packet.SYN, 100, 0, 0, first)
			}
			if lost&synAck == 0 {
				k.send(server, wifi, packet.SYN|packet.ACK, 200, 101, 0, k.capable(keyS))
			}
			if lost&ack == 0 {
				k.send(wifi, server, packet.ACK, 101, 201, 0, k.capable(keyC, keyS))
			}
			k.send(wifi, server, packet.ACK, 101, 201, 30, dss(k.first(keyC), 1, 30))
			k.send(server, wifi, packet.ACK, 201, 131, 40, dss(k.first(keyS), 1, 40))
			k.joinLTE()
			k.send(lte, server, packet.ACK, 301, 401, 50, dss(k.first(keyC)+30, 1, 50))
			r := k.end()
			knowsS := lost&synAck == 0 || lost&ack == 0
			knowsC := lost&ack == 0 || version == 0 && lost&syn == 0
			want := fmt.Sprintf("kind mptcp, tokens %v %v, %d connections, up %d down 40, syn %v", knowsC, knowsS, 1, 80, lost&syn == 0)
			if !knowsS {
				want = fmt.Sprintf("kind mptcp, tokens %v false, 2 connections, up 30 down 40, syn %v", knowsC, lost&syn == 0)
			}
			c := r.Connections[0]
			got := fmt.Sprintf("kind %s, tokens %v %v, %d connections, up %d down %d, syn %v",
				c.Kind, c.TokenClient != "", c.Token != "", len(r.Connections), c.BytesUp, c.BytesDown, c.SYNSeen)
			if got != want || c.Fallback {
				t.Errorf("without %03b:\n%s\n%s %v", lost, got, want, c.FallbackCause)
			}
			hmac := "ok"
			if !knowsC || !knowsS {
				hmac = ""
			}
			if s := r.Subflows[1]; s.HMAC != hmac || !s.Established {
				t.Errorf("without %03b: %+v", lost, s)
			}
			if r.Warnings.HMACMismatch+r.Warnings.KeyChanged+r.Warnings.UnmappedBytes+r.Warnings.MappingOutOfRange != 0 {
				t.Errorf("without %03b: %+v", lost, r.Warnings)
			}
		}
	})
}

func TestKeyChanges(t *testing.T) {
	k := newScript(t, 1)
	k.openMPTCP()
	k.send(wifi, server, packet.ACK, 101, 201, 0, k.capable(keyC, keyS+1))
	r := k.end()
	if r.Warnings.KeyChanged != 1 || r.Connections[0].Token != fmt.Sprintf("%08x", k.token(keyS)) {
		t.Errorf("%+v", r.Warnings)
	}
}

func TestVersionIsTheServers(t *testing.T) {
	k := newScript(t, 1)
	k.send(wifi, server, packet.SYN, 100, 0, 0, option(0, 1, byte(hmacFlag)))
	k.send(server, wifi, packet.SYN|packet.ACK, 200, 101, 0, option(0, 0, byte(hmacFlag), uint64(keyS)))
	if c := k.end().Connections[0]; c.MPTCPVersion != 0 || c.Checksum {
		t.Errorf("%+v", c)
	}
}

func TestChecksums(t *testing.T) {
	k := newScript(t, 0)
	k.openMPTCP()
	k.send(wifi, server, packet.ACK, 101, 201, 10, dssSum(k.first(keyC), 1, 10, 0x1234))
	if c := k.end().Connections[0]; !c.Checksum || c.BytesUp != 10 {
		t.Errorf("%+v", c)
	}
}

func TestWrongHMAC(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint8) {
		k := newScript(t, version)
		k.openMPTCP()
		bad := make([]byte, 20)
		k.send(lte, server, packet.SYN, 300, 0, 0, joinSYN(k.token(keyS), 7, 2, 0))
		k.send(server, lte, packet.SYN|packet.ACK, 400, 301, 0, joinSYNACK(joinHMAC(int32(version), keyS, keyC, 8, 7), 8, 3, 0))
		k.send(lte, server, packet.ACK, 301, 401, 0, joinACK(bad))
		r := k.end()
		if r.Warnings.HMACMismatch != 1 || r.Subflows[1].Established || r.Subflows[1].HMAC != "wrong" || r.Connections[0].Subflows != 1 || r.Connections[0].SubflowsAsked != 2 {
			t.Errorf("%+v %+v", r.Warnings, r.Subflows)
		}
	})
}

// TestOrphans: joins of connections that were not captured are grouped by
// token.
func TestOrphans(t *testing.T) {
	k := newScript(t, 1)
	k.joinLTE()
	k.send(server, lte, packet.ACK, 401, 301, 700, dss(1<<60, 1, 700))
	k.joinFrom(wifi, 500, 600, 0) // the same token
	k.send(server, wifi, packet.ACK, 601, 501, 100, dss(1<<60, 1, 100))
	third := end{lte.addr, 555}
	k.send(third, server, packet.SYN, 300, 0, 0, joinSYN(k.token(keyS)+1, 7, 2, 0))
	r := k.end()
	if c := r.Connections[0]; len(r.Connections) != 2 || c.Kind != "mptcp" || c.Fallback || c.Subflows != 2 || c.BytesDown != 700 || c.ReinjectedDn != 100 ||
		c.MPTCPVersion != -1 || c.Token != fmt.Sprintf("%08x", k.token(keyS)) || r.Subflows[0].JoinDelayMS.Known || c.JoinDelayMS.Known || c.SYNSeen {
		t.Errorf("%+v", c)
	}
	if c := r.Connections[1]; c.Token != fmt.Sprintf("%08x", k.token(keyS)+1) || c.Subflows != 0 || r.Warnings.JoinUnknownToken != 3 {
		t.Errorf("%+v %+v", c, r.Warnings)
	}
	if len(k.engine.orphans)+len(k.engine.tokens) != 0 {
		t.Error("tokens are not released")
	}
}

func TestJoinRetries(t *testing.T) {
	k := newScript(t, 1)
	k.openMPTCP()
	syn := joinSYN(k.token(keyS), 7, 2, 0)
	k.send(lte, server, packet.SYN, 300, 0, 0, syn)
	k.wait(1000)
	k.send(lte, server, packet.SYN, 300, 0, 0, syn)
	r := k.end()
	if s := r.Subflows[1]; s.SYNRetries != 1 || s.Established || s.JoinDelayMS != tables.Just(3.0) || len(r.Connections) != 1 {
		t.Errorf("%+v", s)
	}
}

func TestServerOpensSubflow(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint8) {
		k := newScript(t, version)
		k.openMPTCP()
		v := int32(version)
		k.send(server, lte, packet.SYN, 400, 0, 0, joinSYN(k.token(keyC), 7, 5, 1))
		k.send(lte, server, packet.SYN|packet.ACK, 300, 401, 0, joinSYNACK(joinHMAC(v, keyC, keyS, 8, 7), 8, 6, 0))
		k.send(server, lte, packet.ACK, 401, 301, 0, joinACK(joinHMAC(v, keyS, keyC, 7, 8)))
		k.send(server, lte, packet.ACK, 401, 301, 100, dss(k.first(keyS), 1, 100))
		k.send(lte, server, packet.RST|packet.ACK, 301, 501, 0, option(8, 1, byte(3)))
		r := k.end()
		c, s := r.Connections[0], r.Subflows[1]
		if c.BytesDown != 100 || c.BytesUp != 0 || s.UniqueDown != 100 || s.PayloadUp != 0 || s.ClientPort != 40002 || s.Server != "10.9.0.9" ||
			s.OpenedBy != "server" || s.HMAC != "ok" || s.AddressID != tables.Just(int32(5)) || !s.Backup || s.ResetBy != "client" ||
			s.ResetReason != tables.Just(int32(3)) {
			t.Errorf("%+v\n%+v", c, s)
		}
		if d := direct(t, r, "tcp", "down", 1); d.Bytes != 100 || d.SYNs != 1 || d.Mappings != 1 {
			t.Errorf("%+v", d)
		}
		for _, ev := range r.Events {
			if want := map[string]string{"mp-tcprst": "up", "first-data": "down", "rst": "up"}[ev.Event]; want != "" && ev.Direction != want {
				t.Errorf("%+v", ev)
			}
		}
	})
}

func TestSignals(t *testing.T) {
	k := newScript(t, 1)
	k.openMPTCP()
	k.joinLTE()
	v4 := []byte{192, 0, 2, 1}
	v6 := slices.Concat([]byte{0x20, 1, 0xd, 0xb8}, make([]byte, 11), []byte{1})
	k.send(server, wifi, packet.ACK, 201, 101, 0, option(3, 0, byte(9), v4, uint16(8080), uint64(1)))
	k.send(wifi, server, packet.ACK, 101, 201, 0, option(3, 1, byte(9), v4, uint16(8080)))
	k.send(wifi, server, packet.ACK, 101, 201, 0, option(3, 6, byte(10), v6))
	k.send(wifi, server, packet.ACK, 101, 201, 0, option(5, 1, byte(2))) // MP_PRIO about the address of LTE
	k.send(wifi, server, packet.ACK, 101, 201, 0, option(4, 0, byte(2), byte(77)))
	k.send(wifi, server, packet.RST|packet.ACK, 101, 201, 0, option(7, 0, byte(0), uint64(keyS)))
	r := k.end()
	var got []string
	for _, ev := range r.Events {
		got = append(got, fmt.Sprintf("%d %s %s %s", ev.SubflowID, ev.Direction, ev.Event, ev.Detail))
	}
	want := []string{
		"0 up syn ", "0 up mp-capable SYN", "0 down mp-capable SYN/ACK", "0 up mp-capable ACK", "0 up established ",
		"1 up syn ", "1 up mp-join SYN", "1 down mp-join SYN/ACK", "1 up mp-join ACK", "1 up established ",
		"0 down add-addr ", "0 up add-addr-echo ", "0 up add-addr ", "0 up mp-prio ",
		"0 up remove-addr ", "0 up remove-addr ", "0 up mp-fastclose ", "0 up rst ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	add, prio := r.Events[10], r.Events[13]
	if add.Address != "192.0.2.1" || add.Port != tables.Just(int32(8080)) || add.AddressID != tables.Just(int32(9)) || r.Events[12].Address != "2001:db8::1" {
		t.Errorf("%+v", add)
	}
	if prio.Value != tables.Just(int64(1)) || prio.AddressID != tables.Just(int32(2)) || add.Value.Known {
		t.Errorf("%+v", prio)
	}
	if r.Connections[0].Closed != "fastclose" || r.Subflows[0].Closed != "rst" || r.Subflows[0].Backup || !r.Subflows[1].Backup {
		t.Errorf("%+v %+v", r.Connections[0], r.Subflows)
	}
}

func TestPrio(t *testing.T) {
	for name, c := range map[string]struct {
		option []byte
		backup [2]bool
	}{
		"on its subflow":      {option(5, 1), [2]bool{false, true}},
		"for address 0":       {option(5, 1, byte(0)), [2]bool{true, false}},
		"for nobody's id":     {option(5, 1, byte(99)), [2]bool{false, true}},
		"no longer a back-up": {option(5, 0, byte(2)), [2]bool{false, false}},
	} {
		k := newScript(t, 0)
		k.openMPTCP()
		backup := byte(0)
		if name == "no longer a back-up" {
			backup = 1
		}
		k.joinFrom(lte, 300, 400, backup)
		k.send(lte, server, packet.ACK, 301, 401, 0, c.option)
		r := k.end()
		if got := [2]bool{r.Subflows[0].Backup, r.Subflows[1].Backup}; got != c.backup {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestCutOptionsProveNothing(t *testing.T) {
	k := newScript(t, 1)
	k.openMPTCP()
	for i := range uint32(40) {
		frame, size := frameOf(server, wifi, packet.ACK, 201+i*100, 101, 100, [][]byte{dss(1, 1, 100)})
		k.now += 1e6
		k.sendFrame(frame[:44], size, false)
	}
	r := k.end()
	if c := r.Connections[0]; c.Fallback || r.Warnings.UnmappedBytes != 4000 {
		t.Errorf("%+v %+v", c, r.Warnings)
	}
}

// TestMalformedOption: an unreadable option changes nothing.
func TestMalformedOption(t *testing.T) {
	k := newScript(t, 1)
	k.openMPTCP()
	k.send(wifi, server, packet.ACK, 101, 201, 0, []byte{30, 5, 0x20, 7, 7})
	if r := k.end(); len(r.Connections) != 1 || r.Connections[0].Fallback || r.Connections[0].Subflows != 1 || r.Warnings != (tables.Warnings{}) {
		t.Errorf("%+v, %+v", r.Connections, r.Warnings)
	}
}

// TestJoinOfOneOfTwoConnectionsWithTheSameToken: the HMAC decides.
func TestJoinOfOneOfTwoConnectionsWithTheSameToken(t *testing.T) {
	const otherKey = 0x7777
	for name, c := range map[string]struct {
		key  uint64 // the client's key of the joined connection
		hmac string
		want [2]int64 // bytes up
	}{
		"the earlier one": {keyC, "ok", [2]int64{120, 30}},
		"the later one":   {otherKey, "ok", [2]int64{20, 130}},
		"neither":         {5, "wrong", [2]int64{20, 130}},
	} {
		k := newScript(t, 1)
		k.openMPTCP()
		k.send(wifi, server, packet.ACK, 101, 201, 20, dss(k.first(keyC), 1, 20))
		second := end{wifi.addr, 50000}
		k.send(second, server, packet.SYN, 100, 0, 0, k.capable())
		k.send(server, second, packet.SYN|packet.ACK, 200, 101, 0, k.capable(keyS))
		k.send(second, server, packet.ACK, 101, 201, 0, k.capable(otherKey, keyS))
		k.send(second, server, packet.ACK, 101, 201, 30, dss(k.first(otherKey), 1, 30))
		offset := uint64(20)
		if c.key != keyC {
			offset = 30
		}
		first := k.first(c.key)
		if c.key == 5 {
			first = k.first(otherKey)
		}
		k.send(lte, server, packet.SYN, 300, 0, 0, joinSYN(k.token(keyS), 7, 2, 0))
		k.send(server, lte, packet.SYN|packet.ACK, 400, 301, 0, joinSYNACK(joinHMAC(1, keyS, c.key, 8, 7), 8, 3, 0))
		k.send(lte, server, packet.ACK, 301, 401, 0, joinACK(joinHMAC(1, c.key, keyS, 7, 8)))
		k.send(lte, server, packet.ACK, 301, 401, 100, dss(first+offset, 1, 100))
		r := k.end()
		if len(r.Connections) != 2 || len(r.Subflows) != 3 || len(k.engine.tokens) != 0 {
			t.Fatalf("%s: %+v, %d tokens left", name, r.Connections, len(k.engine.tokens))
		}
		joined := int32(1)
		if c.key == keyC {
			joined = 0
		}
		if got := [2]int64{r.Connections[0].BytesUp, r.Connections[1].BytesUp}; got != c.want {
			t.Errorf("%s: %v bytes", name, got)
		}
		for _, s := range r.Subflows {
			if s.Role == "additional" && (s.ConnectionID != joined || s.SubflowID != 1 || s.HMAC != c.hmac) {
				t.Errorf("%s: %+v", name, s)
			}
		}
		for _, ev := range r.Events {
			if ev.Event == "mp-join" && (ev.ConnectionID != joined || ev.SubflowID != 1) {
				t.Errorf("%s: %+v", name, ev)
			}
		}
		if (r.Warnings.HMACMismatch > 0) != (c.hmac == "wrong") {
			t.Errorf("%s: %+v", name, r.Warnings)
		}
	}
}

// TestDataOvertakesCapable: the first data counts, even if a data sequence
// signal precedes the key.
func TestDataOvertakesCapable(t *testing.T) {
	for name, before := range map[string]func(k *script){
		"64 bits": func(k *script) { k.send(wifi, server, packet.ACK, 201, 201, 320, dss(k.first(keyC)+100, 101, 320)) },
		"32 bits": func(k *script) { k.send(wifi, server, packet.ACK, 201, 201, 320, dss32(k.first(keyC)+100, 101, 320)) },
		"an infinite mapping": func(k *script) {
			k.send(wifi, server, packet.ACK, 201, 201, 320, dss(k.first(keyC)+100, 101, 0))
		},
		"no signal": func(k *script) { k.send(wifi, server, packet.ACK, 201, 201, 320) },
	} {
		k := newScript(t, 1)
		k.send(wifi, server, packet.SYN, 100, 0, 0, k.capable())
		k.send(server, wifi, packet.SYN|packet.ACK, 200, 101, 0, k.capable(keyS))
		before(k)
		k.send(wifi, server, packet.ACK, 101, 201, 100, capableData(100))
		k.send(server, wifi, packet.ACK, 201, 521, 0)
		r := k.end()
		if c := r.Connections[0]; c.BytesUp != 420 || r.Warnings.UnmappedBytes != 0 {
			t.Errorf("%s: %d bytes, %+v", name, c.BytesUp, r.Warnings)
		}
		if d := direct(t, r, "mptcp", "up", -1); d.MissingBytes != 0 || d.UniqueBytes != 420 {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestResetOfAFlowWhoseBeginningIsMissing: an MPTCP option makes the flow
// MPTCP.
func TestResetOfAFlowWhoseBeginningIsMissing(t *testing.T) {
	k := newScript(t, 1)
	k.send(server, wifi, packet.RST|packet.ACK, 201, 101, 0, option(8, 0, byte(2)))
	r := k.end()
	if c, s := r.Connections[0], r.Subflows[0]; c.Kind != "mptcp" || s.ResetReason != tables.Just(int32(2)) {
		t.Errorf("%+v %+v", c, s)
	}
}

// TestMappingThatComesAgain: a mapping counts once, even if its first copy was
// dropped from memory.
func TestMappingThatComesAgain(t *testing.T) {
	k := newScript(t, 1)
	k.openMPTCP()
	const apart = 2000
	for i := range uint32(fewMappings + 6) {
		k.down(wifi, i*apart, apart/2, uint64(i*apart))
	}
	gap := dss(k.first(keyS)+1000, 1001, 1000)
	k.send(server, wifi, packet.ACK, 201+1500, 101, 500, gap)
	k.send(server, wifi, packet.ACK, 201+1000, 101, 500, gap)
	if d := direct(t, k.end(), "tcp", "down", 0); d.Mappings != fewMappings+7 || d.UniqueBytes != 71*1000 {
		t.Errorf("%d mappings, %d bytes", d.Mappings, d.UniqueBytes)
	}
}

// TestRSTThatIsIgnored: an ignored RST is an event and does not end its
// subflow.
func TestRSTThatIsIgnored(t *testing.T) {
	k := newScript(t, 1)
	k.openMPTCP()
	k.down(wifi, 0, 100, 0)
	k.ack(wifi, 100, 100)
	k.send(server, wifi, packet.RST, 9, 0, 0, option(8, 0, byte(2)))
	k.send(server, wifi, packet.RST, 301, 0, 0)
	k.wait(100)
	k.down(wifi, 100, 100, 100)
	k.ack(wifi, 200, 200)
	r := k.end()
	var got []string
	for _, ev := range r.Events {
		if strings.HasPrefix(ev.Event, "rst") || ev.Event == "mp-tcprst" {
			got = append(got, ev.Direction+" "+ev.Event+" "+ev.Detail)
		}
	}
	if want := []string{"down rst-ignored its number was not expected", "down rst ", "down rst-ignored the connection went on"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if s := r.Subflows[0]; s.Closed != "open" || s.ResetBy != "" || s.ResetReason.Known || r.Connections[0].BytesDown != 200 {
		t.Errorf("%+v", s)
	}
}

// TestLateBytes: payload after the end of a connection is reported.
func TestLateBytes(t *testing.T) {
	k := newScript(t, 1)
	shortLived(k)
	k.open(wifi, server, 100, 200)
	k.send(wifi, server, packet.RST, 101, 0, 0)
	for range 4 {
		k.wait(1000)
		k.noise()
	}
	k.send(server, wifi, packet.ACK, 201, 101, 700)
	if w := k.end().Warnings; w.SegmentsLate != 1 || w.LateBytes != 700 {
		t.Errorf("%+v", w)
	}
}
