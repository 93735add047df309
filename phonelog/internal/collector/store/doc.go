// Package store keeps the uploads of devices. Each device has a directory, with
// one file per day (UTC, of the upload), to which batches are appended. A batch
// consists of a header with its ID, size and hash, and its lines. It is
// acknowledged after it is on the disk (fsync); batches that wait are written
// together.
//
// A batch that was being written when the program or the machine died was not
// acknowledged. The next start moves it to another file.
//
// The content of the lines is not checked.
package store
