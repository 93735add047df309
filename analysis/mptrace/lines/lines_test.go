package lines

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mplab/analysis/mptrace/fixture"
)

func TestAllLinesOfAllFilesAreRead(t *testing.T) {
	var got []string
	err := Read([]string{fixture.File(t, "one\r\n\n two\n"), fixture.File(t, ""), fixture.File(t, "three")}, 10, "", func(line []byte) error {
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
	name, long, dir := fixture.File(t, "good\nbad\n"), fixture.File(t, "good\n\n"+strings.Repeat("x", 10)), t.TempDir()
	none := filepath.Join(dir, "none")
	for _, c := range []struct {
		names []string
		want  string
		is    error
	}{
		{[]string{name}, name + ":2: found a bad line", bad},
		{[]string{long}, long + ":3: found a long line", nil},
		{[]string{dir}, dir + ": ", nil},
		{[]string{fixture.File(t, "good"), none}, "open " + none, os.ErrNotExist},
	} {
		err := Read(c.names, 10, "a long line", take)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
