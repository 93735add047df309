package source

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"mplab/analysis/mptrace/capfile"
	"mplab/analysis/mptrace/packet"
)

// iface is an interface of a file.
type iface struct {
	inFile int32 // interface number in the file
	known  bool  // its link type is supported
	link   int   // link type
	number int32 // in the sequence, unless the frames contain it: see links
	links  *links

	ipAt, typeAt int // of the usual link-layer header: its length, and the place of the EtherType
}

// maxNames is the maximum number of distinct interfaces.
const maxNames = 1 << 16

// meet takes over the interfaces of an input that its records describe.
func (s *Source) meet(in *input) {
	for _, d := range in.file.Interfaces()[len(in.ifaces):] {
		i := &iface{inFile: int32(len(in.ifaces)), known: packet.KnownLink(d.LinkType), link: d.LinkType}
		if in.indexed(d) {
			i.links = &links{numbers: map[uint32]int32{}}
		} else {
			i.number = s.names.add(d.Name)
		}
		i.ipAt, i.typeAt = packet.UsualLink(d.LinkType)
		in.ifaces = append(in.ifaces, i)
	}
}

// indexed reports whether the frames of an interface contain an interface
// index, because it represents all interfaces of the machine.
func (in *input) indexed(d capfile.Interface) bool {
	return d.LinkType == packet.LinkSLL2 && (in.file.Format == "pcap" || d.Name == "" || d.Name == "any")
}

// links maps the interface indexes in the frames of one capture to numbers.
type links struct {
	recent  [16]struct{ index, number uint32 } // by the low bits of index; number starts at 1
	numbers map[uint32]int32
	names   []string
}

// link returns the number of the interface in a frame.
func (s *Source) link(from *iface, frame []byte) int32 {
	index, _ := packet.IfIndex(from.link, frame)
	l := from.links
	recent := &l.recent[index%uint32(len(l.recent))]
	if recent.number == 0 || recent.index != index {
		recent.index, recent.number = index, uint32(s.findLink(l, index))+1
	}
	return int32(recent.number - 1)
}

func (s *Source) findLink(l *links, index uint32) int32 {
	if number, ok := l.numbers[index]; ok {
		return number
	}
	name, ok := s.options.IfNames[index]
	if !ok {
		name = fmt.Sprintf("if%d", index)
	}
	number := s.names.add(name)
	if number < maxNames {
		l.numbers[index] = number
		l.names = append(l.names, name)
	}
	return number
}

// names is a list that can grow while other goroutines read it.
type names struct {
	adding sync.Mutex
	list   atomic.Pointer[[]string]
}

// add returns the number of a new name. All names beyond maxNames share one
// number and are not kept.
func (n *names) add(name string) int32 {
	n.adding.Lock()
	defer n.adding.Unlock()
	list := n.all()
	if len(list) > maxNames {
		return maxNames
	}
	if len(list) == maxNames {
		name = ""
	}
	list = append(list, name) // behind the part that readers know
	n.list.Store(&list)
	return int32(len(list) - 1)
}

func (n *names) all() []string {
	if list := n.list.Load(); list != nil {
		return *list
	}
	return nil
}

// Interface returns the name of an interface number, or "". It is safe for
// concurrent use.
func (s *Source) Interface(number int32) string {
	if all := s.names.all(); number >= 0 && int(number) < len(all) {
		return all[number]
	}
	return ""
}

// Interfaces returns the names of all interfaces so far, by number.
func (s *Source) Interfaces() []string { return slices.Clone(s.names.all()) }
