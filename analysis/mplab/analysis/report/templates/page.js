// What a page of the analysis can do more with JavaScript: sort and filter tables, open all sections, copy a citation.
// Without it, everything can be read. It loads nothing, and works from file://.
(() => {
  'use strict';
  const FILTER_FROM = 9; // rows of a table from which it can be filtered
  const SORT_FROM = 3;
  const make = (tag, properties = {}) => Object.assign(document.createElement(tag), properties);

  // The number at the start of a text such as "\u2212 0.3 %", "4 of 5", "< 0.001" or "1.5 \u00d7 10\u00b9\u2075"; NaN
  // if there is none.
  const numberIn = (text) => {
    const plain = text.replace(/[\s\u00a0\u2009\u202f]/g, '').replace(/\u2212/g, '-')
      .replace(/\u00d710([\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+)/, (_, power) => `e${power.normalize('NFKC')}`);
    const found = /^[<>\u2264\u2265+]*(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)/i.exec(plain);
    return found ? Number(found[1]) : NaN;
  };
  const textOf = (row, column) => (row.cells[column]?.dataset.value ?? row.cells[column]?.textContent ?? '').trim();

  // Compare two texts; those without a value come last in both directions.
  const compare = (a, b, way) => {
    const [x, y] = [numberIn(a), numberIn(b)];
    const [noA, noB] = [!/[\p{L}\d]/u.test(a), !/[\p{L}\d]/u.test(b)];
    if (noA || noB) return noA - noB;
    if (!Number.isNaN(x) && !Number.isNaN(y) && x !== y) return way * (x - y);
    return way * a.localeCompare(b, 'en', { numeric: true });
  };

  const sortable = (table) => {
    const body = table.tBodies[0];
    const original = [...body.rows];
    // Rows of a label with several rows keep the label's place in the original order.
    const places = new Map();
    for (const row of original) {
      const label = row.querySelector('th.label')?.textContent.trim();
      if (label !== undefined && !places.has(label)) places.set(label, places.size);
    }
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      if (!head.textContent.trim() || head.classList.contains('plot')) return;
      const button = make('button', { className: 'sort', type: 'button' });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener('click', () => {
        const next = { ascending: 'descending', descending: 'none' }[head.ariaSort] ?? 'ascending';
        heads.forEach((other) => other.removeAttribute('aria-sort'));
        const rows = [...original];
        if (next !== 'none') {
          head.setAttribute('aria-sort', next);
          const way = next === 'ascending' ? 1 : -1;
          const place = (row) => places.get(textOf(row, column));
          const isLabel = original[0].cells[column]?.classList.contains('label');
          rows.sort((a, b) => (isLabel ? way * (place(a) - place(b)) : compare(textOf(a, column), textOf(b, column), way)));
        }
        table.classList.toggle('sorted', next !== 'none');
        body.append(...rows);
      });
    });
  };

  const filterable = (table, scroll) => {
    const rows = [...table.tBodies[0].rows];
    const label = make('label', { textContent: 'Filter rows ' });
    const input = make('input', { type: 'search', autocomplete: 'off' });
    const count = make('span', { className: 'quiet', ariaLive: 'polite' });
    label.append(input);
    const bar = make('div', { className: 'filter' });
    bar.append(label, count);
    scroll.before(bar);
    input.addEventListener('input', () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      table.classList.toggle('sorted', words.length > 0 || table.querySelector('[aria-sort]') !== null);
      count.textContent = words.length ? `${shown} of ${rows.length} rows` : '';
    });
  };

  for (const table of document.querySelectorAll('main table')) {
    const rows = table.tBodies[0]?.rows.length ?? 0;
    if (!table.tHead || rows < SORT_FROM || table.querySelector('[rowspan], [colspan]')) continue;
    sortable(table);
    if (rows >= FILTER_FROM) filterable(table, table.closest('.scroll') ?? table);
  }

  // Only what scrolls is a stop of the Tab key.
  const scrolls = document.querySelectorAll('.scroll, pre[tabindex]');
  const stops = () => {
    for (const box of scrolls) {
      if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
      else box.removeAttribute('tabindex');
    }
  };
  stops();
  addEventListener('resize', stops);
  document.addEventListener('toggle', stops, true);

  const details = [...document.querySelectorAll('main details')];
  const bar = document.querySelector('nav .page');
  if (bar && details.length) {
    const tools = make('div', { className: 'tools' });
    for (const [text, open] of [['Expand all', true], ['Collapse all', false]]) {
      const button = make('button', { type: 'button', textContent: text });
      button.addEventListener('click', () => details.forEach((one) => (one.open = open)));
      tools.append(button);
    }
    bar.append(tools);
  }

  const reveal = () => {
    const name = location.hash.slice(1);
    const target = name && [...document.querySelectorAll('[id]')].find((one) => encodeURIComponent(one.id) === name);
    if (!target) return;
    for (let one = target; one; one = one.parentElement) if (one.tagName === 'DETAILS') one.open = true;
    target.scrollIntoView();
  };
  addEventListener('hashchange', reveal);
  reveal();

  for (const text of document.querySelectorAll('.copy')) {
    const button = make('button', { type: 'button', textContent: 'Copy the citation' });
    const place = make('p', { className: 'copied' });
    const said = make('span', { className: 'quiet', ariaLive: 'polite' });
    button.addEventListener('click', async () => {
      getSelection().selectAllChildren(text);
      try {
        await navigator.clipboard.writeText(text.textContent);
        said.textContent = ' copied';
      } catch {
        said.textContent = document.execCommand('copy') ? ' copied' : ' selected: press Ctrl+C';
      }
    });
    place.append(button, said);
    text.after(place);
  }
})();
