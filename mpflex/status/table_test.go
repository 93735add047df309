package status

import (
	"net/netip"
	"strings"
	"testing"

	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/transport/session"
)

func at(address string) connlog.Endpoint {
	return connlog.Endpoint{AddrPort: netip.MustParseAddrPort(address)}
}

// sample returns an agent's report with a working path, a stalled one, an ended one,
// and two that were never attached.
func sample() *Report {
	return &Report{
		Role: "agent", PID: 4711, Transport: "mpflex", T: 1000, UptimeS: 3725,
		Connections: Connections{Open: 2, Ended: 345, BytesUp: 3_210_000, BytesDown: 45_000_000},
		Sessions: []Session{{
			ID: "3f2a11bb0c22",
			Status: session.Status{
				AgeS: 61.5, Streams: 1, Ended: 345, Unsent: 12_000,
				Paths: []session.PathStatus{
					{
						ID: 0, Name: "wlan0", Incarnation: 1, RTTMS: 52.4, MinRTTMS: 49.96, RateBPS: 6_800_000, WindowBytes: 145_000, QueuedBytes: 1448,
						BytesOut: 1_200_000, BytesIn: 45_000_000, CopiesOut: 12_345,
					},
					{ID: 2, Name: "usb0", Incarnation: 3, Stalled: true, RTTMS: 0.052, MinRTTMS: 0.05, RateBPS: 999_499_999, BytesOut: 999, BytesIn: 1000},
				},
				Gone:     []session.PathStatus{{ID: 1, Name: "rmnet0", Incarnation: 2, RTTMS: 70, BytesOut: 100, BytesIn: 99_950}},
				Counters: session.Counters{CopiedTail: 12_345, SentAgain: 7, Duplicates: 20_000_000_000, DatagramsIn: 3},
			},
			Missing: []Missing{
				{Path: 1, Interface: "rmnet0", Error: "connecting to 10.64.3.2:7003: network is unreachable"},
				{Path: 3, Interface: "", Error: ""},
				{Path: 4, Interface: "\x1b[2Jevil", Error: "no\nsuch device"},
			},
		}},
	}
}

func TestTable(t *testing.T) {
	const want = `agent, transport mpflex, process 4711, up 1 h 2 min
connections: 2 open, 345 ended; 3.2 MB up, 45.0 MB down

session 3f2a11bb0c22, 1 min 1 s old; streams: 1 open, 345 ended; 12.0 kB wait to be sent, 0 B for readers
PATH  INTERFACE  STATE        RTT  MIN RTT        RATE  WINDOW  QUEUED     OUT       IN  COPIES OUT  COPIES IN  SET UP
   0  wlan0      up         52 ms    50 ms  6.8 Mbit/s  145 kB  1.4 kB  1.2 MB  45.0 MB     12.3 kB        0 B      1×
   1  rmnet0     down                                                    100 B   100 kB         0 B        0 B      2×  connecting to 10.64.3.2:7003: network is unreachable
   2  usb0       stalled  0.05 ms  0.05 ms  999 Mbit/s     0 B     0 B   999 B   1.0 kB         0 B        0 B      3×
   3  (routes)   down                                                      0 B      0 B         0 B        0 B      0×
   4  ?[2Jevil   down                                                      0 B      0 B         0 B        0 B      0×  no?such device
copies of what was late: 12.3 kB of tails, 0 B of stalled paths, 0 B for full buffers, 0 B by a redundant scheduler
sent again after a path had ended: 7 B; received more than once: 20.0 GB
datagrams: 0 out, 3 in
`
	var got strings.Builder
	if err := sample().Write(&got, nil); err != nil || got.String() != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got.String(), want)
	}
}

func TestTableOfStreams(t *testing.T) {
	r := sample()
	s := &r.Sessions[0]
	s.Client, s.Paths, s.Gone, s.Missing, s.Counters = "phone1", s.Paths[:1], nil, nil, session.Counters{}
	s.Each = []Stream{
		{
			StreamStatus: session.StreamStatus{ID: 7, AgeS: 90_000, IdleS: 0.25, BytesOut: 500, BytesIn: 1_000_000, Unsent: 20, Waiting: 3000, Paths: []session.Carried{
				{ID: 0, Name: "wlan0", Out: 300, In: 900_000, Copies: 10}, {ID: 1, Out: 200, In: 100_000},
			}},
			Src: at("10.0.0.1:4000"), Dst: at("[fd00::1]:443"),
		},
		{StreamStatus: session.StreamStatus{ID: 9, AgeS: 2.55, IdleS: 200_000}},
	}
	r.OwnConnections = []Connection{{ID: 12, Transport: "tcp", Src: at("10.0.0.1:4001"), Dst: at("10.65.0.2:80"), AgeS: 3, BytesUp: 5, BytesDown: 6000}}
	const want = `
session 3f2a11bb0c22 of client phone1, 1 min 1 s old; streams: 1 open, 345 ended; 12.0 kB wait to be sent, 0 B for readers
PATH  INTERFACE  STATE    RTT  MIN RTT        RATE  WINDOW  QUEUED     OUT       IN  COPIES OUT  COPIES IN  SET UP
   0  wlan0      up     52 ms    50 ms  6.8 Mbit/s  145 kB  1.4 kB  1.2 MB  45.0 MB     12.3 kB        0 B      1×
copies of what was late: 0 B of tails, 0 B of stalled paths, 0 B for full buffers, 0 B by a redundant scheduler
sent again after a path had ended: 0 B; received more than once: 0 B

STREAM  FROM           TO                    AGE     IDLE    OUT      IN  UNSENT  WAITING  BY PATH
     7  10.0.0.1:4000  [fd00::1]:443  25 h 0 min   250 ms  500 B  1.0 MB    20 B   3.0 kB  wlan0: 300 B out, 900 kB in, 10 B copies; 1: 200 B out, 100 kB in
     9                                     2.5 s  2 d 7 h    0 B     0 B     0 B      0 B

CONNECTION  TRANSPORT  FROM           TO              AGE   UP    DOWN
        12  tcp        10.0.0.1:4001  10.65.0.2:80  3.0 s  5 B  6.0 kB
`
	var got strings.Builder
	if err := r.Write(&got, nil); err != nil || !strings.HasSuffix(got.String(), want) {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got.String(), want)
	}
}

func TestRatesBetweenReports(t *testing.T) {
	earlier, later := sample(), sample()
	later.T += 2
	s := &later.Sessions[0]
	s.Missing, s.Paths[0].BytesIn, s.Gone[0].BytesOut = nil, s.Paths[0].BytesIn+1_700_000, s.Gone[0].BytesOut+50
	s.Paths = append(s.Paths, session.PathStatus{ID: 3, Name: "new0", Incarnation: 1, BytesIn: 5000})
	var got strings.Builder
	if err := later.Write(&got, earlier); err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(got.String()), " ")
	for _, want := range []string{
		"SET UP OUT NOW IN NOW", "1× 0 bit/s 6.8 Mbit/s", "2× 200 bit/s 0 bit/s", "3× 0 bit/s 0 bit/s", "1× 0 bit/s 20.0 kbit/s",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("no %q in\n%s", want, got.String())
		}
	}
	got.Reset()
	s.ID = "another"
	if err := later.Write(&got, earlier); err != nil || !strings.Contains(got.String(), "1×\n") || strings.Contains(got.String(), "200 bit/s") {
		t.Errorf("%v, rates since another session: %s", err, got.String())
	}
}
