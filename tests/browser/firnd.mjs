// firnd in Chromium: its dashboard (every view, two themes, a phone, four languages, axe-core, a cluster of three, a token, a server that stops), pages of other origins, origins that are allowed, a name that points to 127.0.0.1.
// Usage: node firnd.mjs BINDIR [SCREENSHOTS]
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [bin, shots] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'firn-browser-'));
let passed = 0, failed = 0;

function check(ok, what) {
  if (ok) passed++;
  else {
    failed++;
    console.log(`FAIL ${what}`);
  }
}
const equal = (have, want, what) => check(have === want, `${what}: ${have}, not ${want}`);

/* Until it is true; a minute is longer than anything takes. */
async function until(what, ask) {
  for (const end = Date.now() + 60000; Date.now() < end; await new Promise((r) => setTimeout(r, 20)))
    if (await ask()) return;
  throw new Error(`waited for ${what}`);
}

/* A firnd of its own: its ports, and how to end it. */
async function serve(name, ...args) {
  const ports = ['home', 'snowflake', 'ticket'].map((n) => `--listen-${n}`).filter((n) => !args.some((a) => a.startsWith(n))).map((n) => `${n}=127.0.0.1:0`);
  const p = spawn(join(bin, 'firnd'), [...(args.includes('--config') ? [] : ['--no-config']), '--state-dir', join(folder, name), ...ports, ...args],
    { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '', found;
  p.stderr.on('data', (d) => { log += d; });
  const ended = new Promise((r) => p.on('exit', r));
  await until(`firnd to serve: ${log}`, () => (found = log.match(/serving home=\S+:(\d+) snowflake=\S+:(\d+) ticket=\S+:(\d+)/)));
  const [home, snowflake, ticket] = found.slice(1).map(Number);
  await until('firnd to be ready', async () => (await fetch(`http://127.0.0.1:${home}/readyz`)).ok);
  return { home, snowflake, ticket, end: (signal = 'SIGTERM') => { p.kill(signal); return ended; } };
}
const take = async (f) => +(await (await fetch(`http://127.0.0.1:${f.ticket}/generate`)).json()).id;

/* The dashboard. What each view shows when it is complete, and what a visitor does there. */
const axe = readFileSync('node_modules/axe-core/axe.min.js', 'utf8');
const VIEWS = {
  overview: async (p) => {
    await p.waitForFunction(() => document.querySelectorAll('#tiles .tile').length >= 9);
    await p.check('input[name=range][value="3600"]');
    for (const name of ['ids', 'took-ids', 'took-tickets', 'requests', 'errors', 'store', 'window', 'clock', 'connections']) /* a flat line has no height */
      await p.waitForSelector(`#chart-${name} polyline`, { state: 'attached' });
    const tiles = await p.locator('#tiles .tile').allTextContents();
    for (const what of ['IDs', 'tickets'])
      check(tiles.some((one) => /^([\d.]+ (µs|ms|s)( · |latency)){3}/.test(one) && one.includes(`of ${what}`)), `the latency of ${what}: ${tiles.join('; ')}`);
    check(tiles.some((one) => /^6\d\.\d yearsrunway/.test(one)), `the runway: ${tiles.join('; ')}`);
    equal(await p.locator('#snowflake-bits b').count(), 64, 'bits of the last ID');
    await p.fill('#inspect-text', '01ARZ3NDEKTSV4RRFFQ69G5FAV');
    await p.press('#inspect-text', 'Enter');
    await p.waitForFunction(() => document.querySelector('#readings h4')?.textContent.startsWith('ulid'));
    await p.goBack();
    await p.waitForSelector('#overview:not([hidden])');
  },
  cluster: async (p) => {
    await p.waitForSelector('.slots i.mine');
    equal(await p.locator('.slots i').count(), 1024, 'slots');
    await p.waitForSelector('.windows rect.mine', { state: 'attached' });
    await p.waitForFunction(() => document.querySelectorAll('#cluster table tbody tr').length >= 1);
  },
  playground: async (p, first) => {
    await p.selectOption('#kind', 'uuidv7');
    await p.click('#generate');
    await p.waitForFunction(() => document.querySelector('#readings h4')?.textContent.startsWith('uuidv7') && document.querySelectorAll('#readings .bits b').length >= 128);
    await p.fill('#pasted', '777378526356570112');
    await p.click('#explain');
    await p.waitForFunction(() => document.querySelector('#readings .bits')?.querySelectorAll('b').length === 64);
    /* A layout: by keyboard, by dragging a border, by name. */
    const design = () => p.textContent('#design'), before = await design();
    await p.focus('#bits-time');
    await p.keyboard.press('ArrowLeft');
    check((await design()).includes('time 40 · node 10 · sequence 13'), `the lifetime follows the width: ${await design()}`);
    await p.locator('.widths .grip').first().scrollIntoViewIfNeeded();
    const grip = await p.locator('.widths .grip').last().boundingBox();
    await p.mouse.move(grip.x + grip.width / 2, grip.y + 5);
    await p.mouse.down();
    await p.mouse.move(grip.x - grip.x / 8, grip.y + 5, { steps: 4 });
    await p.mouse.up();
    check(/time 40 · node \d · /.test(await design()), `dragging takes bits of the node: ${await design()}`);
    const presets = (await p.evaluate(async () => (await (await fetch('/v1/layouts')).json()).layouts)).filter((l) => !l.decode_only);
    check(presets.length > 10, `presets: ${presets.length}`);
    for (const preset of presets) { /* every bit, the order of the fields and the moment of the epoch */
      await p.selectOption('#preset', preset.name);
      equal(await p.textContent('#layout-text'), preset.layout, `the text of ${preset.name}`);
      check((await design()).includes(`runs out${preset.ends.slice(0, 10)}`), `the end of ${preset.name}: ${await design()}`);
    }
    await p.selectOption('#preset', 'discord');
    await p.focus('#bits-node');
    await p.keyboard.press('ArrowLeft');
    equal(await p.textContent('#layout-text'), 'time:42@1ms,dc:5,node:4,seq:13;epoch=2015-01-01T00:00:00Z;unsigned', 'one bit less for the nodes');
    await p.fill('#bits-time', '52');
    await p.fill('#bits-node', '24');
    equal(await p.textContent('#layout-text'), 'time:40@1ms,dc:5,node:19;epoch=2015-01-01T00:00:00Z;unsigned', 'no more than 64 bits');
    await p.selectOption('#preset', 'js53');
    await p.fill('#epoch', '2024-02-03T04:05:06.789');
    equal(await p.textContent('#layout-text'), 'unused:11,time:41@1ms,node:5,seq:7;epoch=2024-02-03T04:05:06.789Z', 'an epoch of its own');
    await p.selectOption('#preset', 'firn');
    equal(await design(), before, 'the layout that it began with');
    /* 600 ms at 2,000 IDs per second come twice, or are refused, or neither. */
    await p.fill('#step-back', '600');
    const told = await p.locator('.sim').allTextContents();
    check(told[0].includes('duplicates: 1,200') && told[1].includes('duplicates: 0') && /refused: 1,19[89]/.test(told[1])
      && told[2].includes('duplicates: 0') && told[2].includes('refused: 0'), `the clock step: ${told.join('; ')}`);
    if (first) await sameAsChoose(p);
    if (first) await p.click('#measure');
    await p.waitForFunction(() => !document.querySelector('#measure').disabled);
    if (first) check(!(await p.textContent('#side-by-side tbody')).includes('—'), 'kinds side by side are measured');
    await p.waitForFunction(() => document.querySelectorAll('#playground a.mono').length > 12);
    await p.locator('#playground a.mono', { hasText: /^user_/ }).click();
    await p.waitForFunction(() => document.querySelector('#readings h4')?.textContent.startsWith('typeid'));
  },
  sequences: async (p) => {
    await p.waitForSelector('#sequence-list *');
    const name = `page-${Date.now()}`;
    await p.fill('#sequence-name', name);
    await p.selectOption('#sequence-mode', 'range');
    await p.click('#create');
    const row = p.locator('#sequence-list tr', { hasText: name });
    await row.getByRole('button').click();
    await p.waitForFunction((n) => [...document.querySelectorAll('#sequence-list tr')].some((r) =>
      r.textContent.includes(n) && r.querySelector('output').textContent.trim() === '1'), name);
    check((await row.textContent()).includes('after a crash'), 'gaps of a range');
    await p.fill('#sequence-name', name);
    await p.selectOption('#sequence-mode', 'gapless');
    await p.click('#create');
    await p.waitForSelector('#sequences .note.bad');
    await p.fill('#sequence-name', `${name}-dated`);
    await p.selectOption('#sequence-dated', 'day');
    await p.click('#create');
    const dated = p.locator('#sequence-list tr', { hasText: `${name}-dated` });
    await dated.getByRole('button').click();
    await p.waitForFunction((n) => [...document.querySelectorAll('#sequence-list tr')].some((r) =>
      r.textContent.includes(n) && /^\d{8}-0*1$/.test(r.querySelector('output').textContent)), `${name}-dated`);
  },
  api: async (p, first) => {
    await p.waitForSelector('#api details');
    if (first) await copiedCommands(p);
    await p.locator('#api summary', { hasText: '/v1/node' }).first().click();
    await p.locator('#api details[open] button:not(.plain)').first().click();
    await p.waitForFunction(() => [...document.querySelectorAll('#api details[open] pre')].some((e) => e.textContent.includes('"uptime_s"')));
  },
  docs: async (p) => {
    await p.waitForSelector('#docs-page pre');
    await p.click('nav.pages a[href="#docs/http"]');
    await p.waitForSelector('#docs-page a[href="#docs/http/v1slots"]');
    await p.click('#docs-page a[href="#docs/http/v1slots"]');
    await p.waitForFunction(() => document.activeElement.id === 'docs-v1slots');
  },
};

/* The playground's table says of each kind what `firn choose` says. */
async function sameAsChoose(p) {
  const kinds = JSON.parse(spawnSync(join(bin, 'firn'), ['choose', '--list', '--json'], { encoding: 'utf8' }).stdout);
  const rows = await p.locator('#side-by-side tbody tr').evaluateAll((all) => all.map((tr) => [...tr.children].map((e) => e.textContent)));
  check(rows.length >= 6, `kinds side by side: ${rows.length}`);
  for (const [name, ...facts] of rows) {
    const { has } = kinds.find((k) => k.name === name);
    const said = ['64bit', 'sortable', 'gapless', 'available', 'hide-time'].map((wish) => (has.includes(wish) ? 'yes' : 'no'));
    equal(facts.slice(0, 5).join(), said.join(), `what the page says of ${name}`);
  }
}

/* An address with a stray % is shown as it is, and the page lives. */
async function oddAddress(f) {
  const p = await browser.newPage(), bad = [];
  p.setDefaultTimeout(60000);
  p.on('pageerror', (e) => bad.push(e.message));
  await p.goto(`http://127.0.0.1:${f.home}/#playground/100%25%`);
  await p.waitForFunction(() => document.querySelector('#pasted')?.value === '100%25%');
  await p.click('nav a[href="#overview"]');
  await p.waitForFunction(() => document.querySelectorAll('#tiles .tile').length >= 9 && /^\d+$/.test(document.getElementById('snowflake').textContent));
  check(bad.length === 0, `an address with a stray %: ${bad.join('; ')}`);
  await p.close();
}

/* Every command of the API view runs as it is copied, those that make something first and those that delete it last. */
async function copiedCommands(p) {
  const commands = await p.locator('#api details > pre:not([hidden])').allTextContents(), made = /^curl -X POST \S+\/(v1\/sequences|v1\/leases) /;
  const turn = (c) => (made.test(c) ? 0 : c.includes('-X DELETE') ? 2 : 1);
  check(commands.length > 20, `commands: ${commands.length}`);
  for (const command of commands.sort((a, b) => turn(a) - turn(b))) {
    const said = spawnSync('sh', ['-c', command.replace('curl ', 'curl -s --max-time 60 -o /dev/null -w "%{http_code}" ')], { encoding: 'utf8' }).stdout;
    const cluster = command.includes('/v1/cluster'); /* this store is none */
    check(cluster ? said === '404' : ['200', '201'].includes(said), `${command}: status ${said}`);
  }
}

/* Every page of the documentation is in the server, and each link between them has its end. */
async function documentation(f) {
  const p = await browser.newPage(), links = new Map(), ends = new Set();
  p.setDefaultTimeout(60000);
  await p.goto(`http://127.0.0.1:${f.home}/#docs`);
  await p.waitForSelector('#docs-page h3');
  const pages = await p.locator('nav.pages a').evaluateAll((all) => all.map((a) => a.hash));
  check(pages.length > 15, `pages: ${pages.length}`);
  for (const page of pages) {
    await p.click(`nav.pages a[href="${page}"]`);
    await p.waitForSelector(`nav.pages a[href="${page}"][aria-current=page]`);
    equal(await p.locator('#docs-page .bad').count(), 0, page);
    for (const to of await p.locator('#docs-page a[href^="#docs/"]').evaluateAll((all) => all.map((a) => a.hash))) links.set(to, page);
    ends.add(page);
    for (const id of await p.locator('#docs-page [id]').evaluateAll((all) => all.map((e) => e.id))) ends.add(`${page}/${id.slice(5)}`);
    const raw = await p.locator('#docs-page p, #docs-page li, #docs-page td').evaluateAll((all) => all.map((e) => {
      const copy = e.cloneNode(true);
      for (const code of copy.querySelectorAll('code, pre')) code.remove();
      return copy.textContent;
    }).filter((text) => /\]\(|\*\*|`/.test(text)));
    check(raw.length === 0, `${page} shows Markdown: ${raw[0]}`);
  }
  const alerts = await p.evaluate(async () => [...(await (await fetch('/web/alerts.md')).text()).matchAll(/^## (Firn\w+)$/gm)].map((m) => m[1]));
  check(alerts.length > 15, `alerts: ${alerts.length}`); /* docs/alerts.md says how a rule's runbook_url leads here */
  for (const name of alerts) check(ends.has(`#docs/alerts/${name.toLowerCase()}`), `the runbook of ${name}`);
  for (const page of ['kubernetes', 'bindings', 'gateway']) check(pages.includes(`#docs/${page}`), `the server has ${page}`);
  await p.goto(`http://127.0.0.1:${f.home}/#docs/protocol`); /* of the source tree only */
  await p.waitForFunction(() => document.querySelector('#docs-page [role=alert]')?.textContent === 'This server does not have the page protocol');
  await p.goto(`http://127.0.0.1:${f.home}/#docs/kubernetes`);
  await p.waitForFunction(() => document.querySelector('#docs-page h3')?.textContent.includes('Kubernetes'));
  for (const [to, from] of links) check(ends.has(to), `${from} links to ${to}`);
  await p.close();
}

/* Texts that the scripts give to t(), also those of moments that no test meets. */
async function askedInScripts(p) {
  const scripts = await p.evaluate(() => Promise.all(['dashboard', 'docs', 'page', 'playground', 'views'].map(async (name) => (await fetch(`/web/${name}.js`)).text())));
  const calls = scripts.flatMap((s) => [...s.matchAll(/\bt\(([^()]*)\)/g)].map((m) => m[1]));
  return [...calls.flatMap((c) => [...c.matchAll(/'((?:[^'\\]|\\.)*)'/g)].map((m) => m[1])).filter((text) => /[a-z]/.test(text)), 'voter', 'standby'];
}

/* What still shows English in another language: formats, values and the program's own words do. Whatever t() is asked for and does not
   find, be it for a text, a label of aria or a tooltip, is looked for in the dictionary's prototype. */
async function translated(p, language) {
  await p.evaluate(() => {
    window.untranslated = window.untranslated || new Set();
    Object.setPrototypeOf(WORDS, new Proxy({}, { get: (_, text) => { window.untranslated.add(String(text)); } }));
  });
  for (const name of ['overview', 'cluster', 'playground', 'sequences', 'api', 'docs']) {
    await p.click(`a[href="#${name}"]`);
    await p.waitForFunction((n) => document.getElementById(n).children.length > 1, name);
    const left = await p.evaluate(() => [...document.querySelectorAll('[data-t]')].map((e) => e.dataset.t).filter((text) => /[a-z]{3}/.test(text)
      && !(text in WORDS) && !['firn'].includes(text)));
    check(left.length === 0, `${name} in ${language} lacks: ${[...new Set(left)].join('; ')}`);
  }
  const asked = await p.evaluate(() => [...window.untranslated]), told = await askedInScripts(p), lacks = await p.evaluate((all) => all.filter((text) => !Object.hasOwn(WORDS, text)), told);
  check(told.length > 30, `texts in the scripts: ${told.length}`);
  check(lacks.length === 0, `${language} lacks texts of the scripts: ${lacks.join('; ')}`);
  const left = asked.filter((text) => /[a-z]{3}/.test(text) && text !== 'firn');
  check(left.length === 0, `${language} lacks: ${left.join('; ')}`);
  const short = await p.evaluate(() => Object.keys(WORDS).filter((text) => WORDS[text].length !== LANGUAGES.length || WORDS[text].some((w) => !w)));
  check(short.length === 0, `not in every language: ${short.join('; ')}`);
}

async function dashboard(f) {
  for (const [width, colorScheme] of [[1200, 'light'], [1200, 'dark'], [375, 'light'], [375, 'dark']]) {
    const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme, locale: 'en' });
    const p = await context.newPage(), bad = [], at = `${width} px ${colorScheme}`;
    p.setDefaultTimeout(60000);
    p.on('console', (m) => { if (!m.text().includes('409 (Conflict)')) bad.push(m.text()); }); /* a sequence that is made twice */
    p.on('pageerror', (e) => bad.push(e.message));
    p.on('request', (r) => { if (!r.url().startsWith(`http://127.0.0.1:${f.home}/`) && !r.url().startsWith('data:')) bad.push(r.url()); });
    await p.goto(`http://127.0.0.1:${f.home}/`);
    await p.evaluate(axe);
    for (const [name, use] of Object.entries(VIEWS)) {
      await p.locator(`header a[href="#${name}"]`).focus();
      await p.keyboard.press('Enter');
      await use(p, width === 1200 && colorScheme === 'light');
      check(await p.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} at ${at} is wider than the screen`);
      const over = await p.evaluate(() => [...document.querySelectorAll('.stacked td')].filter((e) => { /* its label is no element */
        const style = getComputedStyle(e, '::before'), pen = document.createElement('canvas').getContext('2d');
        pen.font = style.font;
        return style.content !== 'none' && style.whiteSpace === 'nowrap' && pen.measureText(e.dataset.label).width > parseFloat(getComputedStyle(e).gridTemplateColumns);
      }).map((e) => e.dataset.label));
      check(over.length === 0, `${name} at ${at}: labels lie over values: ${[...new Set(over)].join('; ')}`);
      const { violations } = await p.evaluate(() => axe.run());
      check(violations.length === 0, `${name} at ${at}: ${violations.map((v) => `${v.id} ${v.nodes[0].html}`).join('; ')}`);
      if (shots) await p.screenshot({ path: join(shots, `${name}-${width}-${colorScheme}.png`), fullPage: width < 400 });
    }
    if (colorScheme === 'dark' && width === 1200) {
      const paper = () => p.evaluate(() => getComputedStyle(document.body).backgroundColor), dark = await paper();
      await p.selectOption('#theme', 'light');
      check(await paper() !== dark, 'the switch of themes');
      for (const [language, text] of [['ja', '概要'], ['zh', '概览'], ['ko', '개요']]) {
        await p.selectOption('#language', language);
        equal(await p.textContent('nav a[href="#overview"]'), text, language);
        equal(await p.getAttribute('html', 'lang'), language, 'lang');
        await translated(p, language);
      }
    }
    check(bad.length === 0, `the dashboard at ${at}: ${bad.join('; ')}`);
    await context.close();
  }
}

/* Three members: nodes, leader, slots and windows; then the one that the page shows stops and comes back. */
async function clustered() {
  const port = () => new Promise((r) => { const s = createServer().listen(0, '127.0.0.1', () => { const { port: n } = s.address(); s.close(() => r(n)); }); });
  const peers = [await port(), await port(), await port()], members = [];
  const begin = (i, ...args) => serve(`member-${i}`, `--name=node-${i}`, `--cluster-listen=127.0.0.1:${peers[i]}`, '--cluster-window-ms=5000',
    ...(i ? [`--cluster-join=127.0.0.1:${peers[0]}`] : ['--cluster-init', '--cluster-fresh']), ...args);
  for (const i of [0, 1, 2]) members.push(await begin(i));
  const p = await browser.newPage(), at = members[2].home;
  p.setDefaultTimeout(60000);
  await p.goto(`http://127.0.0.1:${at}/#cluster`);
  await p.waitForFunction(() => document.querySelectorAll('.slots i.held').length === 2 && document.querySelectorAll('.slots i.mine').length === 1
    && document.querySelectorAll('.windows rect').length === 3);
  await p.waitForFunction((n) => /leader[0-9a-f]{16} · 127/.test(document.getElementById('leader').textContent) && document.querySelectorAll('#cluster td b.good').length === 1
    && [0, 1, 2].every((i) => document.getElementById('cluster').textContent.includes(`node-${i}`)), 0);
  equal(await p.locator(`#cluster a[href="http://127.0.0.1:${members[0].home}/"]`).count(), 1, "a link to another node's dashboard");
  if (shots) await p.screenshot({ path: join(shots, 'cluster-of-three.png'), fullPage: true });

  await members[1].end('SIGKILL'); /* its slot is nobody's until a quarantine is over */
  await p.waitForSelector('.slots i.lapsed');
  await p.waitForSelector('.windows rect.lapsed', { state: 'attached' });
  await members[2].end();
  await p.waitForSelector('#alarm:not([hidden])');
  check((await p.textContent('#alarm')).startsWith('The server has not answered since'), 'a server that stopped');
  equal(await p.textContent('#state'), 'no answer', 'the state of a server that stopped');
  equal(await p.locator('.slots i').count(), 1024, 'what was shown stays');
  await p.click('nav a[href="#sequences"]');
  await p.waitForSelector('#sequences [role=alert]');
  members[2] = await begin(2, `--listen-home=127.0.0.1:${at}`);
  await p.waitForSelector('#alarm', { state: 'hidden' });
  await p.waitForSelector('#sequence-list .note, #sequence-list table');
  await p.click('nav a[href="#overview"]');
  const rows = await p.evaluate(() => history_.length);
  await p.waitForFunction((n) => history_.length > n, rows);
  await p.close();
  for (const m of [members[0], members[2]]) await m.end();
}

/* More windows than are drawn: this server's own one is among them, and the page says how many are not. */
async function manyWindows(f) {
  const p = await browser.newPage(), slots = [], iso = (ms) => new Date(Date.now() + ms).toISOString();
  p.setDefaultTimeout(60000);
  await p.route('**/v1/slots', (r) => r.fulfill({ json: { slots, first: 0, total: 1024, free: 1024 - slots.length } }));
  for (const [n, shown] of [[24, 24], [30, 24]]) {
    slots.length = 0;
    for (let i = 0; i < n; i++)
      slots.push({ slot: 10 * i, name: `node-${i}`, state: i === n - 1 ? 'mine' : 'held', from: iso(-2000), until: iso(8000) });
    await p.goto('about:blank');
    await p.goto(`http://127.0.0.1:${f.home}/#cluster`);
    await p.waitForSelector('.windows rect', { state: 'attached' });
    equal(await p.locator('.windows rect').count(), shown, `windows of ${n}`);
    equal(await p.locator('.windows rect').first().getAttribute('class'), 'mine', 'the window of this server is the first');
    equal(await p.locator('.windows text').filter({ hasText: `${10 * (n - 1)} node-${n - 1}` }).count(), 1, 'its name');
    equal(await p.locator('.windows .note').allTextContents().then((all) => all.join()), n > shown ? `and ${n - shown} more` : '', `what is said of ${n}`);
  }
  await p.close();
}

/* Slots that no server can take: one whose window a wrong clock left far in the future, and one whose record is damaged, under a
   server that runs (one that starts would halt). */
const SPOIL = `import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=60)
far, broken = ("slot/%05d" % int(n) for n in sys.argv[2:])
value = db.execute("SELECT value FROM register WHERE key = ?", (far,)).fetchone()[0]
value = b"\\n".join(b"until=4000000000000" if line.startswith(b"until=") else line for line in value.split(b"\\n"))
db.execute("UPDATE register SET value = ? WHERE key = ?", (value, far))
db.execute("UPDATE register SET value = x'0123' WHERE key = ?", (broken,))
db.commit()`;

async function spoiled() {
  const f = await serve('spoiled'), { slot } = await (await fetch(`http://127.0.0.1:${f.home}/v1/node`)).json(), p = await browser.newPage();
  const [far, broken] = [5, 6, 7].filter((n) => n !== slot);
  const said = spawnSync('python3', ['-c', SPOIL, join(folder, 'spoiled', 'firn.db'), far, broken], { encoding: 'utf8' });
  equal(said.status, 0, `two slots are spoiled: ${said.stderr}`);
  p.setDefaultTimeout(60000);
  await p.goto(`http://127.0.0.1:${f.home}/#cluster`);
  await p.waitForSelector('.slots i.broken');
  for (const [state, n] of [['poisoned', far], ['broken', broken]]) {
    const cells = p.locator(`.slots i.${state}`), key = await p.locator('#cluster .key li').allTextContents();
    equal(await cells.count(), 1, `${state} slots`);
    equal(await p.locator('.slots i').nth(n).getAttribute('class'), state, `the cell of slot ${n}`);
    check((await cells.getAttribute('title')).startsWith(`${n} · ${state}`), `its name: ${await cells.getAttribute('title')}`);
    check(key.includes(`${state} 1`), `${state} in the key: ${key.join('; ')}`);
    check((await p.getAttribute('.slots', 'aria-label')).includes(`${state}: 1`), `${state} for those who do not see it`);
  }
  equal(await p.locator('.windows rect').count(), 1, 'windows beside a poisoned one');
  if (shots) await p.screenshot({ path: join(shots, 'cluster-spoiled.png'), fullPage: true });
  await p.close();
  await f.end();
}

/* A server with a token: the page asks for it, and goes on with it. */
async function guarded() {
  const file = join(folder, 'token.yaml');
  writeFileSync(file, `auth:\n  tokens:\n    - name: root\n      token_sha256: ${createHash('sha256').update('secret').digest('hex')}\n      kinds: ["*"]\n      sequences: ["*"]\n`);
  const f = await serve('token', '--config', file), p = await browser.newPage();
  p.setDefaultTimeout(60000);
  await p.goto(`http://127.0.0.1:${f.home}/#sequences`);
  await p.waitForSelector('#token-form:not([hidden])');
  await p.fill('#sequence-name', 'guarded');
  await p.click('#create');
  await p.waitForSelector('#sequences .note.bad');
  equal((await fetch(`http://127.0.0.1:${f.home}/v1/sequences`)).status, 401, 'without a token');
  await p.click('nav a[href="#playground"]');
  await p.click('#measure');
  await p.waitForFunction(() => /token/i.test([...document.querySelectorAll('#playground .note')].map((e) => e.textContent).join()));
  await p.click('nav a[href="#sequences"]');
  await p.fill('#token', 'wrong');
  await p.click('#token-form button');
  await p.waitForSelector('#token-form:not([hidden])');
  await p.fill('#token', 'secret');
  await p.click('#token-form button');
  await p.waitForSelector('#sequence-list .note, #sequence-list table');
  check(await p.isHidden('#token-form'), 'the token is accepted');
  await p.fill('#sequence-name', 'guarded');
  await p.click('#create');
  await p.locator('#sequence-list tr', { hasText: 'guarded' }).getByRole('button').click();
  await p.waitForFunction(() => [...document.querySelectorAll('#sequence-list output')].some((o) => o.textContent === '1'));
  await p.close();
  await f.end();
}

/* The pages of another origin. */
const site = createServer((_, r) => r.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html><title>elsewhere</title>'));
await new Promise((r) => site.listen(0, '127.0.0.1', r));
const elsewhere = `http://localhost:${site.address().port}`;

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium',
  args: ['--host-resolver-rules=MAP evil.example 127.0.0.1'] });
const page = await browser.newPage();
const tried = (url, options) => page.evaluate(async ([u, o]) => {
  try {
    const r = await fetch(u, o);
    return { type: r.type, status: r.status, retry: r.headers.get('Retry-After'), length: (await r.text()).length };
  } catch (e) {
    return { type: 'refused' };
  }
}, [url, options || {}]);

try {
  const f = await serve('plain'), at = `http://127.0.0.1:${f.home}`;
  /* Its own page. */
  for (const host of ['127.0.0.1', 'localhost']) {
    await page.goto(`http://${host}:${f.home}/`);
    await page.click('#new');
    await page.click('#take');
    await until('an ID and a number', () => page.evaluate(() => /^\d+$/.test(document.getElementById('snowflake').textContent) &&
      /^\d+$/.test(document.getElementById('ticket').textContent)));
    check(true, `the start page of ${host}`);
    const made = await page.evaluate(async () => (await fetch('/v1/sequences', { method: 'POST', body: '{"name":"page"}',
      headers: { 'Content-Type': 'application/json' } })).status);
    check(made === 200 || made === 201, `a POST of the start page of ${host}: ${made}`);
  }
  for (const url of [`http://127.0.0.1:${f.snowflake}/generate?n=9`, `http://127.0.0.1:${f.ticket}/generate`, `${at}/v1/ids/ulid?n=5`]) await fetch(url);
  await dashboard(f);
  await documentation(f);
  await manyWindows(f);
  await oddAddress(f);
  await spoiled();
  await guarded();
  await clustered();
  equal((await page.goto(`http://127.0.0.1:${f.snowflake}/generate`)).status(), 200, 'an address that its user types');

  /* A page from elsewhere burns no number and makes nothing. */
  const first = await take(f);
  await page.goto(`${elsewhere}/`);
  for (const host of ['127.0.0.1', 'localhost']) {
    const there = `http://${host}:${f.ticket}/generate`, change = `http://${host}:${f.home}/v1/sequences`;
    equal((await tried(there)).type, 'refused', 'fetch');
    equal((await tried(there, { mode: 'no-cors' })).type, 'opaque', 'fetch, no-cors');
    equal((await tried(there, { mode: 'no-cors', method: 'POST' })).type, 'opaque', 'POST, no-cors');
    equal((await tried(change, { mode: 'no-cors', method: 'POST', body: '{"name":"evil"}' })).type, 'opaque', 'a body as text/plain');
    equal((await tried(change, { method: 'POST', body: '{"name":"evil"}', headers: { 'Content-Type': 'application/json' } })).type,
      'refused', 'a body as JSON: the preflight');
    await page.evaluate((u) => new Promise((done) => {
      const i = new Image();
      i.onload = i.onerror = done;
      i.src = u;
    }), there);
    await page.setContent(`<form method="post" enctype="text/plain" action="${change}"><input name='{"name":"evil","x' value='":1}'></form>`);
    const [answer] = await Promise.all([page.waitForNavigation(), page.evaluate(() => document.forms[0].submit())]);
    equal(answer.status(), 403, 'a form');
    await page.goto(`${elsewhere}/`);
    await page.setContent(`<a href="${there}">a number</a>`);
    const [linked] = await Promise.all([page.waitForNavigation(), page.click('a')]);
    equal(linked.status(), 403, 'a link to a number');
    await page.goto(`${elsewhere}/`);
  }
  equal(await take(f), first + 1, 'the number after all that');
  equal((await fetch(`${at}/v1/sequences/evil`)).status, 404, 'the sequence that it wanted');

  /* A name that points to this machine. */
  equal((await page.goto(`http://evil.example:${f.home}/`)).status(), 421, 'a page that changed its DNS');
  equal((await tried('/generate')).status, 421, 'its fetch, of the same origin for the browser');
  await f.end();

  /* An origin that is allowed. */
  const open = await serve('cors', `--http-origins=${elsewhere}`, '--rate-per-client=1', '--rate-burst=4');
  await page.goto(`${elsewhere}/`);
  const ids = `http://127.0.0.1:${open.snowflake}/generate`;
  equal((await tried(ids)).status, 200, 'fetch of an allowed origin');
  equal((await tried(ids, { method: 'POST', headers: { Authorization: 'Bearer x', 'Idempotency-Key': 'k' } })).status, 200,
    'with headers that need a preflight');
  const made = await tried(`http://127.0.0.1:${open.home}/v1/sequences`, { method: 'POST', body: '{"name":"mine"}',
    headers: { 'Content-Type': 'application/json' } });
  check(made.status === 200 || made.status === 201, `a sequence of an allowed origin: ${made.status}`);
  let last;
  await until('the rate', async () => (last = await tried(ids)).status === 429);
  check(+last.retry >= 1, `Retry-After can be read: ${last.retry}`);
  await open.end();
} finally {
  await browser.close();
  site.close();
  rmSync(folder, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
