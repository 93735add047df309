// One side of a call. Both sides open the page with the same ?room=…; one calls, the other answers.
// Session descriptions go through a mailbox of the web server, with all candidates in them.

import { Recorder, now } from './recorder.js';

const POLL_MS = 200;
const STATS_MS = 1000;
const BEAT_MS = 100;
const LATE_MS = 20;
const PACKET_MS = 20; // of Opus
const BEHIND_MS = 45; // more than two packets, which may be a matter of when is looked
const SPOKEN_KEPT_S = 15;
const room = new URLSearchParams(location.search).get('room');
const view = (id) => document.getElementById(id);

const call = {
  events: [], // [unix seconds, name]
  stats: [],
  beats: [], // that were late, or at which the voice was: [unix seconds when due, seconds late]
  heard: null, // Recorder of the other side's voice
  spoken: null, // Recorder of this side's microphone
  hungUp: false,
};
window.call = call;

function note(state) {
  call.events.push([now(), state]);
  document.body.dataset.state = state;
  view('state').textContent = state;
}

function fail(problem) {
  view('problem').textContent = String(problem);
  note('failed');
}

const show = (id, shown) => { view(id).hidden = !shown; };
const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));

async function leave(what, description) {
  const answer = await fetch(`rooms/${room}/${what}`, { method: 'PUT', body: JSON.stringify(description) });
  if (!answer.ok) throw new Error(`the mailbox did not take the ${what}: ${answer.status}`);
}

async function find(what) {
  while (!call.hungUp) {
    const answer = await fetch(`rooms/${room}/${what}`, { cache: 'no-store' });
    if (answer.status === 200) return answer.json();
    if (answer.status !== 204) throw new Error(`no ${what}: ${answer.status}`);
    await sleep(POLL_MS);
  }
  return null;
}

function gathered(connection) {
  return new Promise((done) => {
    const look = () => { if (connection.iceGatheringState === 'complete') done(); };
    connection.addEventListener('icegatheringstatechange', look);
    look();
  });
}

async function describe(connection, description) {
  await connection.setLocalDescription(description);
  await gathered(connection);
  if (!/^a=candidate:/m.test(connection.localDescription.sdp)) throw new Error('the TURN server gave no relay');
  return connection.localDescription;
}

async function prepare() {
  const config = await (await fetch('config.json')).json();
  const connection = new RTCPeerConnection(config);
  connection.addEventListener('track', (event) => {
    const incoming = new MediaStream([event.track]);
    view('sound').srcObject = incoming; // without a player nothing is decoded
    call.heard = new Recorder(event.track.clone());
  });
  connection.addEventListener('iceconnectionstatechange', () => {
    if (connection.iceConnectionState === 'failed') fail('no way to the other side');
  });
  connection.addEventListener('connectionstatechange', () => {
    if (connection.connectionState === 'connected' && !call.timer) { // it may be so again, after an outage
      note('connected');
      call.timer = setInterval(sample, STATS_MS);
      sample();
      watch(connection);
      speak(connection).catch(fail);
    } else if (connection.connectionState === 'failed') fail('the call was cut');
  });
  call.connection = connection;
  show('hang-up', true);
  return connection;
}

// From the first word: the microphone opens when the other side can hear.
async function speak(connection) {
  const raw = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
  const stream = await navigator.mediaDevices.getUserMedia({ audio: raw });
  const [track] = stream.getAudioTracks();
  call.spoken = new Recorder(track, SPOKEN_KEPT_S);
  await connection.getTransceivers()[0].sender.replaceTrack(track.clone());
  note('talking');
}

async function sample() {
  const found = { at: now(), pair: null, local: null, remote: null, inbound: null, outbound: null, remoteInbound: null };
  const report = await call.connection.getStats();
  for (const item of report.values()) {
    if (item.type === 'inbound-rtp' && item.kind === 'audio') found.inbound = item;
    else if (item.type === 'outbound-rtp' && item.kind === 'audio') found.outbound = item;
    else if (item.type === 'remote-inbound-rtp' && item.kind === 'audio') found.remoteInbound = item;
    else if (item.type === 'transport' && item.selectedCandidatePairId) found.pair = report.get(item.selectedCandidatePairId);
  }
  if (found.pair) {
    found.local = report.get(found.pair.localCandidateId);
    found.remote = report.get(found.pair.remoteCandidateId);
  }
  call.stats.push(found);
}

// A heartbeat through the threads that carry the call (page, signalling, worker, network), and whether the voice leaves
// at its pace, whatever TCP does with it. What is late has waited for a processor: the network has no part in it.
async function watch(connection) {
  let due = performance.now() + BEAT_MS;
  let last = null;
  let behind = 0;
  while (!call.hungUp) {
    await sleep(Math.max(0, due - performance.now()));
    const voice = [...(await connection.getStats()).values()].find((item) => item.type === 'outbound-rtp');
    const late = performance.now() - due;
    if (late > LATE_MS) stalled(due, late);
    // The first packets come when the microphone opens; a few more than asked are sent now and then, to probe the way.
    if (voice && last && last.packetsSent > 0)
      behind = Math.max(0, behind + voice.timestamp - last.timestamp - PACKET_MS * (voice.packetsSent - last.packetsSent));
    if (behind > BEHIND_MS) {
      stalled(due, behind);
      behind = 0;
    }
    last = voice;
    due = Math.max(due + BEAT_MS, performance.now());
  }
}

function stalled(due, ms) {
  call.beats.push([(performance.timeOrigin + due) / 1000, Math.round(ms) / 1000]);
}

async function dial() {
  show('call', false);
  note('dialling');
  const connection = await prepare();
  connection.addTransceiver('audio', { direction: 'sendrecv' });
  await leave('offer', await describe(connection, await connection.createOffer()));
  note('ringing');
  const answer = await find('answer');
  if (answer) await connection.setRemoteDescription(answer);
}

async function answer(offer) {
  show('answer', false);
  note('answering');
  const connection = await prepare();
  await connection.setRemoteDescription(offer);
  connection.getTransceivers()[0].direction = 'sendrecv';
  await leave('answer', await describe(connection, await connection.createAnswer()));
}

async function hangUp() {
  call.hungUp = true;
  show('hang-up', false);
  if (call.timer) {
    clearInterval(call.timer);
    await sample();
  }
  if (call.heard) await call.heard.stop();
  if (call.spoken) await call.spoken.stop();
  call.connection.close();
  note('ended');
}

view('call').addEventListener('click', () => dial().catch(fail));
view('hang-up').addEventListener('click', () => hangUp().catch(fail));
note('idle');
show('call', true);
find('offer').then((offer) => {
  if (!offer || call.connection) return;
  show('call', false);
  show('answer', true);
  note('called');
  view('answer').addEventListener('click', () => answer(offer).catch(fail));
}).catch(fail);
