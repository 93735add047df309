package loopback

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mplab/analysis/mptrace/packet"
)

const insideNamespace = "LOOPBACK_TEST_INSIDE"

// TestARealRedirect runs TestInsideNamespace in a separate network namespace.
func TestARealRedirect(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: no network namespace can be made")
	}
	for _, program := range []string{"unshare", "ip", "nft"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	if out, err := exec.Command("unshare", "-n", "true").CombinedOutput(); err != nil {
		t.Skipf("no network namespace can be made: %s", out)
	}
	self := exec.Command("unshare", "-n", os.Args[0], "-test.run=^TestInsideNamespace$", "-test.v") // #nosec G204
	self.Env = append(os.Environ(), insideNamespace+"=1")
	out, err := self.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("%s", out)
	}
}

const rules = `
table ip half {
 chain output {
  type nat hook output priority -100; policy accept;
  tcp dport 443 redirect to :8123
 }
}
`

func TestInsideNamespace(t *testing.T) {
	if os.Getenv(insideNamespace) == "" {
		t.Skip("is run by TestARealRedirect")
	}
	for _, line := range []string{"link set lo up", "addr add 10.9.9.9/32 dev lo", "route add default dev lo"} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil { // #nosec G204
			t.Fatalf("ip %s: %s", line, out)
		}
	}
	nft := exec.Command("nft", "-f", "-")
	nft.Stdin = strings.NewReader(rules)
	if out, err := nft.CombinedOutput(); err != nil {
		t.Skipf("nft cannot redirect here: %s", out)
	}
	frames := sniff(t)
	sent := traffic(t)
	all := frames()
	for _, port := range []uint16{0, 8123} {
		compare(t, all, port, sent)
	}
}

// flow is one direction between two endpoints.
type flow struct{ from, to netip.AddrPort }

// traffic communicates with three servers behind a redirect, and returns the
// data that each side sent.
func traffic(t *testing.T) map[flow][]byte {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:8123")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				up, _ := io.ReadAll(c)
				_, _ = c.Write(answerTo(up))
				_ = c.Close()
			}()
		}
	}()
	sent := map[flow][]byte{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			server := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 443)
			c, err := net.DialTimeout("tcp", server.String(), 5*time.Second)
			if err != nil {
				t.Error(err)
				return
			}
			up := make([]byte, 100_000+i)
			_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(up)
			_, _ = c.Write(up)
			_ = c.(*net.TCPConn).CloseWrite()
			down, err := io.ReadAll(c)
			if err != nil || !bytes.Equal(down, answerTo(up)) {
				t.Errorf("%d bytes, %v", len(down), err)
			}
			client := c.LocalAddr().(*net.TCPAddr).AddrPort()
			mu.Lock()
			defer mu.Unlock()
			sent[flow{client, server}], sent[flow{server, client}] = up, down
			_ = c.Close()
		})
	}
	all.Wait()
	return sent
}

func answerTo(up []byte) []byte { return bytes.Repeat(append([]byte("answer"), up...), 2) }

// sniff captures the packets received on lo until the returned function is
// called.
func sniff(t *testing.T) func() [][]byte {
	t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no packet socket: %v", err)
	}
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 300_000})
	const everyProtocol = 0x0300 // ETH_P_ALL in network byte order
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: everyProtocol, Ifindex: lo.Index}); err != nil {
		t.Fatal(err)
	}
	var frames [][]byte
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 1<<17)
		for {
			n, from, err := unix.Recvfrom(fd, buffer, 0)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil { // timeout
				select {
				case <-stop:
					return
				default:
					continue
				}
			}
			if from.(*unix.SockaddrLinklayer).Pkttype != unix.PACKET_OUTGOING {
				frames = append(frames, bytes.Clone(buffer[:n]))
			}
		}
	}()
	return func() [][]byte {
		close(stop)
		<-done
		_ = unix.Close(fd)
		return frames
	}
}

// compare compares the payload of joined connections with the sent data.
func compare(t *testing.T, frames [][]byte, port uint16, sent map[flow][]byte) {
	t.Helper()
	j := New(Options{Port: port})
	got := map[flow][]byte{}
	first := map[flow]uint32{}
	take := func(p *packet.Packet) {
		f := flow{netip.AddrPortFrom(p.Src.Netip(), p.SrcPort), netip.AddrPortFrom(p.Dst.Netip(), p.DstPort)}
		if p.Flags&packet.SYN != 0 {
			first[f] = p.Seq + 1
		}
		if len(p.Data) == 0 {
			return
		}
		start, seen := first[f]
		at := int(p.Seq - start)
		if !seen || at > 1<<20 {
			t.Errorf("port %d: payload of %v without a SYN", port, f)
			return
		}
		if need := at + len(p.Data); need > len(got[f]) {
			got[f] = append(got[f], make([]byte, need-len(got[f]))...)
		}
		copy(got[f][at:], p.Data)
	}
	for _, frame := range frames {
		var p packet.Packet
		if packet.Decode(packet.LinkEthernet, frame, len(frame), &p) != packet.TCP {
			continue
		}
		use := j.Rewrite(&p)
		for _, r := range j.Ready() {
			take(&r)
		}
		if use {
			take(&p)
		}
	}
	if len(got) != len(sent) || j.Joined != 3 {
		t.Errorf("port %d: %d directions, %d connections joined", port, len(got), j.Joined)
	}
	for f, want := range sent {
		if !bytes.Equal(got[f], want) {
			t.Errorf("port %d: %v: %d bytes, want %d", port, fmt.Sprint(f), len(got[f]), len(want))
		}
	}
}
