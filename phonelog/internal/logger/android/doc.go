// Package android reads what Android's shell commands print: `cmd wifi status`,
// `dumpsys wifi`, `telephony.registry`, `battery` and `location`, of Android 10
// to 16. These texts are made for people and change from release to release and
// from vendor to vendor. So nothing is read by its place, only by its name; what
// is not there, what has another form and what the vendor blacked out (mCi=****)
// stays absent. Each function is pure on its text.
//
// Running the commands belongs to source.
package android
