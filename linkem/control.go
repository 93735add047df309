package linkem

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	longestRequest    = 1 << 20 // bytes of one line
	longestSocketPath = 107     // bytes, unix(7)
)

// controller answers the control socket: one JSON object a line, one answer a line.
type controller struct {
	links    []*link
	listener *net.UnixListener
	handlers sync.WaitGroup

	mu          sync.Mutex
	connections map[net.Conn]struct{} // open ones; guarded by mu
	closed      bool                  // guarded by mu
}

// linkState is the answer to "state", for one link.
type linkState struct {
	A             string                   `json:"a"`
	B             string                   `json:"b"`
	Seed          uint64                   `json:"seed"`
	Up            Params                   `json:"up"`
	Down          Params                   `json:"down"`
	DelayByPrefix map[netip.Prefix]float64 `json:"delay_by_prefix,omitempty"`
	Scheduling    string                   `json:"scheduling"`
}

// linkCounters are the answer to "counters", for one link.
type linkCounters struct {
	Up   Counters `json:"up"`
	Down Counters `json:"down"`
}

// listenControl opens the control socket with mode 0600. A socket file that nobody serves is replaced; anything else
// that is in the way is an error.
func listenControl(path string) (*net.UnixListener, error) {
	if len(path) > longestSocketPath {
		return nil, fmt.Errorf("control socket %s: the path has %d bytes, a Unix socket allows %d", path, len(path), longestSocketPath)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("control socket %s: a file that is not a socket is in the way", path)
		}
		if connection, err := net.DialTimeout("unix", path, time.Second); err == nil {
			_ = connection.Close()
			return nil, fmt.Errorf("control socket %s: another linkem serves it", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("control socket: remove the stale file: %w", err)
		}
	}
	before := unix.Umask(0o177) // so that the file has its mode from the first moment
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	unix.Umask(before)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return listener, nil
}

func newController(listener *net.UnixListener, links []*link) *controller {
	return &controller{links: links, listener: listener, connections: map[net.Conn]struct{}{}}
}

// serve answers until close.
func (c *controller) serve() {
	for {
		connection, err := c.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // no descriptors left: others may be closed
			continue
		}
		if !c.admit(connection) {
			_ = connection.Close()
			return
		}
		go c.handle(connection)
	}
}

func (c *controller) admit(connection net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.connections[connection] = struct{}{}
	c.handlers.Add(1)
	return true
}

// close removes the socket file and ends all connections.
func (c *controller) close() {
	_ = c.listener.Close() // unlinks the file
	c.mu.Lock()
	c.closed = true
	for connection := range c.connections {
		_ = connection.Close()
	}
	c.mu.Unlock()
	c.handlers.Wait()
}

func (c *controller) handle(connection net.Conn) {
	defer c.handlers.Done()
	defer func() {
		_ = connection.Close()
		c.mu.Lock()
		delete(c.connections, connection)
		c.mu.Unlock()
	}()
	lines := bufio.NewScanner(connection)
	lines.Buffer(nil, longestRequest)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if _, err := connection.Write(encode(c.answer(lines.Bytes()))); err != nil {
			return
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		_, _ = connection.Write(encode(nil, fmt.Errorf("a request has at most %d bytes", longestRequest)))
	}
}

// encode makes the line of an answer.
func encode(answer map[string]any, err error) []byte {
	if err != nil {
		answer = map[string]any{"error": err.Error()}
	} else if answer == nil {
		answer = map[string]any{}
	}
	answer["ok"] = err == nil
	line, err := json.Marshal(answer)
	if err != nil {
		line = []byte(`{"ok":false,"error":"the answer cannot be written as JSON"}`)
	}
	return append(line, '\n')
}

// request is what a line of the control socket asks for.
type request struct {
	op       string
	link     string
	up, down Params
	seed     *uint64
}

func (c *controller) answer(line []byte) (map[string]any, error) {
	asked, err := parseRequest(line)
	if err != nil {
		return nil, err
	}
	switch asked.op {
	case "apply":
		return nil, c.apply(asked)
	case "state":
		return c.state()
	default:
		return c.count()
	}
}

var operations = []string{"apply", "counters", "state"}

// parseRequest reads a request strictly: only "apply" has more fields than "op", and it needs all of them but "seed".
func parseRequest(line []byte) (request, error) {
	var asked request
	if err := checkSyntax(line); err != nil {
		return asked, err
	}
	var seed uint64
	given := false
	all := fields{
		"op":   stringInto(&asked.op),
		"link": stringInto(&asked.link),
		"up":   paramsInto(&asked.up),
		"down": paramsInto(&asked.down),
		"seed": func(path string, raw json.RawMessage) error {
			given = true
			return seedInto(&seed)(path, raw)
		},
	}
	var only struct {
		Op string `json:"op"`
	}
	_ = json.Unmarshal(line, &only) // an op that is not a text is told below
	allowed, required := fields{"op": all["op"]}, []string{"op"}
	if only.Op == "apply" {
		allowed, required = all, []string{"op", "link", "up", "down"}
	}
	if err := readObject("", line, allowed, required...); err != nil {
		return asked, err
	}
	if !slices.Contains(operations, asked.op) {
		return asked, fieldErrorf("op", "unknown operation %q; there are %s", asked.op, strings.Join(operations, ", "))
	}
	if given {
		asked.seed = &seed
	}
	return asked, nil
}

func (c *controller) apply(asked request) error {
	for _, l := range c.links {
		if l.config.Name == asked.link {
			return l.do(func(now int64) { l.apply(now, asked.up, asked.down, asked.seed) })
		}
	}
	names := make([]string, len(c.links))
	for i, l := range c.links {
		names[i] = l.config.Name
	}
	return fieldErrorf("link", "there is no link %q; there are %s", asked.link, strings.Join(names, ", "))
}

func (c *controller) state() (map[string]any, error) {
	links := map[string]linkState{}
	for _, l := range c.links {
		var state linkState
		if err := l.do(func(int64) { state = l.state() }); err != nil {
			return nil, err
		}
		links[l.config.Name] = state
	}
	return map[string]any{"links": links}, nil
}

func (c *controller) count() (map[string]any, error) {
	links := map[string]linkCounters{}
	for _, l := range c.links {
		var counters linkCounters
		if err := l.do(func(now int64) { counters = l.count(now) }); err != nil {
			return nil, err
		}
		links[l.config.Name] = counters
	}
	return map[string]any{"links": links}, nil
}
