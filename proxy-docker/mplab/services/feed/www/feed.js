// The app. Every action that the user waits for becomes a measure of User Timing: from the tap until its result is on
// the screen, with what came and went in its detail. The body's data-state is idle, busy or failed.

const parameters = new URLSearchParams(location.search);
const account = encodeURIComponent(parameters.get('account'));
const pictures = parameters.get('pictures');
const element = id => document.getElementById(id);
let refreshes = 0;
let kind = '';
let place = null;
let friend = null;

function show(id, visible) {
  element(id).hidden = !visible;
}

// Resolves when what is in the document now has been painted.
function painted() {
  return new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now()))));
}

// Runs what follows a tap; its result is the detail of the measure.
async function timed(name, tap, work) {
  document.body.dataset.state = 'busy';
  show('error', false);
  try {
    const detail = await work();
    performance.measure(name, {start: tap.timeStamp, end: await painted(), detail});
    document.body.dataset.state = 'idle';
  } catch (error) {
    element('error').textContent = error.message;
    show('error', true);
    document.body.dataset.state = 'failed';
  }
}

async function ask(path, options) {
  const answer = await fetch(path, options);
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    throw new Error(`HTTP ${answer.status} ${content.error ?? ''}`.trim());
  }
  return content;
}

function make(tag, text = '') {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

async function picture(source, kindOfPicture) {
  const image = document.createElement('img');
  image.crossOrigin = 'anonymous';
  image.className = kindOfPicture;
  image.src = source;
  await image.decode();
  return image;
}

async function refresh(tap) {
  await timed('refresh', tap, async () => {
    performance.clearResourceTimings();
    refreshes += 1;
    const {stories} = await ask(`api/feed?account=${account}&refresh=${refreshes}&stories=${parameters.get('stories')}`);
    const articles = stories.map(story => {
      const article = make('article');
      article.append(make('h2', story.author), make('p', story.text));
      return article;
    });
    element('stories').replaceChildren(...articles);
    const texts = await painted();
    const wanted = stories.flatMap((story, number) =>
      ['avatar', 'picture'].filter(part => story[part]).map(part => ({number, part, story, ...story[part]})));
    await Promise.all(wanted.map(async ({number, part, story, path}) => {
      const image = await picture(`${pictures}/${path}?story=${story.id}`, part);
      if (part === 'avatar') {
        articles[number].prepend(image);
      } else {
        articles[number].append(image);
      }
    }));
    const loaded = performance.getEntriesByType('resource').filter(entry => entry.name.startsWith(pictures));
    return {
      texts_s: (texts - tap.timeStamp) / 1000,
      stories: stories.length,
      pictures: wanted.length,
      pictures_loaded: loaded.length,
      picture_bytes: wanted.reduce((sum, image) => sum + image.bytes, 0),
      picture_bytes_loaded: loaded.reduce((sum, entry) => sum + entry.encodedBodySize, 0),
    };
  });
}

function compose(which) {
  kind = which;
  place = friend = null;
  element('composer').reset();
  show('composer', true);
  show('file', which === 'photo');
  show('nearby', which === 'check-in');
}

function choices(list, items, choose) {
  element(list).replaceChildren(...items.map(item => {
    const entry = make('li', item.name);
    entry.addEventListener('click', () => {
      choose(item);
      element(list).querySelectorAll('li').forEach(other => other.classList.toggle('chosen', other === entry));
    });
    return entry;
  }));
}

async function checkIn(tap) {
  compose('check-in');
  await timed('nearby', tap, async () => {
    const {places, friends} = await ask(`api/nearby?account=${account}`);
    choices('places', places, item => { place = item; });
    choices('friends', friends, item => { friend = item; });
    return {places: places.length, friends: friends.length};
  });
}

async function post(tap) {
  await timed(kind, tap, async () => {
    const file = element('file').files[0];
    const photo = kind === 'photo' ? await ask(`api/photos?account=${account}`, {method: 'PUT', body: file}) : null;
    const sent = {
      kind, text: element('text').value, photo: photo?.id, place: place?.name, friend: friend?.name,
    };
    const answer = await ask(`api/posts?account=${account}`, {method: 'POST', body: JSON.stringify(sent)});
    // What is shown is what the server says that it has; the picture itself is the phone's own.
    const article = make('article');
    article.id = answer.id;
    article.append(make('h2', [answer.friend && `with ${answer.friend}`, answer.place].filter(Boolean).join(' at ')));
    article.append(make('p', answer.text));
    if (photo) {
      const source = URL.createObjectURL(file);
      article.append(await picture(source, 'picture'));
      URL.revokeObjectURL(source);
    }
    element('stories').prepend(article);
    show('composer', false);
    return {
      id: answer.id,
      text: article.querySelector('p').textContent,
      place: answer.place,
      friend: answer.friend,
      photo_bytes: answer.photo?.bytes ?? 0,
      photo_sha256: answer.photo?.sha256 ?? '',
    };
  });
}

element('refresh').addEventListener('click', refresh);
element('status').addEventListener('click', () => compose('status'));
element('photo').addEventListener('click', () => compose('photo'));
element('check-in').addEventListener('click', checkIn);
element('composer').addEventListener('submit', event => event.preventDefault());
element('post').addEventListener('click', post);
document.body.dataset.ready = 'yes';
