// Package config reads the configuration file and the requests of the control socket. It checks everything, so the
// model need not.
package config
