// Package logger records the events of a phone's networks: interfaces, routes,
// WiFi, cellular, battery and, if configured, its location, for minutes or for
// days. It writes only changes, keeps them in files of bounded size, and
// uploads them when the conditions are met.
//
// Package source reads the phone, record decides which changes are recorded,
// store keeps the files, and upload sends them.
package logger
