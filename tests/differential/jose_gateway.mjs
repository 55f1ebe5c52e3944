// npm jose as the issuer of tokens for a live firn-proxy, and as the oracle of what passes; called by jose.mjs.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as jose from 'jose';

const LIMIT_MS = 180000, ROUNDS = 25;

const listening = (server) => new Promise((done) => { server.listen(0, '127.0.0.1', () => done(server.address().port)); });

function get(port, path, token) {
  return new Promise((done, failed) => {
    const headers = { 'X-User-ID': '1', 'x_user_id': '1', 'X-USER_ID': '1', ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }) };
    http.get({ host: '127.0.0.1', port, path, headers, agent: false, timeout: LIMIT_MS }, (r) => {
      let text = '';
      r.on('data', (d) => { text += d; });
      r.on('end', () => done({ status: r.statusCode, challenge: r.headers['www-authenticate'], text }));
    }).on('error', failed);
  });
}

// `keys[alg]` has sign and jwk; `below(n)` is the seeded random number.
export async function live({ program, keys, below, test, lenient }) {
  const dir = mkdtempSync(join(tmpdir(), 'firn-jose-'));
  let asked = 0;
  const service = http.createServer((q, r) => { // answers with what it got of the user and the token
    asked++;
    const names = q.rawHeaders.filter((_, i) => i % 2 === 0 && q.rawHeaders[i].toLowerCase().replaceAll('_', '-') === 'x-user-id');
    r.end(JSON.stringify({ user: q.headers['x-user-id'], users: names.length, token: q.headers.authorization }));
  });
  const port = await listening(service);
  const asymmetric = Object.entries(keys).filter(([alg]) => alg !== 'HS256').map(([, k]) => k.jwk);
  writeFileSync(join(dir, 'keys.json'), JSON.stringify({ keys: asymmetric }));
  writeFileSync(join(dir, 'secret'), keys.HS256.sign);
  writeFileSync(join(dir, 'gateway.yaml'), `listen: { http: ['127.0.0.1:0'], admin: ['127.0.0.1:0'] }
log: { access: false }
services: [{ name: a, servers: ['127.0.0.1:${port}'] }]
tokens:
  - { name: keys, jwks: ${dir}/keys.json, issuers: [issuer], audiences: [shop], leeway_s: 0, cached: 8 }
  - { name: secret, secret_file: ${dir}/secret, key_id: key-HS256, issuers: [issuer], audiences: [shop], leeway_s: 0 }
routes:
  - { path: /keys, service: a, token: keys }
  - { path: /secret, service: a, token: secret }
`);
  const gateway = spawn(program, ['-c', join(dir, 'gateway.yaml')], { stdio: ['ignore', 'ignore', 'pipe'] });
  const at = await new Promise((done, failed) => {
    let log = '';
    gateway.stderr.on('data', (d) => {
      log += d;
      const m = / serving http=127\.0\.0\.1:(\d+)/.exec(log);
      if (m) done(Number(m[1]));
    });
    gateway.on('exit', () => failed(new Error(`firn-proxy ended: ${log}`)));
  });

  const now = () => Math.floor(Date.now() / 1000);
  const path = (alg) => (alg === 'HS256' ? '/secret' : '/keys');
  const claims = () => ({ iss: 'issuer', aud: below(2) ? 'shop' : ['x', 'shop'], sub: `${below(1e6)}`, exp: now() + 3600, nbf: now() - 60 });
  const issue = (alg, all, header = {}) =>
    new jose.CompactSign(new TextEncoder().encode(JSON.stringify(all))).setProtectedHeader({ alg, kid: `key-${alg}`, ...header }).sign(keys[alg].sign);
  const set = jose.createLocalJWKSet({ keys: asymmetric });
  async function oracle(alg, token) {
    try {
      const options = { algorithms: alg === 'HS256' ? ['HS256'] : ['RS256', 'ES256', 'EdDSA'], issuer: 'issuer', audience: 'shop', requiredClaims: ['exp', 'sub'] };
      const key = alg === 'HS256' ? (h) => { if (h.kid !== undefined && h.kid !== 'key-HS256') throw new Error('no such key'); return keys.HS256.sign; } : set;
      return (await jose.jwtVerify(token, key, options)).payload.sub;
    } catch {
      return undefined;
    }
  }
  async function same(alg, token, want) {
    const user = await oracle(alg, token), before = asked, r = await get(at, path(alg), token);
    const good = r.status === 200 ? JSON.parse(r.text) : undefined;
    if (want !== undefined && (user !== undefined) !== want) throw new Error(`jose says ${user}: ${token}`);
    if (user === undefined ? r.status !== 401 || asked !== before || !r.challenge?.startsWith('Bearer')
      : !good || good.user !== user || good.users !== 1 || good.token !== undefined)
      throw new Error(`jose says ${user}, firn-proxy ${r.status} ${r.text}: ${token}`);
  }

  try {
    for (const alg of Object.keys(keys))
      await test(`gateway: ${alg}: good tokens pass as their user`, async () => {
        for (let i = 0; i < ROUNDS; i++) await same(alg, await issue(alg, { ...claims(), ...(i ? {} : { sub: '456' }) }), true);
      });
    const bad = { expired: { exp: now() - 60 }, 'not yet': { nbf: now() + 3600 }, 'no exp': { exp: undefined }, 'other issuer': { iss: 'x' },
      'other audience': { aud: 'bank' }, 'no audience': { aud: undefined }, 'no user': { sub: undefined } };
    for (const [name, change] of Object.entries(bad))
      await test(`gateway: ${name}: 401`, async () => {
        for (const alg of Object.keys(keys)) await same(alg, await issue(alg, { ...claims(), ...change }), false);
      });
    await test('gateway: no token, and algorithm confusion: 401', async () => {
      const b64 = (o) => jose.base64url.encode(JSON.stringify(o));
      if ((await get(at, '/keys')).status !== 401) throw new Error('a request without a token passes');
      for (const alg of Object.keys(keys)) {
        for (const none of ['none', 'None', 'NONE', '']) await same(alg, `${b64({ alg: none, kid: `key-${alg}` })}.${b64(claims())}.`, false);
        const stranger = await jose.generateKeyPair('ES256');
        await same(alg, await new jose.SignJWT(claims()).setProtectedHeader({ alg: 'ES256', kid: `key-${alg}` }).sign(stranger.privateKey), false);
        if (alg === 'HS256') continue;
        const pem = await jose.exportSPKI(await jose.importJWK(keys[alg].jwk, alg));
        for (const secret of [pem, pem.trim(), JSON.stringify(keys[alg].jwk)])
          await same(alg, await new jose.SignJWT(claims()).setProtectedHeader({ alg: 'HS256', kid: `key-${alg}` }).sign(new TextEncoder().encode(secret)), false);
        await same('HS256', await issue(alg, claims(), { kid: 'key-HS256' }), false);
      }
    });
    for (const alg of Object.keys(keys))
      await test(`gateway: ${alg}: damaged tokens`, async () => {
        for (let i = 0; i < ROUNDS; i++) {
          const t = [...await issue(alg, claims())];
          t[below(t.length)] = 'ABCDEFabcdef0123456789-_.'[below(25)];
          const text = t.join('');
          if (lenient(text)) continue; // see jose.mjs
          await same(alg, text);
        }
      });
  } finally {
    gateway.removeAllListeners('exit');
    const ended = new Promise((done) => { gateway.on('exit', done); });
    gateway.kill('SIGTERM');
    await test('gateway: a clean end', async () => {
      const code = await ended;
      if (code !== 0) throw new Error(`exit status ${code}`);
    });
    service.close();
    rmSync(dir, { recursive: true });
  }
}
