package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"mplab/analysis/mptrace/tables"
)

// TestMain lets the test binary run as all programs of a lab: mptrace, a client
// and a server.
func TestMain(m *testing.M) {
	switch os.Getenv("MPTRACE_TEST_ROLE") {
	case "mptrace":
		main()
		os.Exit(0)
	case "server":
		exitOn(serve(os.Args[1]))
	case "client":
		exitOn(transfer(os.Args[1], os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// secret fills all payload: no capture of headers may contain it.
const secret = "TOPSECRETPAYLOAD"

// serve accepts one connection: it reads the two sizes and 16 more bytes, then
// reads and writes that many bytes.
func serve(address string) error {
	var config net.ListenConfig
	config.SetMultipathTCP(true)
	l, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	hello := make([]byte, 32)
	if _, err := io.ReadFull(c, hello); err != nil {
		return err
	}
	up, _ := strconv.Atoi(string(bytes.TrimSpace(hello[:16])))
	down, _ := strconv.Atoi(string(bytes.TrimSpace(hello[16:])))
	if _, err := c.Write(hello); err != nil {
		return err
	}
	return exchange(c, down, up)
}

// transfer connects, waits for the additional subflows, and transfers the
// bytes.
func transfer(address, up, down string) error {
	var d net.Dialer
	d.SetMultipathTCP(os.Getenv("PLAIN") == "")
	c, err := d.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	hello := []byte(fmt.Sprintf("%16s%16s", up, down))
	if _, err := c.Write(hello); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, hello); err != nil {
		return err
	}
	time.Sleep(300 * time.Millisecond)
	out, _ := strconv.Atoi(up)
	in, _ := strconv.Atoi(down)
	return exchange(c, out, in)
}

func exchange(c net.Conn, out, in int) error {
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(bytes.Repeat([]byte(secret), out/len(secret)+1)[:out])
		sent <- err
	}()
	if _, err := io.CopyN(io.Discard, c, int64(in)); err != nil {
		return err
	}
	return <-sent
}

// helloSize is the number of bytes that client and server exchange before the
// transfer.
const helloSize = 32

// lab runs a shell script in separate network and mount namespaces, in an empty
// directory, and returns the directory. $M is the program.
func lab(t *testing.T, script string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	arguments := []string{"--net", "--mount", "--pid", "--fork", "--kill-child"}
	if os.Geteuid() != 0 {
		arguments = append(arguments, "--user", "--map-root-user")
	}
	probe := append(append([]string{}, arguments...), "sh", "-c", "mount -t tmpfs tmpfs /run && ip link set lo up")
	if out, err := exec.Command("unshare", probe...).CombinedOutput(); err != nil {
		t.Skipf("no namespaces of its own: %v: %s", err, out)
	}
	dir := t.TempDir()
	prelude := `set -eu
mount -t tmpfs tmpfs /run
ip link set lo up
as() { role=$1; shift; MPTRACE_TEST_ROLE=$role "$SELF" "$@"; }
capture() { MPTRACE_TEST_ROLE=mptrace "$SELF" capture --interface $1 --write phone-$1.pcapng >$1.events & PIDS="${PIDS-} $!"
  for i in $(seq 100); do grep -q ready $1.events && return; sleep 0.05; done; echo "capture on $1 is not ready"; exit 1; }
listening() { for i in $(seq 100); do grep -q ready server.out && return; sleep 0.05; done; echo "the server is not ready"; exit 1; }
finish() { for p in $PIDS; do kill -TERM $p; done; for p in $PIDS; do wait $p; done; }
`
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "unshare", append(arguments, "sh", "-c", prelude+script)...)
	command.Dir = dir
	command.Env = append(os.Environ(), "SELF="+self)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// phone is a lab with two paths, wlan0 and rmnet0, to one server.
const phone = `
ip netns add srv
ip -n srv link set lo up
n=1
for i in wlan0 rmnet0; do
  ip link add $i type veth peer name s$n netns srv
  ip addr add 10.$n.0.1/24 dev $i
  ip -n srv addr add 10.$n.0.2/24 dev s$n
  ip link set $i up
  ip -n srv link set s$n up
  ip route add default via 10.$n.0.2 dev $i table 10$n
  ip rule add from 10.$n.0.1 table 10$n
  tc qdisc add dev $i root tbf rate 20mbit burst 16k latency 100ms
  ip netns exec srv tc qdisc add dev s$n root tbf rate 20mbit burst 16k latency 100ms
  n=$((n+1))
done
`

// result runs the program on captures and reads its JSON.
func result(t *testing.T, files ...string) *tables.Result {
	t.Helper()
	out := new(bytes.Buffer)
	o := defaults
	o.json = true
	if err := analyse(files, o, out); err != nil {
		t.Fatal(err)
	}
	r := new(tables.Result)
	if err := json.Unmarshal(out.Bytes(), r); err != nil {
		t.Fatal(err)
	}
	return r
}

func captures(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.pcapng"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures in %s", dir)
	}
	if keep := os.Getenv("MPTRACE_TEST_KEEP"); keep != "" {
		for _, f := range files {
			b, _ := os.ReadFile(f)
			_ = os.WriteFile(filepath.Join(keep, t.Name()+"-"+filepath.Base(f)), b, 0o644)
		}
	}
	return files
}
