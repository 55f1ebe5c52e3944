// The package in Chromium: loaded from a server, on the shared vectors. Usage: node browser.mjs VECTORS.json
import { createServer } from 'node:http'
import { readFileSync } from 'node:fs'
import { chromium } from 'playwright-core'

const files = {
    '/': ['text/html', '<!doctype html><title>firn</title>'],
    '/firn.mjs': ['text/javascript', readFileSync('node_modules/firn-ids/firn.mjs')],
    '/firn.wasm': ['application/wasm', readFileSync('node_modules/firn-ids/firn.wasm')],
    '/vectors': ['application/json', readFileSync(process.argv[2])],
}
const site = createServer((q, r) => {
    const [type, body] = files[q.url] ?? ['text/plain', '']
    r.writeHead(files[q.url] ? 200 : 404, { 'Content-Type': type }).end(body)
})
await new Promise((r) => site.listen(0, '127.0.0.1', r))

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium' })
let wrong
try {
    const page = await browser.newPage()
    await page.goto(`http://127.0.0.1:${site.address().port}/`)
    wrong = await page.evaluate(async () => {
        const { load } = await import('/firn.mjs')
        const ids = await load(), vectors = await (await fetch('/vectors')).json(), bad = []
        for (const row of vectors.kinds)
            if (ids.read(row.text, row.kind).text !== row.text) bad.push(row.text)
        for (const row of vectors.codec64)
            for (const [codec, text] of Object.entries(row.texts))
                if (ids.encode(BigInt(row.value), codec) !== text) bad.push(`${codec} ${text}`)
        const made = [...ids.generator({ slot: 1 }).fill(5000)], texts = Array.from({ length: 5000 }, () => ids.uuid7())
        if (new Set(made).size !== 5000 || new Set(texts).size !== 5000) bad.push('twice')
        if (Math.abs(ids.time(made[0]) - Date.now()) > 60000) bad.push(`time ${made[0]}`)
        return bad
    })
} catch (e) {
    wrong = [e.message]
}
await browser.close()
site.close()
for (const w of wrong) console.log(`FAILED in Chromium: ${w}`)
console.log(`browser: ${wrong.length ? 0 : 1} passed, ${wrong.length} failed`)
process.exit(wrong.length ? 1 : 0)
