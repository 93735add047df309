package rig

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU times in /proc (USER_HZ is 100 on all relevant architectures).
const tick = 10 * time.Millisecond

// Host holds the machine's CPU usage so far.
type Host struct {
	at    time.Time
	busy  time.Duration // of all processors, without stolen time
	steal time.Duration
	own   time.Duration // of the benchmark's processes
}

// Load is the machine's load over a period.
type Load struct {
	CPUSeconds        float64 `json:"cpu_s"`         // of the benchmark's processes
	MachineCPUSeconds float64 `json:"machine_cpu_s"` // of the whole machine, including the kernel
	Others            float64 `json:"others"`        // share of all processors used by other processes
	Steal             float64 `json:"steal"`         // share that the hypervisor gave to other machines
	Load1             float64 `json:"load1"`         // load average over one minute
}

// ReadHost reads the usage from /proc. Fields that the kernel lacks count as 0.
func ReadHost() Host {
	h := Host{at: time.Now()}
	line, _, _ := strings.Cut(read("/proc/stat"), "\n")
	if fields := strings.Fields(line); len(fields) > 8 { // cpu user nice system idle iowait irq softirq steal
		for _, i := range []int{1, 2, 3, 6, 7} {
			h.busy += ticks(fields[i])
		}
		h.steal = ticks(fields[8])
	}
	// In the private PID namespace, all processes belong to the benchmark.
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		stat := read("/proc/" + entry.Name() + "/stat")
		// Fields 14 to 17: utime, stime, and those of waited-for children. The name before them can contain any
		// character.
		if fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]); len(fields) > 14 {
			for _, i := range []int{11, 12, 13, 14} {
				h.own += ticks(fields[i])
			}
		}
	}
	return h
}

// Since returns the load since an earlier reading.
func (h Host) Since(earlier Host) Load {
	whole := h.at.Sub(earlier.at).Seconds() * float64(runtime.NumCPU())
	load := Load{
		CPUSeconds:        max(0, (h.own - earlier.own).Seconds()),
		MachineCPUSeconds: max(0, (h.busy - earlier.busy).Seconds()),
	}
	if whole > 0 {
		load.Others = round(min(1, max(0, load.MachineCPUSeconds-load.CPUSeconds)/whole))
		load.Steal = round(min(1, max(0, (h.steal-earlier.steal).Seconds())/whole))
	}
	average, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	load.Load1, _ = strconv.ParseFloat(average, 64)
	return load
}

func read(file string) string {
	data, _ := os.ReadFile(file)
	return string(data)
}

func ticks(field string) time.Duration {
	n, _ := strconv.ParseInt(field, 10, 64)
	return time.Duration(n) * tick
}

// round keeps three decimals.
func round(v float64) float64 { return float64(int64(v*1000+0.5)) / 1000 }
