package trace

import (
	"fmt"
	"os"

	"go.yaml.in/yaml/v4"
)

// Origin documents the source of a trace. It is in a separate file, because the trace format has no comments.
type Origin struct {
	Title   string  `yaml:"title"`
	Source  string  `yaml:"source"`
	MadeBy  string  `yaml:"made_by,omitempty"` // the command that reproduces the trace
	Summary Summary `yaml:"summary"`
}

// OriginSuffix is appended to the name of a trace to get the name of its origin file.
const OriginSuffix = ".yaml"

// Save writes a trace and its origin file, with the summary. It returns an error if a file already exists.
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

// LoadOrigin reads the origin file of a trace.
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
