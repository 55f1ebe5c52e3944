// npm graphql as oracle of the gateway's GraphQL; ./graphql starts it. Both have the same schema and services.
//
//   schema    buildClientSchema over the gateway's introspection is the schema
//   queries   fixed and random ones: the same data, and errors with the same paths

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import {
  buildClientSchema, buildSchema, execute, getIntrospectionQuery, getNamedType, GraphQLSchema, isEnumType, isLeafType,
  isListType, isNonNullType, lexicographicSortSchema, parse, printSchema, validate,
} from 'graphql';
import { fixed } from './graphql_queries.mjs';

const [program, seed] = process.argv.slice(2);
const RANDOM = 300;

// --- data, as the services have it ---
const users = {
  1: { id: 1, name: 'Ann "A" \u00e9', role: 'ADMIN', address: { city: 'Oslo' }, tags: ['x', 'y'], age: 40, score: 1.5, active: true,
    extra: { a: [1, null, 'b'] }, friend: 2 },
  2: { id: '2', name: 'Bob', role: 'USER', tags: [], age: null, score: 3, active: false, extra: 'text', friend: 3 },
  3: { id: 3, name: 'Cid', role: 'USER', address: null, friend: 404 },
  'a b/&?#': { id: 'never asked: a slash cannot stand in a path' },
};
const products = { p1: { id: 'p1', name: 'Pen', price: 2.5 }, p2: { id: 'p2', name: 'Ink' }, p3: { id: 'p3', name: null, price: 1 } };
const orders = [
  { id: 10, user: 1, total: 20.25, placed: '2026-01-01', lines: [{ count: 2, sku: 'p1' }, { count: 1, sku: 'p2' }] },
  { id: 11, user: 1, total: 1, placed: null, lines: [] },
  { id: 12, user: 2, total: 7.5, placed: 5, lines: [{ count: 3, sku: 'p9' }] },
  { id: 13, user: 1, total: 9, placed: 'x', lines: [{ count: 1, sku: null }] },
];
const odd = {
  int: 5, half: 1.5, large: 3000000000, intText: '12', noText: 'x', intFlag: true, float: 1e3, floatText: '2.5', noFloat: 'x',
  string: 'a', stringNumber: 12, stringFlag: true, flag: true, flagNumber: 0, flagText: 'true', id: 'i', idNumber: 9, idFlag: true,
  role: 'NOBODY', roleNumber: 1, any: [{ a: { b: null } }], list: [1, '2', 'x', null], noList: 3, holes: [1, null],
  sureHoles: [1, null, 2], nested: [[1, 2], []], badNested: [[1], [null], null], object: { there: 1, must: 2, deep: { there: 3 } },
  notObject: 7, sure: { there: 1 }, inners: [{ there: 1, must: 1 }, { there: 2 }, null], sureInners: [{ must: 1 }, {}, { must: 2 }],
  nothing: null,
};

function serve(request, response) {
  const url = new URL(request.url, 'http://x');
  const [, kind, id] = url.pathname.split('/').map(decodeURIComponent);
  const limit = url.searchParams.has('limit') ? Number(url.searchParams.get('limit')) : 100;
  const of = (o) => (o ? [200, o] : [404, { error: 'none' }]);
  const pages = {
    users: () => (id !== undefined ? of(Object.hasOwn(users, id) && users[id]) : [200, { items: [1, 2, 3].map((n) => users[n])
      .filter((u) => !url.searchParams.has('role') || u.role === url.searchParams.get('role')).slice(0, limit) }]),
    products: () => of(Object.hasOwn(products, id) && products[id]),
    orders: () => [200, { items: orders.filter((o) => String(o.user) === url.searchParams.get('user')).slice(0, limit) }],
    echo: () => [200, { query: url.search }],
    true: () => [200, true],
    odd: () => [200, odd],
    seven: () => [200, 7],
    list: () => [200, [1, 2, null]],
    status: () => [Number(id) >= 200 && Number(id) < 600 ? Number(id) : 500, { error: id }],
    text: () => [200, undefined],
  };
  const [status, body] = (pages[kind] ?? (() => [404, {}]))();
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(body === undefined ? 'no JSON' : JSON.stringify(body));
}

const server = createServer(serve);
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const upstream = `127.0.0.1:${server.address().port}`;

// --- the gateway ---
const dir = mkdtempSync(join(tmpdir(), 'firn-graphql-'));
const sdl = readFileSync('shop.graphql', 'utf8');
const service = (name) => `  - { name: ${name}, servers: ['${upstream}'], breaker_failures: 0, breaker_percent: 0, eject_after: 0 }\n`;
writeFileSync(join(dir, 'shop.graphql'), sdl);
writeFileSync(join(dir, 'gateway.yaml'), `services:\n${['users', 'orders', 'products'].map(service).join('')}routes:
  - { path: /graphql, graphql: true }
graphql: { schema: ${join(dir, 'shop.graphql')}, timeout_ms: 60000, calls: 1000, cost: 1000000 }\n`);
const gateway = spawn(program, ['-c', join(dir, 'gateway.yaml'), '--listen-http=127.0.0.1:0', '--listen-admin=127.0.0.1:0'],
  { stdio: ['ignore', 'ignore', 'pipe'] });
let log = '';
const address = await new Promise((found, gone) => {
  gateway.stderr.on('data', (text) => {
    log += text;
    const m = /serving http=(\S+)/.exec(log);
    if (m) found(m[1]);
  });
  gateway.on('exit', (code) => gone(new Error(`firn-proxy ended with ${code}: ${log}`)));
});

async function ask(query, variables, operationName, get) {
  const body = { query, variables, operationName };
  const params = new URLSearchParams({ query, variables: JSON.stringify(variables ?? {}), operationName: operationName ?? '' });
  const answer = get ? await fetch(`http://${address}/graphql?${params}`)
    : await fetch(`http://${address}/graphql`,
      { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  return answer.json();
}

// --- the oracle ---
const built = buildSchema(sdl);
const config = built.toConfig();
const schema = new GraphQLSchema({ ...config, directives: config.directives.filter((d) => !['get', 'from'].includes(d.name)) });

function argument(directive, name) {
  return directive.arguments.find((a) => a.name.value === name)?.value.value;
}

// As docs/gateway.md says it, once more.
function target(template, value) {
  const fill = (text) => {
    let there = true;
    const out = text.replace(/\{([^}]+)\}/g, (_, name) => {
      const v = value(name);
      if (v === undefined || v === null) {
        if (/^\.|^header:/.test(name)) throw new Error('a value is missing');
        there = false;
        return '';
      }
      if (typeof v === 'object') throw new Error('no text');
      return encodeURIComponent(String(v)).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
    });
    return there ? out : null;
  };
  const [path, query] = [template.split('?')[0], template.split('?')[1]];
  const filled = fill(path);
  if (filled === null || filled.endsWith('/') || /%2F|%5C|%[01]|\/\.\.?(\/|$)/.test(filled)) throw new Error('no target');
  const params = (query ?? '').split('&').filter((p) => p).map(fill).filter((p) => p !== null);
  return filled + (params.length ? `?${params.join('&')}` : '');
}

for (const type of Object.values(schema.getTypeMap())) {
  if (type.name.startsWith('__') || !type.getFields) continue;
  for (const field of Object.values(type.getFields())) {
    const get = field.astNode.directives.find((d) => d.name.value === 'get');
    const from = field.astNode.directives.find((d) => d.name.value === 'from');
    const path = get ? argument(get, 'at') : from ? argument(from, 'path') : field.name;
    const follow = (v) => (path ?? '').split('.').filter((p) => p).reduce((o, p) => (Object.hasOwn(Object(o), p) ? o[p] : undefined), v);
    field.resolve = get ? async (source, args) => {
      const answer = await fetch(`http://${upstream}${target(argument(get, 'path'), (n) => (n[0] === '.' ? source[n.slice(1)] : args[n]))}`);
      if (answer.status === 404) return null;
      if (!answer.ok) throw new Error(`answered ${answer.status}`);
      return follow(await answer.json());
    } : (source) => follow(source);
  }
}

async function expected(query, variables, operationName) {
  let document;
  try {
    document = parse(query);
  } catch (error) {
    return { errors: [error] };
  }
  const errors = validate(schema, document);
  return errors.length ? { errors } : execute({ schema, document, variableValues: variables, operationName });
}

// --- the comparison ---
let passed = 0, failed = 0;
function check(good, name, detail) {
  if (good) {
    passed++;
  } else {
    failed++;
    console.log(`FAIL ${name}\n     ${detail} (seed ${seed})`);
  }
}

const plain = (v) => (v === undefined ? undefined : JSON.parse(JSON.stringify(v)));
const paths = (r) => (r.errors ?? []).map((e) => JSON.stringify(e.path ?? null)).sort();

async function compare(query, variables, operationName) {
  const want = plain(await expected(query, variables, operationName));
  if (want.data === null && !want.errors[0].path) delete want.data; // a mutation: the reference executes it to null, not the gateway
  for (const get of [false, true]) {
    const is = await ask(query, variables, operationName, get);
    // Of errors before the execution only their presence counts: who finds how many is free.
    const same = isDeepStrictEqual(is.data, want.data) && ('data' in is) === ('data' in want) &&
      (want.data === undefined ? !!is.errors?.length : isDeepStrictEqual(paths(is), paths(want))) &&
      (is.errors ?? []).every((e) => typeof e.message === 'string' && e.locations?.every((l) => l.line > 0 && l.column > 0));
    check(same, query + (variables ? ` ${JSON.stringify(variables)}` : ''),
      `is ${JSON.stringify(is)}\n     should be ${JSON.stringify(want)}`);
    if (query.length > 6000) break; // a URL has its bound
  }
}

// --- random queries ---
let pool = Buffer.alloc(0), poolAt = 0, poolCount = 0;
function below(n) { // from SHA-256 of the seed and a counter
  if (poolAt + 4 > pool.length) {
    pool = createHash('sha256').update(`${seed}/${poolCount++}`).digest();
    poolAt = 0;
  }
  poolAt += 4;
  return pool.readUInt32BE(poolAt - 4) % n;
}
const one = (list) => list[below(list.length)];

function literal(type) {
  if (isNonNullType(type)) return literal(type.ofType);
  if (below(8) === 0) return below(2) ? 'null' : one(['1', '"x"', 'ADMIN', 'true', '1.5', '[]', '{}']);
  if (isListType(type)) return `[${[...Array(below(3))].map(() => literal(type.ofType)).join(', ')}]`;
  if (isEnumType(type)) return one(type.getValues()).name;
  return { Int: one(['0', '1', '2', '-3']), Float: one(['1', '2.5', '-3']), String: one(['"s"', '"a b"', '""']), Boolean: one(['true', 'false']),
    ID: one(['1', '2', '"3"', '"p1"', '404']) }[type.name] ?? one(['1', '"any"', 'true']);
}

function directive(variables) {
  if (below(6)) return '';
  if (below(2)) return ` @${one(['skip', 'include'])}(if: ${one(['true', 'false'])})`;
  variables.add('flag');
  return ` @${one(['skip', 'include'])}(if: $flag)`;
}

function selection(type, depth, state) {
  const fields = Object.values(type.getFields());
  const out = [];
  for (let n = 1 + below(4); n > 0; n--) {
    const field = below(12) ? one(fields) : { name: '__typename', args: [], type: schema.getType('String') };
    const leaf = isLeafType(getNamedType(field.type));
    if (!leaf && depth === 0) continue;
    const args = field.args.filter((a) => isNonNullType(a.type) || below(2)).map((a) => {
      if (a.name === 'limit' && below(2)) {
        state.variables.add('limit');
        return 'limit: $limit';
      }
      return `${a.name}: ${literal(a.type)}`;
    });
    // Most have names of their own, so that most queries are good; some meet.
    const alias = below(5) === 0 ? '' : `f${state.count++}: `;
    let text = `${alias}${field.name}${args.length ? `(${args.join(', ')})` : ''}${directive(state.variables)}`;
    if (!leaf) text += ` ${selection(getNamedType(field.type), depth - 1, state)}`;
    if (below(6) === 0) text = `... ${below(2) ? `on ${type.name} ` : ''}${directive(state.variables)}{ ${text} }`;
    if (below(8) === 0) {
      const name = `F${state.fragments.length}`;
      state.fragments.push(`fragment ${name} on ${below(20) ? type.name : 'User'} { ${text} }`);
      text = `...${name}${directive(state.variables)}`;
    }
    out.push(text);
  }
  return `{ ${out.length ? out.join(' ') : '__typename'} }`;
}

function random() {
  const state = { count: 0, fragments: [], variables: new Set() };
  const body = selection(schema.getQueryType(), 4, state);
  const declared = [...state.variables].map((v) => (v === 'flag' ? '$flag: Boolean!' : `$limit: Int${below(2) ? ' = 1' : ''}`));
  const variables = {};
  if (below(10)) variables.flag = !!below(2);
  if (below(2)) variables.limit = one([0, 1, 2, null]);
  return [`query R${declared.length ? `(${declared.join(', ')})` : ''} ${body} ${state.fragments.join(' ')}`, variables];
}

// --- the run ---
for (const options of [{}, { descriptions: true, specifiedByUrl: true, schemaDescription: true, inputValueDeprecation: true, directiveIsRepeatable: true }]) {
  const is = await ask(getIntrospectionQuery(options));
  const ours = (() => {
    try {
      return printSchema(lexicographicSortSchema(buildClientSchema(is.data)));
    } catch (error) {
      return `${error} of ${JSON.stringify(is).slice(0, 500)}`;
    }
  })();
  const want = await execute({ schema, document: parse(getIntrospectionQuery(options)) });
  const theirs = printSchema(lexicographicSortSchema(buildClientSchema(want.data)));
  check(ours === theirs, 'schema', `is ${ours}\nshould be ${theirs}`);
}
for (const q of fixed) await compare(...q);
for (let i = 0; i < RANDOM; i++) await compare(...random());

gateway.removeAllListeners('exit');
const ended = new Promise((done) => gateway.on('exit', done));
gateway.kill('SIGTERM');
check(await ended === 0 && !/Sanitizer|runtime error|assert/.test(log), 'the gateway ends well', log);
server.closeAllConnections();
server.close();
rmSync(dir, { recursive: true });
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
