package owner

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

const packagesList = `com.google.android.youtube 10123 0 /data/user/0/com.google.android.youtube default:targetSdkVersion=34 3003 0 1 @system
com.android.providers.downloads 10010 0 /data/user/0/com.android.providers.downloads media:privapp 1065,3003
com.android.providers.media 10010 0 /data/user/0/com.android.providers.media media:privapp 1065
android 1000 0 /data/system platform none

damaged
damaged uid
`

func TestPackages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "packages.list")
	p := NewPackages(path)
	if got := p.Of(10123); got != nil {
		t.Errorf("without a list: %v", got)
	}
	write := func(text string, age time.Duration) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
		p.looked = time.Time{} // as if time had passed
	}
	write(packagesList, time.Hour)
	cases := map[int64][]string{
		10123: {"com.google.android.youtube"}, 1010123: {"com.google.android.youtube"}, // the same for user 10
		10010: {"com.android.providers.downloads", "com.android.providers.media"},
		1000:  {"android"}, 10124: nil, 0: nil, -1: nil,
	}
	for uid, want := range cases {
		if got := p.Of(uid); !slices.Equal(got, want) {
			t.Errorf("%d: %v, want %v", uid, got, want)
		}
	}
	write("org.mozilla.firefox 10123 0\n", time.Minute)
	if got := p.Of(10123); !slices.Equal(got, []string{"org.mozilla.firefox"}) {
		t.Errorf("after an installation: %v", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	p.looked = time.Time{}
	if got := p.Of(10123); !slices.Equal(got, []string{"org.mozilla.firefox"}) {
		t.Errorf("while the list is away: %v", got)
	}
}
