package identity

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"mplab/internal/secretfile"
)

var clientName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ReadClients reads a directory with one file per client. The file's name is the
// client's name, its content is the secret (secretfile.Read). Names that start with a
// dot are skipped. All other entries must be clients: if one is not, the error names
// it.
func ReadClients(directory string) ([]Credential, error) {
	info, err := os.Stat(directory)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return nil, fmt.Errorf("%s may be written by others (mode %04o); run: chmod go-w %s", directory, mode, directory)
	}
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	var credentials []Credential
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		path := filepath.Join(directory, name)
		if !clientName.MatchString(name) {
			return nil, fmt.Errorf("%s: a client's name has 1 to 64 letters, digits, dots, hyphens and underscores, and begins with a letter or digit", path)
		}
		secret, err := secretfile.Read(path)
		if err != nil {
			return nil, err
		}
		if err := checkSecret(secret); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		credentials = append(credentials, Credential{Name: name, Secret: secret})
	}
	return credentials, nil
}
