// Package store keeps the logger's files: the current one, and earlier ones,
// compressed, until they are uploaded and as long as there is room.
//
// The state of a file is in its name, so no separate state must be kept
// consistent:
//
//	00000012.jsonl             grows, or was left by a logger that was killed
//	00000011.jsonl.gz          waits to be uploaded
//	00000010.refused.jsonl.gz  the collector does not take it
//	00000009.sent.jsonl.gz     the collector has it
//
// A record is one write(2), so a killed logger loses no written record. If the
// phone's power fails, records since the last Sync can be lost.
//
// Package upload sends the files.
package store
