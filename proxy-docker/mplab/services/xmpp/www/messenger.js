// A messenger: contacts, one chat, text, smileys and photos, with delivery receipts.
// RFC 7395 (WebSocket), XEP-0184 (receipts), XEP-0198 (streams that resume), XEP-0363 (upload), XEP-0066 (its address).
"use strict";

const { client, xml, jid } = window.XMPP;
const DOMAIN = location.hostname;
const NS = {
  roster: "jabber:iq:roster",
  receipts: "urn:xmpp:receipts",
  upload: "urn:xmpp:http:upload:0",
  outOfBand: "jabber:x:oob",
};
const SMILEYS = ["😀", "😂", "😍", "😎", "😢", "👍"];
const OPEN_TIMEOUT_MS = 20000;
// A connection on which the server does not answer for so long is closed, and another one is made.
const DEAD_AFTER_MS = 10000;
const CLOSE_TIMEOUT_MS = 2000;
const RETRY_MS = 1000;

const $ = id => document.getElementById(id);
const wallClock = milliseconds => (performance.timeOrigin + milliseconds) / 1000;
const now = () => wallClock(performance.now());
const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));

const mine = new Map();
const theirs = new Map();
const statuses = [];
let xmpp = null;
let partner = "";

// What was measured: times in seconds of the wall clock.
window.messenger = {
  report: () => ({
    status: $("status").textContent,
    problem: $("problem").textContent,
    statuses: statuses,
    clock_ahead_s: now() - Date.now() / 1000,
    sent: [...mine.values()].map(({ item, file, ...entry }) => entry),
    received: [...theirs.values()].map(({ item, ...entry }) => entry),
  }),
};

function setStatus(text) {
  $("status").textContent = text;
  statuses.push({ t: now(), status: text });
}

function fail(problem) {
  $("problem").textContent = problem;
  statuses.push({ t: now(), problem: problem });
}

// --- Sign in, contacts ---------------------------------------------------------------------------------------

$("sign-in").addEventListener("submit", event => {
  event.preventDefault();
  const account = jid($("account").value);
  $("enter").disabled = true;
  xmpp = client({
    service: `wss://${DOMAIN}/xmpp-websocket`,
    domain: account.domain,
    username: account.local,
    password: $("password").value,
    resource: "messenger",
    timeout: OPEN_TIMEOUT_MS,
  });
  xmpp.streamManagement.timeout = DEAD_AFTER_MS;
  xmpp.on("status", onStatus);
  xmpp.on("error", error => fail(String(error.condition || error.message || error)));
  xmpp.on("stanza", onStanza);
  xmpp.on("online", onOnline);
  xmpp.streamManagement.on("ack", stanza => mark(stanza.attrs.id, "sent"));
  xmpp.streamManagement.on("resumed", () => {
    onStatus("online");
    sendAgain(entry => !entry.queued);
  });
  xmpp.start().catch(() => {}); // told by the event "error"; the client tries again by itself
});

function onStatus(status) {
  setStatus(status);
  if (status === "online") xmpp.timeout = CLOSE_TIMEOUT_MS;
  if (status === "disconnect") xmpp.timeout = OPEN_TIMEOUT_MS;
}

async function onOnline() {
  const answer = await xmpp.iqCaller.request(xml("iq", { type: "get" }, xml("query", { xmlns: NS.roster })));
  for (const item of answer.getChild("query", NS.roster).getChildren("item")) addContact(item.attrs);
  await xmpp.send(xml("presence"));
  $("sign-in").hidden = true;
  $("contacts").hidden = Boolean(partner);
  sendAgain(() => true);
}

function addContact({ jid: address, name }) {
  if (contact(address)) return;
  const item = document.createElement("li");
  item.className = "contact";
  item.dataset.address = address;
  const button = document.createElement("button");
  button.textContent = name || address;
  button.addEventListener("click", () => openChat(address, button.textContent));
  item.append(button);
  $("contacts").append(item);
}

const contact = address => document.querySelector(`.contact[data-address="${CSS.escape(address)}"]`);

function openChat(address, name) {
  partner = address;
  $("partner").textContent = name;
  $("contacts").hidden = true;
  $("chat").hidden = false;
}

// --- What comes ----------------------------------------------------------------------------------------------

function onStanza(stanza) {
  const from = stanza.attrs.from ? jid(stanza.attrs.from).bare().toString() : "";
  if (stanza.is("presence")) {
    contact(from)?.classList.toggle("online", !stanza.attrs.type);
  } else if (stanza.is("message")) {
    const receipt = stanza.getChild("received", NS.receipts);
    if (receipt) onReceipt(receipt.attrs.id);
    else if (stanza.attrs.type === "error") onRefused(stanza);
    else if (stanza.getChild("body")) onMessage(stanza, from);
  }
}

function onReceipt(id) {
  const entry = mine.get(id);
  if (entry && entry.receipt_t === null) entry.receipt_t = now();
  mark(id, "delivered");
}

function onRefused(stanza) {
  const entry = mine.get(stanza.attrs.id);
  const reason = stanza.getChild("error")?.getChildElements()[0]?.name || "refused";
  if (entry) entry.problem = reason;
  mark(stanza.attrs.id, "failed");
}

function onMessage(stanza, from) {
  const { id } = stanza.attrs;
  if (stanza.getChild("request", NS.receipts)) acknowledge(from, id);
  if (theirs.has(id)) return;
  const url = stanza.getChild("x", NS.outOfBand)?.getChildText("url");
  const entry = { id, body: stanza.getChildText("body"), photo: Boolean(url), received_t: now(), shown_t: null,
    size_bytes: null, sha256: null, problem: "" };
  theirs.set(id, entry);
  if (!partner) openChat(from, contact(from)?.textContent || from);
  if (url) showPhoto(entry, url);
  else addMessage("theirs", document.createTextNode(entry.body), () => { entry.shown_t = now(); });
}

function acknowledge(to, id) {
  const receipt = xml("received", { xmlns: NS.receipts, id });
  xmpp.send(xml("message", { to, type: "chat", id: crypto.randomUUID() }, receipt)).catch(() => {});
}

async function showPhoto(entry, url) {
  try {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`HTTP status ${response.status}`);
    const bytes = await response.arrayBuffer();
    const image = new Image();
    image.src = URL.createObjectURL(new Blob([bytes]));
    await image.decode();
    addMessage("theirs", image, async () => {
      entry.shown_t = now();
      entry.size_bytes = bytes.byteLength;
      entry.sha256 = hex(await crypto.subtle.digest("SHA-256", bytes));
    });
  } catch (error) {
    entry.problem = `photo: ${error.message || error}`;
  }
}

const hex = bytes => [...new Uint8Array(bytes)].map(byte => byte.toString(16).padStart(2, "0")).join("");

// --- What is sent --------------------------------------------------------------------------------------------

for (const smiley of SMILEYS) {
  const button = document.createElement("button");
  button.textContent = smiley;
  button.addEventListener("click", event => {
    $("smileys").hidden = true;
    compose("smiley", smiley, event);
  });
  $("smileys").append(button);
}

$("smiley").addEventListener("click", () => { $("smileys").hidden = !$("smileys").hidden; });

$("photo").addEventListener("change", () => {
  const file = $("photo").files[0];
  $("preview").hidden = !file;
  if (file) $("preview").src = URL.createObjectURL(file);
});

$("composer").addEventListener("submit", event => event.preventDefault());

$("send").addEventListener("click", event => {
  const file = $("photo").files[0];
  const text = $("text").value;
  if (file) compose("photo", "", event, file);
  else if (text) compose("text", text, event);
  $("composer").reset();
  $("preview").hidden = true;
});

// A message begins with the tap, at the time that the browser gave it.
function compose(kind, body, event, file = null) {
  const id = crypto.randomUUID();
  const content = file ? new Image() : document.createTextNode(body);
  if (file) content.src = URL.createObjectURL(file);
  const entry = { id, kind, body, sent_t: wallClock(event.timeStamp), uploaded_t: null, receipt_t: null, problem: "",
    queued: false, file };
  entry.item = addMessage("mine", content);
  mine.set(id, entry);
  deliver(entry);
}

async function deliver(entry) {
  if (entry.file && entry.uploaded_t === null) await upload(entry);
  const address = entry.file ? [xml("x", { xmlns: NS.outOfBand }, xml("url", {}, entry.body))] : [];
  const message = xml("message", { to: partner, type: "chat", id: entry.id }, xml("body", {}, entry.body),
    xml("request", { xmlns: NS.receipts }), ...address);
  entry.queued = false;
  try {
    await xmpp.send(message);
    entry.queued = true;
  } catch {
    // Not connected: it is sent when the connection is back.
  }
}

async function upload(entry) {
  while (entry.uploaded_t === null) {
    try {
      const slot = await requestSlot(entry.file);
      const put = slot.getChild("put");
      const headers = { "Content-Type": entry.file.type };
      for (const header of put.getChildren("header")) headers[header.attrs.name] = header.text();
      const response = await fetch(put.attrs.url, { method: "PUT", body: entry.file, headers });
      if (!response.ok) throw new Error(`HTTP status ${response.status}`);
      entry.body = slot.getChild("get").attrs.url;
      entry.uploaded_t = now();
      entry.problem = "";
    } catch (error) {
      entry.problem = `upload: ${error.condition || error.message || error}`;
      await pause(RETRY_MS);
    }
  }
}

async function requestSlot(file) {
  const request = xml("request", { xmlns: NS.upload, filename: file.name, size: file.size, "content-type": file.type });
  const answer = await xmpp.iqCaller.request(xml("iq", { type: "get", to: `media.${DOMAIN}` }, request));
  return answer.getChild("slot", NS.upload);
}

// What a stream could not be given is left to us; one that resumes has kept the rest, a new one nothing.
function sendAgain(wanted) {
  for (const entry of mine.values()) {
    const ready = !entry.file || entry.uploaded_t !== null;
    if (ready && entry.receipt_t === null && wanted(entry)) deliver(entry);
  }
}

// --- The chat ------------------------------------------------------------------------------------------------

function addMessage(whose, content, onShown) {
  const item = document.createElement("li");
  item.className = `message ${whose}`;
  item.append(content);
  $("messages").append(item);
  item.scrollIntoView({ block: "end" });
  if (onShown) afterNextFrame(onShown);
  return item;
}

function mark(id, state) {
  mine.get(id)?.item.classList.add(state);
}

// The first task after a frame was made: what was added before is on the screen.
function afterNextFrame(task) {
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = task;
    channel.port2.postMessage(null);
  });
}
