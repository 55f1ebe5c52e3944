/* What the pages of firnd and of firn-proxy share: elements, language, theme, asking the server, texts, charts of a history of rows.
 * No framework; texts go into the page as text nodes only, so that nothing from the server is ever read as markup. */
'use strict';
const $ = (id) => document.getElementById(id);
const SVG = new Set(['svg', 'g', 'line', 'rect', 'text', 'polyline', 'title']);

function h(name, attributes, ...children) {
  const e = SVG.has(name) ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {}))
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else if (value === true) e.setAttribute(key, '');
    else if (value !== false && value != null) e.setAttribute(key, value);
  e.append(...children.flat().filter((c) => c != null));
  return e;
}

/* ---- storage that may be forbidden, language, theme ---- */

const kept = {
  get(key) { try { return localStorage.getItem(key); } catch { return null; } },
  set(key, value) { try { localStorage.setItem(key, value); } catch { /* private mode */ } },
};
let language = kept.get('language') || (navigator.languages || ['en']).map((l) => l.slice(0, 2)).find((l) => l === 'en' || LANGUAGES.includes(l)) || 'en';
const t = (text) => (language === 'en' ? text : (WORDS[text] || [])[LANGUAGES.indexOf(language)] || text);
/* An element whose text follows the language. */
const word = (name, attributes, text) => h(name, { ...attributes, 'data-t': text }, t(text));

function translate() {
  document.documentElement.lang = language;
  for (const e of document.querySelectorAll('[data-t]')) {
    e.dataset.t = e.dataset.t || e.textContent.trim();
    e.textContent = t(e.dataset.t);
  }
  for (const e of document.querySelectorAll('[data-t-label]')) {
    e.dataset.tLabel = e.dataset.tLabel || e.getAttribute('aria-label');
    e.setAttribute('aria-label', t(e.dataset.tLabel));
  }
}
function theme(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
}
theme(kept.get('theme'));

/* The two choices of a page's header. */
function beginChoices(changed) {
  $('language').value = language;
  $('theme').value = kept.get('theme') || '';
  $('language').onchange = (e) => {
    language = e.target.value;
    kept.set('language', language);
    translate();
    changed();
  };
  $('theme').onchange = (e) => { kept.set('theme', e.target.value); theme(e.target.value); };
}

/* ---- asking the server ---- */

let token = '';
async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  const r = await fetch(path, { cache: 'no-store', ...options, headers });
  const body = await r.json();
  if (r.status === 401) $('token-form').hidden = false;
  if (!r.ok) throw Object.assign(new Error(body.detail || r.statusText), { status: r.status });
  return body;
}
const why = (e) => (e instanceof TypeError ? t('the server does not answer') : e.message);

/* ---- texts ---- */

const grouped = (n) => Number(n).toLocaleString('en');
function short(n) {
  if (n < 10 && n % 1) return n.toFixed(1);
  let unit = 0;
  for (; Math.abs(n) >= 9999.5 && unit < 6; unit++) n /= 1000;
  return (unit && n < 100 ? n.toFixed(1) : Math.round(n)) + ['', 'k', 'M', 'G', 'T', 'P', 'E'][unit];
}
function duration(s) {
  const d = Math.floor(s / 86400), hours = Math.floor(s / 3600) % 24, m = Math.floor(s / 60) % 60;
  return d ? `${d} d ${hours} h` : hours ? `${hours} h ${m} min` : m ? `${m} min` : `${Math.floor(s)} s`;
}
const three = (n) => +n.toPrecision(3);
const micros = (us) => (us == null ? '—' : us < 999.5 ? `${Math.round(us)} µs` : us < 999500 ? `${three(us / 1e3)} ms` : `${three(us / 1e6)} s`);
const timeText = (iso) => iso.replace('T', ' ').replace('Z', ' UTC');
const rows = (pairs) => pairs.flatMap(([name, value]) => [word('dt', {}, name), h('dd', {}, String(value))]);

async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { /* no secure context: the old way */
    const area = h('textarea', { 'aria-label': t('Copy') });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  button.textContent = t('Copied');
  setTimeout(() => { button.textContent = t('Copy'); }, 1500);
}
const copyButton = (text) => word('button', { class: 'plain', type: 'button', onclick: (e) => copy(e.target, text()) }, 'Copy');

/* ---- rows of a page's history, the newest last; each has `t`, a time in ms ---- */

const KEEP = 3600;
const history_ = [];

/* ---- charts ---- */

const POINTS = 150, HEIGHT = 136, LEFT = 50, BOTTOM = 114;
const range = () => +document.querySelector('input[name=range]:checked').value;

/* The rows of each of POINTS places in the range that ends with the newest row. */
function places() {
  const span = range() * 1000, end = history_.length ? history_[history_.length - 1].t : 0, begin = end - span;
  const place = Array.from({ length: POINTS }, () => []);
  for (let i = history_.length - 1; i >= 0 && history_[i].t > begin; i--)
    place[Math.min(POINTS - 1, Math.floor((history_[i].t - begin) / span * POINTS))].push(history_[i]);
  return place;
}
const sum = (list, value) => list.reduce((s, r) => s + (value(r) || 0), 0);
const mean = (list, value) => (list.length ? sum(list, value) / list.length : null);

/* ---- latencies: counts in buckets that double, by their upper ends in microseconds ---- */

function taken(list, what) {
  const counts = {};
  for (const r of list)
    for (const [end, n] of Object.entries((r.took || {})[what] || {})) counts[end] = (counts[end] || 0) + n;
  return Object.entries(counts).map(([end, n]) => [end === 'inf' ? Infinity : +end, n]).sort((a, b) => a[0] - b[0]);
}
/* As if the requests of a bucket were spread evenly in it; null without a request. */
function percentile(buckets, q) {
  let left = sum(buckets, (b) => b[1]) * q;
  for (const [end, n] of buckets) {
    if (n >= left && n > 0) return end === Infinity ? 2 ** 24 : end <= 16 ? end * left / n : end / 2 + end / 2 * left / n;
    left -= n;
  }
  return null;
}
const PERCENTILES = [['p50', 0.5], ['p99', 0.99], ['p99.9', 0.999]];

function roundUp(v) {
  const power = 10 ** Math.floor(Math.log10(Math.max(v, 1)));
  return [1, 2, 4, 5, 10].map((f) => f * power).find((x) => x >= v);
}

/* Where the values of a chart are on the way up, and which of them have a line. */
function scaleOf(lines, log) {
  const all = lines.flatMap((l) => l.values.map((v) => v ?? 0));
  if (log) {
    const most = Math.max(1000, ...all), low = 1, top = Math.ceil(Math.log10(most));
    return { marks: Array.from({ length: top - low + 1 }, (_, i) => 10 ** (low + i)).filter((_, i, a) => a.length < 5 || (a.length - 1 - i) % 2 === 0),
      at: (v) => Math.max(0, (Math.log10(Math.max(v, 1)) - low) / (top - low)) };
  }
  const top = roundUp(Math.max(1, ...all)), least = Math.min(0, ...all), floor = least < 0 ? -roundUp(-least) : 0;
  return { marks: floor < 0 ? [floor, 0, top] : [0, top / 2, top], at: (v) => (v - floor) / (top - floor) };
}

const pointed = {}; /* by chart: the place under the pointer */

function chart(id, lines, { log = false, unit = short } = {}) {
  const card = $(id), WIDTH = Math.max(240, card.clientWidth - 36), scale = scaleOf(lines, log);
  const y = (v) => 8 + (BOTTOM - 8) * (1 - scale.at(v)), x = (i) => LEFT + (WIDTH - LEFT) * i / (POINTS - 1);
  const svg = h('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img' });
  for (const v of scale.marks)
    svg.append(h('line', { class: 'axis', x1: LEFT, x2: WIDTH, y1: y(v), y2: y(v) }), h('text', { x: LEFT - 6, y: y(v) + 4, 'text-anchor': 'end' }, log ? micros(v) : short(v)));
  svg.append(h('text', { x: LEFT, y: HEIGHT - 2 }, range() === 300 ? '−5 min' : '−60 min'),
    h('text', { x: WIDTH, y: HEIGHT - 2, 'text-anchor': 'end' }, '0'));
  lines.forEach((l, i) => {
    let points = [];
    const flush = () => {
      if (points.length === 1) points.push(points[0].replace(/^[\d.]+/, (s) => +s + 2));
      if (points.length) svg.append(h('polyline', { class: `c${l.colour ?? i}`, points: points.join(' ') }));
      points = [];
    };
    l.values.forEach((v, k) => { /* over one empty place, as the clock of rows and that of the page differ */
      if (v != null) points.push(`${x(k).toFixed(1)},${y(v).toFixed(1)}`);
      else if (l.values[k + 1] == null) flush();
    });
    flush();
  });
  const now = (l) => l.values.reduce((a, v) => v ?? a, null), hair = h('line', { class: 'hair', y1: 8, y2: BOTTOM });
  const key = h('ul', { class: 'key' });
  const tell = () => { /* the newest values, or those under the pointer */
    const at = pointed[id];
    hair.setAttribute('visibility', at == null ? 'hidden' : 'visible');
    if (at != null) for (const side of ['x1', 'x2']) hair.setAttribute(side, x(at));
    const text = (l) => `${l.name} ${at == null ? unit(now(l)) : l.values[at] == null ? '—' : unit(l.values[at])}`;
    key.replaceChildren(...lines.map((l, i) => h('li', { class: `c${l.colour ?? i}` }, h('i', {}), text(l))),
      at == null ? '' : h('li', {}, `−${Math.round(range() * (POINTS - 1 - at) / (POINTS - 1))} s`));
    svg.setAttribute('aria-label', `${card.querySelector('h3').textContent}: ${lines.map((l) => `${l.name} ${unit(now(l))}`).join(', ')}`);
  };
  svg.append(hair);
  svg.addEventListener('pointermove', (e) => {
    const box = svg.getBoundingClientRect(), at = ((e.clientX - box.left) / box.width * WIDTH - LEFT) / (WIDTH - LEFT) * (POINTS - 1);
    pointed[id] = at < 0 ? null : Math.min(POINTS - 1, Math.round(at));
    tell();
  });
  svg.addEventListener('pointerleave', () => { pointed[id] = null; tell(); });
  tell();
  card.replaceChildren(card.querySelector('h3'), svg, key);
}

/* ---- cards and tables ---- */

const card = (title, ...body) => h('section', { class: 'card wide' }, word('h3', {}, title), ...body);
/* On a phone each row of a table with `stacked` becomes a list, each cell behind the name of its column. */
const headOf = (head) => h('thead', {}, h('tr', {}, head.map((c) => word('th', { scope: 'col' }, c))));
const tableOf = (head, rows_, stacked) => {
  if (stacked) for (const r of rows_) [...r.children].forEach((c, i) => { c.dataset.label = t(head[i]); });
  return h('div', { class: stacked ? 'scroll stacked' : 'scroll', tabindex: 0 }, h('table', {}, headOf(head), h('tbody', {}, rows_)));
};
const table = (head, body, stacked) => tableOf(head, body.map((cells) => h('tr', {}, cells.map((c) => h('td', {}, ...[c].flat())))), stacked);
const labelled = (name, control) => h('label', {}, word('span', {}, name), ' ', control);
const trouble = (e) => h('p', { class: 'bad', role: 'alert' }, why(e));
