package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mplab/analysis/mptrace/tables"
)

const (
	upBytes   = 300_001
	downBytes = 700_003
)

func TestTwoPaths(t *testing.T) {
	dir := lab(t, phone+`
for in in "" "-n srv"; do ip $in mptcp limits set subflow 4 add_addr_accepted 4; done
ip mptcp endpoint add 10.2.0.1 dev rmnet0 subflow
capture wlan0
capture rmnet0
MPTRACE_TEST_ROLE=server ip netns exec srv "$SELF" 10.1.0.2:4000 >server.out &
listening
as client 10.1.0.2:4000 300001 700003
sleep 0.5
finish
`)
	files := captures(t, dir)
	noPayload(t, files)
	r := result(t, files...)
	r.Warnings.FramesHidden = 0 // IPv6 multicast listener reports
	if len(r.Connections) != 1 || r.Warnings != (tables.Warnings{}) {
		t.Fatalf("%d connections, warnings %+v", len(r.Connections), r.Warnings)
	}
	c := r.Connections[0]
	if c.BytesUp != upBytes+helloSize || c.BytesDown != downBytes+helloSize {
		t.Errorf("up %d, down %d: the application sent %d and %d", c.BytesUp, c.BytesDown, upBytes+helloSize, downBytes+helloSize)
	}
	if c.Kind != "mptcp" || c.MPTCPVersion != 1 || c.Fallback || c.Subflows != 2 || c.Interfaces != "wlan0,rmnet0" || c.Closed != "fin" {
		t.Errorf("connection %+v", c)
	}
	carried := map[string]int64{}
	for _, s := range r.Subflows {
		carried[s.Interface] += s.UniqueUp + s.UniqueDown
		if !s.Established || (s.Role == "additional") != s.JoinDelayMS.Known || !s.RTTHandshakeMS.Known {
			t.Errorf("subflow %+v", s)
		}
	}
	if carried["wlan0"] == 0 || carried["rmnet0"] == 0 {
		t.Errorf("a path carried nothing: %v", carried)
	}
	oracle(t, files, r)
	rows := tshark(t, files[1], "tcp.options.mptcp.recvtok", "tcp.options.mptcp.recvtok")
	rows = append(rows, tshark(t, files[0], "tcp.options.mptcp.recvtok", "tcp.options.mptcp.recvtok")...)
	for _, row := range rows {
		token, err := strconv.ParseUint(row[0], 0, 32)
		if mine, _ := strconv.ParseUint(c.Token, 16, 32); err != nil || mine != token {
			t.Errorf("token %s, tshark says %v", c.Token, row)
		}
	}
}

func TestRetransmissions(t *testing.T) {
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("nft is not installed")
	}
	dir := lab(t, phone+`
if ! ip netns exec srv nft -f - <<END
table ip loss { chain input { type filter hook input priority 0; ip length > 500 numgen random mod 30 == 0 drop; }; }
END
then touch skip; exit 0; fi
capture wlan0
MPTRACE_TEST_ROLE=server ip netns exec srv "$SELF" 10.1.0.2:4000 >server.out &
listening
PLAIN=1 as client 10.1.0.2:4000 600000 0
sleep 0.5
finish
`)
	if _, err := os.Stat(filepath.Join(dir, "skip")); err == nil {
		t.Skip("nft cannot drop packets here")
	}
	files := captures(t, dir)
	noPayload(t, files)
	r := result(t, files...)
	c, up := r.Connections[0], r.Directions[0]
	if len(r.Connections) != 1 || c.Kind != "tcp" || c.BytesUp != 600_000+helloSize || c.BytesDown != helloSize {
		t.Errorf("connections %+v", r.Connections)
	}
	if up.RetransmittedSegments == 0 || up.Bytes-up.UniqueBytes != up.RetransmittedBytes {
		t.Errorf("%+v", up)
	}
	oracle(t, files, r)
}

// noPayload fails if a capture contains payload bytes.
func noPayload(t *testing.T, files []string) {
	t.Helper()
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for i := range secret {
			if bytes.Contains(b, []byte((secret + secret)[i:i+4])) {
				t.Errorf("%s holds payload", f)
			}
		}
	}
}

// tshark prints fields of the packets that a filter selects.
func tshark(t *testing.T, file, filter string, fields ...string) [][]string {
	t.Helper()
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Skip("tshark is not installed")
	}
	arguments := []string{"-r", file, "-Y", filter, "-T", "fields"}
	for _, f := range fields {
		arguments = append(arguments, "-e", f)
	}
	out, err := exec.Command("tshark", arguments...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(out)) {
		rows = append(rows, strings.Split(strings.TrimRight(line, "\n"), "\t"))
	}
	return rows
}

// oracle recounts, byte by byte, from the fields that tshark prints.
func oracle(t *testing.T, files []string, r *tables.Result) {
	t.Helper()
	type count struct{ segments, payload, unique, retransmitted int64 }
	counts := map[string]*count{}
	for _, file := range files {
		seen := map[string]map[string]bool{}
		for _, row := range tshark(t, file, "tcp", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "tcp.seq_raw", "tcp.len") {
			key := strings.Join(row[:4], " ")
			if counts[key] == nil {
				counts[key], seen[key] = new(count), map[string]bool{}
			}
			n := counts[key]
			n.segments++
			size, _ := strconv.Atoi(row[5])
			start, _ := strconv.ParseUint(row[4], 10, 32)
			n.payload += int64(size)
			old := false
			for i := range size {
				at := strconv.FormatUint(uint64(uint32(start)+uint32(i)), 10)
				old = old || seen[key][at]
				if !seen[key][at] {
					n.unique++
				}
				seen[key][at] = true
			}
			if old {
				n.retransmitted++
			}
		}
	}
	for _, s := range r.Subflows {
		a := []string{s.Client, strconv.Itoa(int(s.ClientPort))}
		b := []string{s.Server, strconv.Itoa(int(s.ServerPort))}
		for _, d := range r.Directions {
			if d.Level != tables.LevelTCP || d.ConnectionID != s.ConnectionID || d.SubflowID != s.SubflowID {
				continue
			}
			key := slices.Concat(a, b)
			if d.Direction == tables.Down {
				key = slices.Concat(b, a)
			}
			got := count{d.Segments, d.Bytes, d.UniqueBytes, d.RetransmittedSegments}
			if want := counts[strings.Join(key, " ")]; want == nil || got != *want {
				t.Errorf("%s %+v, tshark says %+v", d.Direction, got, want)
			}
		}
	}
}
