// Package store keeps what devices upload: for each a directory, in it a file a
// day (UTC, of the upload), to which batches are appended. A batch is a header,
// which has its id, size and hash, and its lines. One is acknowledged after it is
// on the disk (fsync); several that wait are written as one.
//
// What was being written when the program or the machine died was not
// acknowledged: at the next start it is moved aside.
//
// What the lines say is not looked at.
package store
