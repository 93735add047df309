package rig

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc (USER_HZ is 100 on all architectures that matter here).
const tick = 10 * time.Millisecond

// Host is what the machine has done so far.
type Host struct {
	at    time.Time
	busy  time.Duration // of all processors, stolen time not included
	steal time.Duration
	own   time.Duration // of the processes of the benchmark
}

// Load is what the machine did in a span of time.
type Load struct {
	CPUSeconds        float64 `json:"cpu_s"`         // of the processes of the benchmark
	MachineCPUSeconds float64 `json:"machine_cpu_s"` // of the whole machine, the kernel's own work included
	Others            float64 `json:"others"`        // share of all processors that something else used
	Steal             float64 `json:"steal"`         // share that the hypervisor gave to other machines
	Load1             float64 `json:"load1"`         // load average over a minute
}

// ReadHost reads it from /proc. Fields that a kernel does not have count as 0.
func ReadHost() Host {
	h := Host{at: time.Now()}
	line, _, _ := strings.Cut(read("/proc/stat"), "\n")
	if fields := strings.Fields(line); len(fields) > 8 { // cpu user nice system idle iowait irq softirq steal
		for _, i := range []int{1, 2, 3, 6, 7} {
			h.busy += ticks(fields[i])
		}
		h.steal = ticks(fields[8])
	}
	// In the private PID namespace all processes are the benchmark's.
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		stat := read("/proc/" + entry.Name() + "/stat")
		// utime, stime, and of children that were waited for: fields 14 to 17; the name before may hold anything.
		if fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]); len(fields) > 14 {
			for _, i := range []int{11, 12, 13, 14} {
				h.own += ticks(fields[i])
			}
		}
	}
	return h
}

// Since is what the machine did from an earlier time on.
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
