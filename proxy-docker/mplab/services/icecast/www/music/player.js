// A music player: tracks in random order, each fetched in chunks by Range, some way ahead of what is played.
'use strict';

const chunkBytes = Number(options.get('chunk'));
const aheadS = Number(options.get('ahead'));
const RETRY_MS = 1000;
const PAUSE_MS = 200;

const player = {tapped: null, order: [], chunks: 0, bytes: 0, failures: 0, events: []};
const sound = new Sound(document.getElementById('music'), document.getElementById('state'), player);

// A generator with the cell's seed: the same shuffle when the cell is run again (mulberry32).
function random(seed) {
  return () => {
    seed = (seed + 0x6D2B79F5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

function shuffled(items) {
  const next = random(Number(options.get('seed')));
  const rest = [...items];
  const order = [];
  while (rest.length) {
    order.push(rest.splice(Math.floor(next() * rest.length), 1)[0]);
  }
  return order;
}

function accepted(answer) {
  if (answer.status !== 206) {
    throw new Error(`status ${answer.status}`);
  }
  player.chunks += 1;
}

// What has come of a chunk is played before the rest is there; after a failure the rest alone is asked for.
async function playTrack(track) {
  sound.note('track', {track});
  let received = 0;
  const appended = count => {
    received += count;
    player.bytes += count;
  };
  for (let size = Infinity; received < size;) {
    while (sound.bufferedS() > aheadS) {
      await pause(PAUSE_MS);
    }
    try {
      const headers = {Range: `bytes=${received}-${received + chunkBytes - 1}`};
      const answer = await sound.fetch(`tracks/${track}.mp3`, headers, accepted, appended);
      size = Number(answer.headers.get('Content-Range').split('/')[1]);
    } catch (error) {
      player.failures += 1;
      sound.note('failure', {reason: String(error)});
      await pause(RETRY_MS);
    }
  }
}

async function play(tracks) {
  player.order = shuffled(tracks);
  await sound.open();
  for (;;) {
    for (const track of player.order) {
      await playTrack(track);
    }
  }
}

fetch('tracks/index.json').then(answer => answer.json()).then(tracks => {
  for (const track of tracks) {
    document.getElementById('tracks').appendChild(document.createElement('li')).textContent = track;
  }
  const button = document.getElementById('shuffle');
  button.addEventListener('click', event => {
    player.tapped = (performance.timeOrigin + event.timeStamp) / 1000;
    play(tracks);
  }, {once: true});
  button.disabled = false;
});
