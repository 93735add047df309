package packet

import (
	"bytes"
	"reflect"
	"testing"
)

// FuzzDecode: for any bytes, decoding and the accessors do not panic, and their
// results are within the frame.
func FuzzDecode(f *testing.F) {
	f.Add(uint16(LinkEthernet), bytesOf(f, ethernet4+ip4+tcp), 1514)
	f.Add(uint16(LinkEthernet), bytesOf(f, ethernet4+ip4+tcpDSS), 1514)
	f.Add(uint16(LinkRaw), bytesOf(f, ip6+tcp), 74)
	f.Add(uint16(LinkPPP), bytesOf(f, "ff 03 00 57"+ip6+tcp), 78)
	f.Add(uint16(LinkRaw), segmentWith(bytesOf(f, "1e 10 30 02 0a 40 02 02 01 02 03 04 05 06 07 08 02 04 05 b4 1e 04 40 01")), 0)
	for _, c := range []struct {
		protocol       byte
		headers, inner string
	}{
		{47, "b0 00 08 00 ab cd 00 00 00 00 00 07 00 00 00 01", innerTCP},
		{17, "c0 00 12 b5 00 00 00 00 08 00 00 00 00 00 2a 00", ethernet4 + innerTCP},
		{17, "08 68 08 68 00 00 00 00 34 ff 00 30 00 00 00 07 00 00 00 85 01 00 09 00", innerTCP},
		{41, "", ip6 + tcp},
	} {
		f.Add(uint16(LinkEthernet), tunnelled(f, outer4, c.protocol, c.headers, c.inner), 1514)
		f.Add(uint16(LinkEthernet), tunnelled(f, outer6, c.protocol, c.headers, c.inner), 1514)
	}
	f.Fuzz(func(t *testing.T, link uint16, frame []byte, wire int) {
		var p Packet
		verdict := Decode(int(link), frame, wire, &p)
		if verdict >= verdicts {
			t.Errorf("verdict %d", verdict)
		}
		if inner, ok := Untunnel(int(link), frame, wire); ok && verdict == Other {
			if !bytes.Contains(frame, inner.Frame) || inner.OrigLen < len(inner.Frame) || inner.OrigLen >= max(wire, len(frame)) {
				t.Errorf("%d of %d bytes in a frame of %d of %d bytes", len(inner.Frame), inner.OrigLen, len(frame), wire)
			}
			if inner.LinkType != LinkRaw && inner.LinkType != LinkEthernet {
				t.Errorf("link type %d", inner.LinkType)
			}
			frame, wire = inner.Frame, inner.OrigLen
			verdict = Decode(inner.LinkType, frame, wire, &p)
		}
		if verdict != TCP {
			return
		}
		if len(p.Options) > 40 || len(p.Data) > len(frame) || uint64(len(p.Data)) > uint64(p.Payload) {
			t.Errorf("%d bytes of options, %d of %d bytes of payload", len(p.Options), len(p.Data), p.Payload)
		}
		told := p
		told.Has = ^Has(0)
		askAll(&told)
		if p.Has&HasSACK != 0 && len(p.SACK(nil)) == 0 || p.Has&HasRemoveAddr != 0 && len(p.RemoveAddr()) == 0 ||
			p.Has&HasAddAddr != 0 && p.AddAddr().Addr == (Addr{}) && p.AddAddr().HMAC != 0 && !p.AddAddr().HasHMAC {
			t.Errorf("% x has %b and does not tell it", p.Options, p.Has)
		}
		if p.Has&HasCapable == 0 && p.Capable() != (Capable{}) || p.Has&HasJoin == 0 && p.Join() != (Join{}) ||
			p.Has&HasMSS == 0 && p.MSS() != 0 || p.Has&HasPrio == 0 && p.Prio() != (Prio{}) || p.Has&HasReset == 0 && p.Reset() != (Reset{}) {
			t.Errorf("% x has not %b and tells it", p.Options, ^p.Has)
		}
	})
}

// askAll calls all accessors, including those whose option is missing.
func askAll(p *Packet) {
	p.MSS()
	p.WindowScale()
	p.SACK(nil)
	p.Capable()
	p.Join()
	p.AddAddr()
	p.RemoveAddr()
	p.Prio()
	p.FailDSN()
	p.Reset()
}

// FuzzShortcuts: the fast paths for packets and options return the same as the
// slow paths.
func FuzzShortcuts(f *testing.F) {
	f.Add(bytesOf(f, ip4+tcp), 1500)
	f.Add(bytesOf(f, ip4+tcpDSS), 1500)
	f.Add(segmentWith(bytesOf(f, "01 01 08 0a 00 00 00 05 00 00 00 06 1e 0c 20 03 00 00 00 00 00 00 10 00 1e 03 51 00")), 0)
	f.Fuzz(func(t *testing.T, frame []byte, wire int) {
		var fast, slow Packet
		if len(frame) == 0 || !decodePlain(frame, wire, &fast) {
			return
		}
		if v := decodeIPv4(frame, wire, &slow); v != TCP {
			t.Fatal(v)
		}
		slow.Has, slow.DSS, slow.DSN, slow.DataAck, slow.SSN, slow.DSSLen, slow.TSVal, slow.TSEcr = 0, 0, 0, 0, 0, 0, 0, 0
		slow.parseAny(slow.Options)
		fastData, slowData := string(fast.Data), string(slow.Data)
		fast.Data, slow.Data, fast.Options, slow.Options = nil, nil, nil, nil
		if slow.Has&HasDSS == 0 { // meaningless then
			fast.DSS, fast.DSN, fast.DataAck, fast.SSN, fast.DSSLen = slow.DSS, slow.DSN, slow.DataAck, slow.SSN, slow.DSSLen
		}
		if fastData != slowData || !reflect.DeepEqual(fast, slow) {
			t.Errorf("\nfast %+v\nslow %+v", fast, slow)
		}
	})
}
