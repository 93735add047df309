package cli

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mplab/linkem/internal/exit"
	"mplab/linkem/internal/trace"
	"mplab/linkem/model"
)

// TestRecordFindsTheTraceAgain saturates a direction that follows a trace, captures its output, and records it. Except
// for the first opportunity, where the recording starts, the trace must be the same.
func TestRecordFindsTheTraceAgain(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 3))
	times := []uint32{5}
	for len(times) < 3000 {
		times = append(times, times[len(times)-1]+uint32(random.IntN(9)))
	}
	opportunities, err := trace.New(times)
	if err != nil {
		t.Fatal(err)
	}
	params := model.Params{Opportunities: opportunities, DelayMs: 17, Queue: model.Queue{Packets: 1000}}
	direction := model.NewDirection(params, model.NewPrefixDelays(nil), model.NewChance(1, "test", "up"))
	packet := append(make([]byte, model.VnetHeader+12), 8, 0, 0x45, 0, 1500>>8, 1500&0xff, 0, 0, 0, 0, 64, unix.IPPROTO_UDP)
	packet = append(packet, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9) // from port 9
	packet = append(packet, make([]byte, model.VnetHeader+model.EthernetHeader+1500-len(packet))...)
	type departure struct {
		at   int64
		data []byte
	}
	var left []departure
	run := func(until int64) {
		for {
			next, some := direction.Next()
			if !some || next > until {
				return
			}
			for f := direction.Due(next); f != nil; f = direction.Due(next) {
				left = append(left, departure{next, slices.Clone(f.Data[model.VnetHeader : model.VnetHeader+54])})
				direction.Sent(f)
			}
		}
	}
	const ms = int64(1e6) // in ns
	for sent, now := 0, int64(0); sent < len(times); now += ms {
		for ; sent < len(times) && direction.CountersAt(now).QueuePackets < 100; sent++ {
			direction.Arrive(now, direction.NewFrame(packet, model.DestinationIsB))
		}
		run(now)
	}
	run(int64(times[len(times)-1]+17) * ms)
	file := binary.LittleEndian.AppendUint32(nil, 0xa1b23c4d) // a pcap in nanoseconds, of Ethernet
	file = append(file, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0)
	for _, d := range left {
		for _, field := range []uint32{uint32(d.at / 1e9), uint32(d.at % 1e9), uint32(len(d.data)), 1514} {
			file = binary.LittleEndian.AppendUint32(file, field)
		}
		file = append(file, d.data...)
	}
	dir := t.TempDir()
	capture, out := filepath.Join(dir, "capture.pcap"), filepath.Join(dir, "recorded")
	if err := os.WriteFile(capture, file, 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := command("record", capture, "--direction", "up", "--out", out)
	if code != exit.OK || stderr != "" || !strings.HasPrefix(stdout, "UDP 0.0.0.0:9 → 0.0.0.0:0, ") {
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
