package owner

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// recentProcesses is how many recent owners of sockets are checked first: the next
// connection often belongs to one of them.
const recentProcesses = 16

// procFinder finds the process that holds a socket open. It is not safe for concurrent
// use.
type procFinder struct {
	root   string
	recent []int
}

// find returns the process that holds the socket with this inode. It returns -1 and ""
// if it finds no visible process.
func (p *procFinder) find(inode uint32) (pid int, name string) {
	target := fmt.Sprintf("socket:[%d]", inode)
	for _, pid := range p.recent {
		if p.holds(pid, target) {
			return pid, p.found(pid)
		}
	}
	entries, err := os.ReadDir(p.root)
	if err != nil {
		return -1, ""
	}
	// Young processes have high numbers and make most connections.
	for _, entry := range slices.Backward(entries) {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || slices.Contains(p.recent, pid) {
			continue
		}
		if p.holds(pid, target) {
			return pid, p.found(pid)
		}
	}
	return -1, ""
}

// holds reports whether a process has the socket open.
func (p *procFinder) holds(pid int, target string) bool {
	directory := filepath.Join(p.root, strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(directory)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		if link, err := os.Readlink(filepath.Join(directory, entry.Name())); err == nil && link == target {
			return true
		}
	}
	return false
}

// found makes a process the most recent one and returns its name.
func (p *procFinder) found(pid int) string {
	p.recent = slices.DeleteFunc(p.recent, func(other int) bool { return other == pid })
	p.recent = slices.Insert(p.recent, 0, pid)
	if len(p.recent) > recentProcesses {
		p.recent = p.recent[:recentProcesses]
	}
	name, err := os.ReadFile(filepath.Join(p.root, strconv.Itoa(pid), "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}
