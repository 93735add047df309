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
	// commandTimeout is what a command of Android is given; a busy phone takes a
	// second.
	commandTimeout = 10 * time.Second
	// outputMost bounds what is kept of what it prints; `dumpsys wifi` prints
	// megabytes.
	outputMost = 16 << 20
)

// run runs a command and returns what it prints. The rest of what is too long is
// thrown away.
func run(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second
	out := &bounded{most: outputMost}
	cmd.Stdout, cmd.Stderr = out, out // Android says on either why it refuses
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

// bounded keeps the beginning of what is written.
type bounded struct {
	buffer bytes.Buffer
	most   int
}

// Write implements io.Writer; it takes all.
func (b *bounded) Write(p []byte) (int, error) {
	if room := b.most - b.buffer.Len(); room > 0 {
		_, _ = b.buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

func (b *bounded) String() string { return b.buffer.String() }

var _ io.Writer = (*bounded)(nil)

// Properties reads some of Android's properties; those that are not there are "".
func Properties(ctx context.Context, names ...string) []string {
	values := make([]string, len(names))
	for i, name := range names {
		text, err := run(ctx, "getprop", name)
		if err != nil {
			break // no Android
		}
		values[i] = strings.ToValidUTF8(strings.TrimSpace(text), "")
	}
	return values
}
