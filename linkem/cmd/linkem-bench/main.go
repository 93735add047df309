// Command linkem-bench measures how punctual and how fast linkem is on this machine, and prints a Markdown table. It
// makes its own network namespaces and must be root there: on a machine without root run it by
// `unshare -Urn`.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"mplab/linkem"
	"mplab/linkem/internal/netbox"
)

const actAsProgram = "LINKEM_BENCH_MAIN" // this binary is linkem

func main() {
	if os.Getenv(actAsProgram) != "" {
		os.Exit(linkem.Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	pings := flag.Int("pings", 1000, "number of pings")
	seconds := flag.Float64("seconds", 10, "duration of each flood")
	flag.Parse()
	if err := bench(*pings, time.Duration(*seconds*float64(time.Second))); err != nil {
		fmt.Fprintln(os.Stderr, "linkem-bench:", err)
		os.Exit(1)
	}
}

func bench(pings int, duration time.Duration) error {
	fmt.Println("| measurement | result | linkem CPU |\n| --- | --- | --- |")
	for _, row := range []struct {
		name, up, down string
		measure        func(*emulator) (string, error)
	}{
		{fmt.Sprintf("%d pings, 10 ms apart, through 25 + 25 ms", pings), `{"delay_ms":25}`, `{"delay_ms":25}`, pinging(pings)},
		{"100 Mbit/s of UDP, no rate, no delay", `{}`, `{}`, flooding(100, duration)},
		{"100 Mbit/s of UDP, no rate, 20 ms", `{"delay_ms":20}`, `{"delay_ms":20}`, flooding(100, duration)},
		{"100 Mbit/s of UDP through 200 Mbit/s, 20 ms", `{"rate_kbps":200000,"delay_ms":20}`, `{"rate_kbps":200000,"delay_ms":20}`, flooding(100, duration)},
		{"195 Mbit/s of UDP through 200 Mbit/s, 20 ms", `{"rate_kbps":200000,"delay_ms":20,"queue":{"bytes":1000000}}`, `{"delay_ms":20}`, flooding(195, duration)},
		{"400 Mbit/s of UDP, no rate, 20 ms", `{"delay_ms":20}`, `{"delay_ms":20}`, flooding(400, duration)},
		{"probe of 7040 / 2020 kbit/s, 50 ms", `{"rate_kbps":2020,"delay_ms":25}`, `{"rate_kbps":7040,"delay_ms":25}`, probing(7040, 2020)},
		{"probe of 50000 / 20000 kbit/s, 20 ms", `{"rate_kbps":20000,"delay_ms":10}`, `{"rate_kbps":50000,"delay_ms":10}`, probing(50000, 20000)},
		{"probe of 100 / 50 kbit/s, 300 ms", `{"rate_kbps":50,"delay_ms":150}`, `{"rate_kbps":100,"delay_ms":150}`, probing(100, 50)},
	} {
		e, err := newEmulator(row.up, row.down)
		if err != nil {
			return err
		}
		cpu, begin := e.cpu(), time.Now()
		result, err := row.measure(e)
		used := float64(e.cpu()-cpu) / float64(time.Since(begin)) * 100
		e.close()
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		fmt.Printf("| %s | %s | %.0f %% of a core |\n", row.name, result, used)
	}
	return nil
}

// emulator is a box with linkem in it.
type emulator struct {
	*netbox.Box
	dir       string
	processes []*exec.Cmd
}

func newEmulator(up, down string) (*emulator, error) {
	box, err := netbox.New()
	if err != nil {
		return nil, err
	}
	e := &emulator{Box: box}
	if e.dir, err = os.MkdirTemp("", "linkem-bench-"); err != nil {
		return nil, err
	}
	file := filepath.Join(e.dir, "linkem.json")
	config := fmt.Sprintf(`{"links":[{"name":"test","a":"air-phone","b":"air-server","up":%s,"down":%s}]}`, up, down)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	return e, e.start(box.Air, "run", "--config", file, "--control", filepath.Join(e.dir, "control"))
}

// start starts linkem and waits until it is ready.
func (e *emulator) start(node *netbox.Node, args ...string) error {
	command := exec.Command("/proc/self/exe", args...)
	command.Env = append(os.Environ(), actAsProgram+"=1")
	command.Stderr = os.Stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := node.Start(command); err != nil {
		return err
	}
	e.processes = append(e.processes, command)
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		return fmt.Errorf("linkem %s did not get ready: %w", args[0], err)
	}
	return nil
}

func (e *emulator) close() {
	for _, process := range e.processes {
		_ = process.Process.Signal(os.Interrupt)
		_ = process.Wait()
	}
	e.Close()
	_ = os.RemoveAll(e.dir)
}

// cpu gives the processor time that linkem run has used: fields 14 and 15 of /proc/PID/stat, in ticks of 10 ms.
func (e *emulator) cpu() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", e.processes[0].Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

var pingTime = regexp.MustCompile(`time=([0-9.]+) ms`)

// pinging measures round-trip times by ping(8), whose stamps come from the kernel.
func pinging(n int) func(*emulator) (string, error) {
	return func(e *emulator) (string, error) {
		if err := e.Phone.Run("ping", "-c", "1", netbox.ServerAddress); err != nil { // ARP
			return "", err
		}
		output, err := e.Phone.Output("ping", "-i", "0.01", "-c", strconv.Itoa(n), netbox.ServerAddress)
		if err != nil {
			return "", err
		}
		var times []float64
		for _, match := range pingTime.FindAllStringSubmatch(output, -1) {
			ms, _ := strconv.ParseFloat(match[1], 64)
			times = append(times, ms)
		}
		slices.Sort(times)
		at := func(q float64) float64 { return times[int(q*float64(len(times)-1))] }
		late, err := e.late()
		return fmt.Sprintf("median %.2f ms, p1 %.2f, p99 %.2f, max %.2f; %d of %d; %s", at(0.5), at(0.01), at(0.99), at(1), len(times), n, late), err
	}
}

// probing measures the link with linkem's own probe.
func probing(down, up float64) func(*emulator) (string, error) {
	return func(e *emulator) (string, error) {
		server := netbox.ServerAddress + ":5007"
		if err := e.start(e.Server, "probe-server", "--listen", server); err != nil {
			return "", err
		}
		command := exec.Command("/proc/self/exe", "probe", "--device", "phone0", "--server", server,
			"--down-kbps", fmt.Sprint(down), "--up-kbps", fmt.Sprint(up))
		command.Env = append(os.Environ(), actAsProgram+"=1")
		command.Stderr = os.Stderr
		var output strings.Builder
		command.Stdout = &output
		begin := time.Now()
		if err := e.Phone.Start(command); err != nil {
			return "", err
		}
		if err := command.Wait(); err != nil {
			return "", err
		}
		lines := strings.Split(strings.TrimSpace(output.String()), "\n")
		for i, line := range lines {
			lines[i] = strings.Join(strings.Fields(line), " ")
		}
		return fmt.Sprintf("%s; in %.1f s", strings.Join(lines, "; "), time.Since(begin).Seconds()), nil
	}
}
