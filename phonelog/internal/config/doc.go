// Package config reads and checks the configuration files of logger and
// collector, including their secrets, and sets defaults. Package strictjson
// reads the JSON.
package config
