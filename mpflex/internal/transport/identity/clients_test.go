package identity

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestReadClients(t *testing.T) {
	const good = "0123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		make func(directory string) error
		want string // DIR is the directory; "": alice and phone-2
	}{
		"two clients":         {func(string) error { return nil }, ""},
		"a file of an editor": {func(d string) error { return os.WriteFile(d+"/.alice.swp", nil, 0o644) }, ""},
		"a copy": {func(d string) error { return os.WriteFile(d+"/alice~", []byte(good), 0o600) },
			"DIR/alice~: a client's name has 1 to 64 letters, digits, dots, hyphens and underscores, and begins with a letter or digit"},
		"open to others": {func(d string) error { return os.Chmod(d+"/alice", 0o640) },
			"DIR/alice may be used by others (mode 0640); run: chmod 600 DIR/alice"},
		"a directory": {func(d string) error { return os.Mkdir(d+"/more", 0o700) }, "DIR/more is not a regular file"},
		"a short secret": {func(d string) error { return os.WriteFile(d+"/bob", []byte(good[1:]+"\n"), 0o600) },
			"DIR/bob: the secret is too short: 31 bytes; 32 are needed, drawn at random"},
		"a directory that others may write": {func(d string) error { return os.Chmod(d, 0o770) },
			"DIR may be written by others (mode 0770); run: chmod go-w DIR"},
		"no directory": {os.RemoveAll, "stat DIR: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			directory := filepath.Join(t.TempDir(), "clients")
			if err := os.Mkdir(directory, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"alice", "phone-2"} {
				if err := os.WriteFile(filepath.Join(directory, file), []byte(good+file+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.make(directory); err != nil {
				t.Fatal(err)
			}
			clients, err := ReadClients(directory)
			if c.want == "" {
				want := []Credential{{"alice", []byte(good + "alice")}, {"phone-2", []byte(good + "phone-2")}}
				if err != nil || !reflect.DeepEqual(clients, want) {
					t.Errorf("%q, %v", clients, err)
				}
				return
			}
			if want := strings.ReplaceAll(c.want, "DIR", directory); err == nil || err.Error() != want {
				t.Errorf("\ngot  %v\nwant %s", err, want)
			}
		})
	}
}
