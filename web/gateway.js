/* The admin page of firn-proxy: asks /status each second, keeps what changed as the history of its charts. page.js has what it
 * shares with firnd's dashboard. */
'use strict';
Object.assign(WORDS, {
  'Services': ['サービス', '服务', '서비스'], 'Routes': ['ルート', '路由', '경로'], 'Servers': ['サーバー', '服务器', '서버'],
  'Last errors': ['最近のエラー', '最近的错误', '최근 오류'], 'This gateway': ['このゲートウェイ', '此网关', '이 게이트웨이'],
  'Requests per second, by answer': ['毎秒の要求数(応答別)', '每秒请求数（按响应）', '초당 요청 수(응답별)'],
  'Latency of requests': ['要求の所要時間', '请求延迟', '요청 지연'],
  'Requests per second, by service': ['毎秒の要求数(サービス別)', '每秒请求数（按服务）', '초당 요청 수(서비스별)'],
  'Connections and requests in hand': ['接続と処理中の要求', '连接与处理中的请求', '연결과 처리 중인 요청'],
  'Read the configuration again': ['設定を読み直す', '重新读取配置', '설정 다시 읽기'],
  'latency: p50 · p90 · p99': ['所要時間: p50 · p90 · p99', '延迟：p50 · p90 · p99', '지연: p50 · p90 · p99'],
  'answers with 5xx, last minute': ['直近 1 分の 5xx 応答', '最近 1 分钟的 5xx 响应', '최근 1분 5xx 응답'],
  'requests in hand': ['処理中の要求', '处理中的请求', '처리 중인 요청'], 'connections': ['接続', '连接', '연결'],
  'servers that get requests': ['要求を受けるサーバー', '接收请求的服务器', '요청을 받는 서버'],
  'breakers that are not closed': ['閉じていないブレーカー', '未闭合的断路器', '닫히지 않은 차단기'],
  'cache hits, last minute': ['直近 1 分のキャッシュヒット', '最近 1 分钟的缓存命中', '최근 1분 캐시 적중'],
  'service': ['サービス', '服务', '서비스'], 'breaker': ['ブレーカー', '断路器', '차단기'], 'per second': ['毎秒', '每秒', '초당'],
  'latency p50 · p99': ['所要時間 p50 · p99', '延迟 p50 · p99', '지연 p50 · p99'], 'requests': ['要求', '请求', '요청'],
  'retries': ['再試行', '重试', '재시도'], 'refused by breaker': ['ブレーカーが拒否', '被断路器拒绝', '차단기가 거부'], 'server': ['サーバー', '服务器', '서버'],
  'weight': ['重み', '权重', '가중치'], 'in flight': ['処理中', '处理中', '처리 중'], 'waiting': ['待機', '等待', '대기'],
  'ejections': ['除外回数', '逐出次数', '제외 횟수'], 'action': ['操作', '操作', '작업'], 'Drain': ['切り離す', '摘除', '제외'], 'Enable': ['戻す', '启用', '복귀'],
  'route': ['ルート', '路由', '경로'], 'path': ['パス', '路径', '경로 접두사'], 'hosts and methods': ['ホストとメソッド', '主机与方法', '호스트와 메서드'],
  'time': ['時刻', '时间', '시각'], 'answer': ['応答', '响应', '응답'], 'request': ['要求', '请求', '요청'], 'request ID': ['要求 ID', '请求 ID', '요청 ID'],
  'times': ['回数', '次数', '횟수'], 'why': ['理由', '原因', '원인'], 'Nothing has failed since it began.': ['開始以来、失敗はありません。', '启动以来没有失败。', '시작 이후 실패가 없습니다.'],
  'started': ['開始', '启动时间', '시작'], 'configuration': ['設定', '配置', '설정'], 'reload error': ['設定のエラー', '重新加载错误', '설정 오류'],
  'reloads': ['再読み込み', '重新加载', '다시 읽음'], 'malformed requests': ['不正な要求', '格式错误的请求', '잘못된 요청'],
  'draining': ['終了準備中', '正在排空', '종료 준비 중'], 'up': ['稼働', '可用', '가동'], 'down': ['停止', '不可用', '중단'],
  'ejected': ['除外中', '已逐出', '제외됨'], 'drained': ['切り離し済み', '已摘除', '빠짐'], 'closed': ['閉', '闭合', '닫힘'], 'open': ['開', '断开', '열림'],
  'half-open': ['半開', '半开', '반열림'], 'half_open': ['半開', '半开', '반열림'], 'of all': ['全体のうち', '占总数', '전체 중'],
  'The gateway goes on with the configuration that it has': ['今の設定で動き続けます', '网关继续使用现有配置', '게이트웨이는 현재 설정으로 계속합니다'],
  'The configuration was read.': ['設定を読み込みました。', '配置已读取。', '설정을 읽었습니다.'], 'since': ['以来', '自', '이후'],
});

const CLASSES = ['2xx', '3xx', '4xx', '5xx', 'gone'], RECENT = 10, POLL_MS = 1000;
let last; /* the newest /status and when it came */
let silent = 0; /* since when it does not answer */

/* ---- what changed between two answers ---- */

const less = (now, was) => Object.fromEntries(Object.entries(now || {}).map(([k, n]) => [k, Math.max(0, n - ((was || {})[k] || 0))]));
const byName = (list) => Object.fromEntries(list.map((e) => [e.name, e]));
const answersOf = (e) => sum(Object.values(e.answers), (n) => n);

/* Of all routes with a cache: numbers by result. */
function cached(s) {
  const all = {};
  for (const route of (s.links.cache || {}).routes || [])
    for (const [k, n] of Object.entries(route)) if (typeof n === 'number') all[k] = (all[k] || 0) + n;
  return all;
}

function rowOf(now, was, seconds) {
  const row = { t: Date.now(), seconds, answers: less(now.answers, was.answers), took: { all: less(now.took, was.took) }, n: {},
    connections: now.connections, hand: now.requests_in_hand };
  for (const kind of ['services', 'routes']) {
    const before = byName(was[kind]);
    for (const e of now[kind]) {
      const old = before[e.name] || { answers: {}, took: {} }, key = `${kind}/${e.name}`;
      row.n[key] = Math.max(0, answersOf(e) - answersOf(old));
      row.took[key] = less(e.took, old.took);
    }
  }
  row.cache = less(cached(now), cached(was));
  return row;
}

/* The rows of so many last seconds, and sums over them. */
const recent = (s) => history_.filter((r) => r.t > Date.now() - s * 1000);
const perSecond = (list, value) => (list.length ? sum(list, value) / sum(list, (r) => r.seconds) : 0);
const rate = (n) => (n && n < 10 ? n.toFixed(1) : short(n));
const percentiles = (list, what, of) => of.map((q) => micros(percentile(taken(list, what), q))).join(' · ');

/* ---- tables that change each second: cells are changed in their place, so that the keyboard's focus stays ---- */

function change(cell, value) {
  const [text, colour] = Array.isArray(value) ? value : [value, ''];
  if (cell.textContent !== text) cell.textContent = text;
  if (cell.className !== (colour || '')) cell.className = colour || '';
}

function liveTable(into, head, actions) {
  const lines = new Map();
  let shownHead = '';
  return (list) => { /* [{ key, cells, entry }] */
    const keys = list.map((e) => e.key).join('\n') + language;
    if (keys !== shownHead) {
      shownHead = keys;
      lines.clear();
      const made = list.map((e) => {
        const tr = h('tr', {}, e.cells.map(() => h('td', {}, h('span', {}))));
        if (actions) tr.append(h('td', {}, actions(e.entry)));
        lines.set(e.key, tr);
        return tr;
      });
      $(into).replaceChildren(tableOf(actions ? [...head, 'action'] : head, made, true));
    }
    for (const e of list) e.cells.forEach((value, i) => change(lines.get(e.key).children[i].firstChild, value));
    if (actions) for (const e of list) actions(e.entry, lines.get(e.key).lastChild.firstChild);
  };
}

/* ---- drawing ---- */

const GOOD = { up: 'good', closed: 'good', down: 'bad', open: 'bad', ejected: 'bad' };
const stateCell = (state) => [t(state), GOOD[state]];
const failures = (n) => [grouped(n), n ? 'bad' : ''];

async function turn(server) {
  const e = server.entry, path = `/servers/${encodeURIComponent(e.service)}/${encodeURIComponent(e.address)}/${e.state === 'drained' ? 'enable' : 'drain'}`;
  say((await post(path)) ? `${e.address}: ${t(e.state === 'drained' ? 'Enable' : 'Drain')}` : null);
  await poll();
}
function say(text, bad) {
  if (text == null) return;
  $('said').textContent = text;
  $('said').className = `note ${bad ? 'bad' : 'good'}`;
}
async function post(path) {
  try {
    return await ask(path, { method: 'POST' });
  } catch (e) {
    say(why(e), true);
    return null;
  }
}
function turnButton(entry, button) {
  const made = button || h('button', { class: 'plain', type: 'button', onclick: () => turn(made) });
  made.entry = entry;
  const name = t(entry.state === 'drained' ? 'Enable' : 'Drain');
  if (made.textContent !== name) made.textContent = name;
  made.setAttribute('aria-label', `${name}: ${entry.service} ${entry.address}`);
  return made;
}

const LATENCY = 'latency p50 · p99';
const services = liveTable('service-list', ['service', 'breaker', 'per second', LATENCY, 'requests', '5xx', 'retries', 'refused by breaker']);
const servers = liveTable('server-list', ['server', 'service', 'state', 'weight', 'in flight', 'connections', 'requests', 'errors', 'ejections'], turnButton);
const routes = liveTable('route-list', ['route', 'path', 'hosts and methods', 'service', 'per second', LATENCY, 'requests', '4xx', '5xx']);

function drawTables(s) {
  const list = recent(RECENT), of = (key) => [rate(perSecond(list, (r) => r.n[key])), percentiles(recent(60), key, [0.5, 0.99])];
  services(s.services.map((e) => ({ key: e.name, entry: e, cells: [[e.name, 'strong'], stateCell(e.breaker), ...of(`services/${e.name}`),
    grouped(answersOf(e)), failures(e.answers['5xx']), grouped(e.retries), failures(e.refused)] })));
  servers(s.services.flatMap((e) => e.servers.map((x) => ({ key: `${e.name} ${x.address}`, entry: { ...x, service: e.name }, cells: [[x.address, 'mono'], e.name,
    stateCell(x.state), String(x.weight), String(x.in_flight), String(x.connections), grouped(x.requests), failures(x.errors), grouped(x.ejections)] }))));
  routes(s.routes.map((e) => ({ key: e.name, entry: e, cells: [[e.name, 'strong'], [e.path, 'mono'], [...e.methods, ...e.hosts].join(' ') || '—', e.service || e.compose || (e.split || []).join(' / ') || (e.graphql ? 'GraphQL' : '—'),
    ...of(`routes/${e.name}`), grouped(answersOf(e)), grouped(e.answers['4xx']), failures(e.answers['5xx'])] })));
}

let shownErrors = '';
function drawErrors(s) {
  const is = JSON.stringify(s.errors) + language;
  if (is === shownErrors) return;
  shownErrors = is;
  $('error-list').replaceChildren(s.errors.length ? table(['time', 'times', 'answer', 'request', 'route', 'server', 'why', 'request ID'], s.errors.map((e) =>
    [timeText(e.time).slice(0, 19), grouped(e.times), h('b', { class: 'bad' }, String(e.status)), h('span', { class: 'mono' }, `${e.method} ${e.path}`), e.route || '—',
      e.server || '—', e.why || '—', h('code', {}, e.id)]), true) : word('p', { class: 'note' }, 'Nothing has failed since it began.'));
}

/* What the links of the chain tell, by their names: lists of objects are tables, what is empty is left out. */
const spaced = (name) => name.replaceAll('_', ' ');
const empty = (v) => v == null || (typeof v === 'object' && !Object.keys(v).length);
const plain = (v) => (empty(v) ? '—' : typeof v === 'number' ? grouped(v) : typeof v !== 'object' ? String(v)
  : Array.isArray(v) ? v.map(plain).join(', ') : Object.entries(v).map(([k, x]) => `${spaced(k)} ${plain(x)}`).join(', '));
const isList = (v) => Array.isArray(v) && v.every((x) => x && typeof x === 'object' && !Array.isArray(x));
function told(value) {
  const members = Object.entries(value).filter(([, v]) => !empty(v)), flat = members.filter(([, v]) => !isList(v));
  return [flat.length ? h('dl', {}, flat.flatMap(([k, v]) => [h('dt', {}, spaced(k)), h('dd', {}, plain(v))])) : null,
    ...members.filter(([, v]) => isList(v)).map(([, list]) => {
      const keys = [...new Set(list.flatMap((x) => Object.keys(x)))];
      return h('div', { class: 'scroll stacked', tabindex: 0 }, h('table', {}, h('thead', {}, h('tr', {}, keys.map((k) => h('th', { scope: 'col' }, spaced(k))))),
        h('tbody', {}, list.map((x) => h('tr', {}, keys.map((k) => h('td', { 'data-label': spaced(k) }, h('span', {}, plain(x[k])))))))));
    })];
}
let shownLinks = '';
function drawLinks(s) {
  const all = Object.entries({ ...s.links, ...(s.redis ? { redis: s.redis } : {}) }).filter(([, e]) => Object.values(e).some((v) => !empty(v) && v !== 0));
  const is = JSON.stringify(all) + language;
  if (is === shownLinks) return;
  shownLinks = is;
  $('links').replaceChildren(...all.map(([name, e]) => h('section', { class: Object.values(e).some(isList) ? 'card wide' : 'card' }, h('h3', {}, spaced(name)), told(e))));
}

function drawTiles(s) {
  const list = recent(RECENT), minute = recent(60), all = s.services.flatMap((e) => e.servers), up = all.filter((e) => e.state === 'up').length;
  const wrong = sum(minute, (r) => r.answers['5xx']), open = s.services.filter((e) => e.breaker !== 'closed').length;
  const hits = sum(minute, (r) => r.cache.hit), asked = hits + sum(minute, (r) => r.cache.miss);
  const tiles = [[rate(perSecond(list, (r) => sum(Object.values(r.answers), (n) => n))), 'requests/s'],
    [percentiles(minute, 'all', [0.5, 0.9, 0.99]), 'latency: p50 · p90 · p99'],
    [grouped(wrong), 'answers with 5xx, last minute', wrong ? 'bad' : ''],
    [grouped(s.requests_in_hand), 'requests in hand'], [`${grouped(s.connections)} / ${grouped(s.connections_max)}`, 'connections'],
    [`${up} / ${all.length}`, 'servers that get requests', up < all.length ? 'bad' : 'good'],
    [String(open), 'breakers that are not closed', open ? 'bad' : 'good'],
    Object.keys(cached(s)).length > 0 && [asked ? `${(100 * hits / asked).toFixed(1)} %` : '—', 'cache hits, last minute']];
  const made = tiles.filter(Boolean);
  if ($('tiles').children.length !== made.length) $('tiles').replaceChildren(...made.map(() => h('div', { class: 'tile' }, h('b', {}), h('span', {}))));
  made.forEach(([value, name, colour], i) => {
    change($('tiles').children[i].firstChild, [value, colour]);
    $('tiles').children[i].lastChild.dataset.t = name;
    change($('tiles').children[i].lastChild, t(name));
  });
}

function drawCharts() {
  const place = places(), series = (value) => place.map((list) => (list.length ? perSecond(list, value) : null));
  chart('chart-requests', CLASSES.map((c, i) => ({ name: c, values: series((r) => r.answers[c]), colour: [2, 0, 1, 4, 7][i] })));
  const buckets = place.map((list) => taken(list, 'all'));
  chart('chart-latency', [['p50', 0.5], ['p90', 0.9], ['p99', 0.99]].map(([name, q], i) => ({ name, values: buckets.map((b) => percentile(b, q)), colour: [2, 0, 4][i] })),
    { log: true, unit: micros });
  const names = last.status.services.map((e) => e.name).sort((a, b) => perSecond(recent(300), (r) => r.n[`services/${b}`]) - perSecond(recent(300), (r) => r.n[`services/${a}`]));
  chart('chart-services', names.slice(0, 7).map((name) => ({ name, values: series((r) => r.n[`services/${name}`]) })));
  chart('chart-open', [['connections', (r) => r.connections, 5], ['requests in hand', (r) => r.hand, 3]].map(([name, value, colour]) =>
    ({ name: t(name), values: place.map((list) => (list.length ? Math.max(...list.map(value)) : null)), colour })));
}

function drawGateway(s) {
  const is = [s.plan, s.reloads, s.reload_errors, s.reload_error, s.malformed, language, Math.floor(last.at / 10000)].join();
  if (is === $('node').dataset.is) return;
  $('node').dataset.is = is;
  $('node').replaceChildren(...rows([['started', timeText(s.started)], ['uptime', duration((Date.now() - Date.parse(s.started)) / 1000)], ['version', s.version], ['loops', s.loops],
    ['configuration', s.plan], ['reloads', s.reloads], ['reload error', s.reload_error || t('none')], ['malformed requests', grouped(s.malformed)]]));
}

function draw() {
  if (!last || document.hidden) return;
  const s = last.status;
  drawTables(s);
  drawErrors(s);
  drawLinks(s);
  drawTiles(s);
  drawCharts();
  drawGateway(s);
}

/* ---- the gateway's state ---- */

function alive(s) {
  if (s) silent = 0;
  else silent = silent || Date.now();
  const good = s && !s.draining;
  $('state').textContent = t(!s ? 'no answer' : s.draining ? 'draining' : 'ready');
  $('state').className = good ? 'good' : 'bad';
  const text = !s ? `${t('The server has not answered since')} ${new Date(silent).toLocaleTimeString('en-GB')}. ${t('This page goes on when it is back.')}`
    : s.reload_error ? `${t('The gateway goes on with the configuration that it has')}: ${s.reload_error}` : '';
  $('alarm').hidden = !text;
  if ($('alarm').textContent !== text) $('alarm').textContent = text; /* so that it is read aloud once */
}

let asking = null;
const poll = () => asking || (asking = look().finally(() => { asking = null; }));
async function look() {
  let status;
  try {
    status = await ask('/status');
  } catch {
    alive(null);
    return;
  }
  const at = Date.now(), was = last;
  last = { status, at };
  if (was && was.status.started === status.started && at > was.at) {
    history_.push(rowOf(status, was.status, (at - was.at) / 1000));
    history_.splice(0, history_.length - KEEP);
  }
  alive(status);
  draw();
}

async function readAgain() {
  const before = await post('/reload');
  if (!before) return;
  for (let i = 0; i < 20; i++) { /* it has been read when a counter has moved */
    await poll();
    const s = last.status;
    if (s.reload_errors > before.reload_errors) {
      say(s.reload_error, true);
      return;
    }
    if (s.reloads > before.reloads) {
      say(t('The configuration was read.'));
      return;
    }
    await new Promise((done) => { setTimeout(done, 250); });
  }
}

function begin() {
  beginChoices(draw);
  for (const r of document.querySelectorAll('input[name=range]')) r.onchange = drawCharts;
  $('reload').onclick = readAgain;
  $('token-form').onsubmit = (e) => {
    e.preventDefault();
    token = $('token').value.trim();
    $('token-form').hidden = true;
    say('');
  };
  translate();
  document.addEventListener('visibilitychange', draw);
  addEventListener('resize', draw);
  poll();
  setInterval(poll, POLL_MS);
}
document.addEventListener('DOMContentLoaded', begin);
