package integration

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// labScript builds the nodes. The phone can reach the origin's network only through
// agent and proxy.
const labScript = `
set -e
mount -t tmpfs tmpfs /run
for n in phone router proxy origin; do ip netns add $n; ip -n $n link set lo up; done
link() { ip link add $2 netns $1 type veth peer name $5 netns $4
  ip -n $1 addr add $3 dev $2; ip -n $4 addr add $6 dev $5; ip -n $1 link set $2 up; ip -n $4 link set $5 up; }
link phone wlan0 10.64.1.2/24 router wlan 10.64.1.1/24
link phone rmnet0 10.64.2.2/24 router rmnet 10.64.2.1/24
link router lan 10.64.3.1/24 proxy eth0 10.64.3.2/24
link proxy wan0 10.65.255.1/30 origin eth0 10.65.255.2/30
ip -n phone route add default via 10.64.1.1 dev wlan0 metric 100
ip -n phone route add default via 10.64.2.1 dev rmnet0 metric 200
ip -n phone rule add from 10.64.1.2 table 1; ip -n phone route add default via 10.64.1.1 dev wlan0 table 1
ip -n phone rule add from 10.64.2.2 table 2; ip -n phone route add default via 10.64.2.1 dev rmnet0 table 2
ip netns exec router sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
ip -n proxy route add 10.64.0.0/16 via 10.64.3.1
ip -n proxy route add 10.65.0.0/16 via 10.65.255.2
ip -n origin route add local 10.65.0.0/16 dev lo
ip -n origin route add default via 10.65.255.1
ip netns exec phone nft -f - <<END
table ip mpflex {
 chain output {
  type nat hook output priority -100;
  meta mark 0x6d70 return
  ip daddr 10.65.0.0/16 meta l4proto tcp redirect to :3128
  ip daddr 10.65.0.0/16 udp dport 53 redirect to :3153
  ip daddr 192.0.2.0/24 meta l4proto tcp redirect to :3128
 }
}
END
if [ -e /proc/sys/net/mptcp/enabled ]; then
  for n in phone proxy; do ip -n $n mptcp limits set subflow 4 add_addr_accepted 4; done
  ip -n phone mptcp endpoint add 10.64.2.2 dev rmnet0 subflow
fi
`

func buildLab() error {
	output, err := exec.Command("sh", "-c", labScript).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

// inNode runs f on a thread in the network namespace of a node. Sockets that f itself
// opens belong to the node.
func inNode(t testing.TB, node string, f func()) {
	t.Helper()
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	there, err := os.Open("/run/netns/" + node)
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	f()
	if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
		t.Fatal(err) // the thread stays locked and ends with the goroutine
	}
	runtime.UnlockOSThread()
}

// dialFrom opens a plain TCP connection from a node.
func dialFrom(t testing.TB, node, address string) (conn *net.TCPConn, err error) {
	t.Helper()
	inNode(t, node, func() {
		var c net.Conn
		if c, err = net.Dial("tcp", address); err == nil {
			conn = c.(*net.TCPConn)
		}
	})
	return conn, err
}

// dialPhone opens a connection as an application on the phone.
func dialPhone(t testing.TB, address string) *net.TCPConn {
	t.Helper()
	conn, err := dialFrom(t, "phone", address)
	if err != nil {
		t.Fatalf("the application's connection: %v", err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// serveOrigin serves an address of the origin, with a handler for each connection.
func serveOrigin(t testing.TB, address string, handle func(*net.TCPConn)) {
	t.Helper()
	serve(t, "origin", address, handle)
}

// serve is serveOrigin for any node.
func serve(t testing.TB, node, address string, handle func(*net.TCPConn)) {
	t.Helper()
	var listener net.Listener
	var err error
	inNode(t, node, func() { listener, err = net.Listen("tcp4", address) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go handle(conn.(*net.TCPConn))
		}
	}()
}

// output runs a program in a node and returns its output.
func output(t testing.TB, node string, args ...string) string {
	t.Helper()
	out, err := exec.Command("ip", append([]string{"netns", "exec", node}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %s: %v: %s", node, strings.Join(args, " "), err, out)
	}
	return string(out)
}
