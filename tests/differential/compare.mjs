// The npm packages' side of the differential tests; ./run starts it, driver.c answers for firn.
//
// For each format:
//   theirs → firn   a text that the package makes, firn reads to the same bytes and time and writes again
//   firn → theirs   a text that firn makes, the package reads to the same bytes and time
//   damaged         texts with a few characters changed: both accept, with the same bytes, or both refuse,
//                   but for the exceptions in the one table below
//
// Left out: sqids. It writes lists of numbers in a shuffled alphabet; firn has nothing of that kind (its
// public IDs are sealed by AES, firn/seal.h), so there is nothing to compare.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import * as uuid from 'uuid';
import * as ulid from 'ulid';
import KSUID from 'ksuid';
import { ObjectId } from 'bson';
import * as typeid from 'typeid-js';
import { customRandom, urlAlphabet } from 'nanoid';
import { DiscordSnowflake, TwitterSnowflake } from '@sapphire/snowflake';
import { init as cuid2Init, isCuid } from '@paralleldrive/cuid2';

const require = createRequire(import.meta.url);
const xid = require('xid-js'), xidBase32 = require('xid-js/lib/base32');

const N = 2500; // values each way, and damaged texts, for each format
const [driverPath, seed] = process.argv.slice(2);

// Where firn and a package differ and are meant to. `firn` is what firn answers: 'accepts' or 'refuses'.
// An exception that never happens is a failure: then it is out of date.
const exceptions = [
  { format: 'uuid', firn: 'accepts', when: (t) => HYPHENATED.test(t) && !uuid.validate(t),
    why: 'firn_uuid_parse() takes every version and variant; the package only 1-8 of the RFC, nil and max' },
  { format: 'ksuid', firn: 'refuses', when: (t) => t.length === 27 && /[^0-9A-Za-z]/.test(t),
    why: 'the package checks the length and the range, and decodes any character' },
  { format: 'twitter', firn: 'refuses', when: (t) => notDecimal(t) || BigInt(t) >> 63n,
    why: 'the package takes what BigInt() takes, spaces, signs and 0x too, of any size' },
  { format: 'discord', firn: 'refuses', when: (t) => notDecimal(t) || BigInt(t) >> 64n,
    why: 'as for twitter; a Discord ID may use bit 63' },
];
// xid-js needs more than an exception, so xidText() below translates and repairs what it writes:
//  - it writes with Crockford's alphabet where XID (rs/xid) has base32hex: digit 18 is j, not i;
//  - its base32 takes the low 3 bits of the 7th digit of every 8 from the 4th byte instead of the 5th, so
//    bytes 4 and 9 of an ID lose their high bits: two machines can write the same text.
// It has no parser, so a text is well-formed if it is what the repaired writer writes.

const HYPHENATED = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const notDecimal = (t) => !/^(0|[1-9][0-9]*)$/.test(t);

// --- random values that the seed reproduces: SHA-256 of the seed and a counter ---

let pool = Buffer.alloc(0), poolAt = 0, poolCount = 0;
function bytes(n) {
  const out = Buffer.alloc(n);
  for (let i = 0; i < n; i++) {
    if (poolAt === pool.length) {
      pool = createHash('sha256').update(`${seed}/${poolCount++}`).digest();
      poolAt = 0;
    }
    out[i] = pool[poolAt++];
  }
  return out;
}
const below = (n) => Number((bytes(8).readBigUInt64BE() * BigInt(n)) >> 64n);
const fraction = () => bytes(4).readUInt32BE() / 2 ** 32;
const pick = (list) => list[below(list.length)];
const times = (n, make) => Array.from({ length: n }, (_, i) => make(i));

// Bytes with many zeros or ones come up more often than by chance: the edges live there.
function edgyBytes(n) {
  const b = bytes(n);
  const kind = below(8);
  if (kind < 2) b.fill(kind ? 255 : 0, 0, below(n + 1));
  else if (kind < 4) b.fill(kind === 2 ? 255 : 0, below(n));
  return b;
}

// --- firn: one process for everything, answers in the order of the requests ---

const driver = spawn(driverPath, [String(seed)], { stdio: ['pipe', 'pipe', 'inherit'] });
const waiting = [];
createInterface({ input: driver.stdout }).on('line', (line) => waiting.shift()(line));
driver.on('exit', (code, signal) => {
  if (waiting.length) {
    console.log(`the driver ended (${signal ?? code}) with ${waiting.length} requests open`);
    console.log('0 passed, 1 failed');
    process.exit(1);
  }
});

// Answers: the words after "ok", or null for an error.
function ask(requests) {
  const answers = requests.map((r) => new Promise((done) => waiting.push(done)));
  driver.stdin.write(requests.map((r) => r + '\n').join(''));
  return Promise.all(answers).then((all) =>
    all.map((line) => (line.startsWith('ok') ? line.slice(3).split(' ') : null)));
}

// --- counting ---

let passed = 0, failed = 0, shown = 0;
let tally;
function expect(ok, what) {
  tally[ok ? 0 : 1]++;
  if (ok) return passed++;
  failed++;
  if (shown++ < 40) console.log('FAIL ' + what());
}
function report(name) {
  console.log(`${name.padEnd(44)} ${String(tally[0]).padStart(6)} agree ${String(tally[1]).padStart(4)} differ`);
}
async function section(name, run) {
  tally = [0, 0];
  await run();
  report(name);
}
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const expectSame = (got, want, what) =>
  expect(same(got, want), () => `${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);

// --- damage ---

const STRANGE = ['', ' ', '\t', '-', '_', '=', '+', '.', '{', '}', 'ſ', 'é', '0', '7', '8', 'z', 'Z', 'I', 'l', 'O', 'u', 'g', 'w', '@', '`', '[', '/', ':'];
function damage(text) {
  let t = [...text];
  for (let n = 1 + below(3); n > 0; n--) {
    const at = below(t.length + 1);
    switch (below(7)) {
      case 0: t.splice(at, 1); break; // lose one
      case 1: t.splice(at, 0, pick(STRANGE)); break; // gain one
      case 2: t[at] = pick(STRANGE); break;
      case 3: t[at] = String.fromCharCode(33 + below(94)); break; // any visible character
      case 4: t = [...t.join('').toUpperCase()]; break;
      case 5: if (at + 1 < t.length) [t[at], t[at + 1]] = [t[at + 1], t[at]]; break;
      case 6: if (t.length) t[0] = pick('0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'); break;
    }
  }
  return t.join('');
}

const used = new Set();
function judge(format, text, firnAccepts, theyAccept) {
  if (firnAccepts === theyAccept) return expect(true);
  const e = exceptions.find((x) => x.format === format && (x.firn === 'accepts') === firnAccepts && x.when(text));
  if (e) used.add(e);
  expect(e, () => `${format}: firn ${firnAccepts ? 'accepts' : 'refuses'} ${JSON.stringify(text)}, the package does not agree`);
}

// --- formats with bytes ---
// kind: the name that the driver knows. hex(text): their reading, throws if they refuse it.
// ms(text): the time that they read, or null. make(ms): a text of theirs at a random time, [text, hex, ms].
// span: the times to make IDs at, in ms; step: what their clock rounds down to.

const hexOf = (b) => Buffer.from(b).toString('hex');

const formats = [
  {
    name: 'uuid v4', kind: 'uuidv4', format: 'uuid', span: [1, 2], step: null,
    hex: (t) => hexOf(uuid.parse(t)), ms: () => null,
    make: () => { const t = uuid.v4({ random: edgyBytes(16) }); return [t, hexOf(uuid.parse(t)), null]; },
    version: 4,
  },
  {
    name: 'uuid v7', kind: 'uuidv7', format: 'uuid', span: [0, 2 ** 48 - 1], step: 1,
    hex: (t) => hexOf(uuid.parse(t)), ms: (t) => parseInt(hexOf(uuid.parse(t)).slice(0, 12), 16),
    make: (ms) => { const t = uuid.v7({ msecs: ms, random: edgyBytes(16) }); return [t, hexOf(uuid.parse(t)), ms]; },
    version: 7,
  },
  {
    name: 'ulid', kind: 'ulid', format: 'ulid', span: [1, ulid.TIME_MAX], step: 1,
    hex: (t) => ulid.ulidToUUID(t).replaceAll('-', '').toLowerCase(), ms: (t) => ulid.decodeTime(t),
    make: (ms) => { const t = ulid.ulid(ms, fraction); return [t, ulid.ulidToUUID(t).replaceAll('-', '').toLowerCase(), ms]; },
  },
  {
    name: 'ksuid', kind: 'ksuid', format: 'ksuid', span: [14e11, 14e11 + 1e3 * (2 ** 32 - 1)], step: 1000,
    hex: (t) => hexOf(KSUID.parse(t).raw), ms: (t) => KSUID.parse(t).date.getTime(),
    make: (ms) => { const k = KSUID.fromParts(ms, edgyBytes(16)); return [k.string, hexOf(k.raw), k.date.getTime()]; },
  },
  {
    name: 'objectid (bson)', kind: 'objectid', format: 'objectid', span: [0, 1e3 * (2 ** 32 - 1)], step: 1000,
    hex: (t) => hexOf(new ObjectId(t).id), ms: (t) => new ObjectId(t).getTimestamp().getTime(),
    make: () => { const o = new ObjectId(edgyBytes(12)); return [o.toHexString(), hexOf(o.id), o.getTimestamp().getTime()]; },
  },
  {
    name: 'typeid', kind: 'typeid', format: 'typeid', span: [0, 2 ** 48 - 1], step: 1,
    hex: typeidHex, ms: (t) => parseInt(typeidHex(t).slice(0, 12), 16),
    make: (ms) => {
      const prefix = randomPrefix();
      const id = typeid.TypeID.fromUUID(prefix, uuid.v7({ msecs: ms, random: edgyBytes(16) }));
      return [id.toString(), typeidHex(id.toString()), ms];
    },
  },
  {
    name: 'xid', kind: 'xid', format: 'xid', span: [0, 1e3 * (2 ** 32 - 1)], step: 1000,
    hex: xidHex, ms: (t) => parseInt(xidHex(t).slice(0, 8), 16) * 1000,
    make: () => { const b = edgyBytes(12); return [xidText(b), hexOf(b), b.readUInt32BE() * 1000]; },
  },
];

function typeidHex(t) {
  const id = typeid.TypeID.fromString(t);
  return hexOf(id.toUUIDBytes()) + hexOf(Buffer.from(id.getType()));
}
function randomPrefix() {
  const n = pick([0, 1, 2, 3, 8, 62, 63, below(64)]);
  return times(n, (i) => (i > 0 && i < n - 1 && below(5) === 0 ? '_' : pick('abcdefghijklmnopqrstuvwxyz'))).join('');
}

const CROCKFORD = '0123456789abcdefghjkmnpqrstvwxyz', BASE32HEX = '0123456789abcdefghijklmnopqrstuv';
const xidDigits = (text) => [...text].map((c) => CROCKFORD.indexOf(c));
function xidText(b) {
  const digits = xidDigits(xidBase32.encodeString(b).substring(0, 20));
  for (const [digit, byte] of [[6, 4], [14, 9]]) digits[digit] = (digits[digit] & 0x18) | (b[byte] >> 5);
  return digits.map((d) => BASE32HEX[d]).join('');
}
function xidHex(t) {
  const n = [...t].reduce((sum, c) => sum * 32n + BigInt(BASE32HEX.indexOf(c)), 0n) >> 4n;
  const b = Buffer.from(BigInt.asUintN(96, n).toString(16).padStart(24, '0'), 'hex');
  if (xidText(b) !== t) throw new Error('not what the package writes');
  return hexOf(b);
}

// What their generator itself makes: the time and the process survive its base32.
async function compareXidNext() {
  await section('xid: their generator → firn', async () => {
    const texts = times(N, () => xidDigits(xid.next()).map((d) => BASE32HEX[d]).join(''));
    const read = await ask(texts.map((t) => `parse xid ${t}`));
    const pid = (process.pid & 0xffff).toString(16).padStart(4, '0');
    texts.forEach((t, i) => {
      expect(read[i] && Math.abs(Number(read[i][1]) - Date.now()) < 60e3, () => `time of ${t}: ${read[i]}`);
      expectSame(read[i]?.[0].slice(14, 18), pid, `process of ${t}`);
    });
  });
}

const attempt = (f) => { try { return f(); } catch { return null; } };
const randomMs = ([from, to]) => pick([from, to, from + below(to - from + 1), from + below(to - from + 1), 1.5e12 + below(5e11)].filter((t) => t >= from && t <= to));

async function compareFormat(f) {
  await section(`${f.name}: theirs → firn`, async () => {
    const made = times(N, () => f.make(randomMs(f.span)));
    const read = await ask(made.map(([t]) => `parse ${f.kind} ${t}`));
    const text = await ask(made.map(([, hex]) => `format ${f.kind} ${hex}`));
    made.forEach(([t, hex, ms], i) => {
      expectSame(read[i], [hex, ms === null ? '-' : String(ms)], `parse ${f.kind} ${t}`);
      expectSame(text[i], [t], `format ${f.kind} ${hex}`);
    });
  });
  await section(`${f.name}: firn → theirs`, async () => {
    const ms = times(N, () => randomMs(f.span));
    const made = (await ask(ms.map((m) => `make ${f.kind} ${m}`))).map((a) => a?.[0]);
    const read = await ask(made.map((t) => `parse ${f.kind} ${t}`));
    made.forEach((t, i) => {
      const want = f.step ? ms[i] - ((ms[i] - (f.name === 'ksuid' ? 14e11 : 0)) % f.step) : null;
      expectSame([attempt(() => f.hex(t)), attempt(() => f.ms(t))], [read[i]?.[0], want], `${f.kind} ${t} made for ${ms[i]}`);
      if (f.version) expectSame(attempt(() => uuid.version(t)), f.version, `version of ${t}`);
    });
  });
  await section(`${f.name}: damaged`, async () => {
    const texts = times(N, () => damage(f.make(randomMs(f.span))[0])).filter((t) => !t.includes('\n'));
    const read = await ask(texts.map((t) => `parse ${f.kind} ${t}`));
    texts.forEach((t, i) => {
      const hex = attempt(() => f.hex(t));
      judge(f.format, t, read[i] !== null, hex !== null);
      if (read[i] && hex !== null) expectSame(read[i][0], hex, `damaged ${f.kind} ${t}`);
    });
  });
}

// --- UUIDs of names, and with the Gregorian time ---

async function compareUuids() {
  await section('uuid v3, v5: the same names', async () => {
    const cases = times(N, (i) => ({ v: i % 2 ? 3 : 5, ns: edgyBytes(16), name: bytes(below(200)) }));
    const firn = await ask(cases.map((c) => `name ${c.v} ${hexOf(c.ns)} ${hexOf(c.name)}`));
    cases.forEach((c, i) =>
      expectSame(firn[i], [(c.v === 3 ? uuid.v3 : uuid.v5)(new Uint8Array(c.name), new Uint8Array(c.ns))], `v${c.v} of ${hexOf(c.name)}`));
  });
  const spec = () => ({ msecs: randomMs([0, 9e12]), nsecs: below(10000), clockseq: below(0x4000), node: edgyBytes(6) });
  const ticks = (s) => String((BigInt(s.msecs) + 12219292800000n) * 10000n + BigInt(s.nsecs));
  for (const [name, make] of [['v1', uuid.v1], ['v6', uuid.v6]]) {
    await section(`uuid ${name}: theirs → firn`, async () => {
      const cases = times(N, () => { const s = spec(); return { s, t: make(s) }; });
      const fields = await ask(cases.map((c) => `gregorian ${c.t}`));
      const read = await ask(cases.map((c) => `parse uuid ${c.t}`));
      cases.forEach(({ s, t }, i) => {
        expectSame(fields[i], [ticks(s), String(s.clockseq), hexOf(s.node)], `fields of ${t}`);
        expectSame(read[i], [hexOf(uuid.parse(t)), String(s.msecs)], `parse ${t}`);
      });
    });
  }
  await section('uuid v1, v6: firn → theirs', async () => {
    const ms = times(N, () => randomMs([1, 9e12]));
    const v1 = (await ask(ms.map((m) => `make uuidv1 ${m}`))).map((a) => a[0]);
    const v6 = (await ask(ms.map((m) => `make uuidv6 ${m}`))).map((a) => a[0]);
    // Their converters move the fields; firn reads the same fields before and after.
    const before = await ask([...v1, ...v6].map((t) => `gregorian ${t}`));
    const after = await ask([...v1.map((t) => uuid.v1ToV6(t)), ...v6.map((t) => uuid.v6ToV1(t))].map((t) => `gregorian ${t}`));
    before.forEach((b, i) => {
      expectSame(b, after[i], `fields of ${[...v1, ...v6][i]} before and after conversion`);
      expectSame(b[0], ticks({ msecs: ms[i % N], nsecs: 0 }), `ticks of ${[...v1, ...v6][i]}`);
    });
    v1.forEach((t) => expectSame(uuid.version(t), 1, t));
    v6.forEach((t) => expectSame(uuid.version(t), 6, t));
  });
}

// --- Snowflakes: their worker and process are dc and worker here ---

async function compareSnowflake(layout, theirs, timeBits) {
  const epoch = Number(theirs.epoch);
  const spec = () => ({
    timestamp: BigInt(epoch + below(2 ** timeBits)), workerId: BigInt(below(32)), processId: BigInt(below(32)), increment: BigInt(below(4096)),
  });
  const words = (d) => [d.timestamp, d.workerId, d.processId, d.increment].map(String);
  await section(`snowflake ${layout}: theirs → firn`, async () => {
    const cases = times(N, () => { const s = spec(); return { s, t: String(theirs.generate(s)) }; });
    const fields = await ask(cases.map((c) => `fields ${layout} ${c.t}`));
    const text = await ask(cases.map(({ s }) => `compose ${layout} ${s.timestamp - theirs.epoch} ${s.workerId} ${s.processId} ${s.increment}`));
    cases.forEach(({ s, t }, i) => {
      expectSame(fields[i], words(s), `fields of ${t}`);
      expectSame(text[i], [t], `compose ${t}`);
    });
  });
  await section(`snowflake ${layout}: firn → theirs`, async () => {
    const cases = times(N, () => ({ ms: epoch + 1 + below(2 ** 41 - 2), slot: below(1024) }));
    const ids = await ask(cases.map((c) => `issue ${layout} ${c.ms} ${c.slot}`));
    cases.forEach((c, i) =>
      expectSame(attempt(() => words(theirs.deconstruct(ids[i][0]))), [c.ms, c.slot >> 5, c.slot & 31, 0].map(String), `issued ${ids[i]}`));
  });
  await section(`snowflake ${layout}: damaged`, async () => {
    const texts = times(N, () => damage(String(theirs.generate(spec())))).filter((t) => !t.includes('\n'));
    const fields = await ask(texts.map((t) => `fields ${layout} ${t}`));
    texts.forEach((t, i) => {
      const d = attempt(() => theirs.deconstruct(t));
      judge(layout, t, fields[i] !== null, d !== null);
      if (fields[i] && d) expectSame(fields[i], words(d), `damaged ${t}`);
    });
  });
}

// --- formats that are only text: what one makes, the other finds well-formed ---

async function compareNanoid() {
  const random = (n) => bytes(n);
  const alphabets = ['', ...times(24, () => [...new Set(times(2 + below(90), () => String.fromCharCode(33 + below(94))))].join('')).filter((a) => a.length > 1)];
  await section('nanoid: both ways, 25 alphabets', async () => {
    for (const a of alphabets) {
      const chars = a || urlAlphabet;
      const member = (t) => t.length >= 1 && t.length <= 255 && [...t].every((c) => chars.includes(c));
      expectSame((await ask([`alphabet ${a}`]))[0], [''], `alphabet ${a}`);
      const lengths = times(Math.ceil(N / alphabets.length), () => 1 + below(255));
      const theirs = lengths.map((n) => customRandom(chars, n, random)());
      const checked = await ask(theirs.map((t) => `check nanoid ${t}`));
      theirs.forEach((t, i) => expect(checked[i], () => `check nanoid ${t} of ${chars}`));
      const firn = await ask(lengths.map((n) => `random nanoid ${n}`));
      firn.forEach((t, i) => expect(t && t[0].length === lengths[i] && member(t[0]), () => `nanoid ${t} of ${chars}`));
      const broken = theirs.map(damage).filter((t) => !t.includes('\n'));
      const verdict = await ask(broken.map((t) => `check nanoid ${t}`));
      broken.forEach((t, i) => judge('nanoid', t, verdict[i] !== null, member(t)));
    }
    await ask(['alphabet ']);
  });
}

async function compareCuid2() {
  const makers = times(31, (i) => cuid2Init({ random: fraction, length: i + 2, fingerprint: 'a'.repeat(32) }));
  await section('cuid2: both ways, all lengths', async () => {
    const theirs = times(N, (i) => makers[i % 31]());
    const checked = await ask(theirs.map((t) => `check cuid2 ${t}`));
    theirs.forEach((t, i) => expect(checked[i], () => `check cuid2 ${t}`));
    const firn = await ask(times(N, (i) => `random cuid2 ${2 + (i % 31)}`));
    firn.forEach((t, i) => expect(t && isCuid(t[0]) && t[0].length === 2 + (i % 31), () => `cuid2 ${t}`));
    const broken = theirs.map(damage).filter((t) => !t.includes('\n'));
    const verdict = await ask(broken.map((t) => `check cuid2 ${t}`));
    broken.forEach((t, i) => judge('cuid2', t, verdict[i] !== null, isCuid(t)));
  });
}

// --- all of it ---

console.log(`seed ${seed}`);
for (const f of formats) await compareFormat(f);
await compareXidNext();
await compareUuids();
await compareSnowflake('twitter', TwitterSnowflake, 41);
await compareSnowflake('discord', DiscordSnowflake, 42);
await compareNanoid();
await compareCuid2();
await section('every exception still happens', async () => {
  for (const e of exceptions) expect(used.has(e), () => `the exception of ${e.format} (${e.why}) was never met`);
});
driver.stdin.end();
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
