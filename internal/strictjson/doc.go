// Package strictjson reads JSON configurations strictly. It refuses unknown and
// duplicate keys, values of the wrong kind, and addresses without a port; the
// error names the key. Each program checks which values are allowed.
package strictjson
