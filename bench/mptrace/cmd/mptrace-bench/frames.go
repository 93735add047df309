package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"mplab/analysis/mptrace/labtest"
)

// frame is a captured frame in memory.
type frame struct {
	timeNS int64
	iface  int // 0: wlan0, 1: rmnet0
	origin int // bytes on the wire
	data   []byte
}

// load reads the recorded captures, merged by time, without frames that are not TCP.
func load(dir, name string) ([]frame, error) {
	var all []frame
	for i, iface := range labtest.ClientInterfaces {
		err := walkFile(captureName(dir, name, iface), func(r record) error {
			f := frame{r.timeNS, i, r.origin, bytes.Clone(r.data)}
			if _, ok := headers(f.data); ok {
				all = append(all, f)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b frame) int { return int(a.timeNS - b.timeNS) })
	return all, nil
}

// record is a record of a capture file. data is valid during the call.
type record struct {
	timeNS int64
	origin int
	data   []byte
}

const readSize = 1 << 20

var errNoCapture = errors.New("not a capture in little-endian pcap or pcapng")

// walkFile calls each with the records of a file, pcap or pcapng in the byte order of this machine.
func walkFile(name string, each func(record) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := walk(f, each); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func walk(in io.Reader, each func(record) error) error {
	b := bufio.NewReaderSize(in, readSize)
	magic, err := b.Peek(4)
	if err != nil {
		return err
	}
	switch binary.LittleEndian.Uint32(magic) {
	case pcapMagic:
		return walkPcap(b, each)
	case pcapngMagic:
		return walkPcapng(b, each)
	}
	return errNoCapture
}

func walkPcap(b *bufio.Reader, each func(record) error) error {
	if _, err := b.Discard(24); err != nil {
		return err
	}
	for {
		h, err := b.Peek(16)
		if err != nil {
			return ended(err, len(h))
		}
		captured := int(binary.LittleEndian.Uint32(h[8:]))
		h, err = b.Peek(16 + captured)
		if err != nil {
			return ended(err, 1)
		}
		r := record{int64(binary.LittleEndian.Uint32(h))*1e9 + int64(binary.LittleEndian.Uint32(h[4:]))*1e3,
			int(binary.LittleEndian.Uint32(h[12:])), h[16:]}
		if err := each(r); err != nil {
			return err
		}
		_, _ = b.Discard(16 + captured) // cannot fail: it was peeked
	}
}

func walkPcapng(b *bufio.Reader, each func(record) error) error {
	for {
		h, err := b.Peek(8)
		if err != nil {
			return ended(err, len(h))
		}
		kind, size := binary.LittleEndian.Uint32(h), int(binary.LittleEndian.Uint32(h[4:]))
		if h, err = b.Peek(size); err != nil {
			return ended(err, 1)
		}
		if kind == packetBlock {
			captured := int(binary.LittleEndian.Uint32(h[20:]))
			r := record{int64(uint64(binary.LittleEndian.Uint32(h[12:]))<<32 | uint64(binary.LittleEndian.Uint32(h[16:]))),
				int(binary.LittleEndian.Uint32(h[24:])), h[28 : 28+captured]}
			if err := each(r); err != nil {
				return err
			}
		}
		_, _ = b.Discard(size)
	}
}

// ended returns nil if the input ended between two records, and otherwise an error.
func ended(err error, begun int) error {
	if err == io.EOF && begun == 0 {
		return nil
	}
	return fmt.Errorf("cut short: %w", err)
}
