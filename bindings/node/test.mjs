// Test of the package on the shared vectors, and on real firnds. Usage: node test.mjs PACKAGE BINDIR VECTORS.json
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import assert from 'node:assert/strict'

const [pack, bin, vectorsFile] = process.argv.slice(2)
const { load, Firn, FirnError } = await import(pathToFileURL(join(pack, 'firn.mjs')))
const vectors = JSON.parse(readFileSync(vectorsFile, 'utf8'))
const folder = mkdtempSync(join(tmpdir(), 'firn-node-'))
const ids = await load()
const running = new Set()
let passed = 0, failed = 0

async function test(name, body) {
    try {
        await body()
        passed++
    } catch (e) {
        failed++
        console.log(`FAILED ${name}: ${e.stack}`)
    }
}

const hex = (bytes) => Buffer.from(bytes).toString('hex')
const distinct = (list) => new Set(list).size === list.length
const rises = (list) => list.every((id, i) => i === 0 || id > list[i - 1])
const refuses = (call, what) => assert.throws(call, what)

async function until(what, ask) {
    for (const end = Date.now() + 120000; Date.now() < end; await new Promise((r) => setTimeout(r, 20)))
        if (await ask()) return
    throw new Error(`waited for ${what}`)
}

/* A firnd of its own, with the URLs of its ports. */
async function serve(name, port = 0) {
    const p = spawn(join(bin, 'firnd'), ['--no-config', '--state-dir', join(folder, name), '--listen-home=127.0.0.1:0',
        `--listen-snowflake=127.0.0.1:${port}`, '--listen-ticket=127.0.0.1:0'], { stdio: ['ignore', 'ignore', 'pipe'] })
    let log = '', found
    p.stderr.on('data', (d) => { log += d })
    const ended = new Promise((r) => p.on('exit', r))
    running.add(p)
    ended.then(() => running.delete(p))
    await until('firnd to serve', () => {
        if (p.exitCode !== null) throw new Error(`firnd ended: ${log}`)
        return (found = log.match(/serving home=(\S+) snowflake=(\S+) ticket=(\S+)/))
    })
    const [home, snowflake, ticket] = found.slice(1).map((a) => `http://${a}`)
    await until('firnd to be ready', async () => (await fetch(`${home}/readyz`)).ok)
    return { home, snowflake, ticket, end: (signal = 'SIGTERM') => { p.kill(signal); return ended } }
}

await test('vectors', () => {
    for (const bits of [64, 128])
        for (const row of vectors[`codec${bits}`])
            for (const [codec, text] of Object.entries(row.texts)) {
                assert.equal(ids.encode(BigInt(row.value), codec, bits), text)
                assert.equal(ids.decode(text, codec, bits), BigInt(row.value))
            }
    for (const row of vectors.snowflake) {
        assert.equal(ids.time(row.id, row.layout).getTime(), row.unix_ms)
        assert.equal(ids.read(BigInt(row.id), 'snowflake', row.layout).number, BigInt(row.id))
    }
    for (const row of vectors.kinds) {
        const got = ids.read(row.text, row.kind)
        assert.deepEqual([got.kind, got.text, hex(got.bytes)], [row.kind, row.text, row.hex])
        if (row.unix_ms !== null) assert.equal(got.unixUs, BigInt(row.unix_ms) * 1000n)
    }
    for (const row of vectors.refused) refuses(() => ids.read(row.text, row.kind), FirnError)
})

await test('every kind is made, read again and found', () => {
    const options = { snowflake: { slot: 1 }, sonyflake: { slot: 1 }, tsid: { slot: 1 }, typeid: { prefix: 'user' },
        uuidv3: { namespace: 'dns', name: 'example.com' }, uuidv5: { namespace: 'dns', name: 'example.com' } }
    for (const kind of ids.kinds.filter((k) => k.makes)) {
        const mint = ids.mint(kind.name, options[kind.name]), text = mint.next(), reading = ids.read(text, kind.name)
        assert.equal(reading.text, text)
        if (kind.time) assert.ok(Math.abs(reading.time - Date.now()) < 86400000 + 60000, `${kind.name} ${reading.time}`)
        assert.ok(ids.inspect(text).some((r) => r.text === text), kind.name)
    }
    assert.equal(ids.mint('uuidv5', options.uuidv5).next(), 'cfbff0d1-9375-5685-968c-48ce8b15ae17')
    assert.equal(ids.mint('uuidv3', options.uuidv3).next(), '9073926b-929f-31c2-abc9-fad77ae3e8eb')
    assert.match(ids.mint('nanoid', { length: 12, prefix: 'ord', alphabet: 'ab' }).next(), /^ord_[ab]{12}$/)
    assert.match(ids.mint('snowflake', { slot: 1, encoding: 'base62' }).next(), /^[0-9A-Za-z]{11}$/)
    assert.equal(ids.mint('ticket', { first: 9007199254740993n }).next(), '9007199254740993')
})

await test('one call', () => {
    for (const name of ['uuid4', 'uuid7', 'ulid', 'ksuid', 'xid', 'objectid', 'nanoid', 'cuid2']) {
        const made = Array.from({ length: 5000 }, () => ids[name]())
        assert.ok(distinct(made), name)
        if (name === 'uuid7' || name === 'ulid') assert.ok(rises(made), name)
    }
})

await test('generator', () => {
    const g = ids.generator({ slot: 1023 }), made = [g.next(), ...g.fill(20000), g.next()]
    assert.ok(rises(made) && made.every((id) => ids.decompose(id).node === 1023n))
    assert.ok(Math.abs(ids.time(made[0]) - Date.now()) < 60000)
    g.close()
    refuses(() => g.next(), { code: 'FIRN_ECLOSED' })
    const parts = { time: 5n, dc: 1n, node: 2n, shard: 0n, seq: 3n }
    assert.deepEqual(ids.decompose(ids.compose(parts, 'twitter'), 'twitter'), parts)
    const shards = ids.generator({ slot: 2, layout: 'unused:1,time:41@1ms,node:6,shard:6,seq:10' })
    assert.equal(ids.decompose(shards.nextShard(63), 'unused:1,time:41@1ms,node:6,shard:6,seq:10').shard, 63n)
    refuses(() => shards.nextShard(64), { code: 'FIRN_ERANGE' })
    const high = 'time:42@1ms,node:10,seq:12;epoch=1970-01-01T00:00:00Z;unsigned' // bit 63 is set from 2039 on
    assert.equal(ids.decompose(ids.compose({ time: (1n << 42n) - 1n }, high), high).time, (1n << 42n) - 1n)
})

/* Clocks that the test sets: a step back and a used-up tick never repeat an ID. */
await test('clock', async () => {
    const real = Date.now
    try {
        let now = real()
        Date.now = () => now
        for (const policy of ['error', 'borrow']) {
            const g = ids.generator({ slot: 3, policy })
            now += 2
            const made = Array.from({ length: 4096 }, () => g.next())
            if (policy === 'error') refuses(() => g.next(), { code: 'FIRN_EAGAIN' })
            else made.push(g.next())
            now -= 3600000
            if (policy === 'error') refuses(() => g.next(), { code: 'FIRN_ECLOCK' })
            else made.push(g.next())
            now += 3600000 + 10
            made.push(g.next())
            assert.ok(rises(made), policy)
        }
    } finally {
        Date.now = real
    }
})

await test('refused', () => {
    refuses(() => ids.generator({}), /slot is required/)
    refuses(() => ids.mint('tsid'), /slot is required/)
    refuses(() => ids.generator({ slot: 1024 }), /above 1023/)
    refuses(() => ids.generator({ slot: 1, policy: 'maybe' }), /wait, error, borrow/)
    refuses(() => ids.mint('nope'), /no kind nope/)
    refuses(() => ids.mint('prefixed'), { code: 'FIRN_ENOTSUP' })
    refuses(() => ids.mint('typeid', { prefix: 'No' }), /63 of a-z/)
    refuses(() => ids.layout('time:3'), { code: 'FIRN_ERANGE' })
    refuses(() => ids.encode(1, 'hex'), RangeError)
    refuses(() => ids.encode(1n << 64n, 'hex'), RangeError)
    refuses(() => ids.encode(1n, 'base61'), /no codec base61/)
    refuses(() => ids.decode('not base62!', 'base62'), { code: 'FIRN_EFORMAT' })
    refuses(() => ids.compose({ node: 1024 }), { code: 'FIRN_ERANGE' })
    refuses(() => ids.compose({ worker: 1 }), /no field worker/)
    refuses(() => ids.read('x'.repeat(100000)), FirnError)
    assert.deepEqual(ids.inspect(''), [])
    assert.ok(new URL(`data:,${ids.convert('017f22e2-79b0-7cc3-98c4-dc0c0c07398f', 'uuid', 'ulid')}`)
        .href.endsWith('01FWHE4YDGFK1SHH6W1G60EECF'))
    assert.equal(ids.convert('01FWHE4YDGFK1SHH6W1G60EECF', 'ulid', 'uuid'), '017f22e2-79b0-7cc3-98c4-dc0c0c07398f')
    assert.equal(ids.convert('1541815603606036480', 'decimal', 'base62'), '1ptWyK4WgZU')
    refuses(() => new Firn('127.0.0.1:9001'), /no URL/)
})

/* Two modules are two threads' worth of state. */
await test('modules do not share', async () => {
    const other = await load(readFileSync(join(pack, 'firn.wasm')))
    const made = []
    for (let i = 0; i < 5000; i++) made.push(ids.uuid7(), other.uuid7())
    assert.ok(distinct(made))
    assert.equal(other.layouts.length, ids.layouts.length)
})

await test('firnd: prefetch, tickets, texts', async () => {
    const server = await serve('client')
    const firn = new Firn(server.snowflake, { ahead: 64 })
    const parts = await Promise.all(Array.from({ length: 20 }, async () => {
        const made = []
        for (let i = 0; i < 100; i++) made.push(await firn.next())
        return made
    }))
    assert.ok(parts.every(rises) && distinct(parts.flat()))
    const old = new Firn(server.snowflake, { ahead: 8, freshMs: 0 })
    assert.ok(rises([await old.next(), await old.next(), await old.next()]), 'an ID comes even if none is fresh enough')
    const stale = new Firn(server.snowflake, { freshMs: 5 })
    const before = await stale.next(), wait = Date.now() + 50
    await until('IDs to age', () => Date.now() > wait)
    assert.ok(await stale.next() >= before + 100n, 'an old block is not used')
    assert.equal((await firn.nextN(1000)).length, 1000)
    const first = await firn.ticket(), second = await firn.ticket('default', 'order-1')
    assert.deepEqual([second, await firn.ticket('default', 'order-1'), await firn.ticket()], [first + 1n, first + 1n, first + 2n])
    assert.match(await firn.text('nanoid', { length: '12' }), /^.{12}$/)
    await assert.rejects(firn.text('nope'), { code: 'no-such-kind', status: 404 })
    await server.end()
})

await test('firnd: failing over', async () => {
    const busy = createServer((_, r) => r.writeHead(503, { 'Retry-After': '1' }).end('{"detail":"the store is away"}'))
    await new Promise((r) => busy.listen(0, '127.0.0.1', r))
    const server = await serve('failover'), away = `http://127.0.0.1:${busy.address().port}`
    const firn = new Firn(['http://127.0.0.1:1', away, server.snowflake])
    assert.ok(await firn.next() > 0n)
    await server.end()
    const nobody = new Firn(['http://127.0.0.1:1', away])
    await assert.rejects(nobody.next(), (e) => e.code === 'FIRN_EIO' && /127.0.0.1:1:.*the store is away/.test(e.message))
    busy.close()
})

await test('firnd: leases', async () => {
    const server = await serve('lease')
    const leases = [await ids.lease(server.snowflake), await (await load()).lease(server.snowflake)]
    assert.notEqual(leases[0].slot, leases[1].slot)
    const made = await Promise.all(leases.map(async (lease) => {
        const some = []
        for (let i = 0; i < 20000; i++) some.push(await lease.next())
        return some
    }))
    const servers = (await new Firn(server.snowflake).nextN(1000))
    assert.ok(made.every(rises) && distinct([...made.flat(), ...servers]))
    made.forEach((some, i) => assert.ok(some.every((id) => ids.decompose(id).node === BigInt(leases[i].slot))))
    await Promise.all(leases.map((l) => l.close()))
    await assert.rejects(leases[0].next(), { code: 'FIRN_ECLOSED' })

    // The server is killed: the rest of the window serves; then it is back, knows no lease, and lends a slot again.
    const lease = await ids.lease(server.snowflake), kept = [await lease.next()]
    const metric = async (s, name) => Number((await (await fetch(`${s.home}/metrics`)).text()).match(`\\n${name} (\\d+)`)?.[1])
    await until('an extension', async () => {
        kept.push(await lease.next())
        return await metric(server, 'firn_leases_extended_total') > 0
    })
    await server.end('SIGKILL')
    kept.push(await lease.next())
    const again = await serve('lease', new URL(server.snowflake).port)
    await until('another lease', async () => {
        await lease.next().then((id) => kept.push(id), () => {})
        return await metric(again, 'firn_leases') > 0
    })
    kept.push(await lease.next())
    assert.ok(rises(kept), 'no ID twice, and each above the last')
    await lease.close()
    await again.end()
    await assert.rejects(ids.lease('http://127.0.0.1:1'), /no server lent a slot/)
})

/* A server that the test plays: IDs stay inside the window, whatever is granted and refused. */
await test('leases end where the window does', async () => {
    const layout = ids.layout(), epoch = layout.epoch.getTime(), start = BigInt(Date.now() - epoch), names = new Set()
    let grant = { slot: 5, from: start, until: start + 2n }, status = 200
    const stub = createServer((q, r) => {
        let body = ''
        q.on('data', (d) => { body += d })
        q.on('end', () => {
            const { lease } = JSON.parse(body || '{}'), extends_ = q.url.endsWith('/extend'), code = extends_ ? status : 200
            if (lease) names.add(lease)
            // Its clock is 4 s behind the window, so that ticks are borrowed and none passes unused.
            r.writeHead(code).end(JSON.stringify({ slot: grant.slot, from: `${grant.from}`, until: `${grant.until}`,
                now: `${start - 4000n}`, window_ms: 60000, floor: '0', drift_ms: 5000, layout: layout.text }))
        })
    })
    await new Promise((r) => stub.listen(0, '127.0.0.1', r))
    const url = `http://127.0.0.1:${stub.address().port}`
    async function all(lease, what) { // until it refuses: IDs of each slot
        const made = []
        await assert.rejects(async () => {
            while (made.length < 100000) made.push(await lease.next())
        }, what)
        return made.map((id) => ids.decompose(id))
    }
    const inside = (parts, slot, from, n) => assert.ok(parts.length === Number(n) * 4096 && parts.every((p) =>
        p.node === BigInt(slot) && p.time >= from && p.time < from + n), `${parts.length} IDs of slot ${slot}`)

    status = 503
    const lease = await ids.lease(url)
    inside(await all(lease, { status: 503 }), 5, start, 2n)
    status = 200
    grant = { slot: 5, from: start, until: start + 3n } // extended by one tick
    inside(await all(lease, { code: 'FIRN_EWINDOW' }), 5, start + 2n, 1n)
    grant = { slot: 6, from: start + 10n, until: start + 12n } // the name stands for another grant now
    inside(await all(lease, { code: 'FIRN_EWINDOW' }), 6, start + 10n, 2n)
    assert.equal(names.size, 1)
    status = 404
    grant = { slot: 5, from: start, until: start + 13n } // partly below what was stamped
    inside(await all(lease, { code: 'FIRN_EWINDOW' }), 5, start + 12n, 1n)
    assert.ok(names.size > 1, 'another lease has another name')
    await lease.close()
    stub.close()
})

for (const [name, n, make] of [['generator.next', 400000, ((g) => () => g.next())(ids.generator({ slot: 9, policy: 'borrow' }))],
    ['uuid7', 100000, () => ids.uuid7()], ['ulid', 100000, () => ids.ulid()]]) {
    const began = performance.now()
    for (let i = 0; i < n; i++) make()
    console.log(`${name}: ${Math.round((performance.now() - began) * 1e6 / n)} ns per ID`)
}
for (const p of running) p.kill('SIGKILL')
rmSync(folder, { recursive: true })
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed ? 1 : 0)
