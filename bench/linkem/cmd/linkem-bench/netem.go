package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"mplab/internal/netbox"
)

const (
	umlProgram = "linux.uml"
	umlModules = "/usr/lib/uml/modules"
	umlXState  = "build/lib/uml-xstate.so" // for processors with AMX; made by `make setup`
	bootTime   = 60 * time.Second
	saidMost   = 12 // maximum number of console lines in an error
)

// newNetem creates a box whose air is a bridge in user-mode Linux, with the given netem options (tc-netem(8)) on its
// two interfaces. The root file system of that kernel is the host's.
func newNetem(up, down string) (*emulator, error) {
	box, err := netbox.New()
	if err != nil {
		return nil, err
	}
	e := &emulator{Box: box, netem: true}
	if e.dir, err = os.MkdirTemp("", "linkem-bench-"); err != nil {
		return e, err
	}
	for _, end := range []struct{ tap, bridge, air string }{{"tap-phone", "br-phone", "air-phone"}, {"tap-server", "br-server", "air-server"}} {
		for _, line := range []string{
			"tuntap add " + end.tap + " mode tap",
			"link add " + end.bridge + " type bridge forward_delay 0",
			"link set " + end.tap + " master " + end.bridge + " up",
			"link set " + end.air + " master " + end.bridge + " up",
			"link set " + end.bridge + " up",
		} {
			if err := box.Air.Run("ip", strings.Fields(line)...); err != nil {
				return e, err
			}
		}
	}
	return e, e.boot(up, down)
}

// boot starts the kernel and waits until its init is ready.
func (e *emulator) boot(up, down string) error {
	script, err := initScript(up, down)
	if err != nil {
		return err
	}
	file := filepath.Join(e.dir, "init")
	if err := os.WriteFile(file, []byte(script), 0o700); err != nil {
		return err
	}
	command := exec.Command(umlProgram, "mem=256M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "init="+file, "quiet",
		"vec0:transport=tap,ifname=tap-phone,depth=128", "vec1:transport=tap,ifname=tap-server,depth=128", "con0=null,fd:1", "con=null", "ssl=null")
	if library, err := filepath.Abs(umlXState); err == nil {
		if _, err := os.Stat(library); err == nil {
			command.Env = append(os.Environ(), "LD_PRELOAD="+library)
		}
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := e.Air.Start(command); err != nil {
		return fmt.Errorf("%w (Debian has it in the package user-mode-linux)", err)
	}
	e.processes = append(e.processes, command)
	ready := make(chan error, 1)
	go func() {
		said := []string{}
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if said = append(said, lines.Text()); strings.Contains(lines.Text(), readyMark) {
				ready <- nil
			}
		}
		ready <- errors.New("user-mode Linux ended: " + strings.Join(said[:min(len(said), saidMost)], "; "))
	}()
	select {
	case err = <-ready:
	case <-time.After(bootTime):
		err = errors.New("user-mode Linux did not get ready")
	}
	return err
}

const readyMark = "netem is ready"

// initScript returns the init of that kernel. vec0 is connected to the phone, so its egress is downstream.
func initScript(up, down string) (string, error) {
	if found, _ := filepath.Glob(umlModules + "/*/kernel/net/sched/sch_netem.ko"); len(found) == 0 {
		return "", fmt.Errorf("no netem for user-mode Linux in %s (Debian: user-mode-linux)", umlModules)
	}
	lines := []string{
		"#!/bin/sh", "export PATH=/usr/sbin:/usr/bin:/sbin:/bin", "exec >/dev/console 2>&1", "set -e", "mount -t proc proc /proc",
		"mount -t tmpfs tmpfs /mnt", "mkdir /mnt/lib", "ln -s " + umlModules + " /mnt/lib/modules", "modprobe -d /mnt -a bridge sch_netem",
	}
	lines = append(lines, "ip link add br0 type bridge forward_delay 0", "ip link set br0 up")
	for device, options := range map[string]string{"vec0": down, "vec1": up} {
		lines = append(lines, "ip link set "+device+" master br0 up")
		if options != "" {
			lines = append(lines, "tc qdisc add dev "+device+" root netem limit 100000 "+options)
		}
	}
	lines = append(lines, "echo "+readyMark, "while :; do sleep 1000; done")
	return strings.Join(lines, "\n") + "\n", nil
}
