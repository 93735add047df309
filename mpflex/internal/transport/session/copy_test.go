package session

import "testing"

// TestCopiesOfPinnedStreams: copies of late messages leave the path of a pinned scheme
// only when that path has stalled.
func TestCopiesOfPinnedStreams(t *testing.T) {
	for scheduler, pinned := range map[string]bool{"single": true, "backup": true, "minrtt": false, "earliest": false} {
		t.Run(scheduler, func(t *testing.T) {
			k := newPair(t, Config{Scheduler: scheduler}, 2)
			st, _ := k.stream("hello")
			s := k.agent
			s.mu.Lock()
			defer s.mu.Unlock()
			first, second := s.paths[0], s.paths[1]
			if !s.allowed(st, first) || s.allowed(st, second) == pinned {
				t.Errorf("allowed on the first %v, on the second %v", s.allowed(st, first), s.allowed(st, second))
			}
			first.stalled = true
			if !s.allowed(st, second) || s.allowed(st, first) == pinned {
				t.Errorf("with the first stalled: allowed on it %v, on the second %v", s.allowed(st, first), s.allowed(st, second))
			}
			first.stalled = false
		})
	}
}

// TestCopiesOfPinnedStreamsBesideABackup: copies do not use a backup path either,
// whatever its number.
func TestCopiesOfPinnedStreamsBesideABackup(t *testing.T) {
	k := newPair(t, Config{Scheduler: "single"}, 2)
	st, _ := k.stream("hello")
	s := k.agent
	s.mu.Lock()
	defer s.mu.Unlock()
	backup, regular := s.paths[0], s.paths[1]
	backup.link.Backup = true
	if s.allowed(st, backup) || !s.allowed(st, regular) {
		t.Errorf("allowed on the backup %v, on the other %v", s.allowed(st, backup), s.allowed(st, regular))
	}
}
