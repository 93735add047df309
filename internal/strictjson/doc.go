// Package strictjson reads JSON configurations and requests strictly: an
// unknown, duplicate or missing key, or a value of the wrong kind, is an error
// that names the key. Decode fills a structure; Object reads values one by one,
// with their bounds.
package strictjson
