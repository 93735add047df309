// Package config reads and checks the files of logger and collector, their secrets
// included, and puts in the defaults. Bounds and defaults of keys belong here; how
// strict JSON is read is the matter of package strictjson.
package config
