package origin

import (
	"fmt"
	"io"
)

// Get requests size bytes and verifies each. It calls first, unless it is nil, when the first byte has arrived.
func Get(conn io.ReadWriter, size, seed uint64, first func()) error {
	if _, err := conn.Write(message{opGet, size, seed}.encode()); err != nil {
		return fmt.Errorf("sending the request: %w", err)
	}
	_, err := receive(conn, size, seed, first)
	return err
}

// Put sends size bytes and waits for the answer that all were correct. The request and the first bytes are one write.
func Put(conn io.ReadWriter, size, seed uint64) error {
	head := int(min(size, bufferSize))
	first := append(message{opPut, size, seed}.encode(), stream(seed, head)...)
	if _, err := conn.Write(first); err != nil {
		return fmt.Errorf("sending the request: %w", err)
	}
	if err := send(conn, size-uint64(head), seed+uint64(head)); err != nil {
		return err
	}
	answer, err := readMessage(conn)
	if err != nil {
		return fmt.Errorf("waiting for the answer to an upload of %d bytes: %w", size, noEnd(err))
	}
	if answer != (message{answerOK, size, seed}) {
		return fmt.Errorf("%w: the origin says that %d of %d bytes were right", ErrCorrupt, answer.size, size)
	}
	return nil
}

// stream returns the first n bytes of the stream of a seed.
func stream(seed uint64, n int) []byte {
	all := block()
	b := make([]byte, 0, n)
	for at := seed % blockSize; len(b) < n; at = 0 {
		b = append(b, all[at:min(at+uint64(n-len(b)), blockSize)]...)
	}
	return b
}
