// Keeps every sample of an audio track, and when it came.

const CLOCK_EVERY_S = 0.1;
const PIECE_SAMPLES = 1 << 18;
const QUEUE_FRAMES = 3000;

export function now() {
  return (performance.timeOrigin + performance.now()) / 1000;
}

export class Recorder {
  // keepS: how many seconds of sound are kept; the clock goes on after that.
  constructor(track, keepS = Infinity) {
    this.rate = 0;
    this.samples = 0;
    this.gaps = 0;
    this.clock = []; // [samples before, unix seconds at which the next ones came]
    this.pieces = [];
    this.used = PIECE_SAMPLES;
    this.kept = 0;
    this.keepS = keepS;
    this.reader = new MediaStreamTrackProcessor({ track, maxBufferSize: QUEUE_FRAMES }).readable.getReader();
    this.ended = this.read();
  }

  async read() {
    let expected = null;
    let plane = new Float32Array(0);
    for (;;) {
      const { done, value } = await this.reader.read();
      if (done) return;
      const at = now();
      this.rate = value.sampleRate;
      const frames = value.numberOfFrames;
      if (expected !== null && Math.abs(value.timestamp - expected) > 1e6 * frames / this.rate) this.gaps += 1;
      expected = value.timestamp + value.duration;
      if (this.clock.length === 0 || this.samples - this.clock.at(-1)[0] >= CLOCK_EVERY_S * this.rate)
        this.clock.push([this.samples, Math.round(at * 1e6) / 1e6]);
      if (this.samples < this.keepS * this.rate) {
        if (plane.length < frames) plane = new Float32Array(frames);
        value.copyTo(plane.subarray(0, frames), { planeIndex: 0, format: 'f32-planar' });
        this.keep(plane, frames);
      }
      this.samples += frames;
      value.close();
    }
  }

  keep(plane, frames) {
    for (let i = 0; i < frames; i += 1) {
      if (this.used === PIECE_SAMPLES) {
        this.pieces.push(new Int16Array(PIECE_SAMPLES));
        this.used = 0;
      }
      this.pieces.at(-1)[this.used] = Math.max(-32768, Math.min(32767, Math.round(plane[i] * 32767)));
      this.used += 1;
    }
    this.kept += frames;
  }

  async stop() {
    await this.reader.cancel();
    await this.ended;
  }

  about() {
    return { rate: this.rate, samples: this.samples, kept: this.kept, gaps: this.gaps, clock: this.clock, pieces: this.pieces.length };
  }

  // One piece as base64 of 16-bit little-endian samples.
  piece(index) {
    const last = index === this.pieces.length - 1;
    const bytes = new Uint8Array(this.pieces[index].buffer, 0, 2 * (last ? this.used : PIECE_SAMPLES));
    const parts = [];
    for (let at = 0; at < bytes.length; at += 0x8000)
      parts.push(String.fromCharCode(...bytes.subarray(at, at + 0x8000)));
    return btoa(parts.join(''));
  }
}
