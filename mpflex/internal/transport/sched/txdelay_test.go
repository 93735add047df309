package sched

import (
	"testing"
	"time"
)

// recorded returns a path's recorded state when a session placed a message. The session
// downloaded 250 kB over the links of nikravesh2016 figure 17, with BBR.
func recorded(id uint8, rttUS, minRTTUS, rate, window, queued, room int) Path {
	return Path{
		ID: id, RTT: time.Duration(rttUS) * time.Microsecond, MinRTT: time.Duration(minRTTUS) * time.Microsecond,
		Rate: float64(rate), Window: window, Queued: queued, Room: room,
	}
}

// TestTxDelayOnRecordedPaths: the difference between TxDelay and min-RTT, for both ways
// of feeding the paths.
func TestTxDelayOnRecordedPaths(t *testing.T) {
	for _, c := range []struct {
		name            string
		message         Message
		wifi, lte       Path
		minrtt, txdelay Paths
	}{
		{
			"late, the beginning", Message{1436, 248564, 0, 248564},
			recorded(0, 20385, 20385, 0, 14480, 16, 2896), recorded(1, 70627, 70627, 0, 14480, 0, 2896), One(0), One(0),
		}, {
			"late, WiFi is full: 129 kB take 227 ms there, one message 78 ms over LTE", Message{1436, 129376, 20104, 129376},
			recorded(0, 20385, 20385, 0, 14480, 15944, 0), recorded(1, 70627, 70627, 0, 14480, 0, 2896), One(1), One(1),
		}, {
			"late, the same with 10 kB to come: they take 59 ms there", Message{1436, 10000, 20104, 10000},
			recorded(0, 20385, 20385, 0, 14480, 15944, 0), recorded(1, 70627, 70627, 0, 14480, 0, 2896), One(1), One(0),
		}, {
			"late, the same with 100 kB of other streams: all take 200 ms there", Message{1436, 10000, 20104, 110000},
			recorded(0, 20385, 20385, 0, 14480, 15944, 0), recorded(1, 70627, 70627, 0, 14480, 0, 2896), One(1), One(1),
		}, {
			"late, the rest takes 159 ms over WiFi, one message 111 ms over LTE", Message{1436, 89168, 159396, 89168},
			recorded(0, 45010, 20385, 849910, 60816, 63712, 0), recorded(1, 76643, 70627, 173721, 28960, 11584, 1448), One(1), One(1),
		}, {
			"late, the rest takes 154 ms over WiFi, one message 158 ms over LTE", Message{1436, 13060, 235504, 13060},
			recorded(0, 67945, 20385, 851558, 60816, 62264, 0), recorded(1, 75468, 70627, 201952, 31856, 33304, 1448), One(1), One(0),
		}, {
			"late, nothing has room", Message{1436, 109272, 139292, 109272},
			recorded(0, 39533, 20385, 849910, 60816, 62264, 0), recorded(1, 70760, 70627, 20197, 15928, 15928, 0), 0, One(0),
		}, {
			"buffered, the window of WiFi is full: 51 ms with its buffer, 78 ms over LTE", Message{1436, 228460, 20104, 228460},
			recorded(0, 20401, 20401, 0, 14480, 20288, 241840), recorded(1, 70512, 70512, 0, 14480, 0, 262144), One(0), One(0),
		}, {
			"buffered, as far as min-RTT fills WiFi's buffer", Message{1436, 168148, 80416, 168148},
			recorded(0, 20700, 20700, 0, 14480, 81104, 181040), recorded(1, 70581, 70581, 0, 14480, 0, 262144), One(0), One(1),
		}, {
			"buffered, both fill: 212 ms and 211 ms", Message{1436, 87732, 160832, 87732},
			recorded(0, 20401, 20401, 0, 14480, 134696, 127448), recorded(1, 70512, 70512, 0, 14480, 27512, 234632), One(0), One(1),
		}, {
			"buffered, both fill: 255 ms and 260 ms", Message{1436, 47524, 201040, 47524},
			recorded(0, 20401, 20401, 0, 14480, 165104, 97040), recorded(1, 70512, 70512, 0, 14480, 37648, 224496), One(0), One(0),
		},
	} {
		for name, want := range map[string]Paths{"minrtt": c.minrtt, "txdelay": c.txdelay} {
			s, err := New(name)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Place(c.message, []Path{c.wifi, c.lte}); got != want {
				t.Errorf("%s, %s: %b, want %b", name, c.name, got, want)
			}
		}
	}
}
