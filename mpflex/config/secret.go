package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// Sizes of a secret, in bytes.
const (
	minSecret = 16
	maxSecret = 4096
)

// readSecret reads the secret that the key secret_file names.
func readSecret(path string) ([]byte, error) {
	if path == "" {
		return nil, errors.New("secret_file: missing; give the file with the secret that agent and proxy share")
	}
	secret, err := ReadSecret(path)
	if err != nil {
		return nil, fmt.Errorf("secret_file: %w", err)
	}
	return secret, nil
}

// ReadSecret reads a secret that agent and proxy share from a file that nobody
// else can use. Line ends after it do not belong to it.
func ReadSecret(path string) ([]byte, error) {
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
	secret, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	if err != nil {
		return nil, err
	}
	secret = bytes.TrimRight(secret, "\r\n")
	if len(secret) < minSecret || len(secret) > maxSecret {
		return nil, fmt.Errorf("%s holds %d bytes; between %d and %d are needed", path, len(secret), minSecret, maxSecret)
	}
	return secret, nil
}
