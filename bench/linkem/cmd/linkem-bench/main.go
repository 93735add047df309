// Command linkem-bench measures the punctuality and throughput of linkem on this machine, and prints a Markdown table.
// It creates network namespaces and must be root there; without root, run it with `unshare -Urn`.
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

	"golang.org/x/sys/unix"

	"mplab/internal/netbox"
	"mplab/linkem/cli"
)

const actAsProgram = "LINKEM_BENCH_MAIN" // this binary is linkem

func main() {
	if os.Getenv(actAsProgram) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	pings := flag.Int("pings", 1000, "number of pings")
	seconds := flag.Float64("seconds", 10, "duration of each flood")
	packets := flag.Int("packets", 20_000, "number of packets for loss, duplication and reordering")
	netem := flag.Bool("netem", false, "beside netem in user-mode Linux (root; Debian: user-mode-linux)")
	flag.Parse()
	rows := rows(*pings, time.Duration(*seconds*float64(time.Second)), *packets)
	if err := bench(rows, *netem); err != nil {
		fmt.Fprintln(os.Stderr, "linkem-bench:", err)
		os.Exit(1)
	}
}

// row is one measurement: conditions of both directions for linkem and, if netem supports them, for netem.
type row struct {
	name, up, down     string
	netemUp, netemDown string
	measure            func(*emulator) (string, error)
}

// ethernet subtracts the header from the bytes that netem counts.
const ethernet = " -14"

func rows(pings int, duration time.Duration, packets int) []row {
	same := func(name, conditions, netem string, measure func(*emulator) (string, error)) row {
		return row{name, conditions, conditions, netem, netem, measure}
	}
	probe := func(name string, down, up int, delayMs int) row {
		linkem := func(kbps int) string { return fmt.Sprintf(`{"rate_kbps":%d,"delay_ms":%d}`, kbps, delayMs) }
		netem := func(kbps int) string { return fmt.Sprintf("delay %dms rate %dkbit%s", delayMs, kbps, ethernet) }
		return row{name, linkem(up), linkem(down), netem(up), netem(down), probing(float64(down), float64(up))}
	}
	return []row{
		same(fmt.Sprintf("%d pings, 10 ms apart, through 25 + 25 ms", pings), `{"delay_ms":25}`, "delay 25ms", pinging(pings)),
		{
			fmt.Sprintf("%d pings, 10 ms apart, 50 ms with a normal jitter of 2 ms one way", pings), `{"delay_ms":50,"jitter_ms":2,"jitter_distribution":"normal"}`, `{}`,
			"delay 50ms 2ms distribution normal", "", pinging(pings),
		},
		same("100 Mbit/s of UDP, no rate, no delay", `{}`, "", flooding(100, duration)),
		same("100 Mbit/s of UDP, no rate, 20 ms", `{"delay_ms":20}`, "delay 20ms", flooding(100, duration)),
		same("100 Mbit/s of UDP through 200 Mbit/s, 20 ms", `{"rate_kbps":200000,"delay_ms":20}`, "delay 20ms rate 200mbit"+ethernet, flooding(100, duration)),
		{
			"195 Mbit/s of UDP through 200 Mbit/s, 20 ms", `{"rate_kbps":200000,"delay_ms":20,"queue":{"bytes":1000000}}`, `{"delay_ms":20}`,
			"delay 20ms rate 200mbit" + ethernet, "delay 20ms", flooding(195, duration),
		},
		same("400 Mbit/s of UDP, no rate, 20 ms", `{"delay_ms":20}`, "delay 20ms", flooding(400, duration)),
		{
			"100 Mbit/s of UDP through 200 Mbit/s, 20 ms, FQ-CoDel", `{"rate_kbps":200000,"delay_ms":20,"queue":{"discipline":"fq_codel"}}`, `{"delay_ms":20}`,
			notNetem, notNetem, flooding(100, duration),
		},
		{
			fmt.Sprintf("%d packets: Gilbert-Elliott, p 1 %%, r 20 %%", packets), `{"loss_model":{"p_percent":1,"r_percent":20}}`, `{}`,
			"loss gemodel 1% 20%", "", draws(packets),
		},
		{
			fmt.Sprintf("%d packets: 3 %% lost, 2 %% twice, 5 %% skip 20 ms", packets), `{"delay_ms":20,"loss_percent":3,"duplicate_percent":2,"reorder_percent":5}`, `{}`,
			"delay 20ms reorder 5% loss 3% duplicate 2%", "", draws(packets),
		},
		probe("probe of 7040 / 2020 kbit/s, 50 ms", 7040, 2020, 25),
		probe("probe of 50000 / 20000 kbit/s, 20 ms", 50_000, 20_000, 10),
		probe("probe of 100 / 50 kbit/s, 300 ms", 100, 50, 150),
	}
}

// notNetem marks conditions that netem does not support.
const notNetem = "-"

func bench(rows []row, netem bool) error {
	head := "| measurement | linkem | its CPU |\n| --- | --- | --- |"
	if netem {
		head = "| measurement | linkem | its CPU | netem | its CPU |\n| --- | --- | --- | --- | --- |"
	}
	fmt.Println(head)
	for _, row := range rows {
		line, err := measured(row, func() (*emulator, error) { return newEmulator(row.up, row.down) })
		if err != nil {
			return err
		}
		if netem && row.netemUp == notNetem {
			line += " – | – |"
		} else if netem {
			beside, err := measured(row, func() (*emulator, error) { return newNetem(row.netemUp, row.netemDown) })
			if err != nil {
				return fmt.Errorf("netem: %w", err)
			}
			line += strings.TrimPrefix(beside, "|")
		}
		fmt.Printf("| %s %s\n", row.name, line)
	}
	return nil
}

// measured returns the cells of a row: result and CPU share.
func measured(row row, start func() (*emulator, error)) (string, error) {
	e, err := start()
	if e != nil {
		defer e.close()
	}
	if err != nil {
		return "", err
	}
	cpu, begin := e.cpu(), time.Now()
	result, err := row.measure(e)
	used := float64(e.cpu()-cpu) / float64(time.Since(begin)) * 100
	if err != nil {
		return "", fmt.Errorf("%s: %w", row.name, err)
	}
	return fmt.Sprintf("| %s | %.0f %% of a core |", result, used), nil
}

// emulator is a box with linkem or netem in it.
type emulator struct {
	*netbox.Box
	netem     bool
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
		_ = process.Process.Signal(unix.SIGTERM)
		_ = process.Wait()
	}
	e.Close()
	_ = os.RemoveAll(e.dir)
}

// cpu returns the CPU time used by linkem run or the user-mode kernel: fields 14 and 15 of /proc/PID/stat, in ticks of
// 10 ms.
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

// pinging measures round-trip times with ping(8), whose time stamps come from the kernel.
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
		return fmt.Sprintf("median %.2f ms, p1 %.2f, p99 %.2f, max %.2f; %d of %d%s", at(0.5), at(0.01), at(0.99), at(1), len(times), n, late), err
	}
}

// probing measures the link with linkem's probe.
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
