// Package android parses the output of Android's shell commands: `cmd wifi
// status`, `dumpsys wifi`, `telephony.registry`, `battery` and `location`, of
// Android 10 to 16. These texts are made for people and differ between releases
// and vendors. So values are found by name, never by position. A value that is
// missing, has another form, or is redacted by the vendor (mCi=****) is absent.
// All functions are pure.
//
// Package source runs the commands.
package android
