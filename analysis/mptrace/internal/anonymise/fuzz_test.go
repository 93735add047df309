package anonymise

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"mplab/analysis/mptrace/capfile"
	"mplab/analysis/mptrace/packet"
)

// FuzzFrame: for any bytes, replacing does not panic, and a TCP segment keeps
// its ports, numbers, flags and options. Bytes behind the captured headers are
// zeros.
func FuzzFrame(f *testing.F) {
	f.Add(uint16(packet.LinkRaw), ipv4(f, protoTCP, segment(bytesOf(f, "020405b4 1e083101b93cd823"), []byte("payload"))))
	f.Add(uint16(packet.LinkRaw), ipv4(f, protoIPv4, ipv4(f, protoICMP, make([]byte, 30))))
	f.Add(uint16(packet.LinkEthernet), bytesOf(f, "ac37431b2c3dac37431b2c3d81000001080600010800060400010102030405060708"))
	f.Add(uint16(packet.LinkSLL2), bytesOf(f, "86dd 0000 00000003 0001 00 06 ac37431b2c3d 0000 60000000 0008 2c 40"))
	f.Add(uint16(packet.LinkPPPSerial), bytesOf(f, "0f00 8864 110000010000 ff03 0057 60"))
	f.Fuzz(func(t *testing.T, linkType uint16, frame []byte) {
		got := bytes.Clone(frame)
		a := New(key())
		if err := a.Frame(int(linkType), got); err != nil {
			if packet.KnownLink(int(linkType)) {
				t.Error(err)
			}
			return
		}
		var before, after packet.Packet
		if packet.Decode(int(linkType), frame, len(frame), &before) != packet.TCP {
			return
		}
		if verdict := packet.Decode(int(linkType), got, len(got), &after); verdict != packet.TCP {
			t.Fatalf("TCP became %d: % x", verdict, got)
		}
		if before.SrcPort != after.SrcPort || before.Seq != after.Seq || before.Ack != after.Ack || before.Flags != after.Flags ||
			before.TSVal != after.TSVal || before.DSN != after.DSN || before.Payload != after.Payload ||
			before.Has != after.Has {
			t.Errorf("% x\n% x\n%+v\n%+v", frame, got, before, after)
		}
		if !zero(after.Data) {
			t.Errorf("payload % x", after.Data)
		}
	})
}

// FuzzRewrite: for any bytes, the output is a valid capture with the frames that
// were readable in the input: of the same interface, time and length.
func FuzzRewrite(f *testing.F) {
	f.Add(example(binary.LittleEndian))
	f.Add(example(binary.BigEndian))
	f.Fuzz(func(t *testing.T, b []byte) {
		out, err := rewritten(t, b)
		if err != nil && !errors.Is(err, capfile.ErrCut) && !errors.Is(err, capfile.ErrDamaged) || len(out) == 0 {
			return
		}
		before, readErr := records(t, b)
		after, outErr := records(t, out)
		if outErr != nil || len(before) != len(after) || (readErr == nil) != (err == nil) {
			t.Fatalf("%d frames, %v, %v; %d frames, %v", len(before), err, readErr, len(after), outErr)
		}
		for i := range before {
			old, replaced := before[i], after[i]
			if len(old.frame) != len(replaced.frame) {
				t.Errorf("frame %d: %d bytes, before %d", i, len(replaced.frame), len(old.frame))
			}
			old.frame, replaced.frame = "", ""
			if old.TimeNS != replaced.TimeNS || old.OrigLen != replaced.OrigLen || old.linkType != replaced.linkType {
				t.Errorf("frame %d: %+v, before %+v", i, replaced, old)
			}
		}
	})
}
