package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"mplab/control"
	"mplab/internal/netbox"
	"mplab/linkem/model"
)

const (
	packetBytes = 1500 // IP bytes
	headerBytes = 28   // IP and UDP
	buffer      = 32 << 20
	askPatience = 5 * time.Second

	// Maximum backlog that the sender sends at once after a stall. A longer burst would measure the queue.
	longestBurst = 2 * time.Millisecond
)

// flooding sends UDP from the phone to the server at an even pace and counts the received packets.
func flooding(mbits float64, duration time.Duration) func(*emulator) (string, error) {
	return func(e *emulator) (string, error) {
		in, out, err := udpPair(e)
		if err != nil {
			return "", err
		}
		defer func() { _, _ = in.Close(), out.Close() }()
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
		return fmt.Sprintf("%d of %d lost (%.3f %%) at %.1f Mbit/s%s", sent-got, sent, 100*float64(sent-got)/float64(sent),
			float64(sent)*packetBytes*8/took.Seconds()/1e6, counters), err
	}
}

func flood(out net.Conn, mbits float64, duration time.Duration) (int, time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	packet := make([]byte, packetBytes-headerBytes)
	interval := packetBytes * 8e3 / mbits // in ns
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

// udpPair opens a socket with a large buffer on the server, and one on the phone that sends to it.
func udpPair(e *emulator) (in *net.UDPConn, out net.Conn, err error) {
	e.Server.Do(func() { in, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(netbox.ServerAddress), Port: 9}) })
	if err != nil {
		return nil, nil, err
	}
	e.Phone.Do(func() { out, err = net.Dial("udp", netbox.ServerAddress+":9") })
	if err == nil {
		if err = enlarge(in); err == nil {
			return in, out, nil
		}
		_ = out.Close()
	}
	_ = in.Close()
	return nil, nil, err
}

// enlarge sets a large receive buffer, so that the receiver does not lose packets.
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

// counters returns the packets that linkem itself dropped; for netem they are unknown.
func (e *emulator) counters() (string, error) {
	if e.netem {
		return "", nil
	}
	up, _, err := e.ask()
	return fmt.Sprintf("; dropped by kernel %d, queue %d, send %d", up.KernelDropped, up.DroppedQueue, up.DroppedSend), err
}

// late returns how many packets linkem sent more than a millisecond late; for netem it is unknown.
func (e *emulator) late() (string, error) {
	if e.netem {
		return "", nil
	}
	up, down, err := e.ask()
	return fmt.Sprintf("; %d sent late, by at most %.1f ms", up.LatePackets+down.LatePackets, max(up.LatestMs, down.LatestMs)), err
}

func (e *emulator) ask() (up, down model.Counters, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	client, err := control.Dial(ctx, filepath.Join(e.dir, "control"))
	if err != nil {
		return up, down, err
	}
	defer func() { _ = client.Close() }()
	var answer struct {
		Links map[string]struct{ Up, Down model.Counters }
	}
	err = client.Ask(ctx, map[string]string{"op": "counters"}, &answer)
	return answer.Links["test"].Up, answer.Links["test"].Down, err
}
