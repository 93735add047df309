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

// readSecret reads the secret that agent and proxy share. Line ends after it
// do not belong to it.
func readSecret(path string) ([]byte, error) {
	if path == "" {
		return nil, errors.New("secret_file: missing; give the file with the secret that agent and proxy share")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("secret_file: %w", err)
	}
	defer file.Close() //nolint:errcheck // read only
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("secret_file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("secret_file: %s is not a regular file", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("secret_file: %s may be used by others (mode %04o); run: chmod 600 %s", path, mode, path)
	}
	secret, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	if err != nil {
		return nil, fmt.Errorf("secret_file: %w", err)
	}
	secret = bytes.TrimRight(secret, "\r\n")
	if len(secret) < minSecret || len(secret) > maxSecret {
		return nil, fmt.Errorf("secret_file: %s holds %d bytes; between %d and %d are needed", path, len(secret), minSecret, maxSecret)
	}
	return secret, nil
}
