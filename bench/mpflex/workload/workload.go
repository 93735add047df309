package workload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mplab/bench/mpflex/links"
	"mplab/bench/mpflex/origin"
)

// Kind is the shape of a workload.
type Kind string

// Kinds of workloads. Every file uses a separate connection.
const (
	File     Kind = "f"    // f:SIZE                one file
	Sequence Kind = "s"    // s:COUNT:SIZE          COUNT files, one after the other
	Bundle   Kind = "c"    // c:COUNT:WAYS:SIZE     COUNT files, WAYS at a time
	During   Kind = "bulk" // bulk:SHORT:SIZE       files of SHORT bytes, one after the other, during one of SIZE
	Dying    Kind = "dies" // dies:SIZE             WiFi dies during one file; files while it is dead, one after its return
	Rate     Kind = "rate" // rate:SIZE             one file, limited by the CPU
)

// Workload describes one measurement.
type Workload struct {
	Kind    Kind
	Up      bool // an upload
	Count   int
	Ways    int
	Short   int // bytes
	Size    int // bytes
	Profile links.Profile
}

// mostBytes is the maximum number of bytes of a workload.
const mostBytes = 20_000_000_000

// shapes maps each kind to its notation and numbers.
var shapes = map[Kind]struct {
	form   string
	assign func(*Workload) []*int
}{
	File:     {"f:SIZE", func(w *Workload) []*int { return []*int{&w.Size} }},
	Sequence: {"s:COUNT:SIZE", func(w *Workload) []*int { return []*int{&w.Count, &w.Size} }},
	Bundle:   {"c:COUNT:WAYS:SIZE", func(w *Workload) []*int { return []*int{&w.Count, &w.Ways, &w.Size} }},
	During:   {"bulk:SHORT:SIZE", func(w *Workload) []*int { return []*int{&w.Short, &w.Size} }},
	Dying:    {"dies:SIZE", func(w *Workload) []*int { return []*int{&w.Size} }},
	Rate:     {"rate:SIZE", func(w *Workload) []*int { return []*int{&w.Size} }},
}

var order = []Kind{File, Sequence, Bundle, During, Dying, Rate}

// Forms lists the notation of all kinds.
func Forms() string {
	forms := make([]string, len(order))
	for i, k := range order {
		forms[i] = shapes[k].form
	}
	return strings.Join(forms, ", ")
}

// Parse parses the notation [up/]KIND:NUMBERS[@LINKS]. Its errors quote the workload.
func Parse(text string) (Workload, error) {
	w, err := parse(text)
	if err != nil {
		return w, fmt.Errorf("workload %q: %w", text, err)
	}
	return w, nil
}

func parse(text string) (Workload, error) {
	w := Workload{Count: 1, Ways: 1}
	rest, up := strings.CutPrefix(text, "up/")
	w.Up = up
	rest, profile, _ := strings.Cut(rest, "@")
	parts := strings.Split(rest, ":")
	w.Kind = Kind(parts[0])
	shape, known := shapes[w.Kind]
	if !known {
		return w, fmt.Errorf("the kinds are %s, each with up/ before it and @LINKS behind it if wanted", Forms())
	}
	if profile == "" && w.Kind == Rate {
		profile = links.Unshaped
	}
	var err error
	if w.Profile, err = links.Find(profile); err != nil {
		return w, err
	}
	if (w.Kind == Rate) == w.Profile.Shaped {
		return w, fmt.Errorf("%s is for links that are %s only", w.Kind, map[bool]string{true: "not shaped", false: "shaped"}[w.Kind == Rate])
	}
	numbers := shape.assign(&w)
	if len(parts) != 1+len(numbers) {
		return w, fmt.Errorf("it is written %s", shape.form)
	}
	for i, target := range numbers {
		n, err := strconv.Atoi(parts[1+i])
		if err != nil || n < 1 || n > mostBytes {
			return w, fmt.Errorf("%q is not a number from 1 to %d", parts[1+i], mostBytes)
		}
		*target = n
	}
	switch {
	case w.Count > mostBytes/w.Size:
		return w, fmt.Errorf("that is more than %d bytes", mostBytes)
	case w.Ways > w.Count:
		return w, fmt.Errorf("%d at a time are more than the %d that there are", w.Ways, w.Count)
	}
	return w, nil
}

// ParseList parses comma-separated workloads. A duplicate is an error.
func ParseList(text string) ([]Workload, error) {
	var all []Workload
	var names []string
	for part := range strings.SplitSeq(text, ",") {
		w, err := Parse(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, w.String()) {
			return nil, fmt.Errorf("workload %q: it is there twice", part)
		}
		all, names = append(all, w), append(names, w.String())
	}
	return all, nil
}

// String returns the notation.
func (w Workload) String() string {
	text := string(w.Kind)
	if w.Up {
		text = "up/" + text
	}
	for _, n := range shapes[w.Kind].assign(&w) {
		text += ":" + strconv.Itoa(*n)
	}
	if w.Profile.Name != links.Paper && w.Kind != Rate {
		text += "@" + w.Profile.Name
	}
	return text
}

// NeedsTwoPaths reports whether the workload requires two links.
func (w Workload) NeedsTwoPaths() bool { return w.Kind == Dying }

// Limit returns the physical limit of the workload on lossless links in ms; 0 if it cannot be computed.
func (w Workload) Limit() float64 {
	switch w.Kind {
	case File, Dying: // the limit of Dying is only known once WiFi is dead
		return w.file(w.Size)
	case Sequence, Bundle:
		return links.Bundle(w.file, w.Count, w.Ways, w.Size)
	}
	return 0
}

func (w Workload) limits() links.Limits {
	return links.Limits{Profile: w.Profile, Request: origin.MessageSize}
}

// file returns the limit of one file.
func (w Workload) file(size int) float64 {
	if w.Up {
		return w.limits().Upload(size)
	}
	return w.limits().Download(size)
}

// fileDying returns the limit of one file if WiFi dies at diesMs; 0: it is dead from the start.
func (w Workload) fileDying(size int, diesMs float64) float64 {
	if w.Up {
		return w.limits().UploadDying(size, diesMs)
	}
	return w.limits().DownloadDying(size, diesMs)
}

// Assumptions about durations.
const (
	usualFactor  = 1.6 // duration of a shaped transfer relative to its limit
	timeoutFloor = 10 * time.Second
	timeoutTimes = 6
	usualRate    = 300e6 // bytes/s if the CPU is the limit
	slowestRate  = 15e6
)

// Expect returns the expected duration of one run.
func (w Workload) Expect() time.Duration {
	switch w.Kind {
	case Rate:
		return seconds(float64(w.Size) / usualRate)
	case During:
		return ms(1.1 * w.file(w.Size))
	case Dying:
		return ms(usualFactor*w.fileDying(w.Size, dieAfter*w.Limit())+deadFiles*3*w.fileDying(deadSize, 0)+usualFactor*w.file(backSize)) + restAfterReturn
	}
	return ms(usualFactor * w.Limit())
}

// Timeout returns the duration after which one transfer of the workload counts as failed.
func (w Workload) Timeout() time.Duration {
	switch w.Kind {
	case Rate:
		return timeoutFloor + seconds(float64(w.Size)/slowestRate)
	case During:
		return timeoutFloor + ms(timeoutTimes*w.file(w.Size))
	case Dying:
		return timeoutFloor + ms(timeoutTimes*w.fileDying(w.Size, dieAfter*w.Limit()))
	}
	return timeoutFloor + ms(timeoutTimes*w.Limit())
}

// Bound returns the maximum duration of one run.
func (w Workload) Bound() time.Duration {
	switch w.Kind {
	case During:
		return 2 * w.Timeout()
	case Dying:
		return 2*w.Timeout() + deadFiles*deadTimeout + restAfterReturn
	}
	return w.Timeout()
}

func ms(v float64) time.Duration      { return time.Duration(v * float64(time.Millisecond)) }
func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }
