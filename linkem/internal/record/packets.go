package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"mplab/analysis/mptrace/capfile"
	"mplab/analysis/mptrace/packet"
)

const (
	protocolTCP = 6
	protocolUDP = 17
	flagSYN     = 1 << 1
	flagACK     = 1 << 4
)

// seen is one captured packet of TCP or UDP.
type seen struct {
	timeNS          int64
	iface           int32
	protocol        byte
	source, target  netip.AddrPort
	bytes           int  // of IP, on the wire
	opens, isOpened bool // SYN; SYN and ACK
}

// read returns all TCP and UDP packets over IP in a capture, without fragments, in the order of the file. cut reports
// that the capture ends inside a record.
func read(file string) (packets []seen, cut bool, err error) {
	in, err := capfile.Open(file)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", file, err)
	}
	defer in.Close()
	var batch capfile.Batch
	for {
		err = in.Read(&batch)
		for i := range batch.Records {
			record := &batch.Records[i]
			link := in.Interfaces()[record.Iface].LinkType
			ip := packet.IP(link, record.Data)
			if p, ok := decode(ip, int(record.OrigLen)-(len(record.Data)-len(ip))); ok {
				p.timeNS, p.iface = record.TimeNS, record.Iface
				packets = append(packets, p)
			}
		}
		switch {
		case err == nil:
		case err == io.EOF:
			return packets, false, nil
		case errors.Is(err, capfile.ErrCut):
			return packets, true, nil
		default:
			return nil, false, fmt.Errorf("%s: %w", file, err)
		}
	}
}

// decode reads the headers of an IP packet. wire is its captured length, for headers without a length (segmentation
// offload).
func decode(ip []byte, wire int) (p seen, ok bool) {
	if len(ip) < 1 {
		return p, false
	}
	var header int
	switch ip[0] >> 4 {
	case 4:
		header = int(ip[0]&15) * 4
		if header < 20 || len(ip) < header || binary.BigEndian.Uint16(ip[6:])&0x3fff != 0 {
			return p, false
		}
		p.bytes, p.protocol = int(binary.BigEndian.Uint16(ip[2:])), ip[9]
		p.source, p.target = address(ip[12:16]), address(ip[16:20])
	case 6:
		header = 40
		if len(ip) < header {
			return p, false
		}
		p.bytes, p.protocol = int(binary.BigEndian.Uint16(ip[4:])), ip[6]
		if p.bytes > 0 {
			p.bytes += header
		}
		p.source, p.target = address(ip[8:24]), address(ip[24:40])
	default:
		return p, false
	}
	if p.bytes == 0 {
		p.bytes = wire
	}
	if p.protocol != protocolTCP && p.protocol != protocolUDP || len(ip) < header+4 {
		return p, false
	}
	p.source = netip.AddrPortFrom(p.source.Addr(), binary.BigEndian.Uint16(ip[header:]))
	p.target = netip.AddrPortFrom(p.target.Addr(), binary.BigEndian.Uint16(ip[header+2:]))
	if p.protocol == protocolTCP && len(ip) > header+13 {
		flags := ip[header+13]
		p.opens = flags&(flagSYN|flagACK) == flagSYN
		p.isOpened = flags&(flagSYN|flagACK) == flagSYN|flagACK
	}
	return p, true
}

func address(b []byte) netip.AddrPort {
	addr, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(addr.Unmap(), 0)
}
