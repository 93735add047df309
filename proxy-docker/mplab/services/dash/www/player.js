// Shows a clip at a time with dash.js. What happens is kept, each thing with its time, until somebody takes it.
'use strict';

const SAMPLE_MS = 250;

// What decides the quality. "dynamic" is what dash.js does when it is left alone, without its look at dropped frames:
// a busy host must not choose the quality.
const RULES = {
  capacity: ['throughputRule'],
  buffer: ['bolaRule'],
  dynamic: ['throughputRule', 'bolaRule', 'insufficientBufferRule', 'switchHistoryRule', 'abandonRequestsRule'],
};
const ALL_RULES = ['throughputRule', 'bolaRule', 'insufficientBufferRule', 'switchHistoryRule', 'droppedFramesRule',
  'abandonRequestsRule', 'l2ARule', 'loLPRule'];

const options = new URLSearchParams(location.search);
const adaptation = options.get('adaptation') || 'capacity';
const highest = Number(options.get('highest') || Infinity);

const list = document.getElementById('list');
const stage = document.getElementById('screen');
const video = document.querySelector('video');
const state = document.getElementById('status');

const kept = [];
let clip = '';
let player = null;
let timer = 0;

const now = () => (performance.timeOrigin + performance.now()) / 1000;
const keep = (event, fields) => kept.push({event, clip, at: now(), ...fields});
window.playback = {take: () => kept.splice(0)};

function settings() {
  return {
    debug: {logLevel: dashjs.Debug.LOG_LEVEL_NONE},
    streaming: {
      abr: {
        rules: Object.fromEntries(ALL_RULES.map(name => [name, {active: RULES[adaptation].includes(name)}])),
        initialBitrate: {audio: -1, video: 1},
      },
      // Nothing learnt from an earlier clip.
      lastBitrateCachingInfo: {enabled: false},
      lastMediaSettingsCachingInfo: {enabled: false},
      buffer: {
        // Each segment once: what is in the buffer stays there.
        fastSwitchEnabled: false,
        // Picture and sound stop together and say so. Left alone, Chromium lets the sound go on beside a frozen picture
        // for 3 s, and tells nobody.
        syntheticStallEvents: {enabled: true},
      },
      utcSynchronization: {enabled: false},
    },
  };
}

// Seconds that can be played without the network.
function ahead() {
  const {buffered, currentTime} = video;
  for (let i = 0; i < buffered.length; i++) {
    if (buffered.start(i) <= currentTime + 0.1 && currentTime < buffered.end(i)) return buffered.end(i) - currentTime;
  }
  return 0;
}

function sample() {
  const frames = video.getVideoPlaybackQuality();
  keep('sample', {
    media_s: video.currentTime,
    buffer_s: ahead(),
    height: video.videoHeight,
    frames: frames.totalVideoFrames,
    dropped: frames.droppedVideoFrames,
  });
}

function onSegment({request, error}) {
  if (error || request.type !== 'MediaSegment') return;
  const {representation, startDate, firstByteDate, endDate} = request;
  keep('segment', {
    kind: request.mediaType,
    number: request.index,
    height: representation.height || 0,
    rate_kbps: representation.bandwidth / 1000,
    start_s: request.startTime,
    duration_s: request.duration,
    bytes: request.bytesLoaded,
    asked: startDate.getTime() / 1000,
    first_byte: firstByteDate ? firstByteDate.getTime() / 1000 : null,
    done: endDate.getTime() / 1000,
  });
}

function fail(message) {
  if (player === null || state.textContent.startsWith('failed')) return;
  state.textContent = `failed: ${message}`;
  keep('problem', {message});
}

function manifestUrl() {
  return `${document.body.dataset.media}/${clip}/manifest.mpd`;
}

function onManifest() {
  const offered = player.getRepresentationsByType('video').filter(one => one.height <= highest);
  const [manifest] = performance.getEntriesByName(manifestUrl());
  keep('qualities', {
    protocol: manifest ? manifest.nextHopProtocol : '',
    qualities: offered.map(one => ({height: one.height, rate_kbps: one.bandwidth / 1000})),
  });
}

function show(name) {
  clip = name;
  keep('tapped', {});
  state.textContent = 'loading';
  list.hidden = true;
  stage.hidden = false;
  player = dashjs.MediaPlayer().create();
  player.updateSettings(settings());
  const events = dashjs.MediaPlayer.events;
  player.on(events.STREAM_INITIALIZED, onManifest);
  player.on(events.FRAGMENT_LOADING_COMPLETED, onSegment);
  player.on(events.ERROR, ({error}) => fail(`${error.code}: ${error.message}`));
  player.registerCustomCapabilitiesFilter(one => !one.height || one.height <= highest);
  player.initialize(video, manifestUrl(), true);
  timer = setInterval(sample, SAMPLE_MS);
}

function leave() {
  clearInterval(timer);
  sample();
  keep('left', {media_s: video.currentTime});
  player.destroy();
  player = null;
  stage.classList.remove('started');
  stage.hidden = true;
  list.hidden = false;
  state.textContent = 'idle';
}

// What the element still tells when the clip has been left is about none.
const on = (event, action) => video.addEventListener(event, () => player !== null && action());

on('playing', () => {
  keep('playing', {media_s: video.currentTime});
  stage.classList.add('started');
  state.textContent = 'playing';
});
on('waiting', () => {
  keep('waiting', {media_s: video.currentTime, buffer_s: ahead()});
  if (state.textContent === 'playing') state.textContent = 'waiting';
});
on('ended', () => {
  keep('ended', {media_s: video.currentTime});
  state.textContent = 'ended';
});
on('error', () => fail(video.error.message));

for (const button of document.querySelectorAll('.clip')) button.addEventListener('click', () => show(button.id));
document.getElementById('back').addEventListener('click', leave);
