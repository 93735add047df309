package trace

import (
	"fmt"
	"os"

	"go.yaml.in/yaml/v4"
)

// Origin says where a trace comes from. It stands in a file beside it, since the format has no room for remarks.
type Origin struct {
	Title   string  `yaml:"title"`
	Source  string  `yaml:"source"`
	MadeBy  string  `yaml:"made_by,omitempty"` // the command that makes the same trace again
	Summary Summary `yaml:"summary"`
}

// OriginSuffix is what the name of the file beside a trace adds to it.
const OriginSuffix = ".yaml"

// Save writes a trace and its origin beside it; it fills in the summary. A file that is there already is an error.
func (t *Trace) Save(file string, origin Origin) error {
	origin.Summary = t.Summarise()
	remarks, err := yaml.Marshal(origin)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{file: t.Bytes(), file + OriginSuffix: remarks} {
		if err := create(name, content); err != nil {
			return err
		}
	}
	return nil
}

func create(name string, content []byte) error {
	out, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write a trace: %w", err)
	}
	if _, err := out.Write(content); err != nil {
		_ = out.Close()
		return fmt.Errorf("write a trace: %w", err)
	}
	return out.Close()
}

// LoadOrigin reads the file beside a trace.
func LoadOrigin(file string) (Origin, error) {
	var origin Origin
	content, err := os.ReadFile(file + OriginSuffix)
	if err != nil {
		return origin, err
	}
	if err := yaml.Load(content, &origin, yaml.WithKnownFields()); err != nil {
		return origin, fmt.Errorf("%s: %w", file+OriginSuffix, err)
	}
	return origin, nil
}
