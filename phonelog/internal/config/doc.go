// Package config reads and checks the files of logger and collector, their secrets
// included, and fills in defaults. How strict JSON is read belongs to strictjson.
package config
