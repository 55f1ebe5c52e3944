/* The dashboard of firnd: views by the hash, live rows of /v1/events, the overview. page.js has what it shares with other pages. */
'use strict';

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

/* A part of the address; one with a stray % stays as it is. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch { return part; }
}

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
  shownRest = rest.map(decoded).join('/');
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

let source; /* of rows, from /v1/events */

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
  beginChoices(follow);
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
