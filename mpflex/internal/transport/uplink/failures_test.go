package uplink

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"
)

// refused returns the error of a connection from a port.
func refused(port int) error {
	return fmt.Errorf("TLS handshake: %w", &net.OpError{
		Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 64, 1, 2), Port: port}, Err: syscall.ECONNRESET,
	})
}

func TestFailuresAreToldOnce(t *testing.T) {
	var f failures
	now := time.Now()
	other := errors.New("something else")
	for i, step := range []struct {
		err        error
		at         time.Duration
		told       bool
		suppressed int
	}{
		{refused(1), 0, true, 0},
		{refused(2), time.Second, false, 0},
		{refused(3), 2 * time.Second, false, 0},
		{other, 3 * time.Second, true, 2},
		{refused(4), 4 * time.Second, false, 0},
		{other, 5 * time.Second, false, 0},
		{refused(5), remindAfter + time.Second, true, 2},
		{&changeError{"gone"}, remindAfter + time.Second, true, 0},
		{&changeError{"gone"}, remindAfter + 2*time.Second, false, 0}, // not an attempt
		{other, remindAfter + 2*time.Second, false, 0},
	} {
		if suppressed, told := f.failed(step.err, now.Add(step.at)); told != step.told || suppressed != step.suppressed {
			t.Errorf("step %d: %v, %d", i, told, suppressed)
		}
	}
	if n := f.over(); n != 1 {
		t.Errorf("%d suppressed at the end", n)
	}
	if _, told := f.failed(refused(6), now); !told {
		t.Error("the path was there, and its next failure is not told")
	}
}

func TestKindsAreBounded(t *testing.T) {
	var f failures
	told := 0
	for i := range 10 * mostKinds {
		if _, tell := f.failed(fmt.Errorf("error %d", i), time.Now()); tell {
			told++
		}
	}
	if told != mostKinds || len(f.reported) != mostKinds {
		t.Errorf("%d told, %d kept", told, len(f.reported))
	}
}
