package capture

import (
	"fmt"

	"golang.org/x/net/bpf"
)

// The filter is a classic BPF program. It runs in the kernel on each packet and
// returns the number of bytes that the capture receives.

// outgoing is the type of sent packets, which the packet type extension of classic BPF
// returns (linux/filter.h, linux/if_packet.h).
const outgoing = 4 // PACKET_OUTGOING

const (
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
)

// filterOptions select the bytes that a filter keeps.
type filterOptions struct {
	ethernet     bool // frames start with an Ethernet header; otherwise with IP
	payload      bool
	snapLen      uint32
	dropOutgoing bool // on loopback the socket sees every packet twice
}

// program is a BPF program under construction. Jumps lead forward to labels.
type program struct {
	code   []bpf.Instruction
	labels map[string]int
	jumps  map[int]string
}

func (p *program) add(code ...bpf.Instruction) { p.code = append(p.code, code...) }

func (p *program) label(name string) { p.labels[name] = len(p.code) }

// jumpIf jumps to a label if the condition holds, and falls through otherwise.
func (p *program) jumpIf(cond bpf.JumpTest, val uint32, to string) {
	// Skip over an unconditional jump: conditional jumps reach at most 255
	// steps.
	p.add(bpf.JumpIf{Cond: cond, Val: val, SkipFalse: 1})
	p.jump(to)
}

func (p *program) jump(to string) {
	p.jumps[len(p.code)] = to
	p.add(bpf.Jump{})
}

func (p *program) assemble() ([]bpf.RawInstruction, error) {
	for at, to := range p.jumps {
		target, ok := p.labels[to]
		if !ok || target <= at {
			return nil, fmt.Errorf("no label %q ahead of step %d", to, at)
		}
		p.code[at] = bpf.Jump{Skip: uint32(target - at - 1)}
	}
	return bpf.Assemble(p.code)
}

// filter returns the program for a link type.
func filter(o filterOptions) ([]bpf.RawInstruction, error) {
	p := &program{labels: map[string]int{}, jumps: map[int]string{}}
	if o.dropOutgoing {
		p.add(bpf.LoadExtension{Num: bpf.ExtType})
		p.jumpIf(bpf.JumpEqual, outgoing, "nothing")
	}
	switch {
	case o.payload:
		p.add(bpf.RetConstant{Val: o.snapLen})
	case o.ethernet:
		p.ethernet()
	default:
		p.add(bpf.LoadAbsolute{Off: 0, Size: 1}, bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 4})
		p.jumpIf(bpf.JumpEqual, 4, "ipv4-0")
		p.jumpIf(bpf.JumpEqual, 6, "ipv6-0")
		p.keep(1)
		p.ipv4(0)
		p.ipv6(0)
	}
	// The accumulator holds the length to keep.
	p.label("cut")
	p.jumpIf(bpf.JumpGreaterThan, o.snapLen, "snap")
	p.add(bpf.RetA{})
	p.label("snap")
	p.add(bpf.RetConstant{Val: o.snapLen})
	p.label("nothing")
	p.add(bpf.RetConstant{Val: 0})
	return p.assemble()
}

// keep cuts the packet at a fixed length.
func (p *program) keep(length uint32) {
	p.add(bpf.LoadConstant{Dst: bpf.RegA, Val: length})
	p.jump("cut")
}

// ethernet parses an Ethernet header with at most two VLAN tags.
func (p *program) ethernet() {
	for at := uint32(14); at <= 22; at += 4 {
		p.label(fmt.Sprint("ether-", at))
		p.add(bpf.LoadAbsolute{Off: at - 2, Size: 2})
		p.jumpIf(bpf.JumpEqual, 0x0800, fmt.Sprint("ipv4-", at))
		p.jumpIf(bpf.JumpEqual, 0x86dd, fmt.Sprint("ipv6-", at))
		p.jumpIf(bpf.JumpEqual, 0x0806, fmt.Sprint("arp-", at))
		if at < 22 {
			next := fmt.Sprint("ether-", at+4)
			p.jumpIf(bpf.JumpEqual, 0x8100, next)
			p.jumpIf(bpf.JumpEqual, 0x88a8, next)
		}
		p.keep(at)
		p.label(fmt.Sprint("arp-", at))
		p.keep(at + 28)
		p.ipv4(at)
		p.ipv6(at)
	}
}

// ipv4 cuts after the last header of an IPv4 packet at an offset.
func (p *program) ipv4(at uint32) {
	name := func(s string) string { return fmt.Sprint(s, "-", at) }
	p.label(name("ipv4"))
	p.shorterThan(at+20, name("whole4"))
	p.add(bpf.LoadMemShift{Off: at}) // X = length of the IP header
	p.add(bpf.LoadAbsolute{Off: at + 6, Size: 2})
	p.jumpIf(bpf.JumpBitsSet, 0x1fff, name("fragment")) // a later fragment
	p.add(bpf.LoadAbsolute{Off: at + 9, Size: 1})
	p.jumpIf(bpf.JumpEqual, protoTCP, name("tcp4"))
	p.jumpIf(bpf.JumpEqual, protoUDP, name("eight4"))
	p.jumpIf(bpf.JumpEqual, protoICMP, name("eight4"))
	p.label(name("fragment"))
	p.add(bpf.TXA{}, bpf.ALUOpConstant{Op: bpf.ALUOpAdd, Val: at})
	p.jump("cut")
	p.label(name("eight4"))
	p.add(bpf.TXA{}, bpf.ALUOpConstant{Op: bpf.ALUOpAdd, Val: at + 8})
	p.jump("cut")
	p.label(name("tcp4"))
	// A load beyond the end of the packet would drop it: check the length
	// first.
	p.add(bpf.LoadExtension{Num: bpf.ExtLen}, bpf.ALUOpX{Op: bpf.ALUOpSub})
	p.jumpIf(bpf.JumpLessThan, at+13, name("bare4"))
	p.add(bpf.LoadIndirect{Off: at + 12, Size: 1})
	p.tcpHeader()
	p.add(bpf.ALUOpX{Op: bpf.ALUOpAdd}, bpf.ALUOpConstant{Op: bpf.ALUOpAdd, Val: at})
	p.jump("cut")
	p.label(name("bare4"))
	p.add(bpf.TXA{}, bpf.ALUOpConstant{Op: bpf.ALUOpAdd, Val: at})
	p.jump("cut")
	p.label(name("whole4"))
	p.keep(at)
}

// ipv6 cuts after the last header of an IPv6 packet at an offset. If extension
// headers follow, it keeps only the base header.
func (p *program) ipv6(at uint32) {
	name := func(s string) string { return fmt.Sprint(s, "-", at) }
	p.label(name("ipv6"))
	p.shorterThan(at+40, name("whole6"))
	p.add(bpf.LoadAbsolute{Off: at + 6, Size: 1})
	p.jumpIf(bpf.JumpEqual, protoTCP, name("tcp6"))
	p.jumpIf(bpf.JumpEqual, protoUDP, name("eight6"))
	p.jumpIf(bpf.JumpEqual, protoICMPv6, name("eight6"))
	p.keep(at + 40)
	p.label(name("eight6"))
	p.keep(at + 48)
	p.label(name("tcp6"))
	p.shorterThan(at+53, name("short6"))
	p.add(bpf.LoadAbsolute{Off: at + 52, Size: 1})
	p.tcpHeader()
	p.add(bpf.ALUOpConstant{Op: bpf.ALUOpAdd, Val: at + 40})
	p.jump("cut")
	p.label(name("short6"))
	p.keep(at + 40)
	p.label(name("whole6"))
	p.keep(at)
}

// tcpHeader converts the data offset byte into the length of the TCP header.
func (p *program) tcpHeader() {
	p.add(bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf0}, bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 2})
}

func (p *program) shorterThan(length uint32, to string) {
	p.add(bpf.LoadExtension{Num: bpf.ExtLen})
	p.jumpIf(bpf.JumpLessThan, length, to)
}
