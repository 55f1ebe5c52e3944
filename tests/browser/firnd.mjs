// firnd in Chromium: its start page, pages of other origins, origins that are allowed, a name that points to 127.0.0.1.
// Usage: node firnd.mjs BINDIR
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [bin] = process.argv.slice(2);
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
  const p = spawn(join(bin, 'firnd'), ['--no-config', '--state-dir', join(folder, name), '--listen-home=127.0.0.1:0',
    '--listen-snowflake=127.0.0.1:0', '--listen-ticket=127.0.0.1:0', ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '', found;
  p.stderr.on('data', (d) => { log += d; });
  const ended = new Promise((r) => p.on('exit', r));
  await until(`firnd to serve: ${log}`, () => (found = log.match(/serving home=\S+:(\d+) snowflake=\S+:(\d+) ticket=\S+:(\d+)/)));
  const [home, snowflake, ticket] = found.slice(1).map(Number);
  await until('firnd to be ready', async () => (await fetch(`http://127.0.0.1:${home}/readyz`)).ok);
  return { home, snowflake, ticket, end: () => { p.kill('SIGTERM'); return ended; } };
}
const take = async (f) => +(await (await fetch(`http://127.0.0.1:${f.ticket}/generate`)).json()).id;

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
