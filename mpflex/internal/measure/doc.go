// Package measure groups what is run by hand or by an experiment to test the way from
// the phone to the proxy: check and udpjitter. Nothing that carries an application's
// traffic belongs here.
package measure
