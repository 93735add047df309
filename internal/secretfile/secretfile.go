package secretfile

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// Sizes of a secret in a file, in bytes.
const (
	leastSecret = 16
	mostSecret  = 4096
)

// Read reads a secret from a file that only its owner can access, without
// trailing line ends.
func Read(path string) ([]byte, error) {
	secret, err := ReadBytes(path, mostSecret)
	if err != nil {
		return nil, err
	}
	secret = bytes.TrimRight(secret, "\r\n")
	if len(secret) < leastSecret || len(secret) > mostSecret {
		return nil, fmt.Errorf("%s holds %d bytes; between %d and %d are needed", path, len(secret), leastSecret, mostSecret)
	}
	return secret, nil
}

// ReadBytes reads a file that only its owner can access. It reads at most one
// byte more than most, so that the caller can detect a larger file.
func ReadBytes(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // read only
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s may be used by others (mode %04o); run: chmod 600 %s", path, mode, path)
	}
	return io.ReadAll(io.LimitReader(file, most+1))
}
