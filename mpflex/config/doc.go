// Package config reads and checks the files of agent and proxy, their secrets
// included, and fills in defaults. How strict JSON is read belongs to strictjson; rule
// files are read by policy.
package config
