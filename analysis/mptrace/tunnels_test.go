package mptrace

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"mplab/analysis/mptrace/capfile"
	"mplab/analysis/mptrace/internal/join/ends"
	"mplab/analysis/mptrace/internal/source"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// wrapped copies a capture and puts each of its IP packets into a tunnel.
func wrapped(t *testing.T, from string, wrap func(link, ip []byte, ipWire int) []byte) string {
	t.Helper()
	f, err := capfile.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b23c4d) // with nanoseconds
	b = append(b, make([]byte, 12)...)
	b = le.AppendUint32(le.AppendUint32(b, 1<<16), packet.LinkEthernet)
	var batch capfile.Batch
	for err == nil {
		err = f.Read(&batch)
		for _, r := range batch.Records {
			ip := packet.IP(packet.LinkEthernet, r.Data)
			if ip == nil {
				continue
			}
			link := r.Data[:len(r.Data)-len(ip)]
			outer := wrap(link, ip, int(r.OrigLen)-len(link))
			for _, v := range []int64{r.TimeNS / 1e9, r.TimeNS % 1e9, int64(len(outer)), int64(len(outer) + int(r.OrigLen) - len(r.Data))} {
				b = le.AppendUint32(b, uint32(v))
			}
			b = append(b, outer...)
		}
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "x.pcap")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// outer returns an Ethernet frame with an IPv4 packet whose payload has wire
// bytes, of which b was captured.
func outer(protocol byte, b []byte, wire int) []byte {
	frame := append(make([]byte, 12), 8, 0, 0x45, 0)
	frame = binary.BigEndian.AppendUint16(frame, uint16(20+wire))
	frame = append(frame, 0, 1, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2)
	return append(frame, b...)
}

func datagram(port uint16, header, b []byte, wire int) []byte {
	be := binary.BigEndian
	wire += 8 + len(header)
	udp := be.AppendUint16(be.AppendUint16(be.AppendUint16(nil, 40000), port), uint16(wire))
	return outer(17, append(append(append(udp, 0, 0), header...), b...), wire)
}

// TestTunnels: the rows are the same with and without a tunnel.
func TestTunnels(t *testing.T) {
	for name, wrap := range map[string]func(link, ip []byte, ipWire int) []byte{
		"VXLAN": func(link, ip []byte, ipWire int) []byte {
			return datagram(4789, []byte{8, 0, 0, 0, 0, 0, 42, 0}, append(append([]byte{}, link...), ip...), len(link)+ipWire)
		},
		"GRE with key": func(_, ip []byte, ipWire int) []byte {
			kind := []byte{0x20, 0, 8, 0, 0, 0, 0, 7}
			if ip[0]>>4 == 6 {
				kind[2], kind[3] = 0x86, 0xdd
			}
			return outer(47, append(kind, ip...), len(kind)+ipWire)
		},
		"IP in IP": func(_, ip []byte, ipWire int) []byte {
			return outer(map[byte]byte{4: 4, 6: 41}[ip[0]>>4], ip, ipWire)
		},
		"GTP-U": func(_, ip []byte, ipWire int) []byte {
			header := []byte{0x32, 255, 0, 0, 0, 0, 0, 7, 0, 1, 0, 0}
			binary.BigEndian.PutUint16(header[2:], uint16(4+ipWire))
			return datagram(2152, header, ip, ipWire)
		},
	} {
		for _, file := range []string{"testdata/handmade/subflows14.pcap.gz", "testdata/handmade/signals.pcap.gz", "testdata/two-paths-wlan0.pcapng"} {
			plain := wrapped(t, file, func(link, ip []byte, _ int) []byte { return append(append([]byte{}, link...), ip...) })
			tunnel := wrapped(t, file, wrap)
			want := keep(t, tables.All, plain)
			for threads := range 3 {
				got, err := Analyse([]string{tunnel}, Options{Threads: threads, Keep: tables.All, Source: source.Options{Tunnels: true}})
				if err != nil {
					t.Fatal(err)
				}
				if got.Files[0].TCP != want.Files[0].TCP || len(got.Connections) == 0 {
					t.Errorf("%s in %s: %+v, want %+v", file, name, got.Files, want.Files)
				}
				got.FastPackets = want.FastPackets // packets in tunnels do not take the fast path
				if got.Files = want.Files; !reflect.DeepEqual(got, want) {
					t.Errorf("%s in %s:\n got %+v\nwant %+v", file, name, got.Connections, want.Connections)
				}
			}
			if off := keep(t, tables.All, tunnel); off.Warnings.FramesTunnelled != off.Files[0].Packets || len(off.Connections) != 0 {
				t.Errorf("%s in %s, not followed: %+v", file, name, off.Warnings)
			}
		}
	}
}

// TestTunnelsOneLevel: a tunnel in a tunnel is counted, and DNS answers in a
// tunnel give names.
func TestTunnelsOneLevel(t *testing.T) {
	gre := func(b []byte) []byte {
		ip := outer(47, append([]byte{0, 0, 8, 0}, b...), 4+len(b))
		return ip[14:]
	}
	frames := []at{{0, gre(answered("192.0.2.53:53", "10.0.0.1:5000", "a.example", "192.0.2.7"))}}
	for _, f := range hello(1000, "10.0.0.1:40000", "192.0.2.7:443") {
		frames = append(frames, at{f.ms, gre(f.frame)}, at{f.ms + 1, gre(gre(f.frame))})
	}
	r, err := Analyse([]string{raw(t, "x.pcap", frames...)}, Options{Keep: tables.All, Source: source.Options{Tunnels: true}})
	if err != nil {
		t.Fatal(err)
	}
	if want := (tables.Warnings{FramesTunnelled: 3}); r.Warnings != want || len(r.Connections) != 1 || r.Connections[0].Host != "a.example" {
		t.Errorf("%+v\n%+v", r.Warnings, r.Connections)
	}
	gz := "testdata/handmade/gre.pcap.gz"
	if r, err := Analyse([]string{gz}, Options{Keep: tables.All, Source: source.Options{Tunnels: true}}); err != nil || len(r.Connections) != 1 || r.Warnings != (tables.Warnings{}) {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestTunnelsInSummary: the count of tunnelled frames names the option.
func TestTunnelsInSummary(t *testing.T) {
	summary := tables.NewSummary(0)
	r, err := Analyse([]string{"testdata/handmade/gre.pcap.gz"}, Options{Summary: summary})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := summary.Write(&text, r.Files, &r.Warnings); err != nil || !strings.Contains(text.String(), "frames_tunnelled 6 frames (see --tunnels)") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// TestTunnelsOfEnds: the comparison of both ends is the same with and without a
// tunnel.
func TestTunnelsOfEnds(t *testing.T) {
	var plain, tunnel [2]string
	for i, file := range []string{"testdata/kernel/add-addr-wlan0.pcapng.gz", "testdata/kernel/add-addr-s1.pcapng.gz"} {
		plain[i] = wrapped(t, file, func(link, ip []byte, _ int) []byte { return append(append([]byte{}, link...), ip...) })
		tunnel[i] = wrapped(t, file, func(link, ip []byte, ipWire int) []byte {
			return datagram(4789, []byte{8, 0, 0, 0, 0, 0, 42, 0}, append(append([]byte{}, link...), ip...), len(link)+ipWire)
		})
	}
	want, err := ends.Match(plain[:1], plain[1:], ends.Options{SameClock: true})
	if err != nil || len(want.PathEnds) == 0 {
		t.Fatalf("%v, %+v", err, want)
	}
	got, err := ends.Match(tunnel[:1], tunnel[1:], ends.Options{SameClock: true, Source: source.Options{Tunnels: true}})
	if err != nil || !reflect.DeepEqual(got.PathEnds, want.PathEnds) || !reflect.DeepEqual(got.OWD, want.OWD) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
	if _, err := ends.Match(tunnel[:1], tunnel[1:], ends.Options{SameClock: true}); err != ends.ErrNothing {
		t.Errorf("not followed: %v", err)
	}
}
