// Package logger records what happens to a phone's networks: interfaces,
// routes, WiFi, cellular, battery and, if asked for, its location, for minutes
// or for days. It writes changes only, keeps them in files of bounded size, and
// uploads them when it may.
//
// Reading the phone belongs to source, deciding what is a change to record, keeping
// files to store, sending them to upload.
package logger
