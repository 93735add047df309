package integration

import (
	"io"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mplab/internal/netx"
)

// signal sends a signal to the program. SIGSTOP freezes it, SIGCONT resumes it.
func (p *program) signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Error(err)
	}
}

// interceptor relays the plain paths of an agent to the proxy. While armed, it stops
// before it forwards the first bytes of one direction of a path over LTE: the attach,
// or the answer.
type interceptor struct {
	answers bool // stops before the answer
	armed   atomic.Bool
	stopped chan struct{} // has an element when it stops
	resume  chan struct{}
}

// intercepted is the address of interceptors, next to the proxy.
const intercepted = "10.64.3.2:7005"

func intercept(t *testing.T, answers bool) *interceptor {
	i := &interceptor{answers: answers, stopped: make(chan struct{}, 1), resume: make(chan struct{})}
	serve(t, "proxy", intercepted, func(near *net.TCPConn) {
		defer near.Close()
		far, err := dialFrom(t, "proxy", "10.64.3.2:7004")
		if err != nil {
			return
		}
		defer far.Close()
		lte := netx.AddrPort(near.RemoteAddr()).Addr().String() == "10.64.2.2"
		ended := make(chan bool, 2)
		relay := func(to, from *net.TCPConn, stop bool) {
			defer func() { ended <- true }()
			var first [1]byte
			if _, err := io.ReadFull(from, first[:]); err != nil {
				return
			}
			if stop && i.armed.CompareAndSwap(true, false) {
				i.stopped <- struct{}{}
				<-i.resume
			}
			if _, err := to.Write(first[:]); err == nil {
				_, _ = io.Copy(to, from)
			}
		}
		go relay(far, near, lte && !answers)
		go relay(near, far, lte && answers)
		<-ended
	})
	return i
}

// TestFreezeDuringAttach freezes the agent when the proxy has answered the attach and
// uses the path, or the proxy before it reads the attach, until the attach has timed
// out. The download is right to the last byte.
func TestFreezeDuringAttach(t *testing.T) {
	const frozenFor = 11 * time.Second // the agent aborts an attach after 10 s
	for _, role := range []string{"agent", "proxy"} {
		t.Run(role, func(t *testing.T) {
			needLab(t)
			i := intercept(t, role == "agent")
			programs := map[string]*program{"proxy": startProxy(t, values{"session": values{"scheduler": "roundrobin"}})}
			changes := flex(true)
			changes["proxy"] = intercepted
			programs["agent"] = startAgent(t, changes)
			attached(t, programs["agent"])
			sent := payload(9, 10<<20)
			serveOrigin(t, web, func(conn *net.TCPConn) {
				defer conn.Close()
				for part := range slices.Chunk(sent, 16<<10) { // at least 9.6 s in total
					if _, err := conn.Write(part); err != nil {
						return
					}
					time.Sleep(15 * time.Millisecond)
				}
			})
			conn := dialPhone(t, web)
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			received := make(chan []byte, 1)
			go func() {
				b, err := io.ReadAll(conn)
				if err != nil {
					t.Errorf("the download: %v", err)
				}
				received <- b
			}()

			i.armed.Store(true)
			output(t, "phone", "ip", "link", "set", "rmnet0", "down")
			restore(t, "rmnet0")
			select {
			case <-i.stopped:
			case <-time.After(patience):
				t.Fatal("the path is not attached again")
			}
			p := programs[role]
			p.signal(t, syscall.SIGSTOP)
			time.AfterFunc(frozenFor, func() { p.signal(t, syscall.SIGCONT) })
			close(i.resume)

			if b := <-received; !slices.Equal(b, sent) {
				t.Errorf("%d of %d bytes came, or they are wrong", len(b), len(sent))
			}
			t.Log(pathEvents(t, programs["agent"]))
		})
	}
}
