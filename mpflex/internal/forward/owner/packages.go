package owner

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// perUser is the number of uids of an Android user. The last five digits are the
// application (AID_USER_OFFSET).
const perUser = 100000

// lookAgain is the minimum time between two checks of the list for changes.
const lookAgain = 2 * time.Second

// Packages finds the Android packages of a uid in the system's list. Each line starts
// with a package and its uid. It is safe for concurrent use.
type Packages struct {
	path string

	mu       sync.Mutex // guards the fields below
	looked   time.Time
	modified time.Time // modification time of the file that was read
	byApp    map[int64][]string
}

// NewPackages returns the packages of the list at path; "" means the system's list.
func NewPackages(path string) *Packages {
	if path == "" {
		path = "/data/system/packages.list"
	}
	return &Packages{path: path}
}

// Of returns the packages of a uid, several if they share it. It returns nil if there
// are none, as on a machine without Android. The caller must not change the slice.
func (p *Packages) Of(uid int64) []string {
	if uid < 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.looked.IsZero() || now.Sub(p.looked) >= lookAgain {
		p.looked = now
		p.read()
	}
	return p.byApp[uid%perUser]
}

// read reads the list if it has changed. If it cannot be read, the old one stays.
func (p *Packages) read() {
	file, err := os.Open(p.path)
	if err != nil {
		return
	}
	defer file.Close() //nolint:errcheck // read only
	info, err := file.Stat()
	if err != nil || info.ModTime().Equal(p.modified) {
		return
	}
	byApp := make(map[int64][]string)
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 {
			continue
		}
		if uid, err := strconv.ParseInt(words[1], 10, 64); err == nil && uid >= 0 {
			byApp[uid%perUser] = append(byApp[uid%perUser], words[0])
		}
	}
	if lines.Err() == nil {
		p.byApp, p.modified = byApp, info.ModTime()
	}
}
