/* The page of the lab: the whole sequence diagram of a recorded run, the current step marked, what it says and the state after it.
 * The traces are inside the page (firn lab --html), or firnd has them at /web/lab.json. */
'use strict';
const $ = (id) => document.getElementById(id);
const GOOD = new Set(['commit', 'answer', 'leader', 'leads', 'decided', 'learned', 'apply', 'heal', 'restart']);
const HEIGHT = { chapter: 46, message: 48, lost: 48, note: 40, fault: 40, quiet: 30 };
const TIME = 74, PARTY = 92, PLAY_MS = 1600;
const SWITCH = {
  'kill-leader': 'Kill the leader', 'no-pre-vote': 'No pre-vote', 'duel': 'Duel of proposers',
  'kill-proposer': 'Kill the proposer', 'lose': 'Lose messages', 'plain': 'A Prepare for each slot', 'herd': 'All watch the leader',
};
const LAB = {
  raft: ['Raft', 'Recorded from three nodes of libraft itself with the settings of firnd, on a simulated network and clock.'],
  paxos: ['Paxos', 'Recorded from the proposer and the acceptors of firn\u2019s quorum stores, on a simulated network and clock.'],
  'multi-paxos': ['Multi-Paxos', 'Recorded from the proposer and the acceptors of firn\u2019s quorum stores, one pair for each slot.'],
  election: ['Election', 'A model of ZooKeeper\u2019s znodes, sessions and watches.'],
  queue: ['firn\u2019s election', 'Recorded from the candidates of firn elect, on a store of registers and with a simulated clock.'],
};

let data, lab, trace, at = 0, timer = null, rows = [];

/* ---- small helpers ---- */
function el(name, attributes = {}, text) {
  const e = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  if (text !== undefined) e.textContent = text;
  return e;
}
function html(name, className, text) {
  const e = document.createElement(name);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}
const pen = document.createElement('canvas').getContext('2d');
function widthOf(text, bold) {
  pen.font = (bold ? '600 ' : '') + '13px system-ui, sans-serif';
  return pen.measureText(text).width;
}

/* ---- the trace ---- */
function choose() {
  const on = lab.switches.filter((name) => document.querySelector(`input[name="${name}"]`).checked);
  const cut = ($('cut') && $('cut').value) || null;
  trace = lab.traces.find((t) => t.cut === cut && t.faults.join() === on.join());
  /* The state after each step: a step tells only whose changed. */
  let state = {};
  trace.states = trace.steps.map((step) => (state = { ...state, ...step.state }));
  $('title').textContent = trace.title;
  $('about').textContent = `${LAB[lab.lab][1]} Seed ${trace.seed}.`;
  if ($('cut')) $('cut').classList.toggle('on', cut !== null);
  draw();
  go(0);
}

/* ---- the picture ---- */
function columns(width) {
  const n = trace.parties.length, edge = Math.min(90, width / 10);
  const room = width - TIME - 2 * edge;
  return Object.fromEntries(trace.parties.map((p, i) => [p, TIME + edge + (n > 1 ? room * i / (n - 1) : 0)]));
}
/* As wide as the pane, and on a phone, where it scrolls, as wide as the parties and the longest label need. */
function widthNeeded() {
  const labels = trace.steps.map((s) => widthOf(s.label, s.kind === 'chapter' || GOOD.has(s.event)) + (s.kind === 'chapter' ? 32 : TIME + 48));
  return Math.max($('scroll').clientWidth, TIME + PARTY * trace.parties.length, ...labels);
}
function isDown(i, party) {
  const s = i >= 0 && trace.states[i][party];
  return s && (s.role === 'down' || s.doing === 'dead');
}
function drawNames() {
  const svg = $('names'), x = columns(+$('diagram').getAttribute('width')), state = trace.states[at], all = el('g');
  svg.replaceChildren(all);
  svg.setAttribute('height', 50);
  placeNames();
  for (const p of trace.parties) {
    const s = state[p] || {};
    const role = s.role || s.doing || (p === 'Client' ? '' : 'acceptor');
    all.append(el('text', { x: x[p], y: role ? 22 : 30, 'text-anchor': 'middle', class: 'name' }, p));
    all.append(el('text', { x: x[p], y: 39, 'text-anchor': 'middle', class: 'role' }, role));
  }
}
/* Above their lines, however far the diagram is scrolled. */
function placeNames() {
  $('names').firstChild?.setAttribute('transform', `translate(${-$('scroll').scrollLeft} 0)`);
}
function label(g, text, middle, y, width, bold) {
  const half = widthOf(text, bold) / 2;
  const x = Math.max(TIME + 12 + half, Math.min(width - half - 8, middle));
  g.append(el('text', { x, y, 'text-anchor': 'middle', class: 'label' }, text));
  return [x, half];
}
function drawArrow(g, step, y, x, width) {
  const from = x[step.from], to = x[step.to], way = Math.sign(to - from), line = y + 36;
  label(g, step.label, (from + to) / 2, y + 24, width, GOOD.has(step.event));
  if (step.kind === 'lost') {
    const end = from + (to - from) * 0.55;
    g.append(el('path', { class: 'arrow', d: `M${from} ${line}H${end}` }));
    g.append(el('path', { class: 'cross', d: `M${end - 5} ${line - 5}l10 10m0 -10l-10 10` }));
    return;
  }
  g.append(el('path', { class: 'arrow', d: `M${from} ${line}H${to - way * 8}` }));
  g.append(el('path', { class: 'tip', d: `M${to} ${line}l${-way * 10} -5v10z` }));
}
function drawNote(g, step, y, x, width) {
  const middle = (x[step.from] + x[step.to]) / 2, bold = GOOD.has(step.event);
  const box = el('rect', { class: 'box', y: y + 6, height: 28, rx: 8 });
  g.append(box);
  const [at_, half] = label(g, step.label, middle, y + 25, width - 8, bold);
  box.setAttribute('x', at_ - half - 10);
  box.setAttribute('width', 2 * half + 20);
}
function drawStep(i, y, height, x, width, lives) {
  const step = trace.steps[i];
  const g = el('g', { class: 'row ' + step.kind + (GOOD.has(step.event) ? ' good' : '') });
  g.append(el('rect', { class: 'halo', x: 0, y, width, height }));
  if (step.kind === 'chapter') {
    g.append(el('rect', { x: 0, y: y + 8, width, height: height - 16 }));
    g.append(el('text', { x: 16, y: y + 28 }, step.label));
  } else {
    for (const p of trace.parties)
      lives.append(el('line', { class: 'life' + (isDown(i, p) ? ' down' : ''), x1: x[p], x2: x[p], y1: y, y2: y + height }));
    g.append(el('text', { class: 'time', x: TIME - 10, y: y + (height > 40 ? 40 : height / 2 + 5), 'text-anchor': 'end' }, `${step.ms} ms`));
    if (step.kind === 'quiet')
      g.append(el('text', { x: (TIME + width) / 2, y: y + 20, 'text-anchor': 'middle', class: 'label' }, `\u2026 ${step.label}`));
    else if (step.kind === 'note' || step.kind === 'fault') drawNote(g, step, y, x, width);
    else drawArrow(g, step, y, x, width);
  }
  g.addEventListener('click', () => go(i));
  return g;
}
/* All steps. The mark lies below the lifelines, so that those are not interrupted. */
function draw() {
  const svg = $('diagram'), width = widthNeeded(), x = columns(width);
  const halo = el('rect', { id: 'halo', x: 0, width }), bar = el('rect', { id: 'bar-now', x: 0, width: 5 });
  const lives = el('g'), steps = el('g');
  let y = 0;
  rows = trace.steps.map((step, i) => {
    const row = { y, height: HEIGHT[step.kind], g: drawStep(i, y, HEIGHT[step.kind], x, width, lives) };
    steps.append(row.g);
    y += row.height;
    return row;
  });
  svg.replaceChildren(halo, lives, steps, bar);
  svg.setAttribute('width', width);
  svg.setAttribute('height', y + 24);
  drawMap(x, y + 24, width);
}
/* The same in small: what of it is in sight, and where the current step is. */
function drawMap(x, whole, width) {
  const map = $('map'), height = $('scroll').clientHeight, scale = Math.min(height / whole, 0.25), wide = 84;
  map.setAttribute('height', height);
  map.replaceChildren(el('rect', { class: 'seen', x: 0, width: wide }), el('rect', { class: 'mark', x: 0, width: wide, height: 3 }));
  map.scale = scale;
  trace.steps.forEach((step, i) => {
    const y = (rows[i].y + rows[i].height / 2) * scale, at_ = (p) => x[p] * wide / width;
    const own = step.from === undefined || step.from === step.to;
    const x1 = step.from === undefined ? 4 : at_(step.from) - (own ? 3 : 0), x2 = step.from === undefined ? wide - 4 : at_(step.to) + (own ? 3 : 0);
    map.append(el('line', { class: step.kind + (GOOD.has(step.event) ? ' good' : ''), x1, x2, y1: y, y2: y }));
  });
}
function showSeen() {
  const map = $('map'), [seen, mark] = map.children, scroll = $('scroll');
  if (!mark || !rows[at]) return;
  seen.setAttribute('y', scroll.scrollTop * map.scale);
  seen.setAttribute('height', scroll.clientHeight * map.scale);
  mark.setAttribute('y', (rows[at].y + rows[at].height / 2) * map.scale - 1.5);
}
/* The mark on the current step, which is brought into sight if it is not. */
function mark() {
  const row = rows[at], scroll = $('scroll');
  for (const g of $('diagram').querySelectorAll('g.now')) g.classList.remove('now');
  row.g.classList.add('now');
  for (const id of ['halo', 'bar-now']) {
    $(id).setAttribute('y', row.y);
    $(id).setAttribute('height', row.height);
  }
  if (row.y < scroll.scrollTop || row.y + row.height > scroll.scrollTop + scroll.clientHeight)
    scroll.scrollTop = row.y - scroll.clientHeight / 3;
  const own = row.g.querySelector('text.label'), box = own && own.getBBox();
  if (box && (box.x < scroll.scrollLeft || box.x + box.width > scroll.scrollLeft + scroll.clientWidth))
    scroll.scrollLeft = box.x + box.width / 2 - scroll.clientWidth / 2;
  drawNames();
  showSeen();
}

/* ---- the words ---- */
function showWhy() {
  const step = trace.steps[at], box = $('why');
  const who = step.from === undefined ? '' : step.from === step.to ? step.from : `${step.from} ${step.kind === 'fault' ? '\u2013' : '\u2192'} ${step.to}`;
  box.replaceChildren(html('div', 'when', [`${step.ms} ms`, who, step.kind === 'lost' ? 'lost' : ''].filter(Boolean).join(' \u00b7 ')),
    html('div', 'what', step.label), html('p', '', step.why));
}
function showStates() {
  const table = $('states'), state = trace.states[at], before = at > 0 ? trace.states[at - 1] : state;
  const head = html('tr'), corner = html('td');
  head.append(corner, ...trace.fields.map((f) => html('th', '', f)));
  const thead = html('thead'), body = html('tbody');
  thead.append(head);
  for (const p of trace.parties) {
    if (!state[p] || Object.keys(state[p]).length === 0) continue;
    const row = html('tr');
    row.append(html('th', '', p));
    for (const f of trace.fields) {
      const value = state[p][f] || '', cell = html('td', '', value);
      if (f === 'role' || f === 'doing') cell.classList.add(value || 'none');
      if (value !== ((before[p] || {})[f] || '')) cell.classList.add('new');
      row.append(cell);
    }
    body.append(row);
  }
  table.replaceChildren(thead, body);
}

/* ---- moving ---- */
function show() {
  const end = trace.steps.length - 1;
  $('count').textContent = `step ${at + 1} of ${end + 1}`;
  $('back').disabled = $('first').disabled = at === 0;
  $('next').disabled = $('last').disabled = at === end;
  mark();
  showWhy();
  showStates();
}
function stop() {
  clearInterval(timer);
  timer = null;
  $('play').textContent = 'Play';
}
function go(to, playing) {
  if (!playing) stop();
  at = Math.max(0, Math.min(trace.steps.length - 1, to));
  show();
  if (playing && at === trace.steps.length - 1) stop();
}
function play() {
  if (timer !== null) return stop();
  if (at === trace.steps.length - 1) at = 0;
  timer = setInterval(() => go(at + 1, true), PLAY_MS);
  $('play').textContent = 'Pause';
  show();
}

/* ---- which lab ---- */
function addSwitches(on, cutLink) {
  const box = $('switches');
  box.replaceChildren();
  for (const name of lab.switches) {
    const chip = html('label', 'switch'), input = html('input');
    input.type = 'checkbox';
    input.name = name;
    input.checked = on.includes(name);
    chip.append(input, SWITCH[name] || name);
    box.append(chip);
  }
  if (lab.links.length === 0) return;
  const cut = html('select');
  cut.id = 'cut';
  cut.setAttribute('aria-label', 'Cut a link');
  cut.append(new Option('No link cut', ''), ...lab.links.map((l) => new Option(`Cut ${l.replace('-', ' \u2013 ')}`, l)));
  cut.value = cutLink || '';
  box.append(cut);
}
/* The lab of the address, else the one that was asked for. */
function openLab(first) {
  const named = data.labs.find((l) => `#${l.lab}` === location.hash);
  lab = named || data.labs.find((l) => l.lab === data.open) || data.labs[0];
  const asked = first && lab.lab === data.open;
  for (const a of $('labs').querySelectorAll('a'))
    if (a.hash === `#${lab.lab}`) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  document.title = `firn lab ${lab.lab}`;
  $('zab').hidden = !['raft', 'election'].includes(lab.lab);
  addSwitches(asked ? data.on : [], asked ? data.cut : null);
  choose();
}

/* ---- once ---- */
async function load() {
  const inside = $('traces');
  if (inside) return JSON.parse(inside.textContent);
  const home = html('a', 'home', 'Dashboard');
  home.href = '/';
  $('labs').append(home);
  const answer = await fetch('/web/lab.json');
  if (!answer.ok) throw new Error(`/web/lab.json: ${answer.status}`);
  return answer.json();
}
function begin(loaded) {
  data = loaded;
  $('labs').prepend(...data.labs.map((l) => {
    const a = html('a', '', LAB[l.lab][0]);
    a.href = `#${l.lab}`;
    return a;
  }), ...data.missing.map((m) => html('span', '', `${LAB[m.lab][0]}: ${m.why}`)));
  openLab(true);
  addEventListener('hashchange', () => openLab(false));
  $('switches').addEventListener('change', choose);
  $('next').addEventListener('click', () => go(at + 1));
  $('back').addEventListener('click', () => go(at - 1));
  $('first').addEventListener('click', () => go(0));
  $('last').addEventListener('click', () => go(trace.steps.length - 1));
  $('play').addEventListener('click', play);
  $('scroll').addEventListener('scroll', () => {
    showSeen();
    placeNames();
  });
  $('map').addEventListener('click', (event) => {
    const y = event.offsetY / $('map').scale;
    const i = rows.findIndex((r) => y < r.y + r.height);
    go(i < 0 ? rows.length - 1 : i);
  });
  document.addEventListener('keydown', (event) => {
    if (event.target.tagName === 'SELECT' || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: trace.steps.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      go(to);
    } else if (event.key === ' ' && !['BUTTON', 'INPUT', 'SUMMARY'].includes(event.target.tagName)) {
      event.preventDefault();
      play();
    }
  });
  new ResizeObserver(() => {
    draw();
    mark();
  }).observe($('scroll'));
}
load().then(begin).catch((e) => { $('about').textContent = `The traces could not be loaded (${e.message}): reload the page.`; });
