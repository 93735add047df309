// Command applet runs inside an emulated Android device.
//
// Every command that the device answers itself (getprop, dumpsys, su, …) is a link to it: it passes its arguments and
// its three standard streams to the device's process, and exits with the exit code of the answer. As "init" it is the
// first process in the device: it reaps orphans, and kills all processes when the device's process ends. With
// APPLET_APP set it is an app: a process with the name of its package that does nothing.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	socketPath = "/dev/socket/mplab"
	lost       = 255
)

// request is the single packet of a call. The standard streams are passed as ancillary data.
type request struct {
	Argv []string          `json:"argv"`
	Cwd  string            `json:"cwd"`
	Env  map[string]string `json:"env"`
}

// version is set by the linker.
var version = "unknown"

func main() {
	name := filepath.Base(os.Args[0])
	switch {
	case os.Getenv("APPLET_APP") != "":
		idle(os.Args[0])
	case len(os.Args) == 2 && os.Args[1] == "--version" && name == "applet":
		fmt.Println("applet", version)
	case len(os.Args) == 3 && os.Args[1] == "init" && name == "applet":
		initialise(os.Args[2])
	default:
		code, err := ask(name)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: the device does not answer: %v\n", name, err)
		}
		os.Exit(code)
	}
}

// idle names the process after the last 15 bytes of the package, as Android does, and waits for SIGTERM.
func idle(name string) {
	_ = os.WriteFile("/proc/self/comm", []byte(name[max(0, len(name)-15):]), 0)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	<-signals
}

// initialise runs as the first process until the lifeline, a pipe from outside, is closed.
func initialise(descriptor string) {
	number, err := strconv.Atoi(descriptor)
	if err != nil {
		fmt.Fprintln(os.Stderr, "applet: init: not a file descriptor:", descriptor)
		os.Exit(lost)
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	fmt.Println("booted")
	os.Stdout.Close()
	go func() {
		lifeline := os.NewFile(uintptr(number), "lifeline")
		_, _ = io.Copy(io.Discard, lifeline)
		os.Exit(0)
	}()
	for range children {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if pid <= 0 && !errors.Is(err, syscall.EINTR) {
				break
			}
		}
	}
}

// ask passes the call to the device and waits for its exit code. It forwards signals: the device decides their effect.
func ask(name string) (int, error) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: socketPath, Net: "unixpacket"})
	if err != nil {
		return lost, err
	}
	packet, err := json.Marshal(request{append([]string{name}, os.Args[1:]...), directory(), environment()})
	if err != nil {
		return lost, err
	}
	if _, _, err := conn.WriteMsgUnix(packet, syscall.UnixRights(0, 1, 2), nil); err != nil {
		return lost, err
	}
	go func() {
		for received := range signals {
			_, _ = fmt.Fprintf(conn, "%d", received)
		}
	}()
	answer := make([]byte, 16)
	n, err := conn.Read(answer)
	if err != nil {
		return lost, err
	}
	return strconv.Atoi(strings.TrimSpace(string(answer[:n])))
}

func directory() string {
	found, err := os.Getwd()
	if err != nil {
		return "/"
	}
	return found
}

func environment() map[string]string {
	found := map[string]string{}
	for _, entry := range os.Environ() {
		if key, value, ok := strings.Cut(entry, "="); ok {
			found[key] = value
		}
	}
	return found
}
