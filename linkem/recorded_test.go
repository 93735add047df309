package linkem

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mplab/linkem/internal/trace"
)

// TestRecordFindsTheTraceAgain saturates a direction that follows a trace, captures what leaves it, and records: apart
// from the first opportunity, where the recording begins, it must be the same trace.
func TestRecordFindsTheTraceAgain(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 3))
	times := []uint32{5}
	for len(times) < 3000 {
		times = append(times, times[len(times)-1]+uint32(random.IntN(9)))
	}
	params := traced(times...)
	params.DelayMs = 17
	w := newWay(params, 1)
	for sent, now := 0, int64(0); sent < len(times); now += ms {
		for ; sent < len(times) && w.queuePackets() < 100; sent++ {
			w.arrive(now, flowPacket(1500, 9))
		}
		w.run(now)
	}
	w.run(int64(times[len(times)-1]+17) * ms)
	file := binary.LittleEndian.AppendUint32(nil, 0xa1b23c4d) // a pcap in nanoseconds, of Ethernet
	file = append(file, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0)
	for _, d := range w.left {
		data := append(make([]byte, 12), 8, 0)
		data = append(data, d.frame.data[vnetHeader+ethernetHeader:]...)
		binary.BigEndian.PutUint16(data[ethernetHeader+2:], 1500)
		for _, field := range []uint32{uint32(d.at / 1e9), uint32(d.at % 1e9), uint32(len(data)), 1514} {
			file = binary.LittleEndian.AppendUint32(file, field)
		}
		file = append(file, data...)
	}
	dir := t.TempDir()
	capture, out := filepath.Join(dir, "capture.pcap"), filepath.Join(dir, "recorded")
	if err := os.WriteFile(capture, file, 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := command("record", capture, "--direction", "up", "--out", out)
	if code != ExitOK || stderr != "" || !strings.HasPrefix(stdout, "UDP 0.0.0.0:9 → 0.0.0.0:0, ") {
		t.Fatalf("exit code %d, %s%s", code, stdout, stderr)
	}
	recorded, err := trace.Load(out)
	if err != nil {
		t.Fatal(err)
	}
	var got, want []uint32
	for i := range recorded.Len() {
		got = append(got, recorded.At(i))
	}
	for _, at := range times {
		if at > times[0] {
			want = append(want, at-times[0])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("recorded %d opportunities, want %d", len(got), len(want))
	}
	if origin, err := trace.LoadOrigin(out); err != nil || origin.MadeBy != "linkem record capture.pcap --direction up --skip 0 --duration 0" {
		t.Errorf("%+v, %v", origin, err)
	}
}
