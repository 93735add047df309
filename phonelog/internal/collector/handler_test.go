package collector

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"mplab/internal/jsonlog"
	"mplab/phonelog/internal/config"
)

const (
	tokenA = "token-of-a-0123456789"
	tokenB = "token-of-b-0123456789"
)

// open returns a collector without a running server.
func open(t testing.TB, change func(*config.Collector)) *Collector {
	t.Helper()
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte("phone-a:"+tokenA+"\n# one more\nphone-b:"+tokenB+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "collector.json")
	if err := os.WriteFile(file, []byte(fmt.Sprintf(`{"listen": "127.0.0.1:0", "tokens_file": %q, "store": %q, "min_free_bytes": 1}`, tokens, filepath.Join(dir, "store"))), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.LoadCollector(file)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&c)
	}
	k, err := New(c, &jsonlog.Log{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.listener.Close(); _ = k.store.Close() })
	return k
}

func record(n int) string {
	return fmt.Sprintf(`{"kind":"stop","t":1,"mono_s":1,"run":"0123456789abcdef","n":%d,"reason":"x"}`+"\n", n)
}

func packed(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

// request returns a request for a handler; header lines are NAME: VALUE.
func request(method, path, token, body string, header ...string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr = "192.0.2.7:4711"
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-ndjson")
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	return r
}

// manual is docs/collector.yaml.
type manual struct {
	Paths      map[string]map[string]operation
	Components struct{ Responses map[string]response }
}

type operation struct{ Responses map[string]response }

type response struct {
	Ref     string `yaml:"$ref"`
	Headers map[string]any
	Content map[string]struct {
		Schema struct {
			Ref string `yaml:"$ref"`
		}
	}
}

const manualFile = "../../../docs/collector.yaml"

func readManual(t *testing.T) (m manual, schemas func(ref string) *jsonschema.Schema) {
	t.Helper()
	text, err := os.ReadFile(manualFile)
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("collector.json", plain(document)); err != nil {
		t.Fatal(err)
	}
	return m, func(ref string) *jsonschema.Schema {
		s, err := compiler.Compile("collector.json" + ref)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// plain converts a value of package yaml for package jsonschema.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	case map[any]any:
		m := map[string]any{}
		for k := range v {
			m[fmt.Sprint(k)] = plain(v[k])
		}
		return m
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case int:
		return float64(v)
	}
	return v
}

// TestDocument checks that the document lists the routes of the handler, and describes
// every answer that the test can cause. The test causes all described answers except a
// broken disk.
func TestDocument(t *testing.T) {
	m, schema := readManual(t)
	var documented, served []string
	for path, operations := range m.Paths {
		for method := range operations {
			documented = append(documented, strings.ToUpper(method)+" "+path)
		}
	}
	for pattern := range (&Collector{}).routes() {
		served = append(served, pattern)
	}
	slices.Sort(documented)
	slices.Sort(served)
	if !slices.Equal(documented, served) {
		t.Errorf("documented %v, served %v", documented, served)
	}

	const post, batches = http.MethodPost, "/v1/batches/phone-a/"
	good := record(1)
	normal := open(t, func(c *config.Collector) { c.Limits.BatchBytes, c.Limits.ContentBytes = 2000, 4000 })
	slow := open(t, func(c *config.Collector) { c.Limits.Burst, c.Limits.BatchesPerMinute = 2, 0.5 })
	full := open(t, func(c *config.Collector) { c.MinFreeBytes = math.MaxInt64 / 2 })
	busy := open(t, nil)
	for range cap(busy.busy) {
		busy.busy <- struct{}{}
	}
	closed := open(t, nil)
	if err := closed.store.Close(); err != nil {
		t.Fatal(err)
	}
	incomplete := request(post, batches+"i", tokenA, packed(good)[:30], "Content-Encoding: gzip")
	answers := map[string]bool{}
	for _, c := range []struct {
		name    string
		k       *Collector
		request *http.Request
		status  int
		want    string // in the body
	}{
		{"healthy", normal, request("GET", "/health", "", ""), 200, `"ok":true`},
		{"not healthy", full, request("GET", "/health", "", ""), 503, "the disk is full"},
		{"my address", normal, request("GET", "/myip", tokenA, ""), 200, "192.0.2.7\n"},
		{"my address, no token", normal, request("GET", "/myip", "", ""), 401, "bearer token"},
		{"a batch", normal, request(post, batches+"1", tokenA, good), 201, `{"ok":true,"stored":true,"lines":1}`},
		{"again", normal, request(post, batches+"1", tokenA, good), 200, `{"ok":true,"stored":false,"lines":1}`},
		{"again, in gzip", normal, request(post, batches+"1", tokenA, packed(good), "Content-Encoding: gzip"), 200, `"stored":false`},
		{"in gzip", normal, request(post, batches+"2", tokenA, packed(good+record(2)), "Content-Encoding: gzip"), 201, `"lines":2`},
		{"with a charset", normal, request(post, batches+"3", tokenA, good, "Content-Type: application/x-ndjson; charset=utf-8"), 201, `"stored":true`},
		{"another content", normal, request(post, batches+"1", tokenA, record(9)), 409, "other content"},
		{"of another device", normal, request(post, "/v1/batches/phone-b/1", tokenB, record(9)), 201, `"stored":true`},
		{"no token", normal, request(post, batches+"4", "", good), 401, "bearer token"},
		{"another scheme", normal, request(post, batches+"4", "", good, "Authorization: Basic cGhvbmUtYTp4"), 401, "bearer token"},
		{"a wrong token", normal, request(post, batches+"4", tokenA+"x", good), 401, "not known"},
		{"the beginning of a token", normal, request(post, batches+"4", tokenA[:10], good), 401, "not known"},
		{"another device's token", normal, request(post, batches+"4", tokenB, good), 403, "another device"},
		{"an id that is none", normal, request(post, batches+"a%20b", tokenA, good), 400, "cannot be the id"},
		{"not gzip", normal, request(post, batches+"4", tokenA, good, "Content-Encoding: gzip"), 400, "not gzip"},
		{"half of gzip", normal, incomplete, 400, "too early"},
		{"as sent too large", normal, request(post, batches+"4", tokenA, strings.Repeat(good, 100)), 413, "at most 2000 bytes"},
		{"unpacked too large", normal, request(post, batches+"4", tokenA, packed(strings.Repeat(good, 100)), "Content-Encoding: gzip"), 413, "4000 as lines"},
		{"another type", normal, request(post, batches+"4", tokenA, good, "Content-Type: application/json"), 415, "content type"},
		{"another encoding", normal, request(post, batches+"4", tokenA, good, "Content-Encoding: br"), 415, "content encoding"},
		{"empty", normal, request(post, batches+"4", tokenA, ""), 422, "is empty"},
		{"a line that is none", normal, request(post, batches+"4", tokenA, good+"{}\n"), 422, `"line":2`},
		{"a line without its end", normal, request(post, batches+"4", tokenA, good[:len(good)-1]), 422, "has no end"},
		{"first of two", slow, request(post, batches+"1", tokenA, good), 201, ""},
		{"second of two", slow, request("GET", "/myip", tokenA, ""), 200, ""},
		{"third of two", slow, request(post, batches+"2", tokenA, good), 429, "0.5 a minute"},
		{"fourth of two", slow, request("GET", "/myip", tokenA, ""), 429, "0.5 a minute"},
		{"another device is not slowed", slow, request("GET", "/myip", tokenB, ""), 200, ""},
		{"too many at once", busy, request(post, batches+"1", tokenA, good), 503, "too many batches"},
		{"at the end", closed, request(post, batches+"1", tokenA, good), 503, "the collector ends"},
		{"a full disk", full, request(post, batches+"1", tokenA, good), 507, "the disk is full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			c.k.Handler().ServeHTTP(w, c.request)
			body, _ := io.ReadAll(w.Result().Body)
			if w.Code != c.status || !strings.Contains(string(body), c.want) {
				t.Fatalf("%d %s, want %d %s", w.Code, body, c.status, c.want)
			}
			path := c.request.URL.Path
			if strings.HasPrefix(path, "/v1/") {
				path = "/v1/batches/{device}/{batch}"
			}
			method := strings.ToLower(c.request.Method)
			described, known := m.Paths[path][method].Responses[fmt.Sprint(w.Code)]
			if !known {
				t.Fatalf("%s %s: %d is not documented", method, path, w.Code)
			}
			answers[fmt.Sprint(method, path, w.Code)] = true
			if ref, found := strings.CutPrefix(described.Ref, "#/components/responses/"); found {
				described = m.Components.Responses[ref]
			}
			for name := range described.Headers {
				if w.Header().Get(name) == "" {
					t.Errorf("no header %s", name)
				}
			}
			kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
			content, known := described.Content[kind]
			if !known {
				t.Fatalf("the content type %s is not documented", kind)
			}
			if content.Schema.Ref == "" {
				return
			}
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema(content.Schema.Ref).Validate(value); err != nil {
				t.Error(err)
			}
		})
	}
	for path, operations := range m.Paths {
		for method, o := range operations {
			for status := range o.Responses {
				if !answers[method+path+status] && status != "500" {
					t.Errorf("%s %s: %s is documented and was not seen", method, path, status)
				}
			}
		}
	}
	status := normal.status()
	if status.Stored != 4 || status.Repeated != 2 || status.Batches != 4 || status.Devices != 2 || status.Unauthorized != 5 {
		t.Errorf("%+v", status)
	}
}

func TestOtherPathsAndMethods(t *testing.T) {
	k := open(t, nil)
	for target, want := range map[string]int{"GET /": 404, "POST /health": 405, "GET /v1/batches/phone-a/1": 405, "PUT /v1/batches/phone-a/1": 405,
		"POST /v1/batches/phone-a": 404, "POST /v1/batches/../../etc/x": 307} {
		method, path, _ := strings.Cut(target, " ")
		w := httptest.NewRecorder()
		k.Handler().ServeHTTP(w, request(method, path, tokenA, ""))
		if w.Code != want && !(want == 307 && w.Code >= 300) {
			t.Errorf("%s: %d, want %d", target, w.Code, want)
		}
	}
}

func TestReload(t *testing.T) {
	k := open(t, nil)
	ask := func(token string) int {
		w := httptest.NewRecorder()
		k.Handler().ServeHTTP(w, request("GET", "/myip", token, ""))
		return w.Code
	}
	const tokenC = "token-of-c-0123456789"
	if err := os.WriteFile(k.config.TokensFile, []byte("phone-c:"+tokenC+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ask(tokenC) != 401 || ask(tokenA) != 200 {
		t.Error("before")
	}
	k.Reload()
	if ask(tokenC) != 200 || ask(tokenA) != 401 {
		t.Error("after")
	}
	if err := os.WriteFile(k.config.TokensFile, []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k.Reload()
	if ask(tokenC) != 200 {
		t.Error("a bad file is taken")
	}
}

// FuzzBatch: for any body, the answer is one of those of a batch, and the
// stored bytes are the checked ones.
func FuzzBatch(f *testing.F) {
	k := open(f, func(c *config.Collector) { c.Limits.Burst = 1e6; c.Limits.ContentBytes = 1 << 16 })
	f.Add([]byte(record(1)), false)
	f.Add([]byte(packed(record(1))), true)
	f.Add([]byte(packed(record(1)+"{}\n")), true)
	n := 0
	f.Fuzz(func(t *testing.T, body []byte, compressed bool) {
		n++
		r := request("POST", fmt.Sprintf("/v1/batches/phone-a/%d", n), tokenA, string(body))
		if compressed {
			r.Header.Set("Content-Encoding", "gzip")
		}
		w := httptest.NewRecorder()
		k.Handler().ServeHTTP(w, r)
		if !slices.Contains([]int{201, 400, 413, 422}, w.Code) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if w.Code == 201 && !compressed && k.checker.Check(body) != nil {
			t.Error("stored, and no batch")
		}
	})
}

// TestBrokenDisk simulates a disk failure: a file blocks a device's directory.
func TestBrokenDisk(t *testing.T) {
	k := open(t, nil)
	if err := os.WriteFile(filepath.Join(k.config.Store, "phone-a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // nothing is left of the first attempt
		w := httptest.NewRecorder()
		k.Handler().ServeHTTP(w, request("POST", "/v1/batches/phone-a/1", tokenA, record(1)))
		if w.Code != 500 || !strings.Contains(w.Body.String(), "could not be stored") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if err := os.Remove(filepath.Join(k.config.Store, "phone-a")); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	k.Handler().ServeHTTP(w, request("POST", "/v1/batches/phone-a/1", tokenA, record(1)))
	if w.Code != 201 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
