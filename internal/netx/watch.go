package netx

import (
	"net"
	"sync"
)

// Watch records the maximum number of subflows of a carrying connection. At the
// end of the connection, when it is logged, the subflows no longer exist.
type Watch struct {
	conn  *net.TCPConn
	asked bool // MPTCP was requested

	mu        sync.Mutex // guards the following fields
	multipath bool
	subflows  int
}

// NewWatch watches a connection. multipath means that MPTCP was requested;
// plain TCP is never sampled.
func NewWatch(conn *net.TCPConn, multipath bool) *Watch {
	w := &Watch{conn: conn, asked: multipath, subflows: 1}
	w.Sample()
	return w
}

// Sample reads the state of the connection, in a few microseconds. A closed
// connection yields nothing new.
func (w *Watch) Sample() {
	if !w.asked {
		return
	}
	paths := ReadPaths(w.conn)
	if !paths.Multipath {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.multipath = true
	w.subflows = max(w.subflows, paths.Subflows)
}

// State returns whether the connection was MPTCP, whether it fell back to TCP
// although MPTCP was requested, and the maximum number of concurrent subflows.
func (w *Watch) State() (multipath, fallback bool, subflows int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.multipath, w.asked && !w.multipath, w.subflows
}
