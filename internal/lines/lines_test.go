package lines

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAllLinesOfAllFilesAreRead(t *testing.T) {
	var got []string
	err := Read([]string{file(t, "one\r\n\n two\n"), file(t, ""), file(t, "three")}, 10, "", func(line []byte) error {
		got = append(got, string(line))
		return nil
	})
	if want := []string{"one", "", " two", "three"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestErrorsSayWhere(t *testing.T) {
	bad := errors.New("a bad line")
	take := func(line []byte) error {
		if string(line) == "bad" {
			return bad
		}
		return nil
	}
	name, long, dir := file(t, "good\nbad\n"), file(t, "good\n\n"+strings.Repeat("x", 10)), t.TempDir()
	none := filepath.Join(dir, "none")
	for _, c := range []struct {
		names []string
		want  string
		is    error
	}{
		{[]string{name}, name + ":2: found a bad line", bad},
		{[]string{long}, long + ":3: found a long line", nil},
		{[]string{dir}, dir + ": ", nil},
		{[]string{file(t, "good"), none}, "open " + none, os.ErrNotExist},
	} {
		err := Read(c.names, 10, "a long line", take)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// file writes a temporary file and returns its name.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
