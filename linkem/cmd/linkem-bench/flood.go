package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"mplab/linkem"
	"mplab/linkem/internal/netbox"
)

const (
	packetBytes = 1500 // IP
	headerBytes = 28   // IP and UDP
	buffer      = 32 << 20

	// What the sender makes up for at once when the machine had stalled it. A longer burst would measure the queue.
	longestBurst = 2 * time.Millisecond
)

// flooding sends UDP from the phone to the server at an even pace and counts what arrives, by a counter in each packet.
func flooding(mbits float64, duration time.Duration) func(*emulator) (string, error) {
	return func(e *emulator) (string, error) {
		var in *net.UDPConn
		var out net.Conn
		var err error
		e.Server.Do(func() { in, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(netbox.ServerAddress), Port: 9}) })
		if err != nil {
			return "", err
		}
		defer func() { _ = in.Close() }()
		e.Phone.Do(func() { out, err = net.Dial("udp", netbox.ServerAddress+":9") })
		if err != nil {
			return "", err
		}
		defer func() { _ = out.Close() }()
		if err := enlarge(in); err != nil {
			return "", err
		}
		received := make(chan int)
		go func() {
			n, packet := 0, make([]byte, packetBytes)
			for {
				if _, _, err := in.ReadFromUDPAddrPort(packet); err != nil {
					received <- n
					return
				}
				n++
			}
		}()
		_, _ = out.Write([]byte("ARP"))
		time.Sleep(200 * time.Millisecond)
		sent, took, err := flood(out, mbits, duration)
		if err != nil {
			return "", err
		}
		time.Sleep(500 * time.Millisecond)
		_ = in.SetReadDeadline(time.Now())
		got := <-received - 1
		counters, err := e.counters()
		return fmt.Sprintf("%d of %d lost (%.3f %%) at %.1f Mbit/s; %s", sent-got, sent, 100*float64(sent-got)/float64(sent),
			float64(sent)*packetBytes*8/took.Seconds()/1e6, counters), err
	}
}

func flood(out net.Conn, mbits float64, duration time.Duration) (int, time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	packet := make([]byte, packetBytes-headerBytes)
	interval := packetBytes * 8e3 / mbits // ns
	start, stalled := time.Now(), time.Duration(0)
	for n := 0; ; n++ {
		due := time.Duration(float64(n)*interval) + stalled
		if due >= duration {
			return n, time.Since(start), nil
		}
		switch ahead := due - time.Since(start); {
		case ahead > 0:
			t := unix.NsecToTimespec(int64(ahead))
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &t, nil)
		case ahead < -longestBurst:
			stalled -= ahead
		}
		if _, err := out.Write(packet); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return n, time.Since(start), err
		}
	}
}

// enlarge gives the receiver a large buffer, so that it is not what loses packets.
func enlarge(conn *net.UDPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) {
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) != nil {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, buffer)
		}
	})
}

// counters tells what linkem itself dropped.
func (e *emulator) counters() (string, error) {
	up, _, err := e.ask()
	return fmt.Sprintf("dropped by kernel %d, queue %d, send %d", up.KernelDropped, up.DroppedQueue, up.DroppedSend), err
}

// late tells how many packets linkem sent more than a millisecond behind their time.
func (e *emulator) late() (string, error) {
	up, down, err := e.ask()
	return fmt.Sprintf("%d sent late, by at most %.1f ms", up.LatePackets+down.LatePackets, max(up.LatestMs, down.LatestMs)), err
}

func (e *emulator) ask() (up, down linkem.Counters, err error) {
	conn, err := net.Dial("unix", filepath.Join(e.dir, "control"))
	if err != nil {
		return up, down, err
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintln(conn, `{"op":"counters"}`); err != nil {
		return up, down, err
	}
	var answer struct {
		Links map[string]struct{ Up, Down linkem.Counters }
	}
	err = json.NewDecoder(conn).Decode(&answer)
	return answer.Links["test"].Up, answer.Links["test"].Down, err
}
