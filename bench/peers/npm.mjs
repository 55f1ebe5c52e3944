// Times npm packages. Prints KEY, what, median and best ns a call, separated by tabs.
import { Snowflake } from '@sapphire/snowflake';
import { nanoid } from 'nanoid';
import { monotonicFactory, ulid } from 'ulid';
import { parse, v1, v4, v7 } from 'uuid';

const ROUNDS = 9;
const RUN_NS = 20e6;
const snowflake = new Snowflake(1609459200000n);
const monotonic = monotonicFactory();

const rows = [
    ['snowflake', '@sapphire/snowflake generate (BigInt)', () => snowflake.generate()],
    ['uuid4.text', 'uuid v4', () => v4()],
    ['uuid7.text', 'uuid v7', () => v7()],
    ['uuid1.text', 'uuid v1', () => v1()],
    ['ulid.text', 'ulid', () => ulid()],
    ['ulid.mono.text', 'ulid monotonicFactory', () => monotonic()],
    ['nanoid.text', 'nanoid', () => nanoid()],
    ['uuid.parse', 'uuid parse', () => parse('017f22e2-79b0-7cc3-98c4-dc0c0c07398f')],
];

let last; // what a call made stays reachable, so that no call is dropped as useless

function nsPerCall(call) {
    let n = 0;
    const start = process.hrtime.bigint();
    let ns = 0;
    while (ns < RUN_NS) {
        for (let i = 0; i < 256; i++) last = call();
        n += 256;
        ns = Number(process.hrtime.bigint() - start);
    }
    return ns / n;
}

for (const [key, what, call] of rows) {
    for (let i = 0; i < 5; i++) nsPerCall(call); // let the compiler see it
    const round = Array.from({ length: ROUNDS }, () => nsPerCall(call)).sort((a, b) => a - b);
    console.log([key, what, round[ROUNDS >> 1].toFixed(3), round[0].toFixed(3)].join('\t'));
}
if (last === undefined) process.exit(1);
