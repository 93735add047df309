// Package strictjson reads configurations in JSON. It is strict: a key that is unknown
// or given twice, a value of the wrong kind or an address without a port is refused,
// and the error names the key. Which values are allowed is checked by the program
// whose configuration it is.
package strictjson
