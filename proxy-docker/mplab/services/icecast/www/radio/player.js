// A radio player: one stream without an end, asked for again when it breaks off or stays away. What a new answer begins
// with goes behind what is in the buffer: a listener may hear a piece again, or miss one (baerts2015 §6.2.1).
'use strict';

const stream = `http://${location.hostname}:${options.get('port')}${options.get('mount')}`;
const RETRY_MS = 1000;

const player = {tapped: null, requests: 0, bytes: 0, events: []};
const sound = new Sound(document.getElementById('radio'), document.getElementById('state'), player);

function accepted(answer) {
  if (!answer.ok) {
    throw new Error(`status ${answer.status}`);
  }
}

async function play() {
  await sound.open();
  for (;;) {
    player.requests += 1;
    sound.note('request');
    let reason = 'the stream has ended';
    try {
      await sound.fetch(stream, {}, accepted, count => { player.bytes += count; });
    } catch (error) {
      reason = String(error);
    }
    sound.note('broken', {reason});
    sound.forgetRest();
    await pause(RETRY_MS);
  }
}

document.getElementById('play').addEventListener('click', event => {
  player.tapped = (performance.timeOrigin + event.timeStamp) / 1000;
  play();
}, {once: true});
