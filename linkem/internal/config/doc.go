// Package config reads what a user asks for: the configuration file and the requests of the control socket. It checks all
// of it, so that the model need not.
package config
