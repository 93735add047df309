// DevTools events (a JSON array of {method, params}) on stdin → HAR 1.2 (JSON) on stdout.
import { harFromMessages } from 'chrome-har';

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const events = JSON.parse(Buffer.concat(chunks).toString('utf8'));
process.stdout.write(JSON.stringify(harFromMessages(events)));
