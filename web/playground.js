/* The playground of the dashboard: make IDs, read them, design a layout, step the clock, compare kinds. */
'use strict';
const NEEDS = { uuidv3: '&namespace=dns&name=example.com', uuidv5: '&namespace=dns&name=example.com', typeid: '&prefix=user' };
const TAKES = ['ticket', 'dated', 'sealed']; /* of a sequence, or with a key: none is made without being asked for */
const ids = h('pre', { tabindex: 0, class: 'mono', 'aria-live': 'polite' }, '…');
const kindChoice = h('select', { id: 'kind' });
const count = h('input', { type: 'number', min: 1, max: 1000, value: 5, id: 'count' });
const pasted = h('input', { id: 'pasted', spellcheck: 'false', autocomplete: 'off', class: 'mono' });
const readings = h('div', { id: 'readings', 'aria-live': 'polite' });
let kinds = null;
let turn = 0; /* of what was asked for last: an answer that comes later than that does not replace it */

async function generate() {
  const mine = ++turn;
  try {
    const kind = kindChoice.value, made = await ask(`/v1/ids/${kind}?n=${Math.max(1, count.value | 0)}${NEEDS[kind] || ''}`);
    if (mine !== turn) return;
    ids.textContent = made.ids.join('\n');
    pasted.value = made.ids[made.ids.length - 1];
    explain();
  } catch (e) { if (mine === turn) ids.textContent = why(e); }
}

/* ---- reading an ID ---- */

const nameOf = (r) => (r.layout ? `${r.kind} · ${r.layout}` : r.kind);
const drawReading = (r) => [drawBits(r), table(['field', 'value', 'bits'], r.fields.map((f, i) =>
  [h('span', { class: fieldColour(i) }, h('i', { class: 'dot' }), f.name), h('code', {}, f.value), f.bits ? `${f.bit}–${f.bit + f.bits - 1}` : '—']))];

async function explain() {
  const text = pasted.value.trim();
  if (!text) return;
  turn++;
  await fill(readings, async () => {
    const [best, ...others] = (await ask(`/v1/inspect/${encodeURIComponent(text)}`)).readings;
    if (!best) return word('p', { class: 'note' }, 'No kind of ID reads like this.');
    return [h('h4', {}, nameOf(best), best.time ? h('span', { class: 'note' }, ` ${timeText(best.time)}`) : ''), ...drawReading(best),
      others.length ? word('h4', {}, 'It may also be') : null,
      ...others.slice(0, 5).map((r) => h('details', {}, h('summary', {}, nameOf(r)), drawReading(r)))].filter(Boolean);
  });
}

/* ---- a layout: the widths of the time and of the nodes are chosen, the sequence has the rest ---- */

const YEAR_S = 365.2425 * 86400;
const TICKS = { '10us': 1e-5, '1ms': 1e-3, '10ms': 1e-2, '1s': 1 };

/* A layout's text in parts: {unused, fields: [[name, bits]...], epoch}. */
function layoutParts(text) {
  const [all, ...more] = text.split(';'), fields = all.split(',').map((f) => f.split(/[:@]/)).map(([name, bits]) => [name, +bits]);
  return { unused: fields.reduce((n, [name, bits]) => n + (name === 'unused' ? bits : 0), 0), fields: fields.filter(([name]) => name !== 'unused'),
    epoch: more.find((m) => m.startsWith('epoch=')).slice(6) };
}

/* The same fields, in their order, with other widths: what the nodes gain or lose comes to the last of their fields first. */
function resized(fields, time, node, seq) {
  const wide = fields.map(([name, bits]) => [name, { time, seq }[name] ?? bits]), own = wide.filter(([name]) => name !== 'time' && name !== 'seq').reverse();
  if (!own.length) wide.splice(1, 0, own[own.push(['node', 0]) - 1]);
  let more = node - own.reduce((n, [, bits]) => n + bits, 0);
  for (const field of own) {
    const is = Math.max(0, field[1] + more);
    more -= is - field[1];
    field[1] = is;
  }
  if (!wide.some(([name]) => name === 'seq')) wide.push(['seq', seq]);
  return wide.filter(([, bits]) => bits);
}

function designer(presets) {
  const slider = (id, max) => h('input', { type: 'range', id, min: 0, max });
  const time = slider('bits-time', 52), node = slider('bits-node', 24), tick = h('select', { id: 'tick' }, Object.keys(TICKS).map((n) => h('option', { value: n }, n.replace('us', ' µs').replace(/(\d)(m?s)/, '$1 $2'))));
  const epoch = h('input', { type: 'datetime-local', step: '0.001', id: 'epoch' }), preset = h('select', { id: 'preset' }, presets.map((p) => h('option', {}, p.name)));
  const bar = h('div', { class: 'widths', 'aria-hidden': 'true' }), text = h('pre', { tabindex: 0, id: 'layout-text' }), said = h('dl', { id: 'design' });
  const parts = ['time', 'node', 'seq'].map((c) => h('div', { class: c }));
  let begun, total; /* the preset in parts, and its bits that are not unused */
  const draw = () => {
    const widths = [+time.value, +node.value, total - time.value - node.value], s = TICKS[tick.value];
    parts.forEach((e, i) => {
      e.style.flex = `${widths[i]} 0 0`;
      e.replaceChildren(h('span', {}, `${t(['time', 'node', 'sequence'][i])} `), h('b', {}, widths[i] ? String(widths[i]) : ''));
    });
    const years = 2 ** widths[0] * s / YEAR_S, from = Date.parse(epoch.value ? `${epoch.value}Z` : begun.epoch), ends = from + years * YEAR_S * 1000, gone = ends < Date.now();
    const rate = Math.floor(2 ** widths[2] / s);
    said.replaceChildren(...rows([['bits', `${t('time')} ${widths[0]} · ${t('node')} ${widths[1]} · ${t('sequence')} ${widths[2]}`],
      ['lifetime', years >= 1 ? `${grouped(years < 1e4 ? years.toFixed(1) : Math.round(years))} ${t('years')}` : duration(years * YEAR_S)],
      ['runs out', ends < 8.64e15 && ends < Date.parse('9999-01-01') ? new Date(ends).toISOString().slice(0, 10) + (gone ? ` · ${t('over already')}` : '') : t('after the year 9999')],
      ['nodes', grouped(2 ** widths[1])], ['IDs per second and node', grouped(rate)], ['IDs per second in all', rate * 2 ** widths[1] < 1e15 ? grouped(rate * 2 ** widths[1]) : short(rate * 2 ** widths[1])]]));
    const fields = resized(begun.fields, ...widths).map(([name, bits]) => `${name}:${bits}${name === 'time' ? `@${tick.value}` : ''}`);
    text.textContent = `${[begun.unused && `unused:${begun.unused}`, ...fields].filter(Boolean).join(',')};epoch=${new Date(from).toISOString().replace('.000Z', 'Z')}${begun.unused ? '' : ';unsigned'}`;
  };
  /* Drag the border between two fields: all in whole bits. */
  const grip = (left) => h('div', { class: 'grip', onpointerdown: (e) => {
    const grips = e.currentTarget, box = bar.getBoundingClientRect();
    const move = (m) => {
      const bit = Math.round((m.clientX - box.left) / box.width * total);
      if (left) {
        const both = +time.value + +node.value;
        time.value = Math.min(bit, both);
        node.value = both - time.value;
      } else node.value = Math.max(0, Math.min(bit, total) - time.value);
      draw();
    };
    grips.setPointerCapture(e.pointerId);
    grips.onpointermove = move;
    grips.onpointerup = grips.onpointercancel = () => { grips.onpointermove = null; };
  } });
  bar.append(parts[0], grip(true), parts[1], grip(false), parts[2]);
  preset.onchange = () => {
    const p = presets.find((e) => e.name === preset.value);
    begun = layoutParts(p.layout);
    total = 64 - begun.unused;
    time.value = p.bits.time;
    node.value = total - p.bits.time - (p.bits.seq || 0);
    tick.value = Object.keys(TICKS).find((n) => Math.round(TICKS[n] * 1e6) === p.tick_us);
    epoch.value = p.epoch.replace('Z', '');
    draw();
  };
  /* No more bits than there are: the other width gives way. */
  time.oninput = () => {
    node.value = Math.min(node.value, total - time.value);
    draw();
  };
  node.oninput = () => {
    time.value = Math.min(time.value, total - node.value);
    draw();
  };
  tick.oninput = epoch.oninput = draw;
  preset.onchange();
  return card('Design a layout', bar, h('div', { class: 'fields' }, labelled('time', time), labelled('node', node), labelled('tick', tick), labelled('epoch (UTC)', epoch), labelled('begin with', preset)),
    said, h('br'), text, copyButton(() => text.textContent), ' ', docsLink('layouts', 'About layouts'));
}

/* ---- a clock that steps back ---- */

const STEP_AT = 800, STEP_ALL = 2000;

/* Two seconds of three generators of 41 bits of ms, 12 of sequence, asked `rate` times in each ms, while the clock steps back once:
 * what they make, how often the same ID comes again, and how many requests get none. */
function simulate(rate, back) {
  const clock = (ms) => (ms < STEP_AT ? ms : ms - back);
  const run = (stampOf) => {
    const seen = new Set(), out = { made: 0, twice: 0, refused: 0 };
    let last = -Infinity, seq = 0;
    for (let ms = 0; ms < STEP_ALL; ms++)
      for (let k = 0; k < rate; k++) {
        const at = stampOf(ms, last);
        if (at === null) {
          out.refused++;
          continue;
        }
        seq = at === last ? seq + 1 : 0;
        last = at;
        out.made++;
        if (seen.has(at * 4096 + seq)) out.twice++;
        seen.add(at * 4096 + seq);
      }
    return out;
  };
  return [run((ms) => clock(ms)), run((ms, last) => (clock(ms) < last ? null : clock(ms))), run((ms) => ms)];
}

function clockStep() {
  const slider = (id, min, max, step, value) => h('input', { type: 'range', id, min, max, step, value });
  const by = slider('step-back', 0, 1000, 50, 400), rate = slider('step-rate', 1, 10, 1, 2), amount = h('output', { for: 'step-back' }), often = h('output', { for: 'step-rate' });
  const cards = h('div', { class: 'pair' });
  const draw = () => {
    const back = +by.value, W = 300, H = 130, results = simulate(+rate.value, back);
    const x = (ms) => 18 + ms / STEP_ALL * (W - 26), y = (ms) => H - 18 - ms / STEP_ALL * (H - 26);
    const path = (points) => points.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(' ');
    amount.textContent = ` ${back} ms`;
    often.textContent = ` ${grouped(rate.value * 1000)}`;
    const rest = [[STEP_AT, STEP_AT - back], [STEP_ALL, STEP_ALL - back]];
    const ways = [['Plain Snowflake', [[[0, 0], [STEP_AT, STEP_AT], ...rest]], 'It stamps by the clock, so the same milliseconds come twice.'],
      ['Snowflake that refuses', [[[0, 0], [STEP_AT, STEP_AT]], [[STEP_AT + back, STEP_AT], [STEP_ALL, STEP_ALL - back]]], 'It waits until the clock is where it was.'],
      ['firn', [[[0, 0], [STEP_ALL, STEP_ALL]]], 'It goes on by the monotonic clock, inside its window.']];
    cards.replaceChildren(...ways.map(([name, lines, text], i) => {
      const r = results[i];
      return h('div', { class: 'sim' }, h('h4', {}, t(name)),
        h('svg', { viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': `${t(name)}: ${t('duplicates')} ${r.twice}, ${t('refused')} ${r.refused}` },
          h('line', { class: 'axis', x1: 18, x2: W - 8, y1: H - 18, y2: H - 18 }), h('line', { class: 'axis', x1: 18, x2: 18, y1: 6, y2: H - 18 }),
          h('text', { x: W - 8, y: H - 5, 'text-anchor': 'end' }, `${t('time')} →`), h('text', { x: 12, y: H - 18, transform: `rotate(-90 12 ${H - 18})` }, `${t('stamp')} →`),
          i === 0 ? h('rect', { class: 'twice', x: 18, width: W - 26, y: y(STEP_AT), height: y(STEP_AT - back) - y(STEP_AT) })
            : i === 1 ? h('rect', { class: 'twice', x: x(STEP_AT), width: x(STEP_AT + back) - x(STEP_AT), y: 6, height: H - 24 }) : null,
          lines.map((l) => h('polyline', { class: ['c4', 'c1', 'c2'][i], points: path(l) }))),
        h('p', {}, h('span', {}, `${grouped(r.made)} ${t('IDs')} · `), h('b', { class: r.twice ? 'bad' : 'good' }, `${t('duplicates')}: ${grouped(r.twice)}`), ' · ',
          h('b', { class: r.refused ? 'bad' : 'good' }, `${t('refused')}: ${grouped(r.refused)}`)),
        word('p', { class: 'note' }, text));
    }));
  };
  by.oninput = rate.oninput = draw;
  draw();
  return card('Simulate a clock step', h('div', { class: 'fields' }, h('label', {}, word('span', {}, 'The clock steps back by'), amount, by),
    h('label', {}, word('span', {}, 'IDs per second'), often, rate)), cards, docsLink('generators', 'Why no ID repeats'));
}

/* ---- kinds side by side ---- */

const GAUGED = 'dashboard-compare'; /* the sequence whose numbers the measurement takes */
/* What is asked for; then: 64 bits, sorts by time, gapless, goes on without the store, does not show when it was made. */
const WAYS = [['snowflake', 'Snowflake', '/v1/ids/snowflake', 1, 1, 0, 1, 0], [`${GAUGED}-gapless`, 'Ticket, gapless', `/v1/sequences/${GAUGED}-gapless/next`, 1, 1, 1, 0, 1],
  [`${GAUGED}-range`, 'Ticket, range', `/v1/sequences/${GAUGED}-range/next`, 1, 0, 0, 1, 1], ['uuidv7', 'UUID v7', '/v1/ids/uuidv7', 0, 1, 0, 1, 0],
  ['uuidv4', 'UUID v4', '/v1/ids/uuidv4', 0, 0, 0, 1, 1], ['ulid', 'ULID', '/v1/ids/ulid', 0, 1, 0, 1, 0]];
const yes = (v) => h('span', { class: v ? 'good' : '' }, t(v ? 'yes' : 'no'));

/* Asks one after another, so that the times are those of one client. */
async function gauge(path, n) {
  const took = [], made = [], begin = performance.now();
  for (let i = 0; i < n; i++) {
    const at = performance.now();
    made.push((await ask(path, { method: 'POST' })).id);
    took.push(performance.now() - at);
  }
  const all = performance.now() - begin, rising = made.every((id, i) => !i || id.length > made[i - 1].length || (id.length === made[i - 1].length && id > made[i - 1]));
  took.sort((a, b) => a - b);
  const at = (q) => micros(took[Math.min(n - 1, Math.ceil(q * n) - 1)] * 1000);
  return { rate: n / all * 1000, p50: at(0.5), p99: at(0.99), unique: new Set(made).size === n, rising };
}

function sideBySide() {
  const out = h('div', { id: 'side-by-side' }), said = h('p', { class: 'note', role: 'status' });
  const found = {};
  const draw = () => out.replaceChildren(table(['kind', '64 bits', 'sorts by time', 'gapless', 'goes on without the store', 'does not tell its time', 'requests/s', 'p50', 'p99', 'unique', 'rising'],
    WAYS.map(([key, name, , ...facts]) => {
      const f = found[key];
      return [h('b', {}, name), ...facts.map(yes), ...(f ? [short(f.rate), f.p50, f.p99, yes(f.unique), yes(f.rising)] : Array(5).fill('—'))];
    }), true));
  const button = word('button', { type: 'button', id: 'measure', onclick: async () => {
    button.disabled = true;
    try {
      for (const mode of ['gapless', 'range'])
        await ask('/v1/sequences', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ name: `${GAUGED}-${mode}`, mode }) });
      for (const [key, name, path] of WAYS) {
        said.textContent = `${t('Measuring')}: ${name}`;
        found[key] = await gauge(path, 100);
        draw();
      }
      said.textContent = `${t('By this browser, 100 requests of each kind, one after another. More figures:')} firn compare`;
    } catch (e) { said.textContent = why(e); }
    button.disabled = false;
  } }, 'Measure');
  draw();
  return card('Kinds side by side', word('p', { class: 'note' }, 'Measuring takes 100 numbers of each of two sequences made for it.'), button, said, out);
}

async function listKinds() {
  const made = await Promise.all(kinds.filter((k) => k.makes && !TAKES.includes(k.name)).map(async (k) => {
    const r = await ask(`/v1/ids/${k.name}?n=1${NEEDS[k.name] || ''}`).catch(() => null);
    return [k, r ? r.ids[0] : '—'];
  }));
  return table(['kind', 'example', 'bits', 'characters', 'sorts by time', 'carries a time'], made.map(([k, id]) => [h('b', { title: k.about }, k.name),
    h('a', { class: 'mono', href: `#playground/${encodeURIComponent(id)}` }, id), String(k.bits || '—'), String(id.length), yes(k.sorts_by_time), yes(k.time)]));
}

VIEWS.playground = {
  async show(id) {
    if (this.language !== language && !await this.build()) return;
    if (id && id !== this.asked) {
      pasted.value = id;
      explain();
      scrollTo(0, 0);
    } else if (!readings.children.length && !pasted.value) generate();
    this.asked = id;
  },
  /* True: built. */
  async build() {
    let layouts;
    try {
      kinds = kinds || (await ask('/v1/kinds')).kinds;
      layouts = (await ask('/v1/layouts')).layouts.filter((l) => !l.decode_only);
    } catch (e) {
      $('playground').replaceChildren(word('h2', { class: 'sr' }, 'Playground'), trouble(e));
      return false;
    }
    this.language = language;
    if (!kindChoice.children.length) kindChoice.append(...kinds.filter((k) => k.makes && k.name !== 'dated').map((k) => h('option', {}, k.name)));
    kindChoice.value = kindChoice.value || 'snowflake';
    const all = h('div');
    const form = (onsubmit, ...children) => h('form', { class: 'fields', onsubmit: (e) => { e.preventDefault(); onsubmit(); } }, ...children);
    $('playground').replaceChildren(word('h2', { class: 'sr' }, 'Playground'), h('div', { class: 'wide pair' },
      h('section', { class: 'card' }, word('h3', {}, 'Generate'), form(generate, labelled('kind', kindChoice), labelled('How many', count),
        h('div', { class: 'end' }, word('button', { id: 'generate' }, 'Generate'), ' ', copyButton(() => ids.textContent))), h('br'), ids),
      h('section', { class: 'card' }, word('h3', {}, 'Inspect an ID'), form(explain, labelled('Paste any ID', pasted),
        h('div', { class: 'end' }, word('button', { id: 'explain' }, 'Explain'))), readings)),
    designer(layouts), clockStep(), sideBySide(), card('All kinds', all, h('p', { class: 'links' }, docsLink('formats', 'About formats'))));
    fill(all, listKinds);
    return true;
  },
};
