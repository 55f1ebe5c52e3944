// firn compare --html in Chromium, from file:// and without a network. Usage: node compare.mjs BINDIR [SCREENSHOTS]
// With a folder for screenshots it leaves some there, to look at.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const [bin, shots] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'firn-compare-page-'));
let passed = 0, failed = 0;

function check(ok, what) {
  if (ok) passed++;
  else {
    failed++;
    console.log(`FAIL ${what}`);
  }
}

async function open(browser, file, options) {
  const context = await browser.newContext(options);
  await context.setOffline(true);
  const page = await context.newPage();
  page.trouble = [];
  page.on('console', (m) => page.trouble.push(`console: ${m.text()}`));
  page.on('pageerror', (e) => page.trouble.push(`error: ${e.message}`));
  page.on('request', (r) => {
    if (r.url() !== pathToFileURL(file).href && !r.url().startsWith('data:')) page.trouble.push(`request: ${r.url()}`);
  });
  await page.goto(pathToFileURL(file).href);
  return page;
}

/* What the page shows: each plot with its bars, and the table. */
const shown = (page) => page.evaluate(() => ({
  plots: [...document.querySelectorAll('#plots section')].map((section) => {
    const svg = section.querySelector('svg'), box = svg.viewBox.baseVal, right = box.width;
    return {
      title: section.querySelector('h2').textContent,
      scale: [...svg.querySelectorAll(':scope > text')].map((e) => e.textContent),
      bars: [...svg.querySelectorAll('g')].map((g) => {
        const rects = [...g.querySelectorAll('rect')], texts = [...g.querySelectorAll('text')];
        return {
          name: texts[0].textContent, value: texts[1].textContent, source: rects.at(-1).getAttribute('class'),
          width: +rects.at(-1).getAttribute('width'), colour: getComputedStyle(rects.at(-1)).fill,
          inside: [...rects, ...texts].every((e) => e.getBBox().x >= 0 && e.getBBox().x + e.getBBox().width <= right),
        };
      }),
    };
  }),
  rows: [...document.querySelectorAll('#figures tr')].map((tr) => [...tr.children].map((e) => e.textContent)),
  wide: document.documentElement.scrollWidth > innerWidth,
  paper: getComputedStyle(document.body).backgroundColor,
  when: document.getElementById('when').textContent,
}));

const parse = (html) => JSON.parse(html.match(/<script type="application\/json" id="data">(.*?)<\/script>/s)[1]);

function compareWith(page, data, name) {
  const measured = data.kinds.filter((k) => k.measured);
  const [rates, latencies] = page.plots;
  check(/^Measured by firn compare on \d{4}-\d\d-\d\d at \d\d:\d\d UTC\.$/.test(page.when), `${name}: when: ${page.when}`);
  check(rates.bars.map((b) => b.name).join() === measured.map((k) => k.name).join(), `${name}: a bar for each kind that was measured`);
  check(latencies.bars.length === measured.length, `${name}: latencies of all`);
  const byRate = [...measured].sort((a, b) => a.per_second - b.per_second).map((k) => k.name);
  const widths = Object.fromEntries(rates.bars.map((b) => [b.name, b.width]));
  check(byRate.every((n, i) => i === 0 || widths[n] >= widths[byRate[i - 1]]), `${name}: a higher rate has a longer bar`);
  for (const plot of page.plots) {
    check(plot.scale.length >= 2 && plot.bars.length > 0, `${name}: ${plot.title} has a scale and bars`);
    check(plot.bars.every((b) => b.inside), `${name}: ${plot.title} keeps within its drawing`);
    check(plot.bars.every((b) => b.source === data.kinds.find((k) => k.name === b.name).source), `${name}: ${plot.title} has the right colours`);
  }
  check(page.rows.length === data.kinds.length, `${name}: a row for each kind`);
  data.kinds.forEach((kind, i) => {
    const row = page.rows[i];
    check(row[0] === kind.name && row[6] === String(kind.bits) && row[7] === String(kind.chars), `${name}: ${kind.name}: ${row}`);
    check(row[1] === (kind.measured ? kind.per_second.toLocaleString('en-US') : '–'), `${name}: rate of ${kind.name}: ${row[1]}`);
    check(row[8] === (kind.measured ? kind.how : `not measured: ${kind.why}`), `${name}: how of ${kind.name}: ${row[8]}`);
  });
}

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium' });
try {
  const file = join(folder, 'report.html'), other = join(folder, 'other.html');
  execFileSync(join(bin, 'firn'), ['compare', '--start', '--rounds', '2', '--rows', '2000', '--each', '50ms', '--html', file]);
  const html = readFileSync(file, 'utf8'), data = parse(html);
  const colours = [];
  for (const colorScheme of ['light', 'dark'])
    for (const width of [1100, 480]) {
      const page = await open(browser, file, { viewport: { width, height: 900 }, colorScheme });
      const seen = await shown(page), name = `${colorScheme}, ${width} px`;
      check(seen.plots.length === 6, `${name}: six plots without PostgreSQL: ${seen.plots.map((p) => p.title)}`);
      compareWith(seen, data, name);
      check(!seen.wide, `${name}: the page is no wider than the window`);
      check(page.trouble.length === 0, `${name}: ${page.trouble.join('; ')}`);
      if (width === 1100) colours.push([seen.paper, seen.plots[0].bars[0].colour]);
      if (shots) await page.screenshot({ path: join(shots, `compare-${width}-${colorScheme}.png`), fullPage: true });
      await page.context().close();
    }
  check(colours[0][0] !== colours[1][0] && colours[0][1] !== colours[1][1], 'light and dark differ');

  // Figures that a machine without PostgreSQL cannot measure, and texts that look like markup.
  for (const kind of data.kinds) kind.postgres = { rows: 1000, rows_per_second: 12345, bytes: 40000 };
  Object.assign(data.kinds[0], { measured: true, how: '</script><b>"bold"</b>', per_second: 1234567890, distinct: 1, ids: 2 });
  writeFileSync(other, html.replace(/(id="data">).*?(<\/script>)/s, (_, a, b) => a + JSON.stringify(data).replaceAll('<', '\\u003c') + b));
  const page = await open(browser, other, { viewport: { width: 1100, height: 900 } });
  const seen = await shown(page);
  check(seen.plots.length === 8, 'eight plots with PostgreSQL');
  compareWith(seen, data, 'made up');
  check(await page.locator('#figures tr:first-child td.bad').textContent() === 'no', 'an ID that came twice is marked');
  check(await page.locator('#figures b').count() === 0, 'texts are no markup');
  check(page.trouble.length === 0, `made up: ${page.trouble.join('; ')}`);
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
