// Package config reads and checks the configuration files of agent and proxy, reads
// their secrets, and fills in defaults. Parsing strict JSON belongs to strictjson,
// parsing rule files to policy.
package config
