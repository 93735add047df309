package netx

import (
	"net"
	"sync"
)

// Watch keeps the most that was ever seen of a carrying connection's subflows:
// at its end, when it is logged, they are gone.
type Watch struct {
	conn  *net.TCPConn
	asked bool // MPTCP was asked for

	mu        sync.Mutex // guards what follows
	multipath bool
	subflows  int
}

// NewWatch watches a connection; multipath says whether MPTCP was asked for.
// Plain TCP is never sampled.
func NewWatch(conn *net.TCPConn, multipath bool) *Watch {
	w := &Watch{conn: conn, asked: multipath, subflows: 1}
	w.Sample()
	return w
}

// Sample looks at the connection; it costs a few microseconds. Once closed, a
// connection tells nothing new.
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
// against what was asked, and the most subflows at one time.
func (w *Watch) State() (multipath, fallback bool, subflows int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.multipath, w.asked && !w.multipath, w.subflows
}
