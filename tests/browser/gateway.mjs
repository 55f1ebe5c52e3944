// firn-proxy's admin page in Chromium: live numbers, breaker, errors, drain and reload by keyboard, a token, two themes, a phone, four languages, axe-core, pages of other origins.
// Usage: node gateway.mjs BINDIR [SCREENSHOTS]
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [bin, shots] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'firn-gateway-'));
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

const servers = [];
async function upstream(answer) {
  const s = createServer(answer);
  await new Promise((r) => s.listen(0, '127.0.0.1', r));
  servers.push(s);
  return `127.0.0.1:${s.address().port}`;
}

/* A firn-proxy of its own: where it listens, and how to change and end it. */
async function serve(name, config) {
  const file = join(folder, `${name}.yaml`);
  writeFileSync(file, config);
  const p = spawn(join(bin, 'firn-proxy'), ['-c', file, '--listen-http=127.0.0.1:0', '--listen-admin=127.0.0.1:0', '--watch=false'],
    { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '', found;
  p.stderr.on('data', (d) => { log += d; });
  const ended = new Promise((r) => p.on('exit', r));
  await until(`firn-proxy to serve: ${log}`, () => (found = log.match(/serving http=\S+:(\d+) \S+ admin=\S+:(\d+)/)));
  return { http: +found[1], admin: +found[2], write: (text) => writeFileSync(file, text), end: () => { p.kill('SIGTERM'); return ended; } };
}

const axe = readFileSync('node_modules/axe-core/axe.min.js', 'utf8');
const good = (q, r) => {
  if (/[23]$/.test(q.url.split('?')[0])) r.setHeader('Cache-Control', 'max-age=1');
  setTimeout(() => r.end('{"ok": true}'), 1 + Math.random() * 8);
};

/* Traffic as long as a test looks: mostly good, some 404, some for a service that is broken. */
function traffic(port) {
  let going = true;
  const paths = ['/api/products/1', '/api/products/2', '/api/products/3', '/api/users/7', '/api/orders', '/nothing', '/api/payments/1'];
  const run = (async () => {
    for (let i = 0; going; i++) {
      await Promise.all([0, 1, 2].map((k) => fetch(`http://127.0.0.1:${port}${paths[(i + k) % paths.length]}?token=hush`).then((r) => r.text(), () => '')));
      await new Promise((r) => setTimeout(r, 5));
    }
  })();
  return () => { going = false; return run; };
}

async function pages(g, address) {
  for (const [width, colorScheme] of [[1200, 'light'], [1200, 'dark'], [375, 'light']]) {
    const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme, locale: 'en' });
    const p = await context.newPage(), bad = [], at = `${width} px ${colorScheme}`;
    p.setDefaultTimeout(60000);
    p.on('console', (m) => { if (m.type() === 'error' && !m.text().includes('409 (Conflict)')) bad.push(m.text()); });
    p.on('pageerror', (e) => bad.push(e.message));
    p.on('request', (r) => { if (!r.url().startsWith(`http://127.0.0.1:${g.admin}/`) && !r.url().startsWith('data:')) bad.push(r.url()); });
    await p.goto(`http://127.0.0.1:${g.admin}/`);
    await p.evaluate(axe);
    await p.waitForFunction(() => document.querySelectorAll('#tiles .tile').length >= 7);
    for (const name of ['requests', 'latency', 'services', 'open'])
      await p.waitForSelector(`#chart-${name} polyline`, { state: 'attached' });
    await p.waitForFunction(() => parseFloat(document.querySelector('#tiles b').textContent) > 1);
    await p.waitForFunction(() => /^[\d.]+ (µs|ms|s) · /.test(document.querySelectorAll('#tiles b')[1].textContent));
    const row = (table, name) => p.locator(`#${table} tbody tr`, { hasText: name }).first();
    equal(await p.locator('#service-list tbody tr').count(), 4, 'services');
    equal(await p.locator('#server-list tbody tr').count(), 5, 'servers');
    await until('the breaker of a service that fails', async () => /open/.test(await row('service-list', 'payments').textContent()));
    await p.waitForFunction(() => [...document.querySelectorAll('#error-list tbody tr')].some((r) => r.textContent.includes('/api/payments/1')));
    check(!(await p.textContent('body')).includes('hush'), 'no query is shown');
    const id = await p.locator('#error-list code').first().textContent();
    check(/^[0-9A-HJKMNP-TV-Z]{26}$/.test(id), `the request ID of an error: ${id}`);
    await p.waitForFunction(() => [...document.querySelectorAll('#tiles .tile')].some((e) => /^[1-9][\d.]* %cache/.test(e.textContent)));
    check((await p.textContent('#links')).includes('per-address'), 'what the link of limits tells');

    /* Out and in again, by keyboard; the focus stays on the button over the changes of each second. */
    const button = row('server-list', address).getByRole('button');
    await button.focus();
    await p.keyboard.press('Enter');
    await until('the server to be drained', async () => /drained/.test(await row('server-list', address).textContent()));
    check(await button.evaluate((e) => document.activeElement === e), 'the focus stays');
    equal(await button.textContent(), 'Enable', 'its button brings it back');
    await p.keyboard.press('Enter');
    await until('the server to be back', async () => /Drain/.test(await button.textContent()));
    const last = row('server-list', 'orders').getByRole('button');
    await last.click();
    await p.waitForSelector('#said.bad');
    check((await p.textContent('#said')).includes('no other server'), 'the last one stays');

    check(await p.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `at ${at} it is wider than the screen`);
    const { violations } = await p.evaluate(() => axe.run());
    check(violations.length === 0, `at ${at}: ${violations.map((v) => `${v.id} ${v.nodes[0].html}`).join('; ')}`);
    if (shots) {
      await p.waitForTimeout(width === 1200 && colorScheme === 'light' ? 60000 : 3000); /* lines that one can see */
      await p.evaluate(() => scrollTo(0, 0));
      await p.screenshot({ path: join(shots, `gateway-${width}-${colorScheme}.png`), fullPage: true });
    }
    check(bad.length === 0, `at ${at}: ${bad.join('; ')}`);
    await context.close();
  }
}

async function reloads(g, config) {
  const p = await browser.newPage({ locale: 'en' });
  p.setDefaultTimeout(60000);
  await p.goto(`http://127.0.0.1:${g.admin}/`);
  await p.waitForSelector('#service-list tbody tr');
  g.write(config.replace('routes:', 'rutes:'));
  await p.click('#reload');
  await p.waitForSelector('#alarm:not([hidden])');
  check((await p.textContent('#alarm')).includes('did you mean routes'), `the error is shown: ${await p.textContent('#alarm')}`);
  g.write(config.replace('name: products-route', 'name: wares'));
  await p.click('#reload');
  await p.waitForFunction(() => [...document.querySelectorAll('#route-list tr')].some((r) => r.textContent.includes('wares')));
  await p.waitForSelector('#alarm', { state: 'hidden' });
  await p.evaluate(() => { /* what t() does not find in the dictionary is looked for in its prototype */
    window.untranslated = new Set();
    Object.setPrototypeOf(WORDS, new Proxy({}, { get: (_, text) => { window.untranslated.add(String(text)); } }));
  });
  for (const language of ['ja', 'zh', 'ko']) {
    await p.selectOption('#language', language);
    await p.waitForFunction((n) => history_.length > n, await p.evaluate(() => history_.length)); /* drawn again */
    const asked = (await p.evaluate(() => [...window.untranslated])).filter((text) => /[a-z]{3}/.test(text));
    check(asked.length === 0, `in ${language} it lacks texts: ${asked.join('; ')}`);
    const left = await p.evaluate(() => [...document.querySelectorAll('[data-t]')].map((e) => e.dataset.t).filter((text) => /[a-z]{3}/.test(text) && !(text in WORDS)));
    check(left.length === 0, `in ${language} it lacks: ${[...new Set(left)].join('; ')}`);
    if (shots) await p.screenshot({ path: join(shots, `gateway-${language}.png`) });
  }
  await p.close();
}

/* A page of another origin cannot act, a name whose DNS changed cannot read. */
async function strangers(g) {
  const other = await upstream((q, r) => { r.setHeader('Content-Type', 'text/html'); r.end('<!doctype html><title>x</title>'); });
  const p = await browser.newPage();
  await p.goto(`http://${other}/`);
  await p.evaluate((url) => fetch(`${url}/reload`, { method: 'POST', mode: 'no-cors' }).catch(() => {}), `http://127.0.0.1:${g.admin}`);
  const before = (await (await fetch(`http://127.0.0.1:${g.admin}/status`)).json());
  const mine = await p.evaluate((url) => fetch(`${url}/status`).then(() => 'read', () => 'refused'), `http://127.0.0.1:${g.admin}`);
  equal(mine, 'refused', 'another origin reads nothing');
  await p.close();
  return before;
}

async function tokens(config) {
  writeFileSync(join(folder, 'token'), 'a-token-of-32-characters-or-more\n');
  const g = await serve('token', `${config}admin: { token_file: ${join(folder, 'token')} }\n`), p = await browser.newPage({ locale: 'en' });
  p.setDefaultTimeout(60000);
  await p.goto(`http://127.0.0.1:${g.admin}/`);
  await p.waitForSelector('#server-list tbody tr');
  await p.click('#reload');
  await p.waitForSelector('#token-form:not([hidden])');
  await p.fill('#token', 'a-token-of-32-characters-or-more');
  await p.press('#token', 'Enter');
  await p.click('#reload');
  await p.waitForFunction(() => document.querySelector('#said').textContent === 'The configuration was read.');
  equal(await g.end(), 0, 'it ends cleanly');
  await until('the page to say that it is gone', async () => (await p.textContent('#state')) === 'no answer');
  await p.waitForSelector('#alarm:not([hidden])');
  await p.close();
}

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium' });
try {
  const products = [await upstream(good), await upstream(good)];
  const config = `services:
  - { name: products, servers: ['${products[0]}', '${products[1]} weight=2'] }
  - { name: users, servers: ['${await upstream(good)}'] }
  - { name: orders, servers: ['${await upstream(good)}'] }
  - { name: payments, servers: ['${await upstream((q, r) => { r.statusCode = 500; r.end('broken'); })}'], breaker_open_ms: 600000 }
rates: [{ name: per-address, count: 100000, period_s: 60 }]
routes:
  - { name: products-route, path: /api/products, rewrite: /products, service: products, rates: [per-address], cache: memory }
  - { name: users, path: /api/users, rewrite: /users, service: users }
  - { name: orders, path: /api/orders, methods: [GET, POST], service: orders }
  - { name: payments, path: /api/payments, service: payments }
`;
  const g = await serve('gateway', config), stop = traffic(g.http);
  await pages(g, products[0]);
  await reloads(g, config);
  const reloads_ = async () => (await (await fetch(`http://127.0.0.1:${g.admin}/status`)).json()).reloads;
  const before = await reloads_();
  await strangers(g);
  equal(await reloads_(), before, 'another origin changes nothing');
  await stop();
  equal(await g.end(), 0, 'the gateway ends cleanly');
  await tokens(config);
} catch (e) {
  failed++;
  console.log(`FAIL ${e.stack}`);
} finally {
  await browser.close();
  for (const s of servers) s.closeAllConnections?.(), s.close();
  rmSync(folder, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
