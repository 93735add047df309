package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mplab/control"
	"mplab/internal/netbox"
	"mplab/linkem/internal/emulator"
	"mplab/linkem/internal/system"
)

const (
	actAsProgram = "LINKEM_TEST_MAIN" // the test binary is linkem
	insideUser   = "LINKEM_TEST_USERNS"
)

// TestMain lets the test binary run as linkem, and moves it into a user namespace if it is not run by root.
func TestMain(m *testing.M) {
	if os.Getenv(actAsProgram) != "" {
		os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	if os.Getuid() != 0 && os.Getenv(insideUser) == "" {
		command := exec.Command(os.Args[0], os.Args[1:]...)
		command.Env = append(os.Environ(), insideUser+"=1")
		command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
		command.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		if command.Start() == nil {
			_ = command.Wait()
			os.Exit(command.ProcessState.ExitCode())
		}
	}
	if os.Getenv(insideUser) != "" {
		_ = system.BringUp("lo") // otherwise tests over it fail
	}
	os.Exit(m.Run())
}

// lab is a box with linkem in the air.
type lab struct {
	*netbox.Box
	t       *testing.T
	process *exec.Cmd
	socket  string
	control *control.Client
}

// newLab starts linkem with one link "test" from the phone (a) to the server (b); extra fields are added to the link.
func newLab(t *testing.T, up, down, extra string) *lab {
	t.Helper()
	box, err := netbox.New()
	if err != nil {
		t.Skipf("no network namespaces here: %v", err)
	}
	t.Cleanup(box.Close)
	dir := t.TempDir()
	file, socket := filepath.Join(dir, "linkem.json"), filepath.Join(dir, "control")
	config := fmt.Sprintf(`{"seed":1,"links":[{"name":"test","a":"air-phone","b":"air-server","up":%s,"down":%s%s}]}`, up, down, extra)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &lab{Box: box, t: t, socket: socket}
	l.process = l.start(box.Air, "run", "--config", file, "--control", socket)
	l.control, err = control.Dial(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.control.Close() })
	return l
}

// start starts linkem in a node and waits until it is ready.
func (l *lab) start(node *netbox.Node, args ...string) *exec.Cmd {
	l.t.Helper()
	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), actAsProgram+"=1")
	command.Stderr = os.Stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := node.Start(command); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.Contains(line, `"event":"ready"`) {
		l.t.Fatalf("linkem %v is not ready: %q, %v", args, line, err)
	}
	return command
}

// ask sends a request to the control socket and reads the answer into target.
func (l *lab) ask(request string, target any) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 10*time.Second)
	defer cancel()
	if err := l.control.Ask(ctx, json.RawMessage(request), target); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) apply(up, down string) {
	l.t.Helper()
	l.ask(fmt.Sprintf(`{"op":"apply","link":"test","up":%s,"down":%s,"seed":1}`, up, down), &struct{}{})
}

func (l *lab) counters() emulator.LinkCounters {
	l.t.Helper()
	var answer struct {
		Links map[string]emulator.LinkCounters
	}
	l.ask(`{"op":"counters"}`, &answer)
	return answer.Links["test"]
}

// echo serves UDP echoes on the server and connects to it from the phone.
func (l *lab) echo() net.Conn {
	l.t.Helper()
	var server net.PacketConn
	var client net.Conn
	var err error
	l.Server.Do(func() { server, err = net.ListenPacket("udp", netbox.ServerAddress+":7") })
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = server.Close() })
	go func() {
		buffer := make([]byte, 65536)
		for {
			n, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(buffer[:n], from)
		}
	}()
	l.Phone.Do(func() { client, err = net.Dial("udp", netbox.ServerAddress+":7") })
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = client.Close() })
	return client
}

// roundTrip returns the shortest of n round trips with the given number of payload bytes.
func (l *lab) roundTrip(conn net.Conn, n, bytes int) time.Duration {
	l.t.Helper()
	shortest := time.Hour
	buffer := make([]byte, 65536)
	for range n {
		start := time.Now()
		if _, err := conn.Write(buffer[:bytes]); err != nil {
			l.t.Fatal(err)
		}
		_ = conn.SetReadDeadline(start.Add(5 * time.Second))
		got, err := conn.Read(buffer)
		if err != nil || got != bytes {
			l.t.Fatalf("echo of %d bytes: %d, %v", bytes, got, err)
		}
		shortest = min(shortest, time.Since(start))
	}
	return shortest
}
