package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	// commandTimeout is the timeout of an Android command; a busy phone needs a
	// second.
	commandTimeout = 10 * time.Second
	// outputMost is the maximum size of the output; `dumpsys wifi` prints
	// megabytes.
	outputMost = 16 << 20
)

// run runs a command and returns its output. It discards output beyond
// outputMost.
func run(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second
	out := &bounded{most: outputMost}
	cmd.Stdout, cmd.Stderr = out, out // Android prints refusals to either
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("this system does not have it")
	case ctx.Err() != nil:
		return "", fmt.Errorf("no answer within %s", commandTimeout)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if text := strings.Join(strings.Fields(out.String()), " "); text != "" {
			return "", fmt.Errorf("%w: %.100q", err, text)
		}
	}
	return out.String(), err
}

// bounded keeps the start of its input.
type bounded struct {
	buffer bytes.Buffer
	most   int
}

// Write implements io.Writer. It accepts everything.
func (b *bounded) Write(p []byte) (int, error) {
	if room := b.most - b.buffer.Len(); room > 0 {
		_, _ = b.buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

func (b *bounded) String() string { return b.buffer.String() }

var _ io.Writer = (*bounded)(nil)

// Properties reads some of Android's properties; a missing one is "".
func Properties(ctx context.Context, names ...string) []string {
	values := make([]string, len(names))
	for i, name := range names {
		text, err := run(ctx, "getprop", name)
		if err != nil {
			break // not Android
		}
		values[i] = strings.ToValidUTF8(strings.TrimSpace(text), "")
	}
	return values
}
