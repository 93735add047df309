package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"mplab/internal/netbox"
)

const (
	drawPacket   = 100 // payload in bytes
	drawInterval = 500 * time.Microsecond
	drawRest     = time.Second // for packets in flight
)

// draws sends numbered packets from the phone at an even pace. It reports the packets that were lost (with the lengths
// of the loss bursts), duplicated, or received before an earlier one.
func draws(n int) func(*emulator) (string, error) {
	return func(e *emulator) (string, error) {
		in, out, err := udpPair(e)
		if err != nil {
			return "", err
		}
		defer func() { _, _ = in.Close(), out.Close() }()
		if err := e.Phone.Run("ping", "-c", "5", "-i", "0.2", netbox.ServerAddress); err != nil { // ARP
			return "", err
		}
		numbers := make(chan []uint32)
		go func() {
			var got []uint32
			for packet := make([]byte, drawPacket); ; {
				if _, _, err := in.ReadFromUDPAddrPort(packet); err != nil {
					numbers <- got
					return
				}
				got = append(got, binary.BigEndian.Uint32(packet))
			}
		}()
		packet, begin := make([]byte, drawPacket), time.Now()
		for i := range n {
			if ahead := time.Duration(i)*drawInterval - time.Since(begin); ahead > 0 {
				t := unix.NsecToTimespec(int64(ahead))
				_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &t, nil)
			}
			binary.BigEndian.PutUint32(packet, uint32(i))
			if _, err := out.Write(packet); err != nil && !errors.Is(err, unix.ENOBUFS) {
				return "", err
			}
		}
		time.Sleep(drawRest)
		_ = in.SetReadDeadline(time.Now())
		return told(<-numbers, n), nil
	}
}

// told summarises the outcome of n packets.
func told(got []uint32, n int) string {
	times := make([]int, n)
	overtook, earliest := 0, uint32(n) // of the packets received later
	for i := len(got) - 1; i >= 0; i-- {
		times[got[i]]++
		if got[i] > earliest {
			overtook++
		}
		earliest = min(earliest, got[i])
	}
	lost, bursts, twice := 0, 0, 0
	for i, count := range times {
		switch {
		case count == 0:
			lost++
			if i == 0 || times[i-1] > 0 {
				bursts++
			}
		case count > 1:
			twice++
		}
	}
	text := fmt.Sprintf("%.2f %% lost", percent(lost, n))
	if bursts > 0 {
		text += fmt.Sprintf(" in runs of %.2f", float64(lost)/float64(bursts))
	}
	return text + fmt.Sprintf(", %.2f %% twice, %.2f %% overtook others", percent(twice, n), percent(overtook, n))
}

func percent(part, whole int) float64 { return 100 * float64(part) / float64(whole) }
