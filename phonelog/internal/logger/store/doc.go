// Package store keeps the logger's files: one that grows, and those before it,
// compressed, until they are uploaded and as long as there is room.
//
// What a file is, is in its name, so that nothing else has to be kept true:
//
//	00000012.jsonl             grows, or was left by a logger that was killed
//	00000011.jsonl.gz          waits to be uploaded
//	00000010.refused.jsonl.gz  the collector does not take it
//	00000009.sent.jsonl.gz     the collector has it
//
// A record is one write(2): a killed logger loses none that was written. When
// the phone's power fails, what was written since the last Sync may be lost.
//
// Sending files belongs to upload.
package store
