package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"mplab/analysis/mptrace/labtest"
)

// The bulk transfer consists of rounds with a pause after each, in which no
// data is in flight. The part between two pauses can be repeated (extend.go).
const (
	rounds    = 6
	roundDown = 40 << 20
	roundUp   = 4 << 20
	pause     = 80 * time.Millisecond
)

// loss drops one in 4000 segments with payload after the capture, which causes
// retransmissions.
const loss = "table ip bench { chain input { type filter hook input priority 0; ip length > 500 numgen random mod 4000 == 0 drop; }; }"

// recordBulk captures a transfer of this kernel over two subflows of 300 and
// 200 Mbit/s with a little loss.
func recordBulk(dir string) error {
	lab, err := lossyLab(loss, "300mbit", "200mbit")
	if err != nil {
		return err
	}
	defer lab.Close()
	return captured(lab, dir, "bulk", func(listener *net.TCPListener) error {
		p, err := lab.Connect(listener, labtest.Dial{Multipath: true})
		if err != nil {
			return err
		}
		if err := errors.Join(p.Exchange(1000, 1000), p.WaitSubflows(1)); err != nil {
			return err
		}
		for range rounds {
			time.Sleep(pause)
			if err := p.Exchange(roundUp, roundDown); err != nil {
				return err
			}
		}
		time.Sleep(pause)
		return p.Close()
	})
}

// The short connections are similar to those of a phone in some minutes.
const (
	connections = 4500
	workers     = 12
	shareTCP    = 0.25
	leastBytes  = 10_000
	mostBytes   = 100_000
)

// recordShort captures short requests with responses of 10 to 100 kB, over TCP
// and over Multipath TCP with a second subflow.
func recordShort(dir string, count int) error {
	lab, err := labtest.New(labtest.Options{})
	if err != nil {
		return err
	}
	defer lab.Close()
	lab.Paths[labtest.WLAN].Shape(2*time.Millisecond, 0, 0)
	lab.Paths[labtest.RMNET].Shape(5*time.Millisecond, 0, 0)
	return captured(lab, dir, "short", func(listener *net.TCPListener) error {
		var running sync.WaitGroup
		failed := make([]error, workers)
		for w := range workers {
			running.Go(func() { failed[w] = browse(lab, uint16(5000+w*count/workers), count/workers) })
		}
		running.Wait()
		return errors.Join(failed...)
	})
}

// The connections of the trace "many" run at the same time, with losses.
const (
	together  = 16
	manyDown  = 5 << 20
	manyUp    = 256 << 10
	manyLoss  = "table ip bench { chain input { type filter hook input priority 0; ip length > 500 numgen random mod 250 == 0 drop; }; }"
	firstMany = 6000 // port
)

// recordMany captures transfers over two subflows each, at the same time, with
// 0.4 % loss.
func recordMany(dir string) error {
	lab, err := lossyLab(manyLoss, "100mbit", "60mbit")
	if err != nil {
		return err
	}
	defer lab.Close()
	return captured(lab, dir, "many", func(*net.TCPListener) error {
		var running sync.WaitGroup
		failed := make([]error, together)
		for n := range together {
			running.Go(func() { failed[n] = transfer(lab, uint16(firstMany+n)) })
		}
		running.Wait()
		return errors.Join(failed...)
	})
}

// transfer moves data over a connection with two subflows.
func transfer(lab *labtest.Lab, port uint16) error {
	listener, err := lab.Listen(netip.AddrPortFrom(labtest.Server4[labtest.WLAN], port), true)
	if err != nil {
		return err
	}
	defer listener.Close()
	p, err := lab.Connect(listener, labtest.Dial{Multipath: true})
	if err != nil {
		return err
	}
	return errors.Join(p.Exchange(1000, 1000), p.WaitSubflows(1), p.Exchange(manyUp, manyDown), p.Close())
}

// lossyLab returns a laboratory whose paths have some rates and lose segments.
func lossyLab(loss string, rates ...string) (*labtest.Lab, error) {
	lab, err := labtest.New(labtest.Options{Direct: true})
	if err != nil {
		return nil, err
	}
	err = limit(lab, rates...)
	for _, node := range []*labtest.Node{lab.Client, lab.Server} {
		err = errors.Join(err, node.Run("nft", loss))
	}
	if err != nil {
		lab.Close()
		return nil, err
	}
	return lab, nil
}

// limit limits the rates of both paths in both directions.
func limit(lab *labtest.Lab, rates ...string) error {
	for i, rate := range rates {
		for node, name := range map[*labtest.Node]string{lab.Client: labtest.ClientInterfaces[i], lab.Server: labtest.ServerInterfaces[i]} {
			if err := node.Run("tc", "qdisc", "add", "dev", name, "root", "tbf", "rate", rate, "burst", "32k", "latency", "20ms"); err != nil {
				return err
			}
		}
	}
	return nil
}

// browse opens one connection after the other, each to a different port, so
// that no 4-tuple repeats.
func browse(lab *labtest.Lab, firstPort uint16, count int) error {
	dice := rand.New(rand.NewPCG(uint64(firstPort), 0))
	for n := range count {
		if err := fetch(lab, firstPort+uint16(n), dice); err != nil {
			return err
		}
	}
	return nil
}

func fetch(lab *labtest.Lab, port uint16, dice *rand.Rand) error {
	listener, err := lab.Listen(netip.AddrPortFrom(labtest.Server4[labtest.WLAN], port), true)
	if err != nil {
		return err
	}
	defer listener.Close()
	p, err := lab.Connect(listener, labtest.Dial{Multipath: dice.Float64() >= shareTCP})
	if err != nil {
		return err
	}
	request, response := 300+dice.Int64N(500), leastBytes+dice.Int64N(mostBytes-leastBytes)
	return errors.Join(p.Move(labtest.Up, request), p.Move(labtest.Down, response), p.Close())
}

// captured runs a transfer and writes DIR/NAME-wlan0.pcapng and -rmnet0.pcapng.
func captured(lab *labtest.Lab, dir, name string, transfer func(*net.TCPListener) error) error {
	listener, err := lab.Listen(netip.AddrPortFrom(labtest.Server4[labtest.WLAN], 4000), true)
	if err != nil {
		return err
	}
	defer listener.Close()
	for _, iface := range append(labtest.ClientInterfaces[:], labtest.ServerInterfaces[:]...) {
		_ = os.Remove(captureName(dir, name, iface))
	}
	stop, err := lab.Capture(dir, name)
	if err != nil {
		return err
	}
	err = errors.Join(transfer(listener), stop())
	for _, iface := range labtest.ServerInterfaces {
		_ = os.Remove(captureName(dir, name, iface))
	}
	if err != nil {
		return fmt.Errorf("record %s: %w", name, err)
	}
	return nil
}

func captureName(dir, name, iface string) string { return filepath.Join(dir, name+"-"+iface+".pcapng") }
