package ends

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mplab/analysis/mptrace/packet"
)

// download generates the captures of a download over one path with 7 ms delay.
func download(n *network) {
	flow := n.talk(0, 40_000, &wire{delay: 7e6}, &wire{delay: 7e6, loss: 0.05})
	flow.after(flow.bulk(flow.open(n.start), 300, 1000, 0, msec))
	n.finish()
}

// TestDoubts: captures that are not those of the two ends are reported.
func TestDoubts(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(phone, proxy []packet.Packet) ([]packet.Packet, []packet.Packet)
		want   string
	}{
		{"as they are", func(phone, proxy []packet.Packet) ([]packet.Packet, []packet.Packet) { return phone, proxy }, ""},
		{"swapped", func(phone, proxy []packet.Packet) ([]packet.Packet, []packet.Packet) { return proxy, phone }, "swapped"},
		{"one capture twice", func(phone, _ []packet.Packet) ([]packet.Packet, []packet.Packet) { return phone, phone }, "copies of one capture"},
		{"a tenth is missing at one end", func(phone, proxy []packet.Packet) ([]packet.Packet, []packet.Packet) {
			var some []packet.Packet
			for i, p := range proxy {
				if i%10 != 9 {
					some = append(some, p)
				}
			}
			return phone, some
		}, "packets arrived that are missing in the sender's capture"},
	} {
		n := newNetwork(10)
		download(n)
		phone, proxy := c.change(n.captures[phoneEnd], n.captures[proxyEnd])
		r, err := match([2]opener{
			func() stream { return &list{packets: phone} }, func() stream { return &list{packets: proxy} },
		}, Options{}, script)
		if err != nil {
			t.Fatal(err)
		}
		doubts := strings.Join(r.Doubts, "; ")
		if (doubts == "") != (c.want == "") || !strings.Contains(doubts, c.want) {
			t.Errorf("%s: %q", c.name, doubts)
		}
		var text bytes.Buffer
		if err := r.WriteSummary(&text, 0); err != nil || strings.Contains(text.String(), "WARNING") != (c.want != "") {
			t.Errorf("%s: %v\n%s", c.name, err, text.String())
		}
	}
}

// TestOneFileForBothEnds: the same file is refused, under any name.
func TestOneFileForBothEnds(t *testing.T) {
	dir := t.TempDir()
	one, link := filepath.Join(dir, "one.pcap"), filepath.Join(dir, "link.pcap")
	if err := errors.Join(os.WriteFile(one, nil, 0o600), os.Symlink(one, link)); err != nil {
		t.Fatal(err)
	}
	for _, proxy := range []string{one, link} {
		if _, err := Match([]string{one}, []string{proxy}, Options{}); !errors.Is(err, ErrSame) {
			t.Errorf("%s: %v", proxy, err)
		}
	}
}

// TestSummaryShowsTheLargestDirections: the summary shows the largest
// directions, or all on request.
func TestSummaryShowsTheLargestDirections(t *testing.T) {
	r := &Result{}
	for i := range int32(1000) {
		r.PathEnds = append(r.PathEnds, PathEnds{ConnectionID: i, Direction: "up", Sent: int64(i)})
	}
	for limit, lines := range map[int]int{0: shown, 5: 5, -1: 1000} {
		var text bytes.Buffer
		if err := r.WriteSummary(&text, limit); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(text.String(), "  up  "); n != lines || !strings.Contains(text.String(), "\n999 ") ||
			strings.Contains(text.String(), "of 1000 directions") != (lines < 1000) {
			t.Errorf("limit %d: %d lines\n%s", limit, n, text.String())
		}
	}
}
