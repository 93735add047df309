package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// counting answers {"op":"next"} with the number of calls, and "fail" with an
// error.
func counting() Operations {
	var mu sync.Mutex
	n := 0
	return Operations{
		"next": func() (any, error) {
			mu.Lock()
			defer mu.Unlock()
			n++
			return map[string]int{"n": n}, nil
		},
		"fail":    func() (any, error) { return nil, errors.New("not today") },
		"nothing": func() (any, error) { return nil, nil },
	}
}

func listen(t *testing.T) (*Server, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "control")
	s, err := Listen(path, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, path
}

func dial(t *testing.T, path string) *Client {
	t.Helper()
	c, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestLinesAndTheirAnswers(t *testing.T) {
	s, path := listen(t)
	s.Start(counting().Answer)
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	lines := []struct{ request, answer string }{
		{`{"op":"next"}`, `{"n":1,"ok":true}`},
		{"\n  \n" + ` { "op" : "next" } `, `{"n":2,"ok":true}`},
		{`{"op":"nothing"}`, `{"ok":true}`},
		{`{"op":"fail"}`, `{"error":"not today","ok":false}`},
		{`{"op":"sate"}`, `{"error":"op: unknown operation \"sate\"; there are fail, next, nothing","ok":false}`},
		{`{"op":1}`, `{"error":"op: must be a string; there are fail, next, nothing","ok":false}`},
		{`{}`, `{"error":"op: missing; there are fail, next, nothing","ok":false}`},
		{`{"op":"next","seed":7}`, `{"error":"seed: unknown key; allowed: op","ok":false}`},
		{`{"op":"next"`, `{"error":"a request is a JSON object, {\"op\":\"NAME\"}; there are fail, next, nothing","ok":false}`},
		{`null`, `{"error":"a request is a JSON object, {\"op\":\"NAME\"}; there are fail, next, nothing","ok":false}`},
		{`{"op":"next"}`, `{"n":3,"ok":true}`},
	}
	var want strings.Builder
	for _, l := range lines {
		fmt.Fprintln(conn, l.request) // all before the first answer is read
		want.WriteString(l.answer + "\n")
	}
	got := make([]byte, want.Len())
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	for n := 0; n < len(got); {
		k, err := conn.Read(got[n:])
		if err != nil {
			t.Fatalf("after %q: %v", got[:n], err)
		}
		n += k
	}
	if string(got) != want.String() {
		t.Errorf("got\n%s\nwant\n%s", got, want.String())
	}
}

func TestRequestThatIsTooLong(t *testing.T) {
	s, path := listen(t)
	s.Start(counting().Answer)
	c := dial(t, path)
	var refused *AnswerError
	err := c.Ask(t.Context(), map[string]string{"op": strings.Repeat("x", longestRequest)}, nil)
	if !errors.As(err, &refused) && !errors.Is(err, ErrEnded) { // the rest may not be accepted any more
		t.Errorf("%v", err)
	}
	if err := c.Ask(t.Context(), map[string]string{"op": "next"}, nil); !errors.Is(err, ErrEnded) {
		t.Errorf("the connection went on: %v", err)
	}
}

func TestManyClientsAtOnce(t *testing.T) {
	s, path := listen(t)
	s.Start(counting().Answer)
	const clients, questions = 20, 20
	var mu sync.Mutex
	var all []int
	var asking sync.WaitGroup
	for range clients {
		c := dial(t, path)
		asking.Go(func() {
			for range questions {
				var answer struct{ N int }
				if err := c.Ask(t.Context(), map[string]string{"op": "next"}, &answer); err != nil {
					t.Error(err)
				}
				mu.Lock()
				all = append(all, answer.N)
				mu.Unlock()
			}
		})
	}
	asking.Wait()
	slices.Sort(all)
	for i, n := range all {
		if n != i+1 {
			t.Fatalf("answers %v", all)
		}
	}
	if len(all) != clients*questions {
		t.Errorf("%d answers", len(all))
	}
}

func TestAnswersThatAreNoObject(t *testing.T) {
	s, path := listen(t)
	answers := []any{[]int{1}, "text", func() {}, map[string]any(nil), struct{}{}, struct{ A int }{1}}
	s.Start(func([]byte) (any, error) {
		answer := answers[0]
		answers = answers[1:]
		return answer, nil
	})
	c := dial(t, path)
	for range 3 {
		var refused *AnswerError
		if err := c.Ask(t.Context(), 1, nil); !errors.As(err, &refused) || refused.Error() != "the answer cannot be written as JSON" {
			t.Errorf("%v", err)
		}
	}
	for _, want := range []string{`{"ok":true}`, `{"ok":true}`, `{"A":1,"ok":true}`} {
		var line json.RawMessage
		if err := c.Ask(t.Context(), 1, &line); err != nil || string(line) != want {
			t.Errorf("%s, %v", line, err)
		}
	}
}

func TestCloseEndsAllAndLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	path := filepath.Join(t.TempDir(), "control")
	s, err := Listen(path, "test")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	s.Start(counting().Answer)
	c := dial(t, path)
	if err := c.Ask(t.Context(), map[string]string{"op": "nothing"}, &struct{}{}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := c.Ask(t.Context(), map[string]string{"op": "nothing"}, &struct{}{}); !errors.Is(err, ErrEnded) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket file is still there: %v", err)
	}
	for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

func TestWhatIsInTheWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control")
	first, err := Listen(path, "program")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path, "program"); err == nil || !strings.Contains(err.Error(), "another program serves it") {
		t.Errorf("a socket in use: %v", err)
	}
	first.listener.SetUnlinkOnClose(false) // as after kill -9
	first.Close()
	second, err := Listen(path, "program")
	if err != nil {
		t.Fatalf("a stale file: %v", err)
	}
	second.Close()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path, "program"); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("a file: %v", err)
	}
	if _, err := Listen(filepath.Join(filepath.Dir(path), "no", "such"), "program"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such directory: %v", err)
	}
	datagrams := path + ".datagrams"
	other, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: datagrams, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := Listen(datagrams, "program"); err == nil || !strings.Contains(err.Error(), "a socket exists, and it is not known") {
		t.Errorf("a socket of another kind: %v", err)
	}
	if _, err := os.Stat(datagrams); err != nil {
		t.Errorf("it was removed: %v", err)
	}
}

func TestPaths(t *testing.T) {
	for path, problem := range map[string]string{
		"":                             "the path is empty",
		"/" + strings.Repeat("x", 107): "the path has 108 bytes, a Unix socket allows 107",
	} {
		if _, err := Listen(path, "test"); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("Listen(%q): %v", path, err)
		}
		if _, err := Dial(t.Context(), path); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("Dial(%q): %v", path, err)
		}
	}
}

// TestNoAbstractSocket: any user could connect to one.
func TestNoAbstractSocket(t *testing.T) {
	t.Chdir(t.TempDir())
	s, err := Listen("@control", "test")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Start(counting().Answer)
	if info, err := os.Stat("@control"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := dial(t, "@control").Ask(t.Context(), map[string]string{"op": "nothing"}, &struct{}{}); err != nil {
		t.Error(err)
	}
}

func TestWhyNobodyCanBeAsked(t *testing.T) {
	dir := t.TempDir()
	file, stale, datagrams := filepath.Join(dir, "file"), filepath.Join(dir, "stale"), filepath.Join(dir, "datagrams")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	_ = left.Close()
	other, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: datagrams, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for path, want := range map[string]error{
		filepath.Join(dir, "nothing"): ErrNoSocket, filepath.Join(file, "below"): ErrNoSocket,
		file: ErrNotSocket, dir: ErrNotSocket, datagrams: ErrNotSocket, stale: ErrNotServed,
	} {
		if _, err := Dial(t.Context(), path); !errors.Is(err, want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
}

func TestOthersMayNot(t *testing.T) {
	s, path := listen(t)
	s.Start(counting().Answer)
	if os.Getuid() == 0 {
		const nobody = 65534
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := unix.Setfsuid(nobody); err != nil { // for this thread
			t.Fatal(err)
		}
		defer unix.Setfsuid(0) //nolint:errcheck // it says nothing
		if now, _ := unix.SetfsuidRetUid(-1); now != nobody {
			t.Skip("there is no other user here")
		}
	} else if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(t.Context(), path); !errors.Is(err, ErrPermission) {
		t.Errorf("%v", err)
	}
}

func TestAskEndsWithItsContext(t *testing.T) {
	s, path := listen(t)
	silent := make(chan struct{})
	s.Start(func([]byte) (any, error) {
		<-silent
		return nil, nil
	})
	t.Cleanup(func() { close(silent) }) // before the server's Close
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := dial(t, path).Ask(ctx, 1, &struct{}{}); !errors.Is(err, ctx.Err()) {
		t.Errorf("%v", err)
	}
}

// FuzzRequest: for any line, the answer is one JSON object on one line, and
// reports success or failure.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{`{"op":"next"}`, `{"op":"nothing","op":"fail"}`, `{"op":null}`, `[]`, `{"op":"\ud800\n"}`, `{"OP":"next"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		operations := counting()
		line := encode(operations.Answer(request))
		var answer struct {
			OK    *bool
			Error string
		}
		if bytes.IndexByte(line, '\n') != len(line)-1 || json.Unmarshal(line, &answer) != nil || answer.OK == nil || *answer.OK != (answer.Error == "") {
			t.Fatalf("%q: %q", request, line)
		}
		var asked struct {
			Op string `json:"op"`
		}
		if *answer.OK && (json.Unmarshal(request, &asked) != nil || asked.Op != "next" && asked.Op != "nothing") {
			t.Fatalf("%q: %q", request, line)
		}
	})
}
