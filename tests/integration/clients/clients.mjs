// Clients for Node, each used as an application would. Usage: node clients.mjs HOME SNOWFLAKE TICKET
// Prints a line for each thing that was tried: "ok ..." or "FAILED ...". The line "restart" asks for
// firnd to be killed and started again; "done" on standard input says that it is there.
import http from 'node:http'
import readline from 'node:readline'
import axios from 'axios'
import { Redis as IORedis5 } from 'ioredis5'
import { Redis as IORedis6 } from 'ioredis6'
import * as redis4 from 'redis4'
import * as redis5 from 'redis5'
import * as redis6 from 'redis6'
import * as undici from 'undici'

const [home, snowflake, ticket] = process.argv.slice(2)
const [host, port] = ticket.split(':')

function check(ok, what, detail = '') {
    console.log(ok ? `ok ${what}` : `FAILED ${what}: ${JSON.stringify(detail)?.slice(0, 300)}`)
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b)
const from = (first, n) => Array.from({ length: n }, (_, i) => first + i)
const distinct = (list) => new Set(list).size === list.length
const rising = (list) => list.every((v, i) => i === 0 || BigInt(v) > BigInt(list[i - 1]))
const times = (n, fn) => Promise.all(from(0, n).map(fn))

async function attempt(what, fn) {
    try {
        await fn()
    } catch (e) {
        check(false, what, `${e?.stack ?? e}`)
    }
}

// --- Redis clients: the same questions to each, through a small adapter ---

function ioredis(Redis, options) {
    const open = async (more = {}) => {
        const c = new Redis({ host, port: Number(port), connectionName: 'shop', ...options, ...more })
        c.on('error', () => {}) // the restart
        return c
    }
    return {
        open,
        incr: (c, key) => c.incr(key),
        incrBy: (c, key, n) => c.incrby(key, n),
        get: (c, key) => c.get(key),
        call: (c, ...args) => c.call(...args),
        pipeline: async (c, key, n) => {
            const p = c.pipeline()
            for (let i = 0; i < n; i++) p.incr(key)
            return (await p.exec()).map(([error, v]) => error ?? v)
        },
        multi: async (c, key, n) => {
            const p = c.multi()
            for (let i = 0; i < n; i++) p.incr(key)
            p.exists(key, `${key}:never`)
            p.call('FIRN.NEXT', 'ulid')
            return (await p.exec()).map(([error, v]) => error ?? v)
        },
        abort: (c, key) => c.multi().incr(key).call('NO.SUCH').exec(),
        set: (c) => c.set('a', 'b'),
        name: (c) => c.client('GETNAME'),
        close: (c) => c.quit(),
        async own(name, key) {
            const auto = await open({ enableAutoPipelining: true, keyPrefix: 'app:' })
            const got = await times(500, () => auto.incr(key))
            check(same(got, from(1, 500)), `${name}: automatic pipelining`, got)
            check((await auto.get(key)) === '501', `${name}: key prefix`)
            check((await auto.info()).includes('firn_version'), `${name}: INFO`)
            await auto.quit()
        },
    }
}

function nodeRedis(module, options) {
    const open = async () => {
        const c = module.createClient({
            name: 'shop',
            socket: { host, port: Number(port), reconnectStrategy: 50 },
            ...options,
        })
        c.on('error', () => {})
        await c.connect()
        return c
    }
    return {
        open,
        incr: (c, key) => c.incr(key),
        incrBy: (c, key, n) => c.incrBy(key, n),
        get: (c, key) => c.get(key),
        call: (c, ...args) => c.sendCommand(args),
        pipeline: async (c, key, n) => {
            const p = c.multi()
            for (let i = 0; i < n; i++) p.incr(key)
            return p.execAsPipeline()
        },
        multi: async (c, key, n) => {
            const p = c.multi()
            for (let i = 0; i < n; i++) p.incr(key)
            p.exists([key, `${key}:never`])
            p.addCommand(['FIRN.NEXT', 'ulid'])
            return p.exec()
        },
        abort: (c, key) => c.multi().incr(key).addCommand(['NO.SUCH']).exec(),
        set: (c) => c.set('a', 'b'),
        name: (c) => c.clientGetName(),
        close: (c) => (c.close ? c.close() : c.quit()),
        async own(name, key) {
            if (!module.createClientPool) return
            const pool = module.createClientPool(
                { socket: { host, port: Number(port) }, ...options },
                { minimum: 2, maximum: 8 },
            )
            pool.on('error', () => {})
            await pool.connect()
            const got = await times(300, () => pool.incr(`${key}:pool`))
            check(same(got.sort((a, b) => a - b), from(1, 300)), `${name}: a pool`, got)
            await pool.close()
        },
    }
}

async function tryRedis(name, client, proto) {
    const c = await client.open()
    const key = `key:${name.replaceAll(' ', '-')}`
    check((await client.incr(c, key)) === 1, `${name}: INCR`)
    check((await client.incrBy(c, key, 10)) === 11, `${name}: INCRBY`)
    check((await client.get(c, key)) === '12', `${name}: GET`)
    check((await client.get(c, `${key}:never`)) === null, `${name}: GET of nothing`)
    check((await client.name(c)) === 'shop', `${name}: the connection has its name`)

    const piped = await client.pipeline(c, key, 1000)
    check(same(piped, from(12, 1000)), `${name}: a pipeline of 1000`, piped)

    const key2 = `${key}:multi`
    const together = await client.multi(c, key2, 500)
    check(same(together.slice(0, 501), [...from(1, 500), 1]), `${name}: a transaction`, together)
    check(/^[0-9A-Z]{26}$/.test(together[501]), `${name}: FIRN.NEXT in a transaction`, together[501])
    const aborted = await client.abort(c, key2).catch((e) => e)
    check(/EXECABORT|unknown command/.test(`${aborted}`), `${name}: an error ends a transaction`, `${aborted}`)
    check((await client.incr(c, key2)) === 501, `${name}: nothing of it was run`)

    const ids = await client.call(c, 'FIRN.NEXT', 'snowflake', 'COUNT', '1000')
    check(ids.every((i) => typeof i === 'string'), `${name}: IDs are strings`, ids)
    check(ids.length === 1000 && rising(ids), `${name}: FIRN.NEXT COUNT`, ids)
    const one = await client.call(c, 'FIRN.NEXT', 'uuidv7')
    check(/^[0-9a-f-]{36}$/.test(one), `${name}: FIRN.NEXT uuidv7`, one)
    const reading = await client.call(c, 'FIRN.INSPECT', ids[0])
    check(JSON.stringify(reading).includes('snowflake'), `${name}: FIRN.INSPECT`, reading)

    const hello = await client.call(c, 'HELLO')
    const said = Array.isArray(hello) ? hello[hello.indexOf('proto') + 1] : (hello.get?.('proto') ?? hello.proto)
    check(said === proto, `${name}: speaks RESP${proto}`, hello)
    const error = await client.set(c).catch((e) => e)
    check(/unknown command '?set/i.test(error?.message), `${name}: an unknown command is an error`, `${error}`)
    check((await client.incr(c, key)) === 1012, `${name}: and the connection lives on`)

    // Several connections on a gapless sequence: together they get every number once.
    const before = Number(await client.get(c, 'default'))
    const many = await times(5, () => client.open())
    const numbers = (await times(1000, (i) => client.incr(many[i % 5], 'default'))).sort((a, b) => a - b)
    check(same(numbers, from(before, 1000)), `${name}: five connections share a gapless sequence`, numbers)
    await Promise.all(many.map((m) => client.close(m)))

    await client.own(name, key)
    return c
}

const clients = {
    'ioredis 5': [ioredis(IORedis5, {}), 2],
    'ioredis 6': [ioredis(IORedis6, {}), 3],
    'node-redis 4': [nodeRedis(redis4, {}), 2],
    'node-redis 5': [nodeRedis(redis5, {}), 2],
    'node-redis 5 RESP3': [nodeRedis(redis5, { RESP: 3 }), 3],
    'node-redis 6': [nodeRedis(redis6, { RESP: 2 }), 2],
    'node-redis 6 RESP3': [nodeRedis(redis6, { RESP: 3 }), 3],
}

// --- HTTP clients ---

async function tryHttp() {
    const id = async (name, fn) =>
        attempt(name, async () => {
            const got = await times(50, fn)
            check(got.every((v) => typeof v === 'string') && distinct(got), `${name}: 50 at once`, got)
        })
    const url = `http://${snowflake}/generate`
    await id('fetch', async () => (await (await fetch(url)).json()).id)
    await id('fetch POST', async () => (await (await fetch(url, { method: 'POST' })).json()).id)
    await id('axios', async () => (await axios.get(url)).data.id)
    await id('axios POST', async () => (await axios.post(url)).data.id)
    await id('undici fetch', async () => (await (await undici.fetch(url)).json()).id)
    await id('undici request', async () => (await (await undici.request(url)).body.json()).id)

    // Pipelining, which few clients do: on one connection answers come in the order of the requests.
    const pool = new undici.Pool(`http://${ticket}`, { connections: 1, pipelining: 10 })
    await attempt('undici pipelining', async () => {
        const got = await times(200, async () => {
            const answer = await pool.request({ path: '/generate?seq=default', method: 'GET' })
            return Number((await answer.body.json()).id)
        })
        check(same(got, from(got[0], 200)), 'undici pipelining: in order', got)
    })
    await pool.close()

    await attempt('node:http agent', async () => {
        const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
        const ask = () =>
            new Promise((resolve, reject) => {
                const call = http.get(url, { agent }, (answer) => {
                    let text = ''
                    answer.on('data', (some) => (text += some))
                    answer.on('end', () => resolve([JSON.parse(text).id, call.reusedSocket]))
                })
                call.on('error', reject)
            })
        const row = [await ask()]
        for (let i = 0; i < 50; i++) row.push(await ask())
        check(row[1][1], 'node:http agent: the connection is used again')
        check(rising(row.map(([v]) => v)), 'node:http agent: on one connection IDs rise', row)
        agent.destroy()
    })
    await attempt('axios create', async () => {
        const made = await axios.post(`http://${home}/v1/sequences`, { name: 'invoices', start: '7' })
        check(made.status === 201, 'axios: create a sequence', made.data)
        const taken = await axios.get(`http://${ticket}/generate?seq=invoices&n=3`)
        check(same(taken.data, { ids: ['7', '8', '9'] }), 'axios: and take from it', taken.data)
        const refused = await axios.get(`${url}?n=0`).catch((e) => e.response)
        const type = refused.headers['content-type']
        check(refused.status === 400 && type === 'application/problem+json', 'axios: a problem', type)
    })
    await attempt('binary', async () => {
        const answer = await fetch(`${url}?n=1000`, { headers: { Accept: 'application/octet-stream' } })
        const view = new DataView(await answer.arrayBuffer())
        check(rising(from(0, 1000).map((i) => view.getBigUint64(8 * i))), 'fetch: integers')
    })
}

const open = []
for (const [name, [client, proto]] of Object.entries(clients))
    await attempt(name, async () => open.push([name, client, await tryRedis(name, client, proto)]))
await attempt('http', tryHttp)

// firnd is killed and comes back: the same connections go on by themselves, and no number repeats.
const lines = readline.createInterface({ input: process.stdin })
const last = {}
for (const [name, client, c] of open) last[name] = await client.incr(c, 'default')
console.log('restart')
await new Promise((resolve) => lines.once('line', resolve))
const after = []
for (const [name, client, c] of open)
    await attempt(`${name}: reconnects`, async () => {
        let got
        for (let i = 0; typeof got !== 'number'; i++) {
            got = await client.incr(c, 'default').catch((e) => e)
            if (typeof got !== 'number' && i === 200) throw got
            if (typeof got !== 'number') await new Promise((resolve) => setTimeout(resolve, 50))
        }
        after.push(got)
        check(got > Math.max(...Object.values(last)), `${name}: reconnects`, [got, last])
        check((await client.name(c)) === 'shop', `${name}: and has its name again`)
        await client.close(c)
    })
check(distinct(after), 'numbers after the restart are distinct', after)
lines.close()
await undici.getGlobalDispatcher().close()
console.log('ok all done')
process.exit(0)
