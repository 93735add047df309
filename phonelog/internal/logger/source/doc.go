// Package source reads the phone's state: interfaces, routes, WiFi, cellular, battery
// and location. Nothing here makes a radio send: it asks the kernel, and Android for
// what it knows already. The texts of Android are parsed in android.
package source
