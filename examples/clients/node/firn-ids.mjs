// Takes IDs and tickets from firnd with ioredis: firnd speaks the Redis protocol.
//
//     npm install && node firn-ids.mjs 127.0.0.1:9012,127.0.0.1:9022,127.0.0.1:9032 10
//
// It stays with one server while that answers, and goes on to the next when it does not. Asking again is safe: a
// Snowflake ID that was lost on its way is simply never used, and a ticket is asked for with a key, to which every
// server gives the same number again, so that a gapless sequence has no hole.
//
// IDs are texts: a JavaScript number would round them.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'

const TIMEOUT_MS = 2000 // to connect, and for an answer
const ROUNDS = 4 // over all addresses, PAUSE_MS apart
const PAUSE_MS = 1000

class Firn {
    #addresses
    #redis = null

    constructor(addresses) {
        this.#addresses = addresses
    }

    // One command; its answer. Throws when no server gives one.
    async ask(...words) {
        const tried = []
        for (let attempt = 0; attempt < ROUNDS * this.#addresses.length; attempt++) {
            if (attempt > 0 && attempt % this.#addresses.length === 0) await sleep(PAUSE_MS)
            try {
                return await this.#connected().call(...words)
            } catch (e) {
                // An error that another server would answer, too; TRYAGAIN says that this one's store is away.
                if (e.name === 'ReplyError' && !e.message.startsWith('TRYAGAIN')) throw e
                tried.push(`${this.#addresses[0]}: ${e.message}`)
                this.#goOn()
            }
        }
        throw new Error(`no server answered: ${tried.join('; ')}`)
    }

    #connected() {
        if (this.#redis) return this.#redis
        const [host, port] = this.#addresses[0].split(/:(?=\d+$)/)
        this.#redis = new Redis({
            host,
            port: Number(port),
            connectTimeout: TIMEOUT_MS,
            commandTimeout: TIMEOUT_MS,
            // Trying again is ours: at another address, not at this one.
            retryStrategy: null,
            maxRetriesPerRequest: 0,
        })
        this.#redis.on('error', () => {}) // the command that waits fails with it, and that is enough
        return this.#redis
    }

    #goOn() {
        this.close()
        this.#addresses.push(this.#addresses.shift())
    }

    close() {
        this.#redis?.disconnect()
        this.#redis = null
    }

    snowflake() {
        return this.ask('FIRN.NEXT', 'snowflake')
    }

    ticket() {
        return this.ask('FIRN.NEXT', 'ticket', 'KEY', randomUUID())
    }
}

const [addresses, count] = process.argv.slice(2)
if (!addresses || !count) {
    console.error('usage: node firn-ids.mjs HOST:PORT[,HOST:PORT...] COUNT')
    process.exit(2)
}
const firn = new Firn(addresses.split(','))
for (let i = 0; i < Number(count); i++)
    console.log(`Snowflake ID: ${await firn.snowflake()}, Ticket ID: ${await firn.ticket()}`)
firn.close()
