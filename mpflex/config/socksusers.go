package config

import (
	"bytes"
	"fmt"

	"mplab/internal/secretfile"
)

// Bounds of the users file, and of a user name or a password in it (RFC 1929 §2).
const (
	mostSocksUsers = 1 << 20 // bytes
	mostSocksText  = 255
)

// readSocksUsers reads the passwords of SOCKS users from a file that only its owner can
// access, with a line USER:PASSWORD per user. Its errors contain no user name or
// password.
func readSocksUsers(path string) (map[string]string, error) {
	data, err := secretfile.ReadBytes(path, mostSocksUsers)
	if err != nil {
		return nil, fmt.Errorf("socks_users_file: %w", err)
	}
	if len(data) > mostSocksUsers {
		return nil, fmt.Errorf("socks_users_file: %s has more than %d bytes", path, mostSocksUsers)
	}
	users, lines := make(map[string]string), make(map[string]int)
	for i, line := range bytes.Split(data, []byte("\n")) {
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			continue
		}
		user, password, found := bytes.Cut(line, []byte(":"))
		name, problem := string(user), ""
		switch {
		case !found:
			problem = "no colon was found; a line is USER:PASSWORD"
		case len(user) == 0 || len(user) > mostSocksText:
			problem = fmt.Sprintf("the user has %d bytes; between 1 and %d are allowed", len(user), mostSocksText)
		case len(password) == 0 || len(password) > mostSocksText:
			problem = fmt.Sprintf("the password has %d bytes; between 1 and %d are allowed", len(password), mostSocksText)
		case lines[name] != 0:
			problem = fmt.Sprintf("same user as in line %d; each is allowed once", lines[name])
		}
		if problem != "" {
			return nil, fmt.Errorf("socks_users_file: %s: line %d: %s", path, i+1, problem)
		}
		users[name], lines[name] = string(password), i+1
	}
	if len(users) == 0 {
		return nil, fmt.Errorf("socks_users_file: %s has no user; a line is USER:PASSWORD", path)
	}
	return users, nil
}
