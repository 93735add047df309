package rules

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// imports holds the imports of a package and of its tests.
type imports struct{ own, tests []string }

// packages reads the imports of every package of the module. It reads files instead of calling `go list`, so that the
// test cache knows the dependencies of the result.
func packages(t *testing.T) map[string]imports {
	t.Helper()
	const root = "../.."
	all := make(map[string]imports)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"build", "node_modules", "runs", "testdata"}, name)):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		p := all[Module+filepath.ToSlash(folder)]
		for _, spec := range file.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			if strings.HasSuffix(path, "_test.go") {
				p.tests = append(p.tests, imported)
			} else {
				p.own = append(p.own, imported)
			}
		}
		all[Module+filepath.ToSlash(folder)] = p
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// way returns the shortest import chain to a forbidden package, or nil.
func way(all map[string]imports, r Rule, path string, first []string) []string {
	type step struct {
		path string
		way  []string
	}
	seen := make(map[string]bool)
	var queue []step
	for _, imported := range first {
		queue = append(queue, step{imported, []string{path, imported}})
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if seen[s.path] {
			continue
		}
		seen[s.path] = true
		if r.Forbids(path, s.path) {
			return s.way
		}
		if r.Direct {
			continue
		}
		for _, imported := range all[s.path].own {
			queue = append(queue, step{imported, append(slices.Clone(s.way), imported)})
		}
	}
	return nil
}

func TestRules(t *testing.T) {
	all := packages(t)
	for _, r := range All {
		bound := 0
		if strings.HasPrefix(r.To, Module) && !slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(path string) bool { return under(path, r.To) }) {
			t.Errorf("rule %s → %s forbids a package that does not exist", r.From, r.To)
		}
		for path, p := range all {
			if !r.Binds(path) {
				continue
			}
			bound++
			first := p.own
			if r.Tests {
				first = slices.Concat(p.own, p.tests)
			}
			if found := way(all, r, path, first); found != nil {
				t.Errorf("%s may not import %s: %s\n\t%s", r.From, r.To, r.Because, strings.Join(found, "\n\t→ "))
			}
		}
		if bound == 0 {
			t.Errorf("rule %s → %s binds no package; remove it", r.From, r.To)
		}
		if r.Because == "" {
			t.Errorf("rule %s → %s gives no reason", r.From, r.To)
		}
	}
}

// TestBrokenRulesAreFound checks that the test can fail: deliberately broken rules are
// found, directly and indirectly.
func TestBrokenRulesAreFound(t *testing.T) {
	all := map[string]imports{
		"mplab/a":   {own: []string{"mplab/b", "fmt"}},
		"mplab/b":   {own: []string{"mplab/c/d"}},
		"mplab/c/d": {},
	}
	for _, c := range []struct {
		rule Rule
		want string
	}{
		{Rule{From: "mplab/a", To: "mplab/b"}, "mplab/a mplab/b"},
		{Rule{From: "mplab/a", To: "mplab/c"}, "mplab/a mplab/b mplab/c/d"},
		{Rule{From: "mplab/a", To: "mplab/c", Direct: true}, ""},
		{Rule{From: "mplab/a", To: "mplab/"}, "mplab/a mplab/b"},
		{Rule{From: "mplab/a", To: "mplab/aa"}, ""},
	} {
		if found := strings.Join(way(all, c.rule, "mplab/a", all["mplab/a"].own), " "); found != c.want {
			t.Errorf("%+v: %q", c.rule, found)
		}
	}
	if (Rule{From: "mplab/", Except: []string{"mplab/a"}}).Binds("mplab/a/x") || !(Rule{From: "mplab/a"}).Binds("mplab/a/x") || (Rule{From: "mplab/a"}).Binds("mplab/ab") {
		t.Error("a rule binds other packages than it says")
	}
}
