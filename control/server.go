package control

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Handler answers a request, which is a non-blank line. The answer is written
// as a JSON object that ends with "ok":true; nil means the empty object. An
// error is written as {"error":"…","ok":false}. Several goroutines call the
// handler concurrently.
type Handler func(request []byte) (answer any, err error)

// Server serves a control socket. Create it with Listen.
type Server struct {
	listener *net.UnixListener
	running  sync.WaitGroup

	mu          sync.Mutex
	connections map[net.Conn]struct{} // open connections; guarded by mu
	closed      bool                  // guarded by mu
}

// Listen creates the socket with mode 0600. It replaces a socket file that no
// process serves. If another process serves the socket, the error contains the
// name `program`; any other kind of file is an error too. Connections wait
// until Start.
func Listen(path, program string) (*Server, error) {
	if err := CheckPath(path); err != nil {
		return nil, fmt.Errorf("control socket %s: %w", path, err)
	}
	if err := makeWay(path, program); err != nil {
		return nil, err
	}
	before := unix.Umask(0o177) // the file has its mode from the start
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: address(path), Net: "unix"})
	unix.Umask(before)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return &Server{listener: listener, connections: map[net.Conn]struct{}{}}, nil
}

// makeWay removes a socket file that no process serves.
func makeWay(path, program string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil // listening reports problems with the path
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("control socket %s: a file exists that is not a socket", path)
	}
	connection, err := net.DialTimeout("unix", address(path), time.Second)
	switch {
	case err == nil:
		_ = connection.Close()
		return fmt.Errorf("control socket %s: another %s serves it", path, program)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case !errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("control socket %s: a socket exists, and it is not known whether a program serves it: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("control socket: remove the stale file: %w", err)
	}
	return nil
}

// Start answers requests with handle until Close. It returns immediately.
func (s *Server) Start(handle Handler) {
	s.running.Go(func() {
		for {
			connection, err := s.listener.Accept()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil:
				time.Sleep(10 * time.Millisecond) // no descriptors left: wait until others are closed
				continue
			case !s.admit(connection):
				_ = connection.Close()
				return
			}
			s.running.Go(func() { s.converse(connection, handle) })
		}
	})
}

// Close removes the socket file, ends all connections and waits for running
// handlers.
func (s *Server) Close() {
	_ = s.listener.Close() // unlinks the file
	s.mu.Lock()
	s.closed = true
	for connection := range s.connections {
		_ = connection.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}

func (s *Server) admit(connection net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.connections[connection] = struct{}{}
	}
	return !s.closed
}

// converse answers the requests of one connection.
func (s *Server) converse(connection net.Conn, handle Handler) {
	defer func() {
		_ = connection.Close()
		s.mu.Lock()
		delete(s.connections, connection)
		s.mu.Unlock()
	}()
	lines := bufio.NewScanner(connection)
	lines.Buffer(nil, longestRequest)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if _, err := connection.Write(encode(handle(lines.Bytes()))); err != nil {
			return
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		_, _ = connection.Write(encode(nil, fmt.Errorf("a request has at most %d bytes", longestRequest)))
	}
}

// encode returns the line of an answer.
func encode(answer any, err error) []byte {
	if err != nil {
		line, _ := json.Marshal(failure{Error: err.Error()}) // a string can always be encoded
		return append(line, '\n')
	}
	line, err := json.Marshal(answer)
	switch object := string(line); {
	case err != nil || object != "null" && !strings.HasPrefix(object, "{"):
		return encode(nil, errors.New("the answer cannot be written as JSON"))
	case object == "null" || object == "{}":
		return []byte(`{"ok":true}` + "\n")
	}
	return append(line[:len(line)-1], `,"ok":true}`+"\n"...)
}

// failure is the answer to a request that failed.
type failure struct {
	Error string `json:"error"`
	OK    bool   `json:"ok"` // always false
}
