// What both players share: MP3 into a buffer, played when there is enough of it.
'use strict';

const options = new URLSearchParams(location.search);
const POLL_MS = 50;
const KEPT_BEHIND_S = 20;
const RUN_OUT_S = 0.1;

const pause = ms => new Promise(resolve => setTimeout(resolve, ms));
const once = (target, event) => new Promise(resolve => target.addEventListener(event, resolve, {once: true}));

class Sound {
  // `player` is what the scenario reads: when the tap came, and what happened.
  constructor(element, state, player) {
    this.element = element;
    this.state = state;
    this.player = player;
    this.enoughS = Number(options.get('buffer'));
    for (const event of ['playing', 'stalled']) {
      element.addEventListener(event, () => this.note(event));
    }
    element.addEventListener('error', () => this.note('error', {reason: element.error && element.error.message}));
    element.addEventListener('waiting', () => {
      this.note('waiting');
      if (this.bufferedS() < RUN_OUT_S) {  // without a pause every piece that comes would be heard by itself
        element.pause();
      }
    });
  }

  note(event, detail) {
    this.player.events.push({t: Date.now() / 1000, event, position: this.element.currentTime, ...detail});
    this.state.textContent = event;
  }

  async open() {
    const source = new MediaSource();
    const open = once(source, 'sourceopen');
    this.element.src = URL.createObjectURL(source);
    await open;
    this.buffer = source.addSourceBuffer('audio/mpeg');
    setInterval(() => {
      if (this.element.paused && this.bufferedS() >= this.enoughS) {
        this.element.play().catch(error => {
          if (error.name !== 'AbortError') {  // paused again before it had begun
            this.note('failure', {reason: String(error)});
          }
        });
      }
    }, POLL_MS);
  }

  // Sound that has come and has not been played.
  bufferedS() {
    const ranges = this.element.buffered;
    return ranges.length ? ranges.end(ranges.length - 1) - this.element.currentTime : 0;
  }

  async append(piece) {
    this.buffer.appendBuffer(piece);
    await once(this.buffer, 'updateend');
    if (this.element.currentTime > 2 * KEPT_BEHIND_S) {
      this.buffer.remove(0, this.element.currentTime - KEPT_BEHIND_S);
      await once(this.buffer, 'updateend');
    }
  }

  // Fetch and append. Nothing tells a player that a path has died: the request is given up when no byte comes for a while.
  async fetch(url, headers, begun, appended) {
    const abort = new AbortController();
    const patienceMs = 1000 * Number(options.get('patience'));
    const giveUp = () => setTimeout(() => abort.abort(new Error('no byte came')), patienceMs);
    let timer = giveUp();
    try {
      const answer = await fetch(url, {headers, signal: abort.signal});
      begun(answer);
      const reader = answer.body.getReader();
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        clearTimeout(timer);
        timer = giveUp();
        await this.append(piece.value);
        appended(piece.value.length);
      }
      return answer;
    } finally {
      clearTimeout(timer);
    }
  }

  // The end of a frame that never came is forgotten: what comes next begins anywhere in a frame.
  forgetRest() {
    this.buffer.abort();
  }
}
