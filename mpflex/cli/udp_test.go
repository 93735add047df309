package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"mplab/internal/cmdline"
	"mplab/mpflex/connlog"
)

// execute runs a command line and returns its output and its exit code.
func execute(ctx context.Context, stdout io.Writer, args ...string) (int, error) {
	root := command()
	root.SetArgs(args)
	root.SetOut(stdout)
	err := root.ExecuteContext(ctx)
	var exit *cmdline.Error
	if errors.As(err, &exit) {
		return exit.Code, exit.Err
	}
	return 0, err
}

// startEcho runs udp-echo until the end of the test.
func startEcho(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	var running sync.WaitGroup
	running.Go(func() {
		code, err := execute(ctx, writer, "udp-echo", "--listen", "127.0.0.1:0")
		if code != 0 || err != nil {
			t.Errorf("udp-echo ended with %d, %v", code, err)
		}
		writer.Close()
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	line, err := bufio.NewReader(reader).ReadString('\n')
	var ready readyLine
	if err := errors.Join(err, json.Unmarshal([]byte(line), &ready)); err != nil || ready.Event != "ready" || ready.Role != "udp-echo" {
		t.Fatalf("%q, %v", line, err)
	}
	return ready.Listen["udp"].String()
}

func TestUDPJitter(t *testing.T) {
	echo := startEcho(t)
	args := []string{"udp-jitter", "--target", echo, "--period", "1ms", "--seconds", "0.02", "--size", "100"}
	var output bytes.Buffer
	if code, err := execute(t.Context(), &output, append(args, "--json")...); code != 0 || err != nil {
		t.Fatalf("%d, %v", code, err)
	}
	var result struct {
		OK         bool
		Target     connlog.Endpoint
		SizeBytes  int `json:"size_bytes"`
		Sent       int
		Answered   int
		Up, Down   struct{ Lost int }
		RTT        struct{ Median float64 } `json:"rtt_ms"`
		DurationS  float64                  `json:"duration_s"`
		PeriodMs   float64                  `json:"period_ms"`
		Percentile []float64                `json:"rtt_percentiles_ms"`
	}
	if err := json.Unmarshal(output.Bytes(), &result); err != nil {
		t.Fatal(err)
	}
	if !result.OK || result.Target.String() != echo || result.SizeBytes != 100 || result.Sent != 20 || result.Answered != 20 ||
		result.Up.Lost+result.Down.Lost != 0 || result.RTT.Median <= 0 || result.PeriodMs != 1 || len(result.Percentile) != 101 {
		t.Errorf("%+v", result)
	}
	output.Reset()
	if code, err := execute(t.Context(), &output, args...); code != 0 || err != nil || !strings.HasPrefix(output.String(), "20 datagrams of 100 bytes") {
		t.Errorf("%d, %v: %s", code, err, output.String())
	}
}

// TestBadUDPCommands has invalid arguments, with the required exit code and message.
func TestBadUDPCommands(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"udp-echo --listen here:1", cmdline.BadInput, `--listen: "here:1" is not ADDRESS:PORT with a numeric address`},
		{"udp-echo --listen 192.0.2.1:1", cmdline.NotReady, "listening on 192.0.2.1:1/udp"},
		{"udp-jitter --target dl.lab:7", cmdline.BadInput, `--target: "dl.lab:7" is not ADDRESS:PORT with a numeric address`},
		{"udp-jitter --target 127.0.0.1:7 --socks 1080", cmdline.BadInput, `--socks: "1080" is not ADDRESS:PORT with a numeric address`},
		{"udp-jitter --target 127.0.0.1:7 --size 55", cmdline.BadInput, "the size must be from 56 to 60000 bytes"},
		{"udp-jitter --target 127.0.0.1:7 --period 0s", cmdline.BadInput, "the period must be positive"},
		{"udp-jitter --target 127.0.0.1:7 --seconds 0", cmdline.BadInput, "--seconds: 0 is not above 0 and at most 86400"},
		{"udp-jitter --target 127.0.0.1:7 --seconds NaN", cmdline.BadInput, "--seconds: NaN is not above 0 and at most 86400"},
		{"udp-jitter --target 127.0.0.1:7 --socks 127.0.0.1:1", cmdline.Failed, "SOCKS server 127.0.0.1:1"},
	} {
		var output bytes.Buffer
		code, err := execute(t.Context(), &output, strings.Fields(c.args)...)
		if code != c.code || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %d, %v", c.args, code, err)
		}
	}
	var output bytes.Buffer
	code, err := execute(t.Context(), &output, "udp-jitter", "--target", "127.0.0.1:7", "--socks", "127.0.0.1:1", "--json")
	var result failed
	if err := errors.Join(err, json.Unmarshal(output.Bytes(), &result)); code != cmdline.Failed || err != nil || result.OK || !strings.Contains(result.Error, "127.0.0.1:1") {
		t.Errorf("%d, %v: %s", code, err, output.String())
	}
}
