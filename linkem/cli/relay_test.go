package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	"mplab/linkem/internal/exit"
	"mplab/linkem/model"
	"mplab/linkem/probe"
)

func TestRelayPassesPingsAndFullPackets(t *testing.T) {
	l := newLab(t, `{}`, `{}`, "")
	if _, err := exec.LookPath("ping"); err == nil {
		if err := l.Phone.Run("ping", "-c", "2", "-i", "0.1", "-W", "5", netbox.ServerAddress); err != nil {
			t.Error(err)
		}
	}
	conn := l.echo()
	for _, bytes := range []int{1, 1000, 1472} { // 1472: a packet of 1500 bytes
		l.roundTrip(conn, 3, bytes)
	}
	c := l.counters()
	if c.Up.PacketsOut == 0 || c.Up.PacketsIn != c.Up.PacketsOut || c.Down.PacketsIn != c.Down.PacketsOut {
		t.Errorf("counters %+v", c)
	}
}

func TestRelayChangesWhileItRuns(t *testing.T) {
	l := newLab(t, `{}`, `{}`, "")
	conn := l.echo()
	before := l.roundTrip(conn, 5, 100)
	l.apply(`{"delay_ms":40}`, `{"delay_ms":60}`)
	during := l.roundTrip(conn, 5, 100)
	l.apply(`{}`, `{}`)
	after := l.roundTrip(conn, 5, 100)
	if during < 100*time.Millisecond {
		t.Errorf("round trip of %v with delays of 100 ms", during)
	}
	if before > during || after > during {
		t.Errorf("round trips of %v, %v, %v; the second had the delay", before, during, after)
	}
}

func TestRelayDelaysByPrefix(t *testing.T) {
	l := newLab(t, `{}`, `{}`, `,"delay_by_prefix":{"10.9.0.1/32":20,"10.9.0.0/16":1000}`)
	if rtt := l.roundTrip(l.echo(), 5, 100); rtt < 40*time.Millisecond || rtt > time.Second {
		t.Errorf("round trip of %v, want 40 ms and a little", rtt)
	}
}

func TestRelayCountsTailDrops(t *testing.T) {
	l := newLab(t, `{}`, `{}`, "")
	conn := l.echo()
	l.roundTrip(conn, 1, 100) // complete ARP first
	l.apply(`{"rate_kbps":100,"queue":{"packets":5}}`, `{}`)
	before := l.counters()
	for range 50 {
		if _, err := conn.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	var c emulator.LinkCounters
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if c = l.counters(); c.Up.PacketsIn >= before.Up.PacketsIn+50 {
			break
		}
	}
	// 8 packets leave per second, so nearly all of 45 found the queue full, even on a slow machine.
	if dropped := c.Up.DroppedQueue; dropped < 30 || dropped > 45 {
		t.Errorf("%d tail drops", dropped)
	}
	if c.Up.QueuePackets == 0 || c.Up.QueuePackets > 5 {
		t.Errorf("%d packets in a queue of 5", c.Up.QueuePackets)
	}
	l.apply(`{}`, `{}`) // queued packets are not lost
	l.roundTripAfter(conn)
	c = l.counters()
	if sum := c.Up.PacketsOut + c.Up.DroppedQueue; sum != c.Up.PacketsIn {
		t.Errorf("in %d, out and dropped %d", c.Up.PacketsIn, sum)
	}
}

// roundTripAfter reads echoes until a new one arrives.
func (l *lab) roundTripAfter(conn net.Conn) {
	l.t.Helper()
	mark := []byte("mark")
	_, _ = conn.Write(mark)
	buffer := make([]byte, 2000)
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			l.t.Fatal(err)
		}
		if string(buffer[:n]) == string(mark) {
			return
		}
	}
}

func TestRelayCarriesTCPWithOffloads(t *testing.T) {
	l := newLab(t, `{"delay_ms":1}`, `{"delay_ms":1}`, "")
	if err := l.Server.Run("ip", "link", "set", "server0", "gso_max_segs", "65535"); err != nil { // merged packets
		t.Fatal(err)
	}
	var listener net.Listener
	var err error
	l.Server.Do(func() { listener, err = net.Listen("tcp", netbox.ServerAddress+":80") })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	const bytes = 2 << 20
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			_, _ = conn.Write(make([]byte, bytes))
			_ = conn.Close()
		}
	}()
	var conn net.Conn
	l.Phone.Do(func() { conn, err = net.Dial("tcp", netbox.ServerAddress+":80") })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if n, err := io.Copy(io.Discard, conn); n != bytes || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if c := l.counters(); c.Down.OversizeFrames == 0 {
		t.Errorf("no oversize frames counted: %+v", c.Down)
	}
}

func TestProbeMeasuresTwoAtOnce(t *testing.T) {
	l := newLab(t, `{"rate_kbps":2000,"delay_ms":10}`, `{"rate_kbps":6000,"delay_ms":10}`, "")
	l.start(l.Server, "probe-server", "--listen", netbox.ServerAddress+":5007")
	options := probe.Options{
		Device: "phone0", Server: netbox.ServerAddress + ":5007", DownKbps: 6000, UpKbps: 2000,
		Pings: 10, LossPackets: 20, Seconds: 0.5, Timeout: 5 * time.Second,
	}
	var r probe.Result
	var err error
	l.Phone.Do(func() { r, err = probe.Measure(t.Context(), options) })
	if err != nil {
		t.Fatal(err)
	}
	if r.RTT.Min < 20 {
		t.Errorf("round trip of %v ms, want 20 and a little", r.RTT.Min)
	}
	if *r.DownKbps < 4500 || *r.DownKbps > 6600 || *r.UpKbps < 1500 || *r.UpKbps > 2200 {
		t.Errorf("down %v, up %v kbit/s", *r.DownKbps, *r.UpKbps)
	}
	// Two sessions on one link share it; both must return a result.
	results := make(chan error, 2)
	for range 2 {
		command := exec.Command(os.Args[0], "probe", "--server", options.Server, "--down-kbps", "3000", "--up-kbps", "1000", "--json")
		command.Env = append(os.Environ(), actAsProgram+"=1")
		if err := l.Phone.Start(command); err != nil {
			t.Fatal(err)
		}
		go func() { results <- command.Wait() }()
	}
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

func TestProbeFailsWithoutServer(t *testing.T) {
	l := newLab(t, `{}`, `{}`, "")
	o := probe.Options{Device: "phone0", Server: netbox.ServerAddress + ":9", Pings: 1, Seconds: 0.5, Timeout: 300 * time.Millisecond}
	var err error
	l.Phone.Do(func() { _, err = probe.Measure(t.Context(), o) })
	if exit.Code(err) != exit.Failed || !strings.Contains(err.Error(), "through phone0: no answer") {
		t.Errorf("%v", err)
	}
}

func TestTermEndsItAndRemovesTheSocket(t *testing.T) {
	l := newLab(t, `{}`, `{}`, "")
	info, err := os.Stat(l.socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket file: %v, %v", info, err)
	}
	_ = l.process.Process.Signal(syscall.SIGTERM)
	if err := l.process.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(l.socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket file is still there: %v", err)
	}
}

func TestOneProgramASocket(t *testing.T) {
	l := newLab(t, `{}`, `{}`, "")
	var stderr strings.Builder
	second := exec.Command(os.Args[0], "run", "--config", filepath.Join(filepath.Dir(l.socket), "linkem.json"), "--control", l.socket)
	second.Env, second.Stderr = append(os.Environ(), actAsProgram+"=1"), &stderr
	if err := l.Air.Start(second); err != nil {
		t.Fatal(err)
	}
	_ = second.Wait()
	if code := second.ProcessState.ExitCode(); code != exit.Failed || !strings.Contains(stderr.String(), "another linkem serves it") {
		t.Errorf("exit code %d, %s", code, stderr.String())
	}
	l.counters() // the first one still answers
}

func TestAnswersOfTheControlSocket(t *testing.T) {
	l := newLab(t, `{}`, `{"rate_kbps":1000}`, "")
	var state struct{ Links map[string]emulator.LinkState }
	l.ask(`{"op":"state"}`, &state)
	if s := state.Links["test"]; s.A != "air-phone" || s.B != "air-server" || s.Seed != 1 || s.Up.RateKbps != 0 || s.Down.RateKbps != 1000 {
		t.Errorf("%+v", state)
	}
	for request, problem := range map[string]string{
		`{"op":"sate"}`: `op: unknown operation "sate"; there are apply, counters, state`,
		`{"op":"apply","link":"test","up":{"loss_percent":101},"down":{}}`: "up.loss_percent: must be from 0 to 100, found 101",
		`{"op":"apply","link":"air","up":{},"down":{}}`:                    `link: there is no link "air"; there are test`,
		`{"op":"state","link":"test"}`:                                     "link: unknown key; allowed: op",
	} {
		var refused *control.AnswerError
		if err := l.control.Ask(t.Context(), json.RawMessage(request), nil); !errors.As(err, &refused) || refused.Problem != problem {
			t.Errorf("%s: %v", request, err)
		}
	}
}

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) string {
		path := filepath.Join(dir, "config.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	control := filepath.Join(dir, "control")
	for _, c := range []struct {
		name, config string
		code         int
		message      string
	}{
		{"bad field", `{"links":[{"name":"w","a":"x","b":"y","up":{"loss_percent":120},"down":{}}]}`, exit.Config, "config.json: links[0].up.loss_percent: must be from 0 to 100, found 120"},
		{"no interface", `{"links":[{"name":"w","a":"no-such-if","b":"y","up":{},"down":{}}]}`, exit.MissingInterface, "interface no-such-if does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stderr strings.Builder
			code := Main([]string{"run", "--config", write(c.config), "--control", control}, io.Discard, &stderr)
			if code != c.code || !strings.Contains(stderr.String(), c.message) {
				t.Errorf("exit code %d, %s", code, stderr.String())
			}
		})
	}
	if code := Main([]string{"run", "--config"}, io.Discard, io.Discard); code != exit.Config {
		t.Errorf("exit code %d of a bad command line", code)
	}
	if code := Main([]string{"nonsense"}, io.Discard, io.Discard); code != exit.Config {
		t.Errorf("exit code %d of an unknown command", code)
	}
}

func TestRelayFollowsATrace(t *testing.T) {
	l := newLab(t, `{}`, `{}`, "")
	conn := l.echo()
	l.roundTrip(conn, 1, 100) // complete ARP first
	file := filepath.Join(t.TempDir(), "slow.up")
	if err := os.WriteFile(file, []byte("50\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.apply(fmt.Sprintf(`{"trace":%q}`, file), `{}`)
	var arrivals []time.Time
	for range 5 {
		if _, err := conn.Write(make([]byte, 1472)); err != nil { // a packet of 1500 bytes
			t.Fatal(err)
		}
	}
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	for range 5 {
		if _, err := conn.Read(make([]byte, 2000)); err != nil {
			t.Fatal(err)
		}
		arrivals = append(arrivals, time.Now())
	}
	// The first may be read late; the others are 50 ms apart.
	if took := arrivals[4].Sub(arrivals[0]); took < 100*time.Millisecond {
		t.Errorf("five packets came within %v", took)
	}
	var state struct{ Links map[string]emulator.LinkState }
	l.ask(`{"op":"state"}`, &state)
	if up := state.Links["test"].Up; up.Trace != file || up.Queue.Bytes != model.DefaultQueueBytes {
		t.Errorf("%+v", up)
	}
}

func TestRelayDuplicatesAndLoses(t *testing.T) {
	l := newLab(t, `{}`, `{}`, "")
	conn := l.echo()
	l.roundTrip(conn, 1, 100) // complete ARP first
	before := l.counters()
	l.apply(`{"duplicate_percent":100}`, `{"loss_model":{"p_percent":100,"r_percent":0.001}}`)
	const n = 10
	for i := range byte(n) {
		if _, err := conn.Write([]byte{i}); err != nil {
			t.Fatal(err)
		}
	}
	// Every packet goes up twice; on the way down only the first one meets the good state.
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	buffer := make([]byte, 10)
	if n, err := conn.Read(buffer); n != 1 || buffer[0] != 0 || err != nil {
		t.Errorf("%d bytes, %v, %v", n, buffer[0], err)
	}
	var after emulator.LinkCounters
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if after = l.counters(); after.Down.DroppedLoss >= 2*n-1 {
			break
		}
	}
	if copies := after.Up.Duplicated - before.Up.Duplicated; copies != n {
		t.Errorf("%d copies of %d packets", copies, n)
	}
	if after.Down.DroppedLoss != 2*n-1 || after.Down.LossBursts != 1 {
		t.Errorf("%+v", after.Down)
	}
}

func TestRelayManagesItsQueue(t *testing.T) {
	for _, discipline := range []string{model.Codel, model.FqCodel} {
		l := newLab(t, `{}`, `{}`, "")
		conn := l.echo()
		l.roundTrip(conn, 1, 100) // complete ARP first
		l.apply(fmt.Sprintf(`{"rate_kbps":800,"queue":{"discipline":%q}}`, discipline), `{}`)
		for range 100 { // one second of packets
			if _, err := conn.Write(make([]byte, 972)); err != nil {
				t.Fatal(err)
			}
		}
		var c emulator.LinkCounters
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline) && c.Up.DroppedCodel < 3; time.Sleep(10 * time.Millisecond) {
			c = l.counters()
		}
		if c.Up.DroppedCodel < 3 || c.Up.DroppedQueue != 0 {
			t.Errorf("%s: %+v", discipline, c.Up)
		}
	}
}
