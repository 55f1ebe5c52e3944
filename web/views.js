/* Three views of the dashboard: cluster, sequences, API. */
'use strict';
const docsLink = (page, text) => word('a', { href: `#docs/${page}` }, text);

/* Replaces what is in the element; where the server does not answer, what was there stays: the alarm says so. What was asked
   for earlier does not replace what was asked for later. */
let asks = 0;
const drawnAt = new WeakMap();
async function fill(element, make) {
  const mine = ++asks;
  const put = (...made) => {
    if (mine < (drawnAt.get(element) || 0)) return;
    drawnAt.set(element, mine);
    element.replaceChildren(...made);
  };
  try {
    put(...[await make()].flat());
  } catch (e) {
    if (!(e instanceof TypeError) || !element.children.length) put(trouble(e));
  }
}

/* ---- cluster ---- */

const cluster = { leader: h('div', { id: 'leader' }), nodes: h('div'), members: h('div'), slots: h('div'), windows: h('div', { class: 'windows' }) };

/* The leader and the members of a Raft cluster; with other stores what the nodes share. */
async function drawMembers() {
  const { store, slot } = await ask('/v1/node');
  if (!store.url.startsWith('raft:')) {
    cluster.leader.replaceChildren(h('dl', {}, rows([['store', store.url], ['slot', slot === null ? t('none') : String(slot)]])));
    return word('p', { class: 'note' }, 'This store is no Raft cluster: nodes meet in the store itself.');
  }
  const c = await ask('/v1/cluster'), leader = c.members.find((m) => m.id === c.leader);
  cluster.leader.replaceChildren(h('dl', {}, rows([['leader', c.leader ? `${c.leader}${leader ? ` · ${leader.address}` : ''}` : t('none')], ['term', String(c.term)],
    ['entries committed', grouped(c.commit_index || 0)], ['registers', grouped(c.registers || 0)], ['cluster', c.cluster]])));
  return table(['member', 'address', 'role', 'leader', 'entries behind', 'seen'], c.members.map((m) =>
    [h('code', {}, m.id), m.address, t(m.role),
      m.leader ? h('b', { class: 'good' }, t('yes')) : t('no'), m.lag == null ? '—' : grouped(m.lag),
      m.seen == null ? '—' : h('span', { class: m.seen ? 'good' : 'bad' }, t(m.seen ? 'yes' : 'no'))]), true);
}

async function drawNodes() {
  const { nodes } = await ask('/v1/nodes');
  return table(['name', 'kind', 'state', 'slot', 'address', 'version'], nodes.map((n) => {
    const [home, ...other] = n.address.split(',');
    return [[h('b', {}, n.name), n.self ? h('span', { class: 'note' }, ` ${t('this server')}`) : ''], n.kind,
      h('span', { class: n.state === 'up' ? 'good' : 'bad' }, t(n.state)), n.slots || '—',
      home ? [n.self ? home : h('a', { href: `${location.protocol}//${home}/` }, home), h('span', { class: 'note' }, other.map((a) => ` ${a}`).join(''))] : '—', n.version];
  }), true);
}

/* By the words of /v1/slots; a lapsed slot is taken by another node after its quarantine. */
const STATES = { mine: 'mine', held: 'held', lapsed: 'in quarantine', poisoned: 'poisoned', retired: 'retired', broken: 'broken', missing: 'missing', free: 'free' };
const ALWAYS = ['mine', 'held', 'lapsed', 'poisoned', 'free'];

/* All slots as cells, and the windows of those that are held. */
async function drawSlots() {
  const s = await ask('/v1/slots'), by = new Map(s.slots.map((e) => [e.slot, e])), counts = { free: s.free };
  for (const e of s.slots) counts[e.state] = (counts[e.state] || 0) + 1;
  const cells = Array.from({ length: s.total }, (_, i) => {
    const e = by.get(s.first + i), state = e ? e.state : 'free';
    return h('i', { class: state, title: `${s.first + i} · ${t(STATES[state])}${e && e.name ? ` · ${e.name}` : ''}` });
  });
  drawWindows(s.slots.filter((e) => ['mine', 'held', 'lapsed'].includes(e.state)));
  const told = Object.keys(STATES).filter((n) => counts[n] || ALWAYS.includes(n));
  return [h('div', { class: 'slots', role: 'img', 'aria-label': told.map((n) => `${t(STATES[n])}: ${counts[n] || 0}`).join(', ') }, cells),
    h('ul', { class: 'key' }, told.map((n) => h('li', {}, h('i', { class: n }), `${t(STATES[n])} ${grouped(counts[n] || 0)}`)))];
}

/* Steps of a time axis, in ms, for about five marks. */
const stepOf = (span) => [1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3].find((step) => span / step <= 5.5) || 600e3;

const WINDOWS = 24; /* that are drawn */

/* This server's own window first, then by slot. */
function drawWindows(held) {
  const now = Date.now(), own = (e) => (e.state === 'mine' ? 0 : 1);
  const list = held.sort((a, b) => own(a) - own(b) || a.slot - b.slot).slice(0, WINDOWS), more = held.length - list.length, W = Math.max(260, cluster.windows.clientWidth), narrow = W < 500;
  const from = Math.max(now - 60e3, Math.min(now - 5e3, ...list.map((e) => Date.parse(e.from))));
  const to = Math.min(now + 300e3, Math.max(now + 3e3, ...list.map((e) => Date.parse(e.until)))), left = narrow ? 84 : 150, right = 56, H = list.length * 26 + 40;
  const x = (ms) => left + (Math.min(Math.max(ms, from), to) - from) / (to - from) * (W - left - right);
  const svg = h('svg', { viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': `${t('Windows of timestamps')}: ${list.map((e) =>
    `${e.slot} ${e.name} ${((Date.parse(e.until) - now) / 1000).toFixed(0)} s`).join(', ')}` });
  const step = stepOf(to - from);
  for (let at = Math.ceil(from / step) * step; at <= to; at += step)
    svg.append(h('line', { class: 'axis', x1: x(at), x2: x(at), y1: 18, y2: H - 20 }),
      h('text', { class: 'soft', x: x(at), y: H - 4, 'text-anchor': 'middle' }, new Date(at).toISOString().slice(narrow ? 14 : 11, 19)));
  list.forEach((e, i) => {
    const ends = Date.parse(e.until), y = i * 26 + 24;
    svg.append(h('text', { x: 0, y: y + 12 }, `${e.slot} ${e.name}`.slice(0, narrow ? 11 : 20)),
      h('rect', { class: e.state, x: x(Date.parse(e.from)), y, height: 16, rx: 3, width: Math.max(2, x(ends) - x(Date.parse(e.from))) },
        h('title', {}, `${timeText(e.from)} → ${timeText(e.until)}`)),
      h('text', { class: 'soft', x: x(ends) + 5, y: y + 12 }, `${ends < now ? '−' : '+'}${Math.abs((ends - now) / 1000).toFixed(0)} s`));
  });
  svg.append(h('line', { class: 'now', x1: x(now), x2: x(now), y1: 16, y2: H - 20 }), h('text', { x: x(now), y: 12, 'text-anchor': 'middle' }, t('now')));
  cluster.windows.replaceChildren(svg, more ? h('p', { class: 'note' }, t('and N more').replace('N', grouped(more))) : '');
}

VIEWS.cluster = {
  every: 3000,
  show() {
    if (!cluster.built) {
      cluster.built = true;
      $('cluster').append(card('Cluster', cluster.leader, h('p', { class: 'links' }, docsLink('cluster', 'A cluster of firnds'), ' ', docsLink('coordination', 'Stores and slots'))),
        card('Nodes', cluster.nodes), card('Slots', cluster.slots), card('Windows of timestamps', cluster.windows,
          word('p', { class: 'note' }, 'A node stamps IDs only inside its window; the next owner of the slot begins where it ends. Times are UTC.')),
        card('Raft members', cluster.members));
    }
    fill(cluster.members, drawMembers);
    fill(cluster.nodes, drawNodes);
    fill(cluster.slots, drawSlots);
  },
};

/* ---- sequences ---- */

const GAPS = { gapless: 'none', range: 'after a crash' };

VIEWS.sequences = {
  async show() {
    const list = h('div', { id: 'sequence-list' }), said = h('p', { class: 'note', role: 'status' });
    const name = h('input', { id: 'sequence-name', required: true, pattern: '[A-Za-z0-9._:\\-]{1,64}', autocomplete: 'off', spellcheck: 'false' });
    const start = h('input', { id: 'sequence-start', type: 'number', min: 0, value: 1 }), step = h('input', { id: 'sequence-step', type: 'number', min: 1, value: 1 });
    const mode = h('select', { id: 'sequence-mode' }, h('option', {}, 'gapless'), h('option', {}, 'range'));
    const dated = h('select', { id: 'sequence-dated' }, word('option', { value: '' }, 'none'), ...['day', 'month', 'year'].map((d) => word('option', { value: d }, d)));
    const all = [];
    let after = '';
    const say = (text, bad) => {
      said.textContent = text;
      said.className = `note ${bad ? 'bad' : 'good'}`;
    };
    const row = (s) => {
      const took = h('output', { class: 'mono' }), next = h('td', { class: 'mono' }, s.next || '—'), left = h('td', {}, s.left ? short(+s.left) : '—');
      const take = word('button', { class: 'plain', type: 'button', 'aria-label': `${t('Take the next number')}: ${s.name}`, onclick: async () => {
        const at = `/v1/sequences/${encodeURIComponent(s.name)}`;
        try {
          took.textContent = (await ask(`${at}/next`, { method: 'POST' })).id;
          const is = await ask(at);
          next.textContent = is.next || '—';
          left.textContent = is.left ? short(+is.left) : '—';
        } catch (e) { say(why(e), true); }
      } }, 'Take');
      return h('tr', {}, h('td', {}, h('b', {}, s.name)), h('td', {}, s.mode + (s.dated ? ` · ${t(s.dated.reset)}` : '')),
        h('td', {}, t(GAPS[s.mode] || '—')), h('td', { class: 'mono' }, s.start), h('td', {}, String(s.step)), next, left, h('td', {}, take, ' ', took));
    };
    const draw = () => {
      list.replaceChildren(all.length ? tableOf(['name', 'mode', 'gaps', 'start', 'step', 'next', 'left', 'the next number'], all.map(row), true) : word('p', { class: 'note' }, 'There is no sequence yet.'),
        after ? word('button', { class: 'plain', type: 'button', onclick: load }, 'More') : '');
    };
    async function load() {
      try {
        const page = await ask(`/v1/sequences${after ? `?after=${encodeURIComponent(after)}` : ''}`);
        all.push(...page.sequences);
        after = page.next || '';
        draw();
      } catch (e) { list.replaceChildren(trouble(e)); }
    }
    const create = async (e) => {
      e.preventDefault();
      const wanted = { name: name.value, mode: mode.value, start: start.value, step: step.value };
      if (dated.value) Object.assign(wanted, { dated: { reset: dated.value } });
      try {
        await ask('/v1/sequences', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(wanted) });
        say(`${t('Created')}: ${name.value}`);
        name.value = '';
        all.length = 0;
        after = '';
        await load();
      } catch (error) { say(why(error), true); }
    };
    $('sequences').replaceChildren(word('h2', { class: 'sr' }, 'Sequences'), card('Sequences', list, said),
      card('Create a sequence', h('form', { class: 'fields', onsubmit: create }, labelled('name', name), labelled('mode', mode), labelled('start', start),
        labelled('step', step), labelled('date in front', dated), h('div', { class: 'end' }, word('button', { id: 'create' }, 'Create'))),
      h('dl', { class: 'explain' }, h('dt', {}, 'gapless'), word('dd', {}, 'No number is lost; each waits until the store has it.'),
        h('dt', {}, 'range'), word('dd', {}, 'Servers take blocks of numbers: fast; a crash leaves a gap.')),
      h('p', { class: 'links' }, docsLink('http/v1sequences', 'Sequences over HTTP'), ' ', docsLink('choosing', 'Which ID?'))));
    await load();
  },
};

/* ---- API ---- */

/* With the examples of the description: the first of each parameter in the path, and of the body. */
function operation(path, method, op) {
  const answer = h('pre', { hidden: true, tabindex: 0 }), content = op.requestBody && op.requestBody.content['application/json'];
  const example = op.parameters.filter((p) => p.in === 'path').reduce((at, p) => at.replace(`{${p.name}}`, encodeURIComponent(p.schema.examples[0])), path);
  const body = content ? ` -H 'Content-Type: application/json' -d '${JSON.stringify(Object.values(content.examples)[0].value)}'` : '';
  const command = `curl ${method === 'get' ? '' : `-X ${method.toUpperCase()} `}${location.origin}${example}${body}`;
  const takes = path.startsWith('/generate') || path.endsWith('/next'); /* a number */
  const safe = method === 'get' && !takes && path !== '/';
  return h('details', {}, h('summary', {}, h('b', {}, method.toUpperCase()), ' ', h('code', {}, path), ` ${op.summary}`),
    op.parameters.length ? table(['name', 'value'], op.parameters.map((p) => [h('code', {}, p.name), p.description])) : null,
    h('pre', { tabindex: 0 }, command), copyButton(() => command), ' ',
    safe ? word('button', { type: 'button', onclick: async () => {
      const r = await fetch(example, { headers: token ? { Authorization: `Bearer ${token}` } : {} }), text = await r.text();
      answer.hidden = false;
      try {
        answer.textContent = JSON.stringify(JSON.parse(text), null, 2);
      } catch { answer.textContent = text; }
    } }, 'Ask') : null, answer);
}

VIEWS.api = {
  async show() {
    if (this.language === language) return;
    try {
      const api = await ask('/openapi.json');
      this.language = language;
      $('api').replaceChildren(h('h2', { class: 'sr' }, 'API'), h('p', { class: 'links wide' }, docsLink('http', 'HTTP by example'), ' ', docsLink('redis', 'The Redis protocol'), ' ',
        docsLink('security', 'Tokens and TLS')), ...api.tags.map((tag) => h('section', { class: 'card wide' }, h('h3', {}, tag.name),
        h('p', { class: 'note' }, tag.description),
        Object.entries(api.paths).flatMap(([path, ways]) => Object.entries(ways).filter(([, op]) => op.tags[0] === tag.name)
          .map(([method, op]) => operation(path, method, op))))));
    } catch (e) { $('api').replaceChildren(h('h2', { class: 'sr' }, 'API'), trouble(e)); }
  },
};
