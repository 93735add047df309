package main

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// extension makes one long connection from a recorded one: it repeats the part between two moments without data in
// flight, and shifts all numbers and times.
type extension struct {
	head, body, tail []shifted
	lapNS            int64     // duration of the body
	lapBytes         [2]uint64 // payload of the body, up and down
}

// shifted is a frame with the changes per lap.
type shifted struct {
	frame
	header
	edits []edit
	rest  uint32 // part of the TCP checksum that no edit changes
}

type edit struct {
	at, size int
	by       uint64
}

var errNeverQuiet = errors.New("the recorded transfer has no two moments at which nothing is on its way")

// quiet is the state of a connection without data in flight.
type quiet struct {
	index int // index of the next frame
	next  map[flowKey]uint32
	sent  map[flowKey]uint16 // number of packets, which the IP identification counts
	dsn   [2]uint64          // relative
}

const leastPause = 40 * time.Millisecond

// extend prepares a recorded bulk transfer of one MPTCP connection over two subflows. frames are the recorded frames,
// or a rewritten form of each.
func extend(recorded, frames []frame) (*extension, error) {
	first, last := pauses(recorded)
	if first == nil || last == nil || first.index == last.index {
		return nil, errNeverQuiet
	}
	e := &extension{lapNS: frames[last.index].timeNS - frames[first.index].timeNS}
	for direction := range 2 {
		e.lapBytes[direction] = last.dsn[direction] - first.dsn[direction]
	}
	all := make([]shifted, len(frames))
	for i := range frames {
		all[i] = e.shift(frames[i], first, last)
	}
	e.head, e.body, e.tail = all[:first.index], all[first.index:last.index], all[last.index:]
	return e, nil
}

// pauses returns the first and the last quiet moment.
func pauses(frames []frame) (first, last *quiet) {
	now := quiet{next: map[flowKey]uint32{}, sent: map[flowKey]uint16{}}
	acked, dataAcked, places := map[flowKey]uint32{}, [2]uint64{}, learn(frames)
	idle := func() bool {
		for k, next := range now.next {
			if acked[k] != next {
				return false
			}
		}
		return len(now.next) == 4 && dataAcked == now.dsn
	}
	for i := range frames {
		f := &frames[i]
		if i > 0 && f.timeNS-frames[i-1].timeNS >= int64(leastPause) && idle() {
			last = now.copy(i)
			if first == nil {
				first = last
			}
		}
		h, _ := headers(f.data)
		k := keyOf(f.data, h)
		direction := senderOf(k)
		now.sent[k]++
		next := binary.BigEndian.Uint32(f.data[h.tcp+4:]) + uint32(payload(f, h))
		if flagsOf(f.data, h)&(flagSYN|flagFIN) != 0 {
			next++
		}
		if old, known := now.next[k]; !known || int32(next-old) > 0 {
			now.next[k] = next
		}
		if flagsOf(f.data, h)&flagACK != 0 {
			acked[k.turned()] = binary.BigEndian.Uint32(f.data[h.tcp+8:])
		}
		p, multipath := places[k]
		if !multipath {
			continue
		}
		eachDSS(f.data, h, func(o []byte, d dss) {
			if d.dsn != 0 {
				start := relative(o[d.dsn:], d.dsn64, p.conn.idsn[direction], now.dsn[direction])
				now.dsn[direction] = max(now.dsn[direction], start+uint64(binary.BigEndian.Uint16(o[d.ssn+4:])))
			}
			if d.ack != 0 {
				other := 1 - direction
				dataAcked[other] = max(dataAcked[other], relative(o[d.ack:], d.ack64, p.conn.idsn[other], now.dsn[other]))
			}
		})
	}
	return first, last
}

func (q *quiet) copy(index int) *quiet {
	c := &quiet{index: index, next: map[flowKey]uint32{}, sent: map[flowKey]uint16{}, dsn: q.dsn}
	for k, v := range q.next {
		c.next[k] = v
	}
	for k, v := range q.sent {
		c.sent[k] = v
	}
	return c
}

// senderOf returns 0 for the client, whose addresses end in 1 in every lab, and 1 for the server.
func senderOf(k flowKey) int {
	if k[3] == 1 {
		return 0
	}
	return 1
}

// eachDSS calls f with each data sequence signal.
func eachDSS(b []byte, h header, f func(option []byte, d dss)) {
	options(b, h, func(at, size int) {
		if b[at] == optionMPTCP && size >= 4 && b[at+2]>>4 == subDSS {
			f(b[at:at+size], dssOf(b[at:at+size]))
		}
	})
}

// shift finds the fields of a frame that change from lap to lap.
func (e *extension) shift(f frame, first, last *quiet) shifted {
	h, _ := headers(f.data)
	k := keyOf(f.data, h)
	sent := uint64(last.next[k] - first.next[k])
	got := uint64(last.next[k.turned()] - first.next[k.turned()])
	sender := senderOf(k)
	stamps := uint64(math.Ceil(float64(e.lapNS) / 1e6)) // Linux counts in milliseconds
	s := shifted{frame: f, header: h}
	add := func(at, size int, by uint64) { s.edits = append(s.edits, edit{at, size, by}) }
	add(ipAt+4, 2, uint64(last.sent[k]-first.sent[k]))
	add(h.tcp+4, 4, sent)
	add(h.tcp+8, 4, got)
	options(f.data, h, func(at, size int) {
		switch f.data[at] {
		case optionStamp:
			add(at+2, 4, stamps)
			add(at+6, 4, stamps)
		case optionSACK:
			for block := at + 2; block+4 <= at+size; block += 4 {
				add(block, 4, got)
			}
		case optionMPTCP:
			if f.data[at+2]>>4 != subDSS {
				return
			}
			d := dssOf(f.data[at : at+size])
			if d.ack != 0 {
				add(at+d.ack, width(d.ack64), e.lapBytes[1-sender])
			}
			if d.dsn != 0 {
				add(at+d.dsn, width(d.dsn64), e.lapBytes[sender])
				add(at+d.ssn, 4, sent)
			}
		}
	})
	s.rest = checksumRest(f.data, h)
	return s
}

func width(wide bool) int {
	if wide {
		return 8
	}
	return 4
}

// laps returns the number of repetitions that yields at least the given number of packets.
func (e *extension) laps(packets int64) int64 {
	fixed := int64(len(e.head) + len(e.tail))
	return max(1, (packets-fixed+int64(len(e.body))-1)/int64(len(e.body)))
}

// write writes the connection with the body repeated.
func (e *extension) write(w *writer, laps int64) error {
	scratch := make([]byte, 1<<12)
	put := func(frames []shifted, lap int64) error {
		for i := range frames {
			if err := frames[i].write(w, scratch, lap, e.lapNS); err != nil {
				return err
			}
		}
		return nil
	}
	if err := put(e.head, 0); err != nil {
		return err
	}
	for lap := range laps {
		if err := put(e.body, lap); err != nil {
			return err
		}
	}
	if err := put(e.tail, laps-1); err != nil {
		return err
	}
	return w.flush()
}

func (s *shifted) write(w *writer, scratch []byte, lap, lapNS int64) error {
	if lap == 0 {
		return w.frame(&s.frame)
	}
	b := scratch[:copy(scratch, s.data)]
	for _, e := range s.edits {
		by := e.by * uint64(lap)
		switch field := b[e.at:]; e.size {
		case 2:
			binary.BigEndian.PutUint16(field, binary.BigEndian.Uint16(field)+uint16(by))
		case 4:
			binary.BigEndian.PutUint32(field, binary.BigEndian.Uint32(field)+uint32(by))
		default:
			binary.BigEndian.PutUint64(field, binary.BigEndian.Uint64(field)+by)
		}
	}
	reseal(b, s.header)
	resealTCP(b, s.header, s.rest)
	return w.frame(&frame{s.timeNS + lap*lapNS, s.iface, s.origin, b})
}

// checksumRest returns the contribution of the payload to the TCP checksum. It is derived from the checksum, because
// the payload is not captured.
func checksumRest(b []byte, h header) uint32 {
	sum := ^binary.BigEndian.Uint16(b[h.tcp+16:])
	return uint32(sum) + 0xffff - fold(headerSum(b, h))
}

// resealTCP updates the TCP checksum after a change of the header.
func resealTCP(b []byte, h header, rest uint32) {
	binary.BigEndian.PutUint16(b[h.tcp+16:], ^uint16(fold(headerSum(b, h)+rest)))
}

// headerSum returns the sum over the pseudo header and the TCP header without its checksum.
func headerSum(b []byte, h header) (sum uint32) {
	for at := ipAt + 12; at < ipAt+20; at += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[at:]))
	}
	sum += uint32(binary.BigEndian.Uint16(b[ipAt+2:])) - uint32(h.tcp-ipAt)
	for at := h.tcp; at+1 < h.end; at += 2 {
		if at != h.tcp+16 {
			sum += uint32(binary.BigEndian.Uint16(b[at:]))
		}
	}
	return sum
}

func fold(sum uint32) uint32 {
	sum = sum>>16 + sum&0xffff
	return sum>>16 + sum&0xffff
}
