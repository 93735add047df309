// Package source reads the state of the phone: interfaces, routes, WiFi,
// cellular, battery and location. It never makes a radio send: it only asks the
// kernel, and Android for what it already knows. Package android parses the
// texts of Android.
package source
