/* The dashboard of firnd: language, theme, views by the hash, live rows of /v1/events, the overview. No framework; texts go
 * into the page as text nodes only, so that nothing from the server is ever read as markup. */
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
    const area = h('textarea', { 'aria-label': 'copy' });
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

/* ---- the bits of an ID ---- */

/* The binary form, high bit first, or '' where there is none. */
function binary(r) {
  if (r.number != null) return BigInt(r.number).toString(2).padStart(64, '0');
  return r.hex ? [...r.hex].map((d) => parseInt(d, 16).toString(2).padStart(4, '0')).join('') : '';
}
const fieldColour = (i) => `c${i < 0 ? 7 : i % 7}`;

/* By bytes, each bit in the colour of its field. */
function drawBits(r) {
  const bits = binary(r), groups = [];
  const at = (bit) => r.fields.findIndex((f) => f.bits && bit >= f.bit && bit < f.bit + f.bits);
  for (let i = 0; i < bits.length; i += 8)
    groups.push(h('span', {}, [...bits.slice(i, i + 8)].map((b, k) => h('b', { class: fieldColour(at(i + k)) }, b))));
  return bits ? h('div', { class: 'bits mono', role: 'img', 'aria-label': `${bits.length} ${t('bits')}: ${r.fields.filter((f) => f.bits)
    .map((f) => `${f.name} ${f.bits}`).join(', ')}` }, groups) : null;
}

/* ---- views: each has show(), called when its link is followed and then every few seconds ---- */

const VIEWS = { overview: { show: () => drawCharts() } };
let shown = '', shownRest = '', timer = 0;

function follow() {
  const [at, ...rest] = location.hash.slice(1).split('/'), name = VIEWS[at] ? at : 'overview', view = VIEWS[name];
  if (location.hash === '#main') return;
  for (const v of document.querySelectorAll('.view')) v.hidden = v.id !== name;
  for (const a of document.querySelectorAll('header a'))
    if (a.hash === `#${name}`) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  if (shown && shown !== name) {
    scrollTo(0, 0);
    $('main').focus({ preventScroll: true });
  }
  shown = name;
  shownRest = rest.map(decodeURIComponent).join('/');
  clearInterval(timer);
  if (view.every) timer = setInterval(() => { if (!document.hidden && !silent) view.show(); }, view.every);
  showNode();
  view.show(shownRest);
}

/* ---- is the server there? ---- */

let silent = 0; /* since when it does not answer */

function alive(node) {
  const back = silent && node;
  if (node) silent = 0;
  else silent = silent || Date.now();
  $('state').textContent = t(!node ? 'no answer' : node.ready ? 'ready' : 'not ready');
  $('state').className = node && node.ready ? 'good' : 'bad';
  $('alarm').hidden = Boolean(node && node.ready);
  const text = !node ? `${t('The server has not answered since')} ${new Date(silent).toLocaleTimeString('en-GB')}. ${t('This page goes on when it is back.')}`
    : node.ready ? '' : `${t('not ready')}: ${node.reason}`;
  if ($('alarm').textContent !== text) $('alarm').textContent = text; /* so that it is read aloud once */
  if (back) VIEWS[shown].show(shownRest);
}

/* ---- the history ---- */

const KEEP = 3600;
const history_ = []; /* rows of /v1/events, the newest last */
let source;

function listen() {
  source = new EventSource('/v1/events');
  source.onmessage = (e) => {
    history_.push(...JSON.parse(e.data).rows);
    history_.splice(0, history_.length - KEEP);
    if (!document.hidden && shown === 'overview') drawCharts();
  };
  source.onerror = () => { /* it asks again by itself, but for an answer that is no stream */
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
  };
}

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

const sumIds = (r) => Object.values(r.ids).reduce((a, b) => a + b, 0);
let runway = null;
const CLOCK = ['wait', 'ok', 'held', 'suspect'];

function drawTiles(now) {
  const last5 = history_.slice(-5), recent = history_.slice(-300), wrong = sum(recent, (r) => r.errors), clock = CLOCK[now.clock || 0];
  const took = (what) => PERCENTILES.map(([, q]) => micros(percentile(taken(recent, what), q))).join(' · ');
  const failed = sum(recent, (r) => r.store_errors), window_s = (now.window_ms || 0) / 1000;
  const tiles = [[short(mean(last5, sumIds)), 'IDs/s'], [short(mean(last5, (r) => (r.http || 0) + (r.resp || 0))), 'requests/s'],
    [took('ids'), 'latency of IDs: p50 · p99 · p99.9'], [took('tickets'), 'latency of tickets: p50 · p99 · p99.9'],
    [grouped(wrong), 'errors in the last 5 minutes', wrong ? 'bad' : ''],
    [`${clock} · ${now.behind_ms || 0} ms`, 'clock: state, and how far behind', clock === 'ok' ? 'good' : 'bad'],
    [`${window_s.toFixed(1)} s`, 'window left', window_s > 0 ? '' : 'bad'],
    [failed ? `${grouped(failed)} ${t('errors')}` : t('healthy'), 'store, last 5 minutes', failed ? 'bad' : 'good'],
    runway != null && [`${runway.toFixed(1)} ${t('years')}`, 'runway of the layout', runway < 2 ? 'bad' : '']];
  $('tiles').replaceChildren(...tiles.filter(Boolean).map(([value, name, colour]) =>
    h('div', { class: 'tile' }, h('b', { class: colour }, value), word('span', {}, name))));
}

function drawCharts() {
  if (!history_.length) return;
  const place = places(), totals = {}, series = (value) => place.map((list) => mean(list, value));
  for (const r of place.flat()) for (const [k, n] of Object.entries(r.ids)) totals[k] = (totals[k] || 0) + n;
  const kinds = Object.keys(totals).sort((a, b) => totals[b] - totals[a]);
  const lines = kinds.slice(0, 6).map((k) => ({ name: k, values: series((r) => r.ids[k]) }));
  if (kinds.length > 6) lines.push({ name: '…', values: series((r) => kinds.slice(6).reduce((s, k) => s + (r.ids[k] || 0), 0)), colour: 7 });
  chart('chart-ids', lines.length ? lines : [{ name: 'snowflake', values: series(() => 0) }]);
  chart('chart-requests', [{ name: 'HTTP', values: series((r) => r.http) }, { name: 'Redis', values: series((r) => r.resp) }]);
  for (const what of ['ids', 'tickets']) {
    const buckets = place.map((list) => taken(list, what));
    chart(`chart-took-${what}`, PERCENTILES.map(([name, q], i) => ({ name, values: buckets.map((b) => percentile(b, q)), colour: [2, 0, 4][i] })), { log: true, unit: micros });
  }
  chart('chart-errors', [{ name: t('errors'), values: series((r) => r.errors), colour: 4 }, { name: t('store errors'), values: series((r) => r.store_errors), colour: 1 }]);
  chart('chart-store', [{ name: t('mean'), values: place.map((list) => (sum(list, (r) => r.store_calls) ? sum(list, (r) => r.store_us) / sum(list, (r) => r.store_calls) : null)), colour: 6 }],
    { log: true, unit: micros });
  chart('chart-window', [{ name: t('window left'), values: series((r) => (r.window_ms || 0) / 1000) }]);
  chart('chart-clock', [{ name: t('behind'), values: series((r) => r.behind_ms), colour: 3 }]);
  chart('chart-connections', [{ name: t('open'), values: place.map((list) => (list.length ? Math.max(...list.map((r) => r.connections || 0)) : null)), colour: 5 }]);
  drawTiles(history_[history_.length - 1]);
}

async function showNode() {
  let n;
  try {
    n = await ask('/v1/node');
  } catch {
    alive(null);
    return;
  }
  alive(n);
  $('node').replaceChildren(...rows([['state', n.reason], ['name', n.name], ['slot', n.slot === null ? t('none') : String(n.slot)],
    ['window', n.window ? `→ ${n.window.until.slice(11, 23)} UTC` : t('none')],
    ['clock', `${n.clock.state} · ${n.clock.behind_ms} ms ${t('behind')} · ${t('steps')}: ${n.clock.steps_back + n.clock.steps_ahead}`], ['layout', n.layout],
    ['store', n.store.url], ['errors', n.store.errors], ['loops', n.loops], ['uptime', duration(n.uptime_s)], ['version', n.version]]));
  const at = (name) => (n.listen[name] || location.host).replace(/^(0\.0\.0\.0|\[::\])/, location.hostname);
  $('commands').textContent = `curl ${location.protocol}//${at('snowflake')}/generate\ncurl ${location.protocol}//${at('ticket')}/generate\n`
    + `redis-cli -p ${at('home').split(':').pop()} INCR orders\ncurl ${location.protocol}//${at('home')}/v1/ids/uuidv7?n=3\n`
    + `firn inspect ${$('snowflake').textContent.replace('…', '777378526356570112')}\nfirn top ${location.protocol}//${at('home')}`;
  if (runway != null) return;
  try {
    const { served } = await ask('/v1/layouts');
    runway = (Date.parse(served.ends) - Date.now()) / (365.2425 * 86400e3);
  } catch { /* at the next turn */ }
}

/* ---- the cards ---- */

async function newId() {
  try {
    const { id } = await ask('/generate?kind=snowflake');
    $('snowflake').textContent = id;
    const { readings } = await ask(`/v1/inspect/${id}?kind=snowflake`);
    $('snowflake-bits').replaceChildren(drawBits(readings[0]), h('ul', { class: 'key' }, readings[0].fields.map((f, i) =>
      h('li', { class: fieldColour(i) }, h('i', {}), `${f.name} ${timeText(f.value)}`))));
    $('snowflake-note').textContent = '';
  } catch (e) { $('snowflake-note').textContent = why(e); }
}
async function takeTicket() {
  const note = $('ticket-note');
  try {
    $('ticket').textContent = (await ask('/generate?kind=ticket')).id;
    note.dataset.t = 'Yours: no other request ever gets it.';
    note.textContent = t(note.dataset.t);
  } catch (e) { note.textContent = why(e); }
}

function begin() {
  $('language').value = language;
  $('theme').value = kept.get('theme') || '';
  $('language').onchange = (e) => {
    language = e.target.value;
    kept.set('language', language);
    translate();
    follow();
  };
  $('theme').onchange = (e) => { kept.set('theme', e.target.value); theme(e.target.value); };
  $('new').onclick = newId;
  $('take').onclick = takeTicket;
  $('inspect-form').onsubmit = (e) => {
    e.preventDefault();
    const text = $('inspect-text').value.trim();
    if (text) location.hash = `#playground/${encodeURIComponent(text)}`;
  };
  for (const b of document.querySelectorAll('[data-copy]')) b.onclick = () => copy(b, $(b.dataset.copy).textContent);
  for (const r of document.querySelectorAll('input[name=range]')) r.onchange = drawCharts;
  $('token-form').onsubmit = (e) => {
    e.preventDefault();
    token = $('token').value.trim();
    $('token-form').hidden = true;
    for (const v of Object.values(VIEWS)) v.language = ''; /* all is asked for again */
    if ($('snowflake').textContent === '…') newId();
    follow();
  };
  translate();
  addEventListener('hashchange', follow);
  document.addEventListener('visibilitychange', () => { if (!document.hidden) VIEWS[shown].show(shownRest); });
  setInterval(() => { if (!document.hidden) showNode(); }, 2000);
  addEventListener('resize', () => { if (shown === 'overview') drawCharts(); });
  follow();
  newId();
  listen();
}
document.addEventListener('DOMContentLoaded', begin);
