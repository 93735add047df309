package mptcptrace

import (
	"fmt"

	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/observe/spool"
	"mplab/analysis/mptrace/internal/tcp"
)

// connection is an MPTCP connection with a number of its own.
type connection struct {
	number  int
	beginNS int64 // third acknowledgement; first packet where that was not seen
	third   bool  // it was
	ways    [2]*way
	subs    []*subflow
	fixed   bool   // numbers in rows will not change any more
	waiting []note // that came before
	addAddr *spool.File
	rmAddr  *spool.File
}

// subflow is what is known of a subflow; its number in the files is one more
// than its place.
type subflow struct {
	ends   [2]tcp.Endpoint // by direction of the connection
	scale  [2]uint8
	flight [2]flight
	bytes  [2]uint64 // of its rows of seq
	caused [2]int64  // rows that others carried after it
	joined bool
}

// note is a call of Data or Ack.
type note struct {
	ack      bool
	sub, dir int
	timeNS   int64
	lo, hi   uint64 // of an acknowledgement: the number and the right edge of the window
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

// meet notes the subflows that are new.
func (c *connection) meet(subs []*mptcp.Sub) {
	for _, s := range subs[len(c.subs):] {
		ends := s.Flow.Ends
		if s.Turned {
			ends[0], ends[1] = ends[1], ends[0]
		}
		c.subs = append(c.subs, &subflow{ends: ends, joined: s.Additional})
	}
}

// take writes the rows of a call, or keeps it until its segment was read:
// the options there may tell the numbers.
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

// fix says that the numbers will not change any more.
func (c *connection) fix() {
	c.fixed = true
	for _, n := range c.waiting {
		c.take(n)
	}
	c.waiting = nil
}

// text writes what mptcptrace prints.
func (c *connection) text(f *spool.File) {
	fmt.Fprintf(f, "MPTCP connection %d with id %d\n", c.number, c.number)
	for i, s := range c.subs {
		client, server := s.ends[mptcp.Up], s.ends[mptcp.Down]
		fmt.Fprintf(f, "\tSubflow %d with wscale : %d %d IPv%d sport %d dport %d saddr %s daddr %s\n",
			i, s.scale[mptcp.Up], s.scale[mptcp.Down], s.version(), client.Port, server.Port, client.Addr, server.Addr)
	}
}

// version is that of IP.
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
