/* The documentation of this version as a view: pages of docs/ that the server has in it, of the Markdown that they use. */
'use strict';
const PAGES = [['Begin', ['overview', 'tutorial', 'choosing', 'faq', 'troubleshooting']], ['Formats', ['formats', 'layouts', 'generators']],
  ['Use', ['http', 'redis', 'dashboard', 'client', 'clients', 'bindings', 'recipes', 'browsers', 'tools', 'election', 'lab', 'gateway']],
  ['Run', ['coordination', 'cluster', 'containers', 'kubernetes', 'operations', 'alerts', 'tracing', 'security', 'upgrading', 'benchmarks']]];
const slug = (text) => text.toLowerCase().trim().replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-');

/* A link of a page: to a page that is here, or only its text. */
function link(text, to) {
  if (/^https?:/.test(to)) return h('a', { href: to, rel: 'noreferrer' }, inline(text));
  const [, page, , at] = to.match(/^([^#]*?)(\.md)?(?:#(.*))?$/);
  const name = page || shownRest.split('/')[0];
  return PAGES.some(([, names]) => names.includes(name)) ? h('a', { href: `#docs/${name}${at ? `/${at}` : ''}` }, inline(text)) : h('span', {}, inline(text));
}

/* Code, bold, links; images are not in the server. */
function inline(text) {
  const out = [];
  let rest = text;
  for (let m; (m = rest.match(/(`+)(.+?)\1|\*\*(.+?)\*\*|!\[[^\]]*\]\([^)]*\)|\[((?:`[^`]*`|[^\]])*)\]\(([^)\s]*)\)|<(https?:[^>]+)>/s)); rest = rest.slice(m.index + m[0].length)) {
    out.push(rest.slice(0, m.index).replace(/\\([|_*<>])/g, '$1'));
    if (m[2] != null) out.push(h('code', {}, m[2].trim().replace(/\s+/g, ' ').replaceAll('\\|', '|')));
    else if (m[3] != null) out.push(h('b', {}, inline(m[3])));
    else if (m[5] != null) out.push(link(m[4], m[5]));
    else if (m[6]) out.push(link(m[6], m[6]));
  }
  out.push(rest.replace(/\\([|_*<>])/g, '$1'));
  return out;
}
const cellsOf = (line) => line.trim().replace(/^\||\|$/g, '').split(/(?<!\\)\|(?=(?:[^`]*`[^`]*`)*[^`]*$)/).map((c) => c.trim());

/* Lines of Markdown as elements. */
function markdown(text) {
  const lines = text.split('\n'), out = [];
  const list = /^(\s*)([-*]|\d+\.)\s+/;
  for (let i = 0; i < lines.length;) {
    const line = lines[i], fence = line.match(/^\s*```/), title = line.match(/^(#+) (.*)/);
    if (!line.trim()) i++;
    else if (fence) {
      const code = [];
      for (i++; i < lines.length && !/^\s*```/.test(lines[i]); i++) code.push(lines[i]);
      i++;
      out.push(h('pre', { tabindex: 0 }, code.join('\n')));
    } else if (/^ {4}/.test(line)) {
      const code = [];
      for (; i < lines.length && (/^ {4}/.test(lines[i]) || (!lines[i].trim() && /^ {4}/.test(lines[i + 1] || ''))); i++) code.push(lines[i].slice(4));
      out.push(h('pre', { tabindex: 0 }, code.join('\n')));
    } else if (title) {
      out.push(h(`h${Math.min(6, title[1].length + 2)}`, { id: `docs-${slug(title[2].replace(/[`*]/g, ''))}`, tabindex: -1 }, inline(title[2])));
      i++;
    } else if (line.startsWith('|')) {
      const body = [];
      for (; i < lines.length && lines[i].startsWith('|'); i++) body.push(cellsOf(lines[i]));
      const [head, , ...rest] = body;
      out.push(h('div', { class: 'scroll', tabindex: 0 }, h('table', {}, h('thead', {}, h('tr', {}, head.map((c) => (c ? h('th', { scope: 'col' }, inline(c)) : h('td', {}))))),
        h('tbody', {}, rest.map((r) => h('tr', {}, r.map((c) => h('td', {}, inline(c)))))))));
    } else if (list.test(line)) { /* items of one depth; what is further in belongs to its item */
      const depth = line.match(list)[1].length, ordered = /\d/.test(line.match(list)[2]), items = [];
      for (; i < lines.length && (lines[i].trim() ? list.test(lines[i]) || /^\s+/.test(lines[i]) : list.test(lines[i + 1] || '') || /^ {2}/.test(lines[i + 1] || '')); i++) {
        const m = lines[i].match(list);
        if (m && m[1].length <= depth) items.push([lines[i].slice(m[0].length)]);
        else items[items.length - 1].push(lines[i].slice(Math.min(depth + 2, lines[i].search(/\S|$/))));
      }
      out.push(h(ordered ? 'ol' : 'ul', {}, items.map((lines_) => {
        const inner = markdown(lines_.join('\n'));
        return h('li', {}, inner.length && inner[0].tagName === 'P' ? [...inner[0].childNodes, ...inner.slice(1)] : inner);
      })));
    } else {
      const text_ = [];
      for (; i < lines.length && lines[i].trim() && !/^(#|\||\s*```)/.test(lines[i]) && !(text_.length && list.test(lines[i])); i++) text_.push(lines[i].replace(/^> ?/, ''));
      const inside = inline(text_.join('\n'));
      if (inside.some((e) => typeof e !== 'string' || e.trim())) out.push(h('p', {}, inside));
    }
  }
  return out;
}

VIEWS.docs = {
  async show(rest) {
    const [page, at] = (rest || 'tutorial').split('/');
    if (this.page !== page || this.language !== language) {
      const body = h('article', { class: 'card prose', id: 'docs-page' });
      const nav = h('nav', { class: 'pages', 'aria-label': t('Documentation') }, PAGES.map(([name, names]) => h('div', {}, word('b', {}, name),
        names.map((n) => h('a', { href: `#docs/${n}`, 'aria-current': n === page && 'page' }, n)))));
      try {
        if (!PAGES.some(([, names]) => names.includes(page))) throw new Error(`${t('This server does not have the page')} ${page}`);
        const r = await fetch(`/web/${page}.md`);
        if (!r.ok) throw new Error(r.statusText);
        body.append(...markdown(await r.text()));
        this.page = page;
        this.language = language;
      } catch (e) {
        body.append(trouble(e));
        this.page = null;
      }
      $('docs').replaceChildren(word('h2', { class: 'sr' }, 'Documentation'), h('div', { class: 'wide shelf' }, nav, body));
    }
    const target = at && document.getElementById(`docs-${at}`);
    if (target) target.focus();
    if (target) target.scrollIntoView();
    else scrollTo(0, 0);
  },
};
