package mptcptrace

import (
	"fmt"

	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/observe/spool"
	"mplab/analysis/mptrace/internal/tcp"
)

// connection is an MPTCP connection with its number in the files.
type connection struct {
	number  int
	beginNS int64 // time of the third packet of the handshake; without it, of the first packet
	third   bool  // the third packet of the handshake was seen
	ways    [2]*way
	subs    []*subflow
	fixed   bool   // numbers in rows will not change any more
	waiting []note // calls before fix
	addAddr *spool.File
	rmAddr  *spool.File
}

// subflow is the state of a subflow. Its number in the files is its index plus
// one.
type subflow struct {
	ends   [2]tcp.Endpoint // by direction of the connection
	scale  [2]uint8
	flight [2]flight
	bytes  [2]uint64 // sum of its seq rows
	caused [2]int64  // rows that other subflows carried after it
	joined bool
}

// note is a stored call of Data or Ack.
type note struct {
	ack      bool
	sub, dir int
	timeNS   int64
	lo, hi   uint64 // of an acknowledgement: its number and the right edge of the window
	original int    // −1: new data
}

func newConnection(dir *spool.Dir, number int, timeNS int64) *connection {
	c := &connection{
		number: number, beginNS: timeNS,
		addAddr: dir.File(fmt.Sprintf("add_addr_%d.csv", number)),
		rmAddr:  dir.File(fmt.Sprintf("rm_addr_%d.csv", number)),
	}
	c.ways[mptcp.Up] = newWay(dir, "c2s", number)
	c.ways[mptcp.Down] = newWay(dir, "s2c", number)
	return c
}

// meet adds the new subflows.
func (c *connection) meet(subs []*mptcp.Sub) {
	for _, s := range subs[len(c.subs):] {
		ends := s.Flow.Ends
		if s.Turned {
			ends[0], ends[1] = ends[1], ends[0]
		}
		c.subs = append(c.subs, &subflow{ends: ends, joined: s.Additional})
	}
}

// take writes the rows of a call. Before fix, it stores the call, because the
// options of the segment can still contain the initial numbers.
func (c *connection) take(n note) {
	switch w := c.ways[n.dir]; {
	case !c.fixed:
		c.waiting = append(c.waiting, n)
	case n.ack:
		w.ack(n)
	default:
		w.data(n)
		s := c.subs[n.sub]
		s.bytes[n.dir] += n.hi - n.lo
		if n.original >= 0 && n.original != n.sub {
			c.subs[n.original].caused[n.dir]++
		}
	}
}

// fix declares the initial numbers final and writes the stored calls.
func (c *connection) fix() {
	c.fixed = true
	for _, n := range c.waiting {
		c.take(n)
	}
	c.waiting = nil
}

// text writes the standard output of mptcptrace.
func (c *connection) text(f *spool.File) {
	fmt.Fprintf(f, "MPTCP connection %d with id %d\n", c.number, c.number)
	for i, s := range c.subs {
		client, server := s.ends[mptcp.Up], s.ends[mptcp.Down]
		fmt.Fprintf(f, "\tSubflow %d with wscale : %d %d IPv%d sport %d dport %d saddr %s daddr %s\n",
			i, s.scale[mptcp.Up], s.scale[mptcp.Down], s.version(), client.Port, server.Port, client.Addr, server.Addr)
	}
}

// version returns the IP version.
func (s *subflow) version() int {
	if s.ends[0].Addr.Netip().Is4() {
		return 4
	}
	return 6
}

func (c *connection) close() {
	for dir, w := range c.ways {
		for i, s := range c.subs {
			fmt.Fprintf(w.sf, "%d,%d,%d\n", i+1, s.bytes[mptcp.Up], s.bytes[mptcp.Down])
		}
		if dir == mptcp.Up {
			w.writeReinjected()
		}
		w.close()
	}
	c.addAddr.Close()
	c.rmAddr.Close()
}
