// firn for JavaScript: IDs of every kind by WebAssembly (load), and a client of firnd servers (Firn). For Node 18 and
// later, and for browsers. firn.d.ts describes every function.
//
//     const ids = await load()
//     ids.uuid7(); ids.ulid(); ids.inspect('01ARZ3NDEKTSV4RRFFQ69G5FAV')
//     const lease = await ids.lease('http://127.0.0.1:9001')   // made here, on a slot leased from firnd
//     await lease.next()
//     const firn = new Firn('http://127.0.0.1:9001')           // made by firnd, fetched ahead
//     await firn.next()
//
// Numbers of 64 bits are BigInts: a JavaScript number would round them.

const TIMEOUT_MS = 2000 // of one request
const ROUNDS = 4 // over all servers, PAUSE_MS apart
const PAUSE_MS = 1000

const sleep = (ms) => new Promise((done) => setTimeout(done, ms))
const u64 = (v) => BigInt.asUintN(64, v)

/** A function of firn failed: `code` is "FIRN_ERANGE" and the like, or a problem type of firnd; `status` is HTTP's. */
export class FirnError extends Error {
    constructor(message, code, status) {
        super(message)
        this.name = 'FirnError'
        this.code = code
        if (status !== undefined) this.status = status
    }
}

// --- firnd over HTTP ---

/* Requests to one of several servers: stays with one while it answers, goes on to the next when it does not. */
class Servers {
    constructor(urls, { token, timeoutMs = TIMEOUT_MS } = {}) {
        this.urls = [urls].flat().map((u) => String(u).replace(/\/+$/, ''))
        if (this.urls.length === 0) throw new TypeError('the URL of a firnd is missing, such as http://127.0.0.1:9001')
        for (const u of this.urls)
            if (!/^https?:\/\//.test(u)) throw new TypeError(`${u} is no URL of a firnd, such as http://127.0.0.1:9001`)
        this.headers = token ? { Authorization: `Bearer ${token}` } : {}
        this.timeoutMs = timeoutMs
    }

    /* One request to the present server. FirnError: it answered with a problem; any other error: it did not answer. */
    async once(path, { read = (r) => r.json(), headers, ...init } = {}) {
        const answer = await fetch(this.urls[0] + path, {
            ...init,
            headers: { ...this.headers, ...headers },
            signal: AbortSignal.timeout(this.timeoutMs),
        })
        if (answer.ok) return read(answer)
        const problem = await answer.json().catch(() => ({}))
        const type = String(problem.type ?? '').replace('urn:firn:problem:', '') || `http-${answer.status}`
        throw new FirnError(`${problem.detail ?? answer.statusText} (${answer.status})`, type, answer.status)
    }

    next() {
        this.urls.push(this.urls.shift())
    }

    /* The answer of the first server that gives one. What every server would refuse is thrown at once. */
    async ask(path, init) {
        const tried = []
        for (let attempt = 0; attempt < ROUNDS * this.urls.length; attempt++) {
            if (attempt > 0 && attempt % this.urls.length === 0) await sleep(PAUSE_MS)
            try {
                return await this.once(path, init)
            } catch (e) {
                if (e instanceof FirnError && e.status !== 503 && e.status !== 429) throw e
                tried.push(`${this.urls[0]}: ${e.cause?.code ?? e.cause?.message ?? e.message}`)
                this.next()
            }
        }
        throw new FirnError(`no server answered: ${tried.join('; ')}`, 'FIRN_EIO')
    }
}

const json = (value) => ({ method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(value) })

async function numbers(answer) {
    const view = new DataView(await answer.arrayBuffer())
    return Array.from({ length: view.byteLength / 8 }, (_, i) => view.getBigUint64(8 * i))
}

/** A client of firnd. Snowflake IDs are fetched in blocks, the next one while the last is in use. */
export class Firn {
    #servers
    #ahead
    #freshMs
    #block = { ids: [], at: 0, end: 0 }
    #coming = null

    constructor(urls, { ahead = 100, freshMs = 1000, ...options } = {}) {
        if (!Number.isInteger(ahead) || ahead < 1 || ahead > 100000)
            throw new RangeError('ahead is the number of IDs per block: 1 to 100000')
        this.#servers = new Servers(urls, options)
        this.#ahead = ahead
        this.#freshMs = freshMs
    }

    async #numbers(n) {
        return this.#servers.ask(`/v1/ids/snowflake?n=${n}`, { headers: { Accept: 'application/octet-stream' }, read: numbers })
    }

    /* One request at a time, shared by all who wait. A block is as old as the question for it. */
    #fetch() {
        this.#coming ??= (async () => {
            const end = performance.now() + this.#freshMs
            return { ids: await this.#numbers(this.#ahead), at: 0, end }
        })().finally(() => { this.#coming = null })
        return this.#coming
    }

    /** A Snowflake ID, at most `freshMs` old. */
    async next() {
        for (;;) {
            const b = this.#block
            if (b.at < b.ids.length && performance.now() < b.end) {
                if (2 * b.at >= b.ids.length && !b.asked) {
                    b.asked = true // once: if it fails, the call that finds the block empty asks again and throws
                    this.#fetch().then((more) => { b.then = more }, () => {})
                }
                return b.ids[b.at++]
            }
            if (b.then) this.#block = b.then
            else {
                const more = await this.#fetch()
                if (this.#block !== b) continue // another call was first
                if (this.#freshMs > 0) this.#block = more
                if (performance.now() >= more.end) { // slower than IDs age: this call has the newest there is
                    this.#block = { ids: more.ids, at: 1, end: more.end }
                    return more.ids[0]
                }
            }
        }
    }

    /** `n` Snowflake IDs of one request. */
    async nextN(n) {
        return this.#numbers(n)
    }

    /** The next number of a sequence. Retries send the same key, so that a gapless sequence gets no hole. */
    async ticket(sequence = 'default', key = crypto.randomUUID()) {
        const path = `/v1/sequences/${encodeURIComponent(sequence)}/next`
        const { id } = await this.#servers.ask(path, { method: 'POST', headers: { 'Idempotency-Key': key } })
        return BigInt(id)
    }

    /** One ID of any kind as text; `params` are those of /generate: length, prefix, encoding, namespace, name. */
    async text(kind, params = {}) {
        const { id } = await this.#servers.ask(`/v1/ids/${encodeURIComponent(kind)}?${new URLSearchParams(params)}`)
        return id
    }
}

// --- WebAssembly ---

const POLICIES = { wait: 0, error: 1, borrow: 2 }
const RESETS = { day: 0, month: 1, year: 2 }
const FIELDS = ['time', 'dc', 'node', 'shard', 'seq']
const KIND_FLAGS = { time: 1, sorts: 2, makes: 4, number: 8, unsafe: 16 }
const EWINDOW = -6
const EAGAIN = -4

async function compiled(source) {
    if (source instanceof WebAssembly.Module) return source
    source = await (source ?? new URL('./firn.wasm', import.meta.url))
    if (source instanceof URL && source.protocol === 'file:')
        source = await (await import('node:fs/promises')).readFile(source)
    else if (source instanceof URL || typeof source === 'string') source = await fetch(source)
    if (typeof Response !== 'undefined' && source instanceof Response) {
        if (!source.ok) throw new FirnError(`${source.url}: ${source.status} ${source.statusText}`, 'FIRN_EIO', source.status)
        source = await source.arrayBuffer()
    }
    return WebAssembly.compile(source)
}

/** The functions of firn; see firn.d.ts. `source`: where firn.wasm is; by default beside this file. */
export async function load(source) {
    let wasm
    const bytes = (at, len) => new Uint8Array(wasm.memory.buffer, at, len)
    const instance = await WebAssembly.instantiate(await compiled(source), {
        firn: {
            entropy: (at, len) => { crypto.getRandomValues(bytes(at, len)) },
            wall_ms: () => Date.now(),
            mono_ms: () => performance.now(),
        },
    })
    wasm = instance.exports
    return new Ids(wasm)
}

class Ids {
    #wasm
    #shape
    #encoder = new TextEncoder()
    #decoder = new TextDecoder()
    #once = new Map() // kind: the mint behind uuid7() and the like
    #freed = new FinalizationRegistry((at) => this.#wasm.free(at))

    constructor(wasm) {
        this.#wasm = wasm
        this.#shape = new Uint32Array(wasm.memory.buffer, wasm.answer(0), 18).slice()
        this.version = this.#text(wasm.version())
        const table = (which, row, make) => {
            const at = wasm.table(which), n = Number(this.#numbers(1)[0])
            return Object.freeze(Array.from({ length: n }, (_, i) => Object.freeze(make(at + i * row))))
        }
        const word = (at) => this.#view().getUint32(at, true)
        const text = (at) => this.#text(word(at))
        this.kinds = table(0, 16, (at) => ({
            name: text(at), about: text(at + 4), bits: word(at + 12),
            ...Object.fromEntries(Object.entries(KIND_FLAGS).map(([name, flag]) => [name, (word(at + 8) & flag) !== 0])),
        }))
        this.layouts = table(1, 12, (at) => ({ name: text(at), text: text(at + 4), summary: text(at + 8) }))
        this.codecs = table(2, this.#shape[17], (at) => ({ name: text(at), about: text(at + 4), alphabet: text(at + 8) }))
    }

    // Memory. Views are made anew each time: memory that grows leaves old ones empty.

    #view() {
        return new DataView(this.#wasm.memory.buffer)
    }

    #numbers(n) {
        return new BigUint64Array(this.#wasm.memory.buffer, this.#wasm.answer(3), n)
    }

    #text(at, max = 4096) {
        const from = new Uint8Array(this.#wasm.memory.buffer, at)
        let end = 0
        while (end < max && from[end] !== 0) end++
        return this.#decoder.decode(from.subarray(0, end))
    }

    #answer(len) {
        return this.#decoder.decode(new Uint8Array(this.#wasm.memory.buffer, this.#wasm.answer(2), len))
    }

    /* Calls `use` with the places of the texts (0 for undefined) and their lengths. */
    #with(texts, use) {
        const raw = texts.map((t) => {
            if (t === undefined) return undefined
            if (typeof t !== 'string') throw new TypeError(`${t} is no text`)
            return this.#encoder.encode(t)
        })
        const at = this.#wasm.malloc(raw.reduce((n, r) => n + (r ? r.length + 1 : 0), 1))
        if (at === 0) throw this.#error(-17)
        try {
            let to = at
            const places = raw.map((r) => {
                if (!r) return 0
                const here = to, into = new Uint8Array(this.#wasm.memory.buffer, to, r.length + 1)
                into.set(r)
                into[r.length] = 0
                to += r.length + 1
                return here
            })
            return use(places, raw.map((r) => r?.length ?? 0))
        } finally {
            this.#wasm.free(at)
        }
    }

    /* The diag is of the last call that wrote one: it is emptied before each call that may. */
    #quiet() {
        bytesOf(this.#wasm, this.#wasm.answer(1) + this.#shape[0], 1)[0] = 0
    }

    #error(code, unknown) {
        const detail = code === -12 && unknown ? unknown : this.#text(this.#wasm.answer(1) + this.#shape[0], 192)
        const name = this.#text(this.#wasm.error_name(code))
        return new FirnError(`${detail || this.#text(this.#wasm.error_message(code))} (${name})`, name)
    }

    #check(code, unknown) {
        if (code < 0) throw this.#error(code, unknown)
        return code
    }

    // Reading.

    #reading(i) {
        const [, size, kind, layout, hasTime, score, unixUs, number, text, bytes, bytesLen, fieldsN, field, fieldSize, value,
            bit, bits] = this.#shape
        const at = this.#wasm.answer(5) + i * size, v = this.#view(), us = v.getBigInt64(at + unixUs, true)
        const known = v.getInt32(at + hasTime, true) !== 0
        const name = this.#text(v.getUint32(v.getUint32(at + kind, true), true))
        const row = this.kinds.find((k) => k.name === name)
        return {
            kind: name,
            layout: this.#text(at + layout, 16),
            text: this.#text(at + text, 128),
            number: row.bits === 64 ? v.getBigUint64(at + number, true) : null,
            bytes: bytesOf(this.#wasm, at + bytes, v.getUint32(at + bytesLen, true)).slice(),
            unixUs: known ? us : null,
            time: known ? new Date(Number(us / 1000n)) : null,
            score: v.getInt32(at + score, true),
            fields: Array.from({ length: v.getUint32(at + fieldsN, true) }, (_, f) => {
                const here = at + field + f * fieldSize
                return { name: this.#text(here, 12), value: this.#text(here + value, 64), bit: v.getUint8(here + bit),
                    bits: v.getUint8(here + bits) }
            }),
        }
    }

    read(id, kind = 'snowflake', layout = 'firn') {
        this.#quiet()
        return this.#with([kind, String(id), layout], ([k, t, l], [, len]) => {
            this.#check(this.#wasm.read_id(k, t, len, l), `there is no kind ${kind}: see kinds`)
            return this.#reading(0)
        })
    }

    inspect(id) {
        return this.#with([String(id)], ([t], [len]) =>
            Array.from({ length: this.#check(this.#wasm.inspect(t, len)) }, (_, i) => this.#reading(i)))
    }

    time(id, layout = 'firn') {
        return this.read(id, 'snowflake', layout).time
    }

    encode(value, codec, bits = 64) {
        if ((bits !== 64 && bits !== 128) || typeof value !== 'bigint' || BigInt.asUintN(bits, value) !== value)
            throw new RangeError(`${value} is no BigInt of ${bits} bits, or ${bits} is neither 64 nor 128`)
        return this.#with([codec], ([c]) => this.#answer(
            this.#check(this.#wasm.encode(c, value >> 64n, u64(value), bits), `there is no codec ${codec}: see codecs`)))
    }

    decode(text, codec, bits = 64) {
        if (bits !== 64 && bits !== 128) throw new RangeError(`${bits} is neither 64 nor 128`)
        this.#quiet()
        return this.#with([codec, text], ([c, t], [, len]) => {
            this.#check(this.#wasm.decode(c, t, len, bits), `there is no codec ${codec}: see codecs`)
            const [hi, lo] = this.#numbers(2)
            return hi << 64n | lo
        })
    }

    convert(text, from, to, bits) {
        bits ??= [from, to].some((form) => form === 'uuid' || form === 'ulid') ? 128 : 64
        const value = from === 'uuid' ? this.read(text, 'uuid').bytes.reduce((v, b) => v << 8n | BigInt(b), 0n)
            : this.decode(text, from === 'ulid' ? 'crockford' : from, bits)
        if (to !== 'uuid') return this.encode(value, to === 'ulid' ? 'crockford' : to, bits)
        return this.encode(value, 'hex', 128).replace(/(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
    }

    // Layouts.

    layout(text = 'firn') {
        this.#quiet()
        return this.#with([text], ([t]) => {
            const canonical = this.#answer(this.#check(this.#wasm.layout(t)))
            const [slots, tickUs, epochMs, endUs, sortable, flags, ...bits] = this.#numbers(11)
            const fields = FIELDS.map((name, i) => ({ name, width: Number(bits[i] >> 8n), shift: Number(bits[i] & 255n) }))
            return { text: canonical, slots, tickUs: Number(tickUs), epoch: new Date(Number(BigInt.asIntN(64, epochMs))),
                end: new Date(Number(BigInt.asIntN(64, endUs) / 1000n)), sortable: sortable === 1n, unsigned: (flags & 1n) !== 0n,
                decodeOnly: (flags & 2n) !== 0n, fields: fields.filter((f) => f.width > 0) }
        })
    }

    compose(parts, layout = 'firn') {
        this.#quiet()
        for (const name of Object.keys(parts))
            if (!FIELDS.includes(name)) throw new RangeError(`there is no field ${name}: ${FIELDS.join(', ')}`)
        return this.#with([layout], ([t]) => {
            this.#numbers(5).set(FIELDS.map((name) => whole(parts[name] ?? 0n, name)))
            this.#check(this.#wasm.compose(t))
            return this.#numbers(1)[0]
        })
    }

    decompose(id, layout = 'firn') {
        this.#quiet()
        return this.#with([layout], ([t]) => {
            this.#check(this.#wasm.decompose(t, whole(id, 'the ID')))
            const parts = [...this.#numbers(5)]
            return Object.fromEntries(FIELDS.map((name, i) => [name, parts[i]]))
        })
    }

    // Making.

    mint(kind, options = {}) {
        const { slot, policy = 'wait', length = 0, layout, encoding, prefix, alphabet, namespace, name, first = 0n, shard = 0n,
            reset = 'day' } = options
        if (['snowflake', 'sonyflake', 'tsid'].includes(kind)) needSlot(slot)
        const way = choice(POLICIES, policy, 'policy'), period = choice(RESETS, reset, 'reset')
        this.#quiet()
        const at = this.#with([kind, layout, encoding, prefix, alphabet, namespace, name], ([k, l, c, p, a, s, n]) => {
            const m = this.#wasm.mint_new(k, slot ?? 0, way, length, l, c, p, a, s, n, whole(first, 'first'),
                whole(shard, 'shard'), period)
            if (m === 0) throw this.#error(Number(BigInt.asIntN(64, this.#numbers(1)[0])),
                `there is no kind ${kind}, or no encoding ${encoding}: see kinds and codecs`)
            return m
        })
        const mint = { next: () => {
            this.#quiet()
            return this.#answer(this.#check(this.#wasm.mint_next(at)))
        } }
        this.#freed.register(mint, at)
        return mint
    }

    #one(kind) {
        let mint = this.#once.get(kind)
        if (!mint) this.#once.set(kind, mint = this.mint(kind))
        return mint.next()
    }

    uuid4() { return this.#one('uuidv4') }
    uuid7() { return this.#one('uuidv7') }
    ulid() { return this.#one('ulid') }
    ksuid() { return this.#one('ksuid') }
    xid() { return this.#one('xid') }
    objectid() { return this.#one('objectid') }
    nanoid() { return this.#one('nanoid') }
    cuid2() { return this.#one('cuid2') }

    generator({ slot, layout = 'firn', policy = 'wait' } = {}) {
        needSlot(slot)
        const gen = this.#generator(layout)
        const slots = this.layout(layout).slots
        if (BigInt(slot) >= slots) throw new RangeError(`slot ${slot} is above ${slots - 1n}, the last of this layout`)
        this.#check(this.#wasm.gen_start(gen.at, slot, choice(POLICIES, policy, 'policy')))
        return gen.handle
    }

    #generator(layout) {
        const wasm = this.#wasm
        this.#quiet()
        const at = this.#with([layout], ([l]) => {
            const g = wasm.gen_new(l)
            if (g === 0) throw this.#error(Number(BigInt.asIntN(64, this.#numbers(1)[0])))
            return g
        })
        const made = (id) => {
            if (id !== 0n) return u64(id)
            this.#quiet()
            throw this.#error(wasm.gen_error(at))
        }
        const handle = {
            next: () => made(wasm.gen_next(at)),
            nextShard: (shard) => made(wasm.gen_next_shard(at, whole(shard, 'the shard'))),
            fill: (n) => {
                if (!Number.isInteger(n) || n < 0) throw new RangeError(`${n} is no number of IDs`)
                const ids = new BigUint64Array(n)
                for (let done = 0; done < n;) {
                    this.#quiet()
                    const got = this.#check(wasm.gen_fill(at, n - done))
                    ids.set(new BigUint64Array(wasm.memory.buffer, wasm.answer(4), got), done)
                    done += got
                }
                return ids
            },
            close: () => wasm.gen_close(at),
        }
        this.#freed.register(handle, at)
        return { at, handle }
    }

    /* A slot lent by firnd; docs/client.md says why no ID comes twice. */
    async lease(urls, options = {}) {
        const lease = new Lease(this.#wasm, new Servers(urls, options), (layout) => this.#generator(layout),
            (code) => { this.#quiet(); return this.#error(code) })
        await lease.open()
        return lease
    }
}

/*
 * Uniqueness rests on the window alone: firnd's store granted it, no other process gets it, and the generator refuses to leave
 * it whatever its clock shows. The clock is the server's time when it answered, carried on by performance.now().
 */
class Lease {
    #wasm
    #servers
    #make
    #error
    #gen = null
    #name = null // of the lease that the server is believed to know
    #slot = -1
    #from = 0n
    #due = 0 // when to extend, by performance.now()
    #trip = null
    #closed = false

    constructor(wasm, servers, make, error) {
        this.#wasm = wasm
        this.#servers = servers
        this.#make = make
        this.#error = error
    }

    get slot() { return this.#slot }

    async open() {
        await this.#renew()
    }

    /* Extend the lease, or take another; one request at a time. */
    #renew() {
        this.#trip ??= this.#ask().finally(() => { this.#trip = null })
        return this.#trip
    }

    async #ask() {
        const began = performance.now()
        if (this.#name) {
            try {
                const last = String(u64(this.#wasm.gen_last(this.#gen.at)))
                const path = `/v1/leases/${this.#name}/extend`
                return this.#granted(await this.#servers.once(path, json({ last })), began)
            } catch (e) {
                this.#due = performance.now() + PAUSE_MS
                if (e instanceof FirnError && e.status === 503) throw e // its store is away: others would not get further
                this.#name = null
                this.#servers.next()
            }
        }
        const tried = []
        for (let attempt = 0; attempt < ROUNDS * this.#servers.urls.length && !this.#closed; attempt++) {
            if (attempt > 0 && attempt % this.#servers.urls.length === 0) await sleep(PAUSE_MS)
            // A new name each time: under an old one the server could grant the window that was used under it.
            const name = Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('')
            const asked = performance.now()
            try {
                const grant = await this.#servers.once('/v1/leases', json({ lease: name }))
                this.#name = name
                return this.#granted(grant, asked)
            } catch (e) {
                if (e instanceof FirnError && e.status !== 503 && e.status !== 429) throw e
                tried.push(`${this.#servers.urls[0]}: ${e.cause?.code ?? e.message}`)
                this.#servers.next()
            }
        }
        throw new FirnError(`no server lent a slot: ${tried.join('; ')}`, 'FIRN_ENOSLOT')
    }

    #granted(grant, began) {
        const now = performance.now()
        if (!this.#gen) {
            this.layout = grant.layout
            this.#gen = this.#make(grant.layout)
        } else if (this.layout !== grant.layout) {
            this.#name = null
            throw new FirnError('the servers have different layouts: list those of one store only', 'FIRN_EINVAL')
        }
        const at = this.#gen.at, from = BigInt(grant.from), until = BigInt(grant.until)
        this.#wasm.gen_clock(at, BigInt(grant.now), (began + now) / 2)
        if (this.#closed) return
        // Slot and start identify the grant; the lease's name does not.
        if (grant.slot !== this.#slot || from !== this.#from) {
            const r = this.#wasm.gen_lease(at, grant.slot, from, until, grant.drift_ms)
            if (r && r !== EWINDOW) throw this.#error(r)
            this.#slot = grant.slot
            this.#from = r ? -1n : from // a window that is over already: the next grant starts the generator
        }
        this.#wasm.gen_extend(at, until, BigInt(grant.floor))
        this.#due = now + Math.max(0, Number(until - BigInt(grant.now)) - (2 * grant.window_ms) / 3)
    }

    /** An ID made here. */
    async next() {
        for (let renewals = 0;;) {
            if (this.#closed) throw new FirnError('the lease is closed (FIRN_ECLOSED)', 'FIRN_ECLOSED')
            if (performance.now() >= this.#due && !this.#trip) {
                this.#due = performance.now() + PAUSE_MS // if it fails, asked again then; the window serves meanwhile
                this.#renew().catch(() => {})
            }
            const id = this.#wasm.gen_next(this.#gen.at)
            if (id !== 0n) return u64(id)
            const code = this.#wasm.gen_error(this.#gen.at)
            if (code === EWINDOW && renewals++ < ROUNDS) await this.#renew()
            else if (code === EAGAIN) await sleep(1)
            else throw this.#error(code)
        }
    }

    /** Give the slot back; no ID comes afterwards. */
    async close() {
        if (this.#closed) return
        this.#closed = true
        this.#wasm.gen_close(this.#gen.at) // first: once the slot is given back no ID may be made on it
        await this.#trip?.catch(() => {})
        if (this.#name) await this.#servers.once(`/v1/leases/${this.#name}`, { method: 'DELETE', read: () => {} }).catch(() => {})
    }
}

const bytesOf = (wasm, at, len) => new Uint8Array(wasm.memory.buffer, at, len)

function whole(value, what) {
    const v = BigInt(value)
    if (u64(v) !== v) throw new RangeError(`${what} is no number of 64 bits: ${value}`)
    return v
}

function choice(of, name, what) {
    if (!Object.hasOwn(of, name)) throw new RangeError(`there is no ${what} ${name}: ${Object.keys(of).join(', ')}`)
    return of[name]
}

function needSlot(slot) {
    if (!Number.isInteger(slot) || slot < 0 || slot > 0xffffffff)
        throw new RangeError('slot is required: a worker number that no other process uses; or take one by lease()')
}
