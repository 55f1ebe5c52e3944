// The lab's page in Chromium: firn lab --html from file:// and without a network, and /lab of a firnd; with axe-core.
// Usage: node lab.mjs BINDIR [SCREENSHOTS]. With a folder for screenshots it leaves some there, to look at.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const [bin, shots] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'firn-lab-'));
let passed = 0, failed = 0;

function check(ok, what) {
  if (ok) passed++;
  else {
    failed++;
    console.log(`FAIL ${what}`);
  }
}
const axe = readFileSync('node_modules/axe-core/axe.min.js', 'utf8');
const firn = (...args) => execFileSync(join(bin, 'firn'), args, { encoding: 'utf8', maxBuffer: 1 << 26 });

const LABS = {
  raft: {
    switches: ['kill-leader', 'no-pre-vote', 'lose'],
    links: ['A-B', 'A-C', 'B-C'],
    decided: 'A and B have it, 2 of 3: commits 10',
    end: { A: { x: '5' }, B: { x: '5', role: 'leader', term: '4' }, C: { x: '5' } },
  },
  paxos: {
    switches: ['duel', 'kill-proposer', 'lose'],
    links: ['P1-A1', 'P1-A2', 'P1-A3'],
    decided: 'majority accepted: agreed on value_x',
    end: { P1: { value: 'value_x' }, A1: { accepted: '1', value: 'value_x' }, L: { value: 'value_x' } },
  },
  'multi-paxos': {
    switches: ['duel', 'lose', 'plain'],
    links: ['P1-A1', 'P1-A2', 'P1-A3'],
    decided: 'slot 1 is decided: x=1',
    end: { P1: { doing: 'dead' }, P2: { doing: 'leader', 'slot 4': 'w=4', 'slot 5': 'v=5' }, A3: { 'slot 4': 'w=4@2' } },
  },
  election: {
    switches: ['herd'],
    links: [],
    decided: 'leader: /election/0000000002 is the lowest',
    end: { ZooKeeper: { znode: '3 5 6' }, C1: { znode: '6', watches: '5' }, C3: { doing: 'leader', znode: '3' } },
  },
  queue: {
    switches: [],
    links: [],
    decided: 'leader, fencing token 2',
    end: { C1: { doing: 'dead' }, C2: { doing: 'waiting', token: '6' }, C3: { doing: 'leader', token: '3' } },
  },
};

/* What the page shows. */
const shown = (page) => page.evaluate(() => {
  const head = [...document.querySelectorAll('#states thead tr > *')].map((e) => e.textContent);
  const states = {};
  for (const row of document.querySelectorAll('#states tbody tr')) {
    const cells = [...row.children].map((e) => e.textContent);
    states[cells[0]] = Object.fromEntries(head.slice(1).map((h, i) => [h, cells[i + 1]]));
  }
  const [, at, of] = document.getElementById('count').textContent.match(/step (\d+) of (\d+)/);
  return {
    at: +at, of: +of, states,
    what: document.querySelector('#why .what').textContent,
    why: document.querySelector('#why p').textContent,
    drawn: [...document.querySelectorAll('#diagram g > text:not(.time)')].map((e) => e.textContent),
    marked: [...document.querySelectorAll('#diagram g.row.now > text:not(.time)')].map((e) => e.textContent.replace(/^\u2026 /, '')),
    inSight: (() => {
      const mark = document.getElementById('halo').getBoundingClientRect(), box = document.getElementById('scroll').getBoundingClientRect();
      return mark.height > 0 && mark.top >= box.top - 1 && mark.bottom <= box.bottom + 1;
    })(),
  };
});

/* Texts that lie over one another, or stick out of the window. */
const collisions = (page) => page.evaluate(() => {
  const bad = [];
  const boxes = [...document.querySelectorAll('#diagram text')].map((e) => [e.textContent, e.getBBox()]);
  const width = +document.getElementById('diagram').getAttribute('width');
  boxes.forEach(([text, a], i) => {
    if (a.x < 0 || a.x + a.width > width) bad.push(`outside: ${text}`);
    for (const [other, b] of boxes.slice(i + 1))
      if (a.x < b.x + b.width && b.x < a.x + a.width && a.y + 2 < b.y + b.height && b.y + 2 < a.y + a.height)
        bad.push(`${text} / ${other}`);
  });
  const names = [...document.querySelectorAll('#names text')].map((e) => [e.textContent, e.getBBox()]);
  names.forEach(([text, a], i) => {
    for (const [other, b] of names.slice(i + 1))
      if (a.x < b.x + b.width && b.x < a.x + a.width && a.y + 2 < b.y + b.height && b.y + 2 < a.y + a.height)
        bad.push(`names ${text} / ${other}`);
  });
  const cards = [...document.querySelectorAll('.card, .bar, header')].map((e) => [e.className || e.tagName, e.getBoundingClientRect()]);
  cards.forEach(([text, a], i) => {
    for (const [other, b] of cards.slice(i + 1))
      if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom) bad.push(`${text} / ${other}`);
  });
  for (const e of document.querySelectorAll('.states'))
    if (e.scrollWidth > e.clientWidth) bad.push('the table sticks out');
  if (document.documentElement.scrollWidth > innerWidth) bad.push('the page is wider than the window');
  return bad;
});

/* The page in a file, or, with file null, that of the firnd at options.baseURL. */
async function open(browser, file, options) {
  const context = await browser.newContext(options);
  await context.setOffline(file !== null);
  const page = await context.newPage();
  page.setDefaultTimeout(120000);
  page.trouble = [];
  page.on('console', (m) => page.trouble.push(`console: ${m.text()}`));
  page.on('pageerror', (e) => page.trouble.push(`error: ${e.message}`));
  page.on('request', (r) => {
    if (!r.url().startsWith(file ? pathToFileURL(file).href : options.baseURL) && !r.url().startsWith('data:')) page.trouble.push(`request: ${r.url()}`);
  });
  await page.goto(file ? pathToFileURL(file).href : '/lab');
  await page.waitForSelector('#states tbody tr', { timeout: 60000 });
  return page;
}

/* A button until it can do no more, and what was said after each: in one go, because each call costs time. */
const press = (page, button) => page.evaluate((id) => {
  const seen = [], b = document.getElementById(id);
  while (!b.disabled) {
    b.click();
    seen.push([document.querySelector('#why .what').textContent, document.querySelectorAll('#diagram g.row.now').length]);
  }
  return seen;
}, button);

async function walk(page, name, lab) {
  const first = await shown(page), seen = [first.what];
  check(first.at === 1 && await page.isDisabled('#back'), `${name}: starts at the first step`);
  check(first.drawn.length >= first.of && first.drawn.includes(lab.decided), `${name}: opens on the whole diagram: ${first.drawn.length} of ${first.of}`);
  check(first.marked.join() === first.what && first.inSight, `${name}: the first step is marked: ${first.marked}`);
  await page.click('#next');
  seen.push((await shown(page)).what, ...(await press(page, 'next')).map(([what]) => what));
  const last = await shown(page);
  check(last.at === last.of && await page.isDisabled('#next'), `${name}: Next goes to the end`);
  check(seen.includes(lab.decided) && last.drawn.includes(lab.decided), `${name}: '${lab.decided}' is shown`);
  check(last.marked.join() === last.what && last.inSight, `${name}: the last step is marked and in sight`);
  for (const [party, fields] of Object.entries(lab.end))
    for (const [field, value] of Object.entries(fields))
      check(last.states[party]?.[field] === value, `${name}: at the end ${field} of ${party} is ${last.states[party]?.[field]}, not ${value}`);
  const json = JSON.parse(firn('lab', name, '--json'));
  check(json.steps.map((s) => s.label).join('\n') === seen.join('\n'), `${name}: the page shows what --json has`);
  check(json.steps.at(-1).why === last.why, `${name}: the reason is shown`);

  const back = await press(page, 'back');
  check(back.length === first.of - 1 && back.every(([what, marked], i) => what === seen[first.of - 2 - i] && marked === 1),
    `${name}: Back undoes step after step`);
  const again = await shown(page);
  check(JSON.stringify(again) === JSON.stringify(first), `${name}: Back goes to the beginning`);

  await page.locator('body').press('ArrowRight');
  await page.locator('body').press('ArrowRight');
  await page.locator('body').press('ArrowLeft');
  check((await shown(page)).at === 2, `${name}: arrow keys`);
  await page.locator('body').press('End');
  check((await shown(page)).at === first.of, `${name}: End`);
  await page.locator('body').press('Home');
  check((await shown(page)).at === 1, `${name}: Home`);
  await page.locator('body').press(' ');
  await page.waitForFunction(() => document.getElementById('count').textContent.startsWith('step 2 '), null, { timeout: 30000 });
  check(await page.textContent('#play') === 'Pause', `${name}: plays`);
  await page.click('#play');
  check(await page.textContent('#play') === 'Play', `${name}: stops`);
  await page.click('#first');
  await page.locator('#diagram g.row').nth(4).click({ position: { x: 20, y: 4 } });
  check((await shown(page)).at === 5, `${name}: a click on a step`);
  await page.locator('#map').click({ position: { x: 10, y: 1 } });
  check((await shown(page)).at === 1, `${name}: a click on the small picture`);
}

async function faults(page, name, lab) {
  const end = async () => {
    await page.click('#last');
    return JSON.stringify((await shown(page)).drawn);
  };
  const base = await end(), all = new Set([base]);
  for (const fault of lab.switches) {
    await page.check(`input[name="${fault}"]`);
    check((await shown(page)).at === 1, `${name} ${fault}: starts again`);
    const with_ = await end();
    check(!all.has(with_), `${name}: --${fault} changes what happens`);
    all.add(with_);
    const json = JSON.parse(firn('lab', name, `--${fault}`, '--json'));
    check(JSON.stringify((await shown(page)).states) !== '{}' && (await shown(page)).of === json.steps.length, `${name} ${fault}: as --json`);
    await page.uncheck(`input[name="${fault}"]`);
  }
  for (const link of lab.links) {
    await page.selectOption('#cut', link);
    const with_ = await end();
    check(!all.has(with_), `${name}: cutting ${link} changes what happens`);
    all.add(with_);
  }
  if (lab.links.length > 0) {
    for (const fault of lab.switches) await page.check(`input[name="${fault}"]`);
    check(!all.has(await end()), `${name}: faults combine`);
    for (const fault of lab.switches) await page.uncheck(`input[name="${fault}"]`);
    await page.selectOption('#cut', '');
  }
  check(await end() === base, `${name}: switched off again, all is as before`);
}

async function accessible(page, at) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run());
  check(violations.length === 0, `${at}: ${violations.map((v) => `${v.id} ${v.nodes[0].html}`).join('; ')}`);
}

async function looks(browser, name, file, lab) {
  for (const width of [1280, 800])
    for (const colorScheme of shots ? ['light', 'dark'] : ['light']) {
      const page = await open(browser, file, { viewport: { width, height: 800 }, colorScheme });
      for (const fault of ['', ...lab.switches]) {
        if (fault) await page.check(`input[name="${fault}"]`);
        for (const key of ['#last', '#first']) {
          await page.click(key);
          const bad = await collisions(page);
          check(bad.length === 0, `${name} ${fault} at ${width} px: ${bad.slice(0, 3).join('; ')}`);
          if (shots && key === '#last') await page.screenshot({ path: join(shots, `${name}-${width}-${colorScheme}-${fault || 'plain'}.png`) });
        }
        if (fault) await page.uncheck(`input[name="${fault}"]`);
      }
      for (const fault of lab.switches) await page.check(`input[name="${fault}"]`);
      for (const link of lab.links) {
        await page.selectOption('#cut', link);
        await page.click('#last');
        const bad = await collisions(page);
        check(bad.length === 0, `${name} all faults and ${link} at ${width} px: ${bad.slice(0, 3).join('; ')}`);
        if (shots) await page.screenshot({ path: join(shots, `${name}-${width}-${colorScheme}-${link}.png`) });
      }
      if (width === 800) await accessible(page, `${name} at ${width} px ${colorScheme}`); /* wide: see served() */
      check(page.trouble.length === 0, `${name} at ${width} px: ${page.trouble.join('; ')}`);
      await page.context().close();
    }
}

/* A phone: the diagram scrolls, the names of the parties with it, and the current step is in sight. */
async function phone(browser, name, file) {
  for (const colorScheme of ['light', 'dark']) {
    const page = await open(browser, file, { viewport: { width: 375, height: 800 }, colorScheme }), at = `${name} at 375 px ${colorScheme}`;
    const seen = () => page.evaluate(() => {
      const box = document.getElementById('scroll').getBoundingClientRect(), label = document.querySelector('#diagram g.row.now text.label');
      const mark = document.getElementById('halo').getBoundingClientRect(), own = label && label.getBoundingClientRect();
      const above = [...document.querySelectorAll('#names text.name')].map((e) => e.getBoundingClientRect()).map((r) => r.x + r.width / 2 - box.x + document.getElementById('scroll').scrollLeft);
      const lines = [...new Set([...document.querySelectorAll('#diagram .life')].map((e) => +e.getAttribute('x1')))].sort((a, b) => a - b);
      return { label: !own || (own.left >= box.left - 1 && own.right <= box.right + 1) || own.width > box.width, step: mark.top >= box.top - 1 && mark.bottom <= box.bottom + 1,
        names: above.length === lines.length && above.every((x, i) => Math.abs(x - lines[i]) < 2) };
    });
    const bad = (await collisions(page)).filter((b) => b !== 'the table sticks out'); /* it scrolls, too */
    check(bad.length === 0, `${at}: ${bad.slice(0, 3).join('; ')}`);
    for (let more = true; more; more = !await page.isDisabled('#next')) {
      await page.click('#next');
      const s = await seen();
      if (s.label && s.step && s.names) continue;
      check(false, `${at}, ${await page.textContent('#count')}: in sight are ${JSON.stringify(s)}`);
      break;
    }
    check((await shown(page)).at === (await shown(page)).of, `${at}: to the end`);
    await accessible(page, at);
    check(page.trouble.length === 0, `${at}: ${page.trouble.join('; ')}`);
    if (shots) await page.screenshot({ path: join(shots, `${name}-375-${colorScheme}.png`), fullPage: true });
    await page.context().close();
  }
}

/* firnd's own address: the same page and the same runs, under its policy, and the way there and back. */
async function served(browser) {
  const p = spawn(join(bin, 'firnd'), ['--no-config', '--state-dir', join(folder, 'state'), '--listen-home=127.0.0.1:0',
    '--listen-snowflake=127.0.0.1:0', '--listen-ticket=127.0.0.1:0'], { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = new Promise((r) => p.on('exit', r));
  try {
    const home = await new Promise((found, fail) => {
      let log = '';
      p.stderr.on('data', (d) => {
        const serving = (log += d).match(/serving home=\S+:(\d+)/);
        if (serving) found(+serving[1]);
      });
      p.on('exit', () => fail(new Error(`firnd ended: ${log}`)));
    });
    const baseURL = `http://127.0.0.1:${home}`;
    const page = await open(browser, null, { baseURL, viewport: { width: 1280, height: 800 } });
    for (const [name, lab] of Object.entries(LABS)) {
      await page.click(`#labs a[href="#${name}"]`);
      await page.waitForFunction((n) => document.title === `firn lab ${n}`, name, { timeout: 60000 });
      const now = await shown(page), steps = JSON.parse(firn('lab', name, '--json')).steps;
      check(now.at === 1 && now.of === steps.length && now.drawn.includes(lab.decided), `/lab ${name}: the run of firn lab, whole`);
      check(await page.getAttribute(`#labs a[href="#${name}"]`, 'aria-current') === 'page', `/lab ${name}: the lab is marked`);
      await accessible(page, `/lab ${name}`);
      if (shots) await page.screenshot({ path: join(shots, `served-${name}.png`) });
    }
    await page.click('#labs a[href="#election"]');
    await page.waitForSelector('#zab', { timeout: 60000 });
    check(await page.isVisible('#zab'), 'ZAB and Raft');
    await page.click('#zab summary');
    check((await page.textContent('#zab')).includes('zxid'), 'the paragraph on ZAB');
    await page.goto('/lab#paxos');
    await page.waitForFunction(() => document.title === 'firn lab paxos', null, { timeout: 60000 });
    check(page.trouble.length === 0, `/lab: ${page.trouble.join('; ')}`);
    await page.click('#labs a.home');
    await page.click('nav a[href="/lab"]');
    await page.waitForSelector('#states tbody tr', { timeout: 60000 });
    check(page.url() === `${baseURL}/lab`, 'the way from the dashboard and back');
    await page.context().close();
  } finally {
    p.kill();
    await ended;
  }
}

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium' });
try {
  for (const [name, lab] of Object.entries(LABS)) {
    const file = join(folder, `${name}.html`), on = join(folder, `${name}-on.html`);
    firn('lab', name, '--html', file);
    const page = await open(browser, file, { viewport: { width: 1280, height: 800 } });
    await walk(page, name, lab);
    if (lab.switches.length > 0) await faults(page, name, lab);
    check(page.trouble.length === 0, `${name}: ${page.trouble.join('; ')}`);
    await page.context().close();
    await looks(browser, name, file, lab);
    await phone(browser, name, file);

    if (lab.switches.length === 0) continue;
    firn('lab', name, `--${lab.switches[0]}`, ...(lab.links[1] ? ['--cut', lab.links[1]] : []), '--html', on);
    const second = await open(browser, on, {});
    check(await second.isChecked(`input[name="${lab.switches[0]}"]`) && (!lab.links[1] || await second.inputValue('#cut') === lab.links[1]),
      `${name}: what was asked for is switched on`);
    await second.context().close();
  }
  await served(browser);
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
