// npm jose as issuer and oracle of firn-proxy's tokens; ./jose starts it, jwt_driver.c answers for firn-proxy.
//
//   good      tokens of each algorithm that jose issues, with random claims: both accept, with the same sub
//   bad       claims, headers and keys that must be refused: both refuse
//   damaged   tokens with a few characters changed: both accept or both refuse, but for the one exception below

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createInterface } from 'node:readline';
import * as jose from 'jose';
import { live } from './jose_gateway.mjs';

const [driverPath, program, seed] = process.argv.slice(2);
const NOW = 1800000000, ALGS = ['HS256', 'RS256', 'ES256', 'EdDSA'], N = 100;

let pool = Buffer.alloc(0), poolAt = 0, poolCount = 0;
function below(n) { // from SHA-256 of the seed and a counter
  if (poolAt + 4 > pool.length) {
    pool = createHash('sha256').update(`${seed}/${poolCount++}`).digest();
    poolAt = 0;
  }
  poolAt += 4;
  return pool.readUInt32BE(poolAt - 4) % n;
}

const driver = spawn(driverPath, { stdio: ['pipe', 'pipe', 'inherit'] });
const answers = createInterface({ input: driver.stdout })[Symbol.asyncIterator]();
async function ask(line) {
  driver.stdin.write(`${line}\n`);
  return (await answers.next()).value;
}

let passed = 0, failed = 0, exceptions = 0;
async function test(name, run) {
  try {
    await run();
    console.log(`ok   ${name}`);
    passed++;
  } catch (e) {
    console.log(`FAIL ${name}: ${e.message} (seed ${seed})`);
    failed++;
  }
}

// --- keys: one of each algorithm, all in one set ---
const keys = {}, set = { keys: [] };
for (const alg of ALGS) {
  if (alg === 'HS256') {
    const secret = Buffer.from(createHash('sha256').update(`secret ${seed}`).digest('base64url')); // text, as files have it
    keys[alg] = { sign: secret, jwk: { kty: 'oct', k: jose.base64url.encode(secret) } };
  } else {
    const { publicKey, privateKey } = await jose.generateKeyPair(alg, { extractable: true });
    keys[alg] = { sign: privateKey, jwk: await jose.exportJWK(publicKey) };
  }
  Object.assign(keys[alg].jwk, { kid: `key-${alg}`, alg, use: 'sig' });
  set.keys.push(keys[alg].jwk);
}
// createLocalJWKSet has no secrets, so the oracle chooses those itself, as pinned to their kid and algorithm.
const asymmetric = jose.createLocalJWKSet({ keys: set.keys.filter((k) => k.kty !== 'oct') });
async function key(header, token) {
  if (header.alg === 'HS256') {
    if (header.kid !== undefined && header.kid !== 'key-HS256') throw new Error('no such key');
    return keys.HS256.sign;
  }
  return asymmetric(header, token);
}
async function oracle(token) {
  try {
    const { payload } = await jose.jwtVerify(token, key, {
      algorithms: ALGS, issuer: 'issuer', audience: 'shop', clockTolerance: 5,
      requiredClaims: ['exp'], currentDate: new Date(NOW * 1000) });
    return `ok ${payload.sub ?? ''}`;
  } catch (e) {
    return e.code ?? e.message;
  }
}
const good = () => ({ iss: 'issuer', aud: below(2) ? 'shop' : ['x', 'shop'], sub: `user-${below(1e6)}`,
  exp: NOW + 1 + below(1000), nbf: NOW - below(1000), iat: NOW - 1, roles: ['a'], [`n${below(9)}`]: { deep: [1.5, null] } });
const issue = (alg, claims, header = {}) =>
  new jose.SignJWT(claims).setProtectedHeader({ alg, kid: `key-${alg}`, ...header }).sign(keys[alg].sign);

async function same(token, want) {
  const theirs = await oracle(token), ours = await ask(`check ${NOW} ${token}`);
  if (theirs.startsWith('ok ') ? ours !== theirs : ours.startsWith('ok '))
    throw new Error(`jose says "${theirs}", firn-proxy "${ours}": ${token}`);
  if (want !== undefined && ours.startsWith('ok ') !== want)
    throw new Error(`both say "${ours}", ${want ? 'good' : 'bad'} was expected: ${token}`);
}

await test('the key set', async () => {
  const answer = await ask(`keys ${JSON.stringify(set)}`);
  if (answer !== 'ok') throw new Error(answer);
});
for (const alg of ALGS)
  await test(`${alg}: good tokens`, async () => {
    for (let i = 0; i < N; i++) await same(await issue(alg, good(), below(2) ? {} : { typ: 'JWT', kid: undefined }), true);
  });

const bad = {
  expired: { exp: NOW - 5 }, 'not yet': { nbf: NOW + 6 }, 'no exp': { exp: undefined }, 'exp as text': { exp: `${NOW + 9}` },
  'other issuer': { iss: 'issuer2' }, 'no issuer': { iss: undefined }, 'issuers': { iss: ['issuer'] },
  'other audience': { aud: 'shop2' }, 'no audience': { aud: undefined }, 'no audiences': { aud: [] }, 'exp null': { exp: null },
};
const edges = { 'exp within leeway': { exp: NOW - 4 }, 'nbf within leeway': { nbf: NOW + 5 }, 'fractions': { exp: NOW - 4.5, nbf: NOW + 4.5 } };
for (const [names, want] of [[bad, false], [edges, true]])
  for (const [name, claims] of Object.entries(names))
    await test(`${name}: ${want ? 'good' : 'refused'}`, async () => {
      for (const alg of ALGS) {
        const all = Object.fromEntries(Object.entries({ ...good(), ...claims }).filter(([, v]) => v !== undefined));
        const text = new TextEncoder().encode(JSON.stringify(all)); // SignJWT would refuse to write some of them
        await same(await new jose.CompactSign(text).setProtectedHeader({ alg, kid: `key-${alg}` }).sign(keys[alg].sign), want);
      }
    });

await test('algorithm confusion: refused', async () => {
  const b64 = (o) => jose.base64url.encode(JSON.stringify(o));
  for (const alg of ['none', 'None', 'NONE', ''])
    for (const sig of ['', 'AA'])
      await same(`${b64({ alg })}.${b64(good())}.${sig}`, false);
  for (const alg of ALGS.slice(1)) // the public key as the secret of an HMAC
    for (const secret of [JSON.stringify(keys[alg].jwk), keys[alg].jwk.n ?? keys[alg].jwk.x])
      await same(await new jose.SignJWT(good()).setProtectedHeader({ alg: 'HS256', kid: `key-${alg}` })
        .sign(new TextEncoder().encode(secret)), false);
  for (const alg of ALGS) // a key that the token brings along
    for (const header of [{ kid: 'other' }, { jwk: (await jose.exportJWK((await jose.generateKeyPair('ES256')).publicKey)) }]) {
      const strange = await jose.generateKeyPair('ES256');
      await same(await new jose.SignJWT(good()).setProtectedHeader({ alg: 'ES256', kid: 'key-ES256', ...header })
        .sign(strange.privateKey), false);
      await same(await issue(alg, good(), { kid: ALGS.filter((a) => a !== alg).map((a) => `key-${a}`)[below(3)] }), false);
    }
});
await test('other algorithms of the same keys: refused', async () => {
  await same(await new jose.SignJWT(good()).setProtectedHeader({ alg: 'HS512', kid: 'key-HS256' })
    .sign(createHash('sha512').update('x').digest()), false);
});
// jose knows the extension b64 of RFC 7797; firn-proxy knows none.
await test('crit: refused', async () => {
  const token = await new jose.SignJWT(good()).setProtectedHeader({ alg: 'HS256', b64: true, crit: ['b64'] })
    .sign(keys.HS256.sign);
  const ours = await ask(`check ${NOW} ${token}`);
  if (ours !== 'critical') throw new Error(ours);
});

// The exception: jose decodes base64url leniently in the signature's last character, whose low bits no byte takes, and
// in characters of the other base64 alphabet; firn-proxy takes one text per signature only.
const lenient = (t) => {
  const sig = t.split('.')[2] ?? '';
  return /[^A-Za-z0-9_-]/.test(sig) || Buffer.from(sig, 'base64url').toString('base64url') !== sig;
};
for (const alg of ALGS)
  await test(`${alg}: damaged tokens`, async () => {
    const chars = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/';
    for (let i = 0; i < N * 4; i++) {
      const t = [...await issue(alg, good())];
      for (let n = 1 + below(2); n > 0; n--) {
        const at = below(3) ? below(t.length) : t.length - 1 - below(3);
        if (below(4)) t[at] = chars[below(chars.length)];
        else if (below(2)) t.splice(at, 1);
        else t.splice(at, 0, chars[below(chars.length)]);
      }
      const text = t.join('');
      await same(text).catch(async (e) => {
        if (!lenient(text) || (await ask(`check ${NOW} ${text}`)).startsWith('ok ')) throw e;
        exceptions++;
      });
    }
  });

driver.stdin.end();
await live({ program, keys, below, test, lenient });
console.log(`     ${exceptions} texts that jose reads leniently`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
