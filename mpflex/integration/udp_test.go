package integration

import (
	"bufio"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/forward/socks"
	"mplab/mpflex/internal/forward/udprelay"
)

// startEcho runs udp-echo at the origin.
func startEcho(t *testing.T, address string) {
	t.Helper()
	startEchoAt(t, "origin", address)
}

// startEchoAt runs udp-echo in a node.
func startEchoAt(t *testing.T, node, address string) {
	t.Helper()
	cmd := command(node, "udp-echo", "--listen", address)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || !strings.Contains(line, `"event":"ready"`) {
		t.Fatalf("udp-echo: %q, %v", line, err)
	}
}

// attached waits until both paths of an agent are attached.
func attached(t *testing.T, agent *program) {
	t.Helper()
	eventually(t, "both paths", func() bool {
		events := pathEvents(t, agent)
		return slices.Contains(events, "attached wlan0") && slices.Contains(events, "attached rmnet0")
	})
}

// jitter holds the fields of udp-jitter's result that the tests use.
type jitter struct {
	OK             bool
	Error          string
	Sent, Answered uint64
	Up, Down       struct{ Lost, Duplicates int }
	Certain        bool
}

func udpJitter(t *testing.T, target string, args ...string) (result jitter) {
	t.Helper()
	stdout, stderr, _ := once(t, "phone", append([]string{
		"udp-jitter", "--json", "--socks", socksServer, "--target", target, "--period", "5ms", "--seconds", "1",
	}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &result); err != nil {
		t.Fatalf("%v: %s %s", err, stdout, stderr)
	}
	return result
}

// TestDatagramsOverASession: every datagram arrives once, or is counted as dropped by a
// session. A session drops datagrams when the machine is so busy that they wait for 100 ms.
func TestDatagramsOverASession(t *testing.T) {
	needLab(t)
	private(t, func(t *testing.T, plain bool) {
		dir := t.TempDir()
		agentSocket, proxySocket := filepath.Join(dir, "agent"), filepath.Join(dir, "proxy")
		changes := withSocks(flex(plain))
		changes["control"] = agentSocket
		s := setup{startProxy(t, values{"control": proxySocket}), startAgent(t, changes)}
		startEcho(t, "10.65.0.5:8080")
		attached(t, s.agent)
		lost := 0
		for _, size := range []string{"100", "1400"} {
			got := udpJitter(t, "10.65.0.5:8080", "--size", size)
			if !got.OK || got.Sent != 200 || got.Answered < 100 || !got.Certain || got.Up.Duplicates+got.Down.Duplicates != 0 {
				t.Errorf("%s bytes: %+v", size, got)
			}
			lost += got.Up.Lost + got.Down.Lost
		}
		// When the client's association ends, the proxy closes its socket.
		var here []connlog.Association
		var there []udprelay.Record
		eventually(t, "two records on both sides", func() bool {
			here, there = records[connlog.Association](t, s.agent.log, "udp"), nil
			there = udpRecords(t, s.proxy)
			return len(here) == 2 && len(there) == 2
		})
		up := statusOf(t, agentSocket).Sessions[0].Counters.DatagramsDropped
		down := statusOf(t, proxySocket).Sessions[0].Counters.DatagramsDropped
		if int64(lost) > up+down {
			t.Errorf("%d datagrams were lost, and %d and %d dropped", lost, up, down)
		}
		for i := range here {
			h, p := here[i], there[i]
			if h.Association != p.Association || h.Status != connlog.Closed || p.Status != connlog.Closed || h.Dropped != 0 || h.DatagramsUp < 200 ||
				h.DatagramsUp == p.DatagramsUp && h.BytesUp != p.BytesUp || h.DatagramsDown == p.DatagramsDown && h.BytesDown != p.BytesDown {
				t.Errorf("agent: %+v\nproxy: %+v", h, p)
			}
			up -= int64(h.DatagramsUp - p.DatagramsUp)
			down -= int64(p.DatagramsDown - h.DatagramsDown)
		}
		if up != 0 || down != 0 {
			t.Errorf("agent: %+v\nproxy: %+v\n%d and %d other datagrams were dropped", here, there, up, down)
		}
	})
}

// udpRecords returns the proxy's records of associations.
func udpRecords(t *testing.T, proxy *program) []udprelay.Record {
	t.Helper()
	data, err := os.ReadFile(proxy.log)
	if err != nil {
		t.Fatal(err)
	}
	var found []udprelay.Record
	for line := range strings.Lines(string(data)) {
		var record struct {
			Event       string
			Association uint32
			Up          uint64         `json:"datagrams_up"`
			Down        uint64         `json:"datagrams_down"`
			BytesUp     uint64         `json:"bytes_up"`
			BytesDown   uint64         `json:"bytes_down"`
			Status      connlog.Status `json:"status"`
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		if record.Event == "udp" {
			found = append(found, udprelay.Record{
				Association: record.Association, DatagramsUp: record.Up, DatagramsDown: record.Down,
				BytesUp: record.BytesUp, BytesDown: record.BytesDown, Status: record.Status,
			})
		}
	}
	return found
}

func TestDatagramsOutsideTheAllowList(t *testing.T) {
	s := start(t, withSocks(flex(false)))
	startEcho(t, "10.65.0.5:8081")
	attached(t, s.agent)
	if got := udpJitter(t, "10.65.0.5:8081", "--seconds", "0.2"); got.OK || got.Answered != 0 {
		t.Errorf("it was reached: %+v", got)
	}
}

// TestDatagramsSurviveAPath loses a path during a flow of datagrams: later ones use the
// other path.
func TestDatagramsSurviveAPath(t *testing.T) {
	s := start(t, withSocks(flex(false)))
	startEcho(t, "10.65.0.5:8080")
	attached(t, s.agent)
	go func() {
		time.Sleep(300 * time.Millisecond)
		output(t, "phone", "ip", "link", "set", "wlan0", "down")
	}()
	defer restore(t, "wlan0")
	got := udpJitter(t, "10.65.0.5:8080", "--seconds", "2")
	if !got.OK || !got.Certain || got.Answered < got.Sent/2 {
		t.Errorf("%+v", got)
	}
}

// TestDatagramsOutliveTheProxy checks that a client's association continues in the next
// session.
func TestDatagramsOutliveTheProxy(t *testing.T) {
	s := start(t, withSocks(flex(false)))
	echoDatagrams(t, "10.65.0.6:8080")
	var tunnel *socks.Tunnel
	var err error
	inNode(t, "phone", func() { tunnel, err = socks.OpenTunnel(t.Context(), netip.MustParseAddrPort(socksServer), nil) })
	if err != nil {
		t.Fatal(err)
	}
	defer tunnel.Close()
	answers := make(chan string, 1000)
	go func() {
		buffer := make([]byte, 65535)
		for {
			datagram, _, err := tunnel.Receive(buffer)
			if err != nil {
				return
			}
			answers <- string(datagram)
		}
	}()
	exchange := func(text string) {
		eventually(t, "the answer to "+text[:6], func() bool {
			_ = tunnel.Send([]byte(text), socks.FromAddrPort(netip.MustParseAddrPort("10.65.0.6:8080")))
			select {
			case got := <-answers:
				return got == text
			case <-time.After(50 * time.Millisecond):
				return false
			}
		})
	}
	exchange("before")
	exchange(strings.Repeat("a large one", 5000))
	s.proxy.stop(t)
	if got := udpRecords(t, s.proxy); len(got) != 1 || got[0].DatagramsDown == 0 {
		t.Errorf("%+v", got)
	}
	startProxy(t, nil)
	exchange("after it")
}

// echoDatagrams echoes datagrams at an address of the origin.
func echoDatagrams(t *testing.T, address string) {
	t.Helper()
	var socket net.PacketConn
	var err error
	inNode(t, "origin", func() { socket, err = net.ListenPacket("udp4", address) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	go func() {
		buffer := make([]byte, 65535)
		for {
			n, from, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = socket.WriteTo(buffer[:n], from)
		}
	}()
}
