// The app: sends a file in blocks of `block` bytes (0: whole), `gap` ms of rest after each but the last. An upload
// becomes a measure of User Timing: from the tap until its end is on the screen, with the server's answers in its
// detail. The body's data-state is idle, busy, done, cancelled or failed.

const parameters = new URLSearchParams(location.search);
const blockBytes = Number(parameters.get('block') ?? 0);
const gapMs = Number(parameters.get('gap') ?? 0);
const element = id => document.getElementById(id);
let stop = () => {};

function painted() {
  return new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now()))));
}

function rest() {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, gapMs);
    stop = () => { clearTimeout(timer); reject(new DOMException('', 'AbortError')); };
  });
}

function put(file, offset, end) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const began = performance.now();
    request.open('PUT', `files/${encodeURIComponent(file.name)}?offset=${offset}`);
    request.upload.onprogress = event => { element('progress').value = (offset + event.loaded) / file.size; };
    request.onload = () => {
      if (request.status !== 200) {
        reject(new Error(`HTTP ${request.status}`));
        return;
      }
      const times = {began_s: began / 1000, duration_s: (performance.now() - began) / 1000};
      resolve({...JSON.parse(request.responseText), ...times});
    };
    request.onerror = () => reject(new Error('the connection was lost'));
    request.onabort = () => reject(new DOMException('', 'AbortError'));
    stop = () => request.abort();
    request.send(file.slice(offset, end));
  });
}

async function upload(tap) {
  const file = element('file').files[0];
  const blocks = [];
  let state = 'done';
  let problem = '';
  document.body.dataset.state = 'busy';
  element('status').textContent = `Sending ${file.name}`;
  try {
    const step = blockBytes || file.size;
    for (let offset = 0; offset < file.size; offset += step) {
      if (offset > 0 && gapMs > 0) {
        await rest();
      }
      blocks.push(await put(file, offset, Math.min(offset + step, file.size)));
    }
  } catch (error) {
    state = error.name === 'AbortError' ? 'cancelled' : 'failed';
    problem = error.message;
  }
  element('status').textContent = problem || `${file.name}: ${state}`;
  performance.measure('upload', {start: tap.timeStamp, end: await painted(), detail: {name: file.name, state, blocks}});
  document.body.dataset.state = state;
}

element('upload').addEventListener('click', upload);
element('cancel').addEventListener('click', () => stop());
document.body.dataset.ready = 'yes';
