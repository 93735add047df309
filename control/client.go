package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Reasons why a client cannot reach a program.
var (
	ErrNoSocket   = errors.New("there is no such socket; is the program running, with this as its control socket?")
	ErrNotSocket  = errors.New("this file is not a socket")
	ErrNotServed  = errors.New("no program serves it; the program that created it has ended")
	ErrPermission = errors.New("no permission; only the user that the program runs as, and root, may use it")
	ErrEnded      = errors.New("the program ended the connection")
)

// AnswerError is the error in a program's answer.
type AnswerError struct{ Problem string }

// Error implements error.
func (e *AnswerError) Error() string { return e.Problem }

// Client sends requests to a program over its control socket, one at a time.
type Client struct {
	path  string
	conn  net.Conn
	lines *bufio.Scanner
}

// Dial connects to a control socket. Its error contains the path and is
// ErrNoSocket, ErrNotSocket, ErrNotServed or ErrPermission, or another error of
// the system.
func Dial(ctx context.Context, path string) (*Client, error) {
	if err := CheckPath(path); err != nil {
		return nil, fmt.Errorf("control socket %s: %w", path, err)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", address(path))
	if err != nil {
		return nil, fmt.Errorf("control socket %s: %w", path, reason(path, err))
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, longestAnswer)
	return &Client{path: path, conn: conn, lines: lines}, nil
}

// reason returns why a connection failed.
func reason(path string, err error) error {
	info, failed := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return ErrNoSocket
	case errors.Is(err, fs.ErrPermission):
		return ErrPermission
	case failed == nil && info.Mode()&fs.ModeSocket == 0, errors.Is(err, unix.EPROTOTYPE):
		return ErrNotSocket
	case errors.Is(err, unix.ECONNREFUSED):
		return ErrNotServed
	}
	return err
}

// Ask sends a request and reads the answer, both in the form of package json.
// It returns an *AnswerError if the program refuses the request, and ErrEnded
// if the program ended the connection. After any error except an *AnswerError
// the client is unusable.
func (c *Client) Ask(ctx context.Context, request, answer any) error {
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := c.exchange(append(line, '\n')); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("control socket %s: %w", c.path, err)
	}
	var head failure
	if err := json.Unmarshal(c.lines.Bytes(), &head); err != nil {
		return fmt.Errorf("control socket %s: the answer is not JSON: %w", c.path, err)
	}
	if !head.OK {
		return &AnswerError{head.Error}
	}
	return json.Unmarshal(c.lines.Bytes(), answer)
}

// exchange writes a request and reads the line with its answer.
func (c *Client) exchange(request []byte) error {
	_, err := c.conn.Write(request)
	if err == nil && !c.lines.Scan() {
		if err = c.lines.Err(); err == nil {
			err = io.EOF
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return ErrEnded
	}
	return err
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }
