package udpjitter

import (
	"bytes"
	"encoding/hex"
	"testing"
	"time"
)

const goldenAnswer = "4d504a31" + "02" + "000000" + "0102030405060708" + "00000009" + "0000000a" +
	"000000000000000b" + "000000000000000c" + "0000000d" + "0000000e" + "000000000000000f"

func TestGoldenMessage(t *testing.T) {
	m := message{
		kind: kindAnswer, flow: 0x0102030405060708, sequence: 9, order: 10,
		sent: 11, arrived: 12, reordered: 13, duplicates: 14, jitter: 15,
	}
	b := bytes.Repeat([]byte{0xff}, MinSize)
	if m.put(b); hex.EncodeToString(b) != goldenAnswer {
		t.Errorf("got  %x\nwant %s", b, goldenAnswer)
	}
	if back, err := parseMessage(b); err != nil || back != m {
		t.Errorf("%+v, %v", back, err)
	}
}

func FuzzMessage(f *testing.F) {
	good, _ := hex.DecodeString(goldenAnswer)
	f.Add(good)
	f.Add(append(good, make([]byte, 44)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseMessage(data)
		if err != nil {
			return
		}
		again := make([]byte, MinSize)
		m.put(again)
		copy(again[5:8], data[5:8]) // the parser ignores these
		if !bytes.Equal(again, data[:MinSize]) {
			t.Errorf("%x\n%x", data[:MinSize], again)
		}
	})
}

// FuzzEcho: an answer is as long as its message, and its kind is one that no server
// answers. The server's memory stays bounded.
func FuzzEcho(f *testing.F) {
	probe := make([]byte, 100)
	message{kind: kindProbe, flow: 1, sequence: maxProbes - 1}.put(probe)
	f.Add(probe)
	end := make([]byte, MinSize)
	message{kind: kindEnd, flow: 1}.put(end)
	f.Add(end)
	f.Fuzz(func(t *testing.T, data []byte) {
		e := newEcho()
		answer := bytes.Clone(data)
		if !e.answer(answer, time.Now()) {
			return
		}
		if m, err := parseMessage(answer); err != nil || m.kind != kindAnswer && m.kind != kindTotals {
			t.Errorf("%+v, %v", m, err)
		}
		for _, flow := range e.flows {
			if len(flow.seen) > maxProbes/64 {
				t.Errorf("%d words are kept", len(flow.seen))
			}
		}
		if e.answer(answer, time.Now()) {
			t.Error("an answer was answered")
		}
	})
}

func TestFlowsAreBounded(t *testing.T) {
	e := newEcho()
	probe := make([]byte, MinSize)
	send := func(flow uint64, sequence uint32) message {
		message{kind: kindProbe, flow: flow, sequence: sequence}.put(probe)
		if !e.answer(probe, time.Now()) {
			t.Fatalf("no answer to %d of flow %d", sequence, flow)
		}
		m, _ := parseMessage(probe)
		return m
	}
	for flow := range uint64(maxFlows) {
		send(flow, 0)
	}
	send(0, 1)        // now flow 1 has been silent the longest
	send(maxFlows, 0) // and replaces it
	if len(e.flows) != maxFlows {
		t.Errorf("%d flows", len(e.flows))
	}
	if kept, forgotten := send(0, 2).order, send(1, 2).order; kept != 3 || forgotten != 1 {
		t.Errorf("%d of flow 0, %d of flow 1", kept, forgotten)
	}
}
