package proxied

import (
	"bytes"
	"encoding/binary"
	"net/netip"
)

func socks5Greeting(_ *Preamble, b []byte) (int, step, bool) {
	return 2 + int(b[1]), socks5Client, true // begin has checked that it is complete
}

// socks5Client reads the message after the greeting: name and password (RFC
// 1929 §2), or the request.
func socks5Client(p *Preamble, b []byte) (int, step, bool) {
	if len(b) < 2 {
		return 0, nil, true
	}
	if b[0] == 1 {
		name := 2 + int(b[1])
		if len(b) <= name || len(b) < name+1+int(b[name]) {
			return 0, nil, true
		}
		return name + 1 + int(b[name]), socks5Client, true
	}
	if b[0] != 5 {
		return 0, nil, false
	}
	if len(b) < 4 {
		return 0, nil, true
	}
	target, size, ok := address(b[3:])
	if !ok || size == 0 {
		return 0, nil, ok
	}
	p.Target = target
	return 3 + size, nil, true
}

// socks5Method reads the proxy's choice of an authentication method.
func socks5Method(_ *Preamble, b []byte) (int, step, bool) {
	if len(b) < 2 {
		return 0, nil, true
	}
	switch {
	case b[0] == 5 && b[1] == 0:
		return 2, socks5Answer, true
	case b[0] == 5 && b[1] == 2:
		return 2, socks5Accepted, true
	}
	return 0, nil, false
}

func socks5Accepted(_ *Preamble, b []byte) (int, step, bool) {
	if len(b) < 2 {
		return 0, nil, true
	}
	return 2, socks5Answer, b[0] == 1 && b[1] == 0
}

func socks5Answer(_ *Preamble, b []byte) (int, step, bool) {
	if len(b) < 4 {
		return 0, nil, true
	}
	if b[0] != 5 || b[1] != 0 {
		return 0, nil, false
	}
	if b[3] == typeHost && len(b) > 4 { // the bound address can be an empty name
		size := 5 + int(b[4]) + 2
		if len(b) < size {
			return 0, nil, true
		}
		return size, nil, true
	}
	_, size, ok := address(b[3:])
	if !ok || size == 0 {
		return 0, nil, ok
	}
	return 3 + size, nil, true
}

// socks4Request reads a request of SOCKS 4, or of 4a with the host after the
// user name.
func socks4Request(p *Preamble, b []byte) (int, step, bool) {
	if len(b) < 9 {
		return 0, nil, true
	}
	user := bytes.IndexByte(b[8:min(len(b), 8+256)], 0)
	if user < 0 {
		return 0, nil, len(b) < 8+256
	}
	size := 8 + user + 1
	port := binary.BigEndian.Uint16(b[2:])
	if b[4] != 0 || b[5] != 0 || b[6] != 0 || b[7] == 0 {
		p.Target = Target{Addr: netip.AddrFrom4([4]byte(b[4:8])), Port: port}
		return size, nil, true
	}
	host := bytes.IndexByte(b[size:min(len(b), size+256)], 0)
	if host < 0 {
		return 0, nil, len(b) < size+256
	}
	p.Target = named(string(b[size:size+host]), port)
	return size + host + 1, nil, isHost(b[size : size+host])
}

func socks4Answer(_ *Preamble, b []byte) (int, step, bool) {
	if len(b) < 8 {
		return 0, nil, true
	}
	return 8, nil, b[0] == 0 && b[1] == 90
}
