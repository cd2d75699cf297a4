// The dashboard of the admin listener, in five parts: documents, texts, what it knows of the gateway (requests, what is
// polled, the stream of requests), what is wrong, what it shows (one function a section), and what it does.
// Every text of the gateway becomes a text node; nothing is parsed as HTML. The token stays in a variable.

const POLL = 2000, TIMEOUT = 8000, IDLE = 40000, HISTORY = 600000, LINES = 300;
const WINDOWS = {'10s': [10, '10 s'], '1m': [60, '1 min'], '10m': [600, '10 min']};
const NEEDS_TOKEN = 'Changes need the token of the admin listener.';
const NO_TOKEN = 'Changes from this page need a token, and the configuration has none: set admin.token_file. '
  + 'Until then, use the commands on the machine itself, such as martlet reload.';
const NOT_ACCEPTED = 'The gateway does not accept this token.';

// ---------------------------------------------------------------- Documents

const $ = id => document.getElementById(id);
const on = (id, name, listener) => $(id).addEventListener(name, listener);
const SVG = ['svg', 'polyline', 'polygon', 'line'];

/** An element with attributes (`on` is what a click does) and children: nodes and texts. */
function h(tag, attributes = {}, ...children) {
  const element = SVG.includes(tag) ? document.createElementNS('http://www.w3.org/2000/svg', tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'on') element.addEventListener('click', value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}
const button = (text, act, attributes = {}) => h('button', {type: 'button', on: act, ...attributes}, text);
const link = (section, values, text, attributes = {}) => h('a', {href: href(section, values), ...attributes}, text);

/** Sets a text only if it differs, so that selections stay. */
function put(element, text) {
  const value = String(text ?? '');
  if (element.textContent !== value) element.textContent = value;
}
function attribute(element, name, value) {
  if (value === null || value === undefined) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

/** Shows items as children, and reuses the element of each key: `make(item)` returns [element, update]. */
function keep(parent, items, key, make) {
  const old = parent.kept ?? new Map(), kept = new Map();
  for (const item of items) {
    let id = key(item);
    while (kept.has(id)) id += '\u0000';
    const entry = old.get(id) ?? make(item);
    kept.set(id, entry);
    if (entry[1]) entry[1](item);
  }
  for (const [id, entry] of old) if (!kept.has(id)) entry[0].remove();
  // An element that is moved loses the focus.
  const isFocused = parent.contains(document.activeElement);
  let next = parent.firstElementChild;
  for (const [element] of kept.values()) {
    if (element === next) next = next.nextElementSibling;
    else if (!isFocused || !element.isConnected) parent.insertBefore(element, next);
  }
  parent.kept = kept;
}

/** A list of [term, text]; pairs without a text are left out. */
function facts(dl, pairs) {
  const shown = pairs.filter(pair => pair[1] !== null && pair[1] !== undefined && pair[1] !== '');
  keep(dl, shown.flatMap(([term, text]) => [['dt', term, term], ['dd', term, text]]), one => `${one[0]} ${one[1]}`,
    ([tag]) => { const element = h(tag); return [element, one => put(element, one[2])]; });
}

/** A table whose rows stay the same elements.
 *
 * A column has a title and one of: text(row); of(row), which returns [text, note, level of a badge]; build(cell, row),
 * which fills a cell once and may return what updates it. Also kind(row), a class; number; sort(row), a value. */
class Table {
  constructor(parent, label, columns, key, empty) {
    Object.assign(this, {columns, key, noRows: empty, filter: '', rows: [], by: -1, isDown: true});
    const head = column => ({scope: 'col', role: 'columnheader', class: column.number && 'n'});
    this.heads = columns.map((column, index) => h('th', head(column),
      column.sort ? button(column.title, () => this.order(index)) : column.title));
    this.body = h('tbody', {role: 'rowgroup'});
    this.table = h('table', {role: 'table', 'aria-label': label},
      h('thead', {role: 'rowgroup'}, h('tr', {role: 'row'}, ...this.heads)), this.body);
    this.empty = h('p', {class: 'empty'});
    parent.append(h('div', {class: 'scroll'}, this.table), this.empty);
  }

  order(index) {
    if (this.by !== index) [this.by, this.isDown] = [index, true];
    else if (this.isDown) this.isDown = false;
    else this.by = -1;
    this.heads.forEach((head, one) =>
      attribute(head, 'aria-sort', one === this.by ? (this.isDown ? 'descending' : 'ascending') : null));
    this.show(this.rows);
  }

  show(rows) {
    this.rows = rows;
    const texts = row => this.columns.map(one => (one.of ? one.of(row).join(' ') : one.text ? one.text(row) : ''));
    let shown = rows.filter(row => matches(this.filter, texts(row).join(' ')));
    if (this.by >= 0) {
      const value = this.columns[this.by].sort, sign = this.isDown ? -1 : 1;
      const compare = (a, b) => (a === b ? 0 : a < b ? -sign : sign);
      shown = [...shown].sort((a, b) => compare(value(a), value(b)));
    }
    this.table.hidden = shown.length === 0;
    this.empty.hidden = shown.length > 0;
    put(this.empty, rows.length ? 'Nothing matches the filter.' : this.noRows);
    keep(this.body, shown, this.key, row => this.row(row));
  }

  row(first) {
    const updates = [], row = h('tr', {role: 'row'});
    for (const [index, column] of this.columns.entries()) {
      const cell = h(index ? 'td' : 'th', {
        role: index ? 'cell' : 'rowheader', scope: index ? null : 'row', 'data-label': column.title,
      });
      row.append(cell);
      let update = one => put(cell, column.text(one));
      if (column.build) update = column.build(cell, first) ?? (() => {});
      if (column.of) {
        const main = h('span'), note = h('small');
        cell.append(h('div', {}, main, note));
        update = one => {
          const [text, more, level] = column.of(one);
          put(main, text);
          attribute(main, 'class', level ? `badge ${level}` : null);
          put(note, more);
          note.hidden = !more;
        };
      }
      updates.push(one => {
        update(one);
        const kind = [column.number ? 'n' : '', column.kind ? column.kind(one) : column.of ? 'any' : ''];
        attribute(cell, 'class', [...kind, cell.textContent ? '' : 'none'].join(' ').trim() || null);
      });
    }
    return [row, one => { for (const update of updates) update(one); }];
  }
}

/** A column with a button: of(row) returns [text, action], or null for none. */
const actionColumn = of => ({title: '', kind: () => 'act n', build: (cell, first) => {
  let current = first;
  const act = button('', () => change(of(current)[1]), {'data-change': ''});
  return row => {
    const shown = of(current = row);
    if (!shown) { act.remove(); return; }
    if (!act.isConnected) cell.append(act);
    put(act, shown[0]);
  };
}});

// ---------------------------------------------------------------- Texts

const sentence = text => (text && !/[.)]$/.test(text) ? `${text}.` : text);
const words = (...texts) => texts.filter(Boolean).join(' · ');
const number = value => (Number.isFinite(value) ? Math.round(value).toLocaleString('en-US') : '–');
const plural = (count, one) => `${number(count)} ${count === 1 ? one : `${one}s`}`;
const rate = value => (!Number.isFinite(value) ? '–'
  : `${value === 0 ? '0' : value < 10 ? value.toFixed(value < 0.1 ? 2 : 1) : number(value)}/s`);
const milliseconds = value => (!Number.isFinite(value) ? '–' : value >= 1000
  ? `${(value / 1000).toFixed(value < 9950 ? 1 : 0)} s` : `${value.toFixed(value < 1 ? 2 : value < 10 ? 1 : 0)} ms`);
const percent = share => (share > 0 && share < 0.001 ? '< 0.1 %'
  : `${(share * 100).toFixed(share < 0.1 && share ? 1 : 0)} %`);
function bytes(value) {
  if (!Number.isFinite(value)) return '–';
  let unit = 0;
  for (; value >= 1024 && unit < 4; unit++) value /= 1024;
  return `${value.toFixed(value < 10 && unit ? 1 : 0)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][unit]}`;
}
function duration(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s < 600 && s % 60 ? ` ${s % 60} s` : ''}`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}
const clock = ms => new Date(ms).toLocaleTimeString('en-GB');
/** The local time, with the date unless that is today's. */
function moment(ms) {
  const date = new Date(ms), today = new Date();
  if (today.toDateString() === date.toDateString()) return clock(ms);
  const year = today.getFullYear() === date.getFullYear() ? {} : {year: 'numeric'};
  return `${date.toLocaleDateString('en-GB', {day: 'numeric', month: 'short', ...year})}, ${clock(ms)}`;
}
const at = seconds => (Number.isFinite(seconds) ? moment(seconds * 1000) : '–');
const date = text => (text ? moment(Date.parse(text)) : '–');
/** The first time that was said of an event: what several event loops or roundings say of it differs by seconds. */
function steady(key, ms) {
  const before = known.steady.get(key);
  if (before && Math.abs(before - ms) < 5000) return before;
  known.steady.set(key, ms);
  return ms;
}
const sinceText = ms => `since ${moment(ms)} (${duration((now() - ms) / 1000)})`;
const list = (names, most = 3) => (names.length <= most + 1 ? names.join(', ')
  : `${names.slice(0, most).join(', ')} and ${names.length - most} more`);
const matches = (filter, text) => {
  const all = text.toLowerCase();
  return filter.toLowerCase().split(/\s+/).every(word => all.includes(word));
};
/** A subject of an access line, in which bytes are escaped as %XX. */
const unescaped = text => { try { return decodeURIComponent(text); } catch { return text; } };
const segment = text => encodeURIComponent(text);
const query = values => new URLSearchParams(Object.entries(values).filter(one => one[1])).toString();
const href = (section, values) => `#${section}${values ? `?${query(values)}` : ''}`;

// ---------------------------------------------------------------- Requests to the gateway

const known = {
  token: '', skew: 0, docs: {}, missing: new Set(), rests: {}, lost: null, why: null, window: '1m', samples: [],
  seen: new Map(), steady: new Map(), history: [], opened: Date.now(), problems: [], isChecked: false,
};
const now = () => Date.now() + known.skew;
const access = () => known.docs.status?.access ?? {change: false, token: false};

/** A response that is no success, in the format of RFC 9457 where the gateway wrote it. */
class Problem extends Error {
  constructor(status, body) {
    const document = body && typeof body === 'object' ? body : {};
    super(document.detail || document.title || `status ${status}`);
    Object.assign(this, {status, document, code: document.code ?? '', isMissing: status === 404 || status === 405});
  }
  get text() {
    const {code, request_id: id} = this.document, more = [code, id && `request ${id}`].filter(Boolean).join(', ');
    return `${this.status}: ${this.message}${more && ` (${more})`}`;
  }
}
const errorText = error => (error instanceof Problem ? error.text
  : error.name === 'TimeoutError' ? 'no response in time' : 'no connection');
const isStatus = (error, ...statuses) => error instanceof Problem && statuses.includes(error.status);
const fieldsOf = (accept, token = known.token) => ({
  Accept: accept, ...(token ? {Authorization: `Bearer ${token}`} : {}),
});
const options = {cache: 'no-store', credentials: 'omit', redirect: 'error'};

async function call(method, path, {body, token, headers = {}} = {}) {
  const fields = {...fieldsOf('application/json', token), ...headers};
  if (body) fields['Content-Type'] = 'application/json';
  const response = await fetch(path, {
    ...options, method, headers: fields, body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(method === 'GET' ? TIMEOUT : 30000),
  });
  // The clock of the gateway counts; `Date` has whole seconds.
  const skew = Date.parse(response.headers.get('Date') ?? '') - Date.now();
  if (Number.isFinite(skew)) known.skew = Math.abs(skew) > 2000 ? skew : 0;
  const text = await response.text();
  let value = text;
  try { value = JSON.parse(text); } catch { /* It is no JSON, and stays a text. */ }
  if (!response.ok) throw new Problem(response.status, value);
  return value;
}

// What each section shows besides the state.
const wanted = {
  overview: ['routes', 'upstreams', 'store'], routes: ['routes', 'upstreams'], upstreams: ['upstreams', 'routes'],
  providers: ['providers', 'routes', 'upstreams'], users: ['upstreams'], tail: ['upstreams', 'routes'],
  system: ['upstreams', 'store', 'accounts'],
};
let timer = 0, isPolling = false, pollsAgain = false;

async function poll() {
  pollsAgain = isPolling;
  if (isPolling || document.hidden) return;
  isPolling = true;
  clearTimeout(timer);
  try {
    const status = await call('GET', '/status');
    known.docs.status = status;
    if (known.lost) note(`The connection is back after ${duration((Date.now() - known.lost.since) / 1000)}.`, 'ok');
    known.lost = known.why = null;
    record(status);
    await Promise.all(wanted[route.section].map(load));
  } catch (error) {
    fail(error);
  }
  isPolling = false;
  let wait = known.why ? 10000 : POLL;
  if (known.lost) {
    wait = Math.min(POLL * 2 ** (known.lost.attempts - 1), 15000);
    known.lost.next = Date.now() + wait;
  }
  render();
  clearTimeout(timer);
  timer = setTimeout(poll, pollsAgain ? 0 : wait);
}

/** A document besides the state; what is long or missing is requested less often. */
async function load(name) {
  if (Date.now() < known.rests[name]) return;
  let rest = 0;
  try {
    known.docs[name] = await call('GET', `/${name}`);
    known.missing.delete(name);
    if (known.docs[name][name]?.length > 300) rest = 10000;
  } catch (error) {
    if (!(error instanceof Problem) || isStatus(error, 401, 403)) throw error;
    known.missing.add(name);
    delete known.docs[name];
    rest = 10000;
  }
  known.rests[name] = Date.now() + rest;
}

function fail(error) {
  if (isStatus(error, 401, 403, 404, 405, 421)) {
    if (error.status === 401 && known.why?.text !== error.text) {
      askToken(known.token ? NOT_ACCEPTED : 'This gateway shows its state with the token only.');
    }
    [known.why, known.lost] = [error, null];
    return;
  }
  known.lost = known.lost ?? {since: Date.now(), attempts: 0};
  known.lost.attempts++;
  known.lost.why = error instanceof Problem ? `the gateway responds ${error.text}` : errorText(error);
}

function record(status) {
  const before = latest();
  if (before && (status.uptime_seconds < before.uptime || status.instance !== before.instance)) {
    known.samples = [];
    note('The process has started again: its counters begin at 0.', 'info');
  }
  const {rate, errors, p99_ms: p99} = status.last?.['10s'] ?? {}, reasons = {...status.reasons};
  delete reasons.ok;
  known.samples.push({
    at: Date.now(), uptime: status.uptime_seconds, instance: status.instance, reasons,
    refused: status.connections?.refused ?? 0, rate: rate ?? 0, errors: (errors ?? 0) / 10, p99: p99 ?? 0,
  });
  while (known.samples.length > 1 && Date.now() - known.samples[1].at > HISTORY + POLL) known.samples.shift();
}
const latest = () => known.samples[known.samples.length - 1];

/** What was counted in the window, as far as the page has seen it: [difference(of), seconds]. */
function delta() {
  const end = latest(), length = WINDOWS[known.window][0] * 1000;
  if (!end) return [() => 0, 0];
  const start = [...known.samples].reverse().find(one => end.at - one.at >= length) ?? known.samples[0];
  return [of => Math.max(0, of(end) - of(start)), (end.at - start.at) / 1000];
}

// ---------------------------------------------------------------- The stream of requests

const stream = {filter: null, lines: [], waiting: [], dropped: 0, state: '', isPaused: false, attempts: 0, serial: 0};

/** Follows the requests that a filter selects; `null` ends the stream. */
function openStream(filter) {
  const name = filter && query(filter);
  if (name === stream.filter) return;
  if (stream.controller) stream.controller.abort();
  clearTimeout(stream.timer);
  Object.assign(stream, {filter: name, controller: null, attempts: 0});
  if (name !== null) follow(name);
}

async function follow(name) {
  const controller = stream.controller = new AbortController();
  const isCurrent = () => stream.controller === controller;
  let wait = Math.min(1000 * 2 ** stream.attempts++, 30000), watchdog = 0;
  // The gateway sends a comment every 15 s.
  const touch = () => { clearTimeout(watchdog); watchdog = setTimeout(() => controller.abort(), IDLE); };
  setStreamState('connecting …');
  try {
    touch();
    const response = await fetch(`/events${name && '?'}${name}`, {
      ...options, headers: fieldsOf('text/event-stream'), signal: controller.signal,
    });
    const isStream = (response.headers.get('Content-Type') ?? '').includes('event-stream');
    if (!response.ok || !isStream) throw new Problem(response.ok ? 404 : response.status);
    stream.attempts = 0;
    wait = 1000;
    setStreamState('Live');
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '', event = '', data = [];
    for (;;) {
      const {value, done} = await reader.read();
      if (done || !isCurrent()) break;
      touch();
      const parts = (rest + value).split(/\r?\n/);
      rest = parts.pop().slice(-100000);
      for (const line of parts) {
        const [, field, text] = line.match(/^(event|data): ?(.*)$/) ?? [];
        if (field === 'event') event = text;
        if (field === 'data') data.push(text);
        if (line) continue;
        if (data.length) receive(event, data.join('\n'));
        [event, data] = ['', []];
      }
    }
    if (isCurrent()) setStreamState('interrupted, connecting again …');
  } catch (error) {
    if (error.isMissing) wait = 60000;
    if (isCurrent()) {
      setStreamState(error.isMissing ? 'This gateway does not offer /events.' : isStatus(error, 401) ? 'needs the token'
        : isStatus(error, 503) ? 'as many readers as are allowed are connected; trying again'
          : `${errorText(error)}; trying again`);
    }
  }
  clearTimeout(watchdog);
  if (!isCurrent()) return;
  stream.timer = setTimeout(() => {
    if (document.hidden) openStream(null); else if (isCurrent()) follow(name);
  }, wait);
}

function receive(event, data) {
  let value = null;
  try { value = JSON.parse(data); } catch { return; }
  if (event === 'dropped') {
    stream.dropped += value?.count ?? 0;
    setStreamState(stream.state);
  } else if (value && typeof value === 'object' && !(value.host === location.host && value.route === '-')) {
    // Not the requests of this page.
    stream.waiting.unshift({...value, serial: ++stream.serial});
    stream.waiting.length = Math.min(stream.waiting.length, LINES);
    stream.draw = stream.draw || setTimeout(showLines, 200);
  }
}

// ---------------------------------------------------------------- What is wrong

/** The routes for which a test is true, as a text. */
function routesWhere(test) {
  const names = (known.docs.routes?.routes ?? []).filter(test).map(one => one.name);
  return names.length ? `${names.length === 1 ? 'Route' : 'Routes'} ${list(names, 4)}` : '';
}
const goesTo = upstream => one => (one.target ?? '').split(', ').some(part => part.replace(/ \d+$/, '') === upstream);
const accepts = provider => one => (one.auth ?? '').replace(/^optional /, '').split(', ').includes(provider);
const isGood = check => check.state === 'ready' || check.state === 'connected';
const isOut = one => ['unhealthy', 'draining', 'ejected'].includes(one.state);
/** Ejected by some event loops; the others still use it. */
const isPartlyOut = one => one.state === 'ejected' && one.ejecting_loops > 0 && one.ejecting_loops < one.loops;

/** Every problem now, the worst first. `since` is in milliseconds, where the gateway says it. */
function findProblems(status) {
  const found = [];
  const add = (level, id, section, text, whom, todo, guide, since) =>
    found.push({level, id, section, text, whom, todo, guide, since});
  checkProblems(status, add);
  processProblems(status, add);
  for (const upstream of known.docs.upstreams?.upstreams ?? []) upstreamProblem(upstream, add);
  const share = errorShare(status, '1m');
  if (share.errors >= 5 && share.of >= 0.05) {
    add('critical', 'errors', 'routes', 'More than 5 % of the requests of the last minute ended with a 5xx status',
      routesWhere(one => one.last?.['1m']?.errors > 0),
      'The reasons of rejections say why; Tail shows the requests as they happen.', 'Operations, Reasons');
  }
  const rank = {critical: 0, warning: 1, info: 2};
  return found.sort((a, b) => rank[a.level] - rank[b.level]);
}

/** Dependencies. A detail has its consequence after a semicolon. */
function checkProblems(status, add) {
  const failing = (status.checks ?? []).filter(check => !isGood(check)), guide = 'Operations, Outages';
  const byName = name => failing.find(check => check.name === name);
  const store = byName('store'), sessions = byName('sessions'), isDown = status.state === 'unavailable';
  for (const check of failing) {
    const [cause, ...effects] = (check.detail || '').split('; ');
    const is = `${check.state.replace(/_/g, ' ')}${cause && `: ${cause}`}`, effect = effects.join('; ');
    const level = check.state === 'degraded' ? 'warning' : 'critical';
    if (check.name === 'store') {
      const others = [effect, sessions?.detail, byName('revocations') && 'sessions that end elsewhere end here late'];
      const since = known.docs.store?.since;
      const what = others.filter(Boolean).join('; '), more = isDown ? ' Load balancers send nothing here.' : '';
      add(level, 'store', 'system', `The store is ${is}`,
        `Everyone with a session, and logins: ${what}. Bearer tokens are still verified.${more}`,
        'Repair Redis. The gateway connects again by itself; no restart is needed.', guide, since && Date.parse(since));
    } else if (check.name === 'sessions') {
      if (store) continue;
      add(level, 'sessions', 'system', `Sessions are ${is}`, 'Everyone with a session.', 'See the log.', guide);
    } else if (check.name === 'revocations') {
      if (store) continue;
      add(level, 'revocations', 'system', `Ends of sessions do not arrive from other instances: ${is}`,
        'A session that ended elsewhere may be accepted here for sessions.cache_ttl.',
        'Repair Redis or the way to it. The gateway subscribes again by itself.', guide);
    } else if (check.name === 'accounts') {
      add(level, 'accounts', 'system', `The account store is ${is}`, 'Logins, account pages and changes of accounts.',
        'Repair the database. The gateway connects again by itself.', 'Accounts');
    } else if (check.name.startsWith('provider.')) {
      const name = check.name.slice(9);
      add(level, check.name, 'providers', `Provider ${name} is ${is}`,
        routesWhere(accepts(name)) || `Everyone who signs in with ${name}`,
        'Repair the way to the issuer, then refresh it under Providers. Do not restart: that loses the keys in memory.',
        guide);
    } else {
      add('warning', check.name, 'system', `${check.name} is ${is}`, effect, 'See the log.', 'Operations, The log');
    }
  }
  if (isDown && !failing.length) {
    add('critical', 'unavailable', 'system', 'This instance is unavailable',
      'Everyone: load balancers send nothing here.', 'See the log.', guide);
  }
}

function processProblems(status, add) {
  if (status.state === 'draining') {
    add('warning', 'draining', 'system', 'This instance is ending: it takes no new connections',
      'New clients, unless another instance serves them.', 'Nothing, if it was intended.', 'Operations, Drain');
  }
  const silent = status.loops - status.loops_responding;
  if (silent > 0) {
    add('critical', 'loops', 'system', `${silent} of ${plural(status.loops, 'event loop')} not responding`,
      'Every client of such a loop waits.',
      'If it lasts for more than a few seconds, let another instance serve, end this one, and keep its log.',
      'Operations, Alerts');
  }
  for (const cause of status.overloaded ?? []) {
    add('critical', `overload.${cause}`, 'system',
      `Overload: ${cause === 'memory' ? 'too much memory is used' : 'events wait too long for an event loop'}`,
      'New requests get 503 and Retry-After; those under way go on.',
      'Add instances, or reduce the load: Routes shows where it comes from.', 'Limits, Overload');
  }
  if (status.configuration?.current === false) {
    add('warning', 'reload', 'system', 'The last reload failed: the file is not what is running',
      'No one yet: the running configuration stays in effect.',
      'Reload under System to see the diagnostics, or run martlet check.', 'Operations, Reload');
  }
  for (const {file, place, side, valid, days_left: days, not_after: end} of status.certificates ?? []) {
    if (valid && days >= 14) continue;
    const hasEnded = end && Date.parse(end) <= now();
    add(valid && days >= 2 ? 'warning' : 'critical', `certificate ${side} ${place} ${file}`, 'system',
      `The certificate ${side === 'upstream' ? `for upstream ${place}` : `of ${place}`} `
        + (valid ? `expires in ${plural(days, 'day')}` : hasEnded ? 'has expired' : 'is not valid yet'),
      side === 'upstream' ? routesWhere(goesTo(place)) : `Clients of ${place}${valid ? ', from then on' : ''}`,
      `Renew ${file}; a reload loads it.`, 'TLS', hasEnded ? Date.parse(end) : undefined);
  }
  if (status.open_files > 0.8 * (status.open_files_limit ?? Infinity)) {
    add('warning', 'files', 'system', 'More than 80 % of the file descriptors are in use',
      'At 100 % new connections fail.', 'Raise the limit (LimitNOFILE).', 'Operations, Under systemd');
  }
  if (delta()[0](one => one.refused) > 0) {
    add('critical', 'refused', 'system', 'Connections are closed, because a limit is reached',
      'New clients get 503 or a closed connection.',
      'Raise server.limits.connections with LimitNOFILE, or add instances.', 'Operations, Outages');
  }
}

function upstreamProblem({name, panic, endpoints}, add) {
  const out = endpoints.filter(isOut), failed = out.filter(one => one.state !== 'draining');
  if (!out.length) return;
  const all = endpoints.length, isDown = out.length === all, id = `upstream ${name}`;
  const times = out.map(one => one.since).filter(Boolean);
  const since = times.length ? 1000 * (isDown ? Math.max(...times) : Math.min(...times)) : undefined;
  const distinct = key => [...new Set(failed.map(one => one[key]).filter(Boolean))];
  const routes = routesWhere(goesTo(name)), part = failed.some(isPartlyOut) ? ' for some event loops' : '';
  const cause = part + (distinct('reason').length ? ` (${list(distinct('reason'))})` : '');
  const todo = `See whether ${list(distinct('endpoint'), 2)} runs and can be reached. It comes back by itself.`;
  if (!failed.length && !isDown) {
    add('info', id, 'upstreams',
      `${out.length} of ${plural(all, 'endpoint')} of upstream ${name} drained by an operator`,
      'No one: the others get the requests.', 'Restore it when it is ready.', 'Traffic, Taking an endpoint out', since);
  } else if (isDown) {
    const which = all === 1 ? 'its endpoint is' : `all ${all} endpoints are`;
    add('critical', id, 'upstreams', `Upstream ${name} is down: ${which} out of use${cause}`,
      `${routes || 'Its routes'}: requests get 502, 503 or 504`,
      failed.length ? todo : 'Restore an endpoint under Upstreams.', 'Operations, Outages', since);
  } else {
    add(panic ? 'critical' : 'warning', id, 'upstreams',
      `${failed.length} of ${plural(all, 'endpoint')} of upstream ${name} out of use${cause}`,
      `${routes || 'Its routes'}: ${panic ? 'too few endpoints are left, so all get requests, and some fail'
        : 'the other endpoints get the requests'}`, todo, 'Traffic, States of an endpoint', since);
  }
}

/** The share of 5xx in a window. `rate` counts over the uptime, if that is shorter. */
function errorShare(status, window) {
  const {rate, errors} = status.last?.[window] ?? {};
  const count = (rate ?? 0) * Math.max(1, Math.min(WINDOWS[window][0], status.uptime_seconds));
  return {errors: errors ?? 0, of: errors ? Math.min(1, errors / Math.max(count, errors)) : 0};
}

/** Finds the problems and since when they are there, and notes what begins and ends. */
function updateProblems() {
  if (known.lost || known.why || !known.docs.status) return;
  known.problems = findProblems(known.docs.status);
  for (const one of known.problems) {
    const before = known.seen.get(one.id), entry = before ?? {at: now(), isExact: known.isChecked};
    if (before?.level !== one.level) note(known.isChecked ? one.text : `Already: ${one.text}`, one.level);
    Object.assign(entry, {text: one.text, level: one.level});
    known.seen.set(one.id, entry);
    one.when = one.since || entry.isExact ? sinceText(steady(one.id, one.since || entry.at))
      : `since before this page was opened at ${moment(entry.at)}`;
  }
  for (const [id, entry] of known.seen) {
    if (known.problems.some(one => one.id === id)) continue;
    known.seen.delete(id);
    known.steady.delete(id);
    note(`Over: ${entry.text}`, 'ok');
  }
  known.isChecked = true;
}

function note(text, level) {
  known.history.unshift({at: Date.now(), text, level});
  known.history.length = Math.min(known.history.length, 30);
}

// ---------------------------------------------------------------- What it shows

const views = {}, tables = {};
const route = {section: 'overview', values: new URLSearchParams()};
const last = one => one.last?.[known.window] ?? {};
const windowText = () => WINDOWS[known.window][1];
const tableOf = (id, ...rest) => (tables[id] = tables[id] ?? new Table($(id), ...rest));
const missing = name => (known.missing.has(name) ? `This gateway does not offer /${name}.` : 'Loading …');

function render() {
  updateProblems();
  renderTop();
  views[route.section]();
  renderAccess();
}

function renderTop() {
  const {lost, why, docs: {status}} = known, problems = known.problems.filter(one => one.level !== 'info');
  const worst = problems[0];
  document.body.classList.toggle('stale', Boolean(lost));
  $('lost').hidden = !lost;
  if (lost) {
    const seconds = Math.max(0, Math.ceil((lost.next - Date.now()) / 1000));
    put($('lost-text'), `Connection lost since ${clock(lost.since)}: ${lost.why}.`);
    put($('lost-next'), `${plural(lost.attempts, 'attempt')}, the next in ${seconds} s.`);
  }
  let level = 'unknown', text = 'Loading the state of the gateway …', since = '';
  if (why) {
    [level, text] = ['warning', why.status === 401 ? 'This gateway shows its state with its token only.'
      : why.code === 'local_only'
        ? 'This gateway shows its state on its own machine only, unless admin.token_file is set.'
        : `The gateway does not show its state: ${why.text}`];
  } else if (worst) {
    [level, text, since] = [worst.level, `${worst.text}.`, worst.when];
    if (route.section !== 'overview') since += `. ${worst.todo}`;
  } else if (status) {
    [level, text, since] = ['ok', 'All is well.', `Up for ${duration(status.uptime_seconds)}`];
  }
  if (lost && status) [level, text] = ['unknown', `Last seen at ${clock(latest().at)}: ${text}`];
  $('headline').className = level;
  put($('sentence'), text);
  $('more').hidden = problems.length < 2;
  put($('since'), since + (problems.length < 2 ? '' : ' ·'));
  put($('more'), plural(problems.length - 1, 'more problem'));
  if (status) put($('where'), words(status.instance, `version ${status.version}`, status.state));
  document.title = `${worst ? `(${problems.length}) ` : ''}${status?.instance || 'Martlet'}${lost ? ' – lost' : ''}`;
  const color = {ok: '17693a', warning: 'd08a00', critical: 'c0272d'}[lost ? 'critical' : level] ?? '7b8794';
  attribute($('icon'), 'href', "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    + `%3Ccircle cx='8' cy='8' r='7' fill='%23${color}'/%3E%3C/svg%3E`);
  for (const tab of $('nav').children) {
    const section = tab.hash.slice(1), own = problems.filter(one => one.section === section);
    attribute(tab, 'aria-current', section === route.section ? 'page' : null);
    keep(tab, own.length ? [own] : [], () => 'count', () => {
      const badge = h('b');
      return [badge, all => {
        badge.className = all[0].level;
        put(badge, all.length);
        attribute(badge, 'title', plural(all.length, 'problem'));
      }];
    });
  }
}

function renderAccess() {
  const {change, token} = access(), {token: own, why} = known;
  $('lock').hidden = !(own || token || why?.status === 401);
  put($('lock'), own ? 'Forget the token' : 'Enter the token');
  const hasChanges = ['upstreams', 'providers', 'users', 'system'].includes(route.section);
  $('changes').hidden = change || !hasChanges || !known.docs.status;
  put($('changes'), token ? `${NEEDS_TOKEN} A button that needs it asks for it.` : NO_TOKEN);
  for (const one of document.querySelectorAll('[data-change]')) {
    attribute(one, 'aria-disabled', change ? null : 'true');
    attribute(one, 'title', change ? null : token ? NEEDS_TOKEN : NO_TOKEN);
  }
}

// Overview

const REASONS = [
  [/^request\.client_left/, 'the client left before the end'],
  [/^auth\.credential_missing/, 'no credential where the route needs one'],
  [/^auth\.overloaded|^provider\.(saturated|timeout)/, 'more new tokens than can be verified: 503'],
  [/^auth\.timed_out/, 'a provider was too slow: 503'],
  [/^auth\.cross_site/, 'a session cookie from a page of another site'],
  [/^policy\./, 'a condition of the route is not met'],
  [/^router\./, 'no route for the path or the method'],
  [/^(request|digest)\./, 'the request itself: invalid, too large or too slow'],
  [/^limits\.store/, 'a shared limit, and the store does not respond'],
  [/^limits\./, 'over a limit of the route: 429 or 503'],
  [/^server\./, 'overload, or a limit of the server: 503'],
  [/^(upstream|tls|http2|route)\./, 'the upstream: 502, 503 or 504'],
  [/^(signin|json|browser|redirect)\./, 'rejected by the sign-in endpoints'],
  [/^(identity|account)\./, 'the account or its identity is revoked'],
  [/^admin\./, 'rejected by this listener'],
  [/^(redis|accounts|store)\.|\.(store|users|keys)_unavailable$/, 'a store is down, or what a provider needs: 503'],
  [/\.invalid_client$/, 'the issuer rejects the key or secret of this gateway'],
  [/\.(address_)?throttled$/, 'too many failed attempts: 429'],
  [/^\w+\./, 'the credential: Explain shows every check'],
];
const reasonText = reason => (REASONS.find(one => one[0].test(reason)) ?? [])[1] ?? '';

views.overview = () => {
  const {status} = known.docs;
  keep($('problems'), known.problems, one => one.id, () => {
    const title = h('a'), dl = h('dl'), item = h('li', {}, h('h3', {}, title), dl);
    return [item, one => {
      item.className = `card ${one.level}`;
      put(title, one.text);
      attribute(title, 'href', href(one.section));
      facts(dl, [['When', one.when], ['For whom', sentence(one.whom)], ['What to do', one.todo],
        ['In the guide', one.guide]]);
    }];
  });
  const events = [...known.history, {at: known.opened, text: 'The page was opened.'}];
  keep($('history'), events, one => `${one.at} ${one.text}`, ({at: ms, text, level}) =>
    [h('li', {}, h('time', {}, clock(ms)), h('span', {class: level === 'critical' && 'wrong'}, text))]);
  renderRejections();
  if (!status) return;
  renderTiles(status);
  renderReasons(status);
  tableOf('checks', 'Checks', [
    {title: 'Dependency', text: row => row.name},
    {title: 'State', of: row => [row.state, row.detail, isGood(row) ? 'ok'
      : ['degraded', 'cached', 'connecting', 'starting'].includes(row.state) ? 'warning' : 'critical']},
  ], row => row.name, 'No external dependency is configured.').show(status.checks ?? []);
};

function renderReasons(status) {
  const [difference, seen] = delta(), isWhole = seen >= WINDOWS[known.window][0] - 1;
  const rows = Object.entries(latest()?.reasons ?? {})
    .map(([reason, total]) => ({reason, total, recent: difference(one => one.reasons[reason] ?? 0)}));
  rows.sort((a, b) => b.recent - a.recent || b.total - a.total || (a.reason < b.reason ? -1 : 1));
  const title = isWhole ? `Last ${windowText()}` : `Last ${duration(seen)}`;
  const table = tableOf('reasons', 'Reasons of rejections', [
    {title: 'Reason', build: (cell, {reason}) => {
      cell.append(link('tail', {reason}, reason), h('small', {}, reasonText(reason)));
    }},
    {title, number: true, text: row => number(row.recent), kind: row => (row.recent ? 'warning' : '')},
    {title: 'Since the start', number: true, text: row => number(row.total)},
  ], row => row.reason, 'No request was rejected since the start.');
  put(table.heads[1], title);
  table.show(rows.slice(0, 12));
  for (const cell of table.body.querySelectorAll('td:nth-child(2)')) attribute(cell, 'data-label', title);
}

function renderTiles(status) {
  const one = last(status), share = errorShare(status, known.window), [difference, seen] = delta();
  const rejections = difference(sample => Object.values(sample.reasons).reduce((a, b) => a + b, 0));
  const {open, refused} = status.connections ?? {};
  const tiles = [
    {title: 'Requests', value: rate(one.rate), note: `${number(status.requests_open)} in progress`, spark: 'rate',
      unit: rate},
    {title: 'Errors (5xx)', value: percent(share.of), note: `${number(share.errors)} in ${windowText()}`,
      spark: 'errors', unit: rate, isBad: share.of >= 0.05},
    {title: 'Latency p99', value: milliseconds(one.p99_ms), note: `p50 ${milliseconds(one.p50_ms)}`, spark: 'p99',
      unit: milliseconds},
    {title: 'Rejections', value: number(rejections), note: seen >= WINDOWS[known.window][0] - 1
      ? `in ${windowText()}` : `in ${duration(seen)}: since this page was opened`},
    {title: 'Cache hits', value: number(one.hits ?? NaN), note: `decisions in ${windowText()}`},
    {title: 'Connections', value: number(open),
      note: `${plural(status.tunnels_open, 'tunnel')}, ${number(refused)} refused`},
    {title: 'Memory', value: bytes(status.memory_bytes), note: `${plural(status.open_files, 'open file')}`},
    {title: 'Up for', value: duration(status.uptime_seconds),
      note: `${status.loops_responding} of ${plural(status.loops, 'loop')}`},
  ];
  keep($('tiles'), tiles, tile => tile.title, ({title, spark}) => {
    const value = h('strong'), more = h('small'), chart = spark && sparkline();
    const element = h('div', {class: 'card tile'}, h('h3', {}, title), value, more, chart && chart[0]);
    return [element, tile => {
      put(value, tile.value);
      put(more, tile.note);
      element.classList.toggle('bad', Boolean(tile.isBad));
      if (chart) chart[1](known.samples.map(sample => [sample.at, sample[spark]]), tile);
    }];
  });
}

/** A line of what the page has seen: at most ten minutes, and at least one wide. */
function sparkline() {
  const line = h('polyline'), area = h('polygon');
  const base = h('line', {class: 'base', x1: 0, x2: 100, y1: 25.5, y2: 25.5});
  const svg = h('svg', {viewBox: '0 0 100 26', preserveAspectRatio: 'none', role: 'img'}, base, area, line);
  return [svg, (points, tile) => {
    if (!points.length) return;
    const end = points[points.length - 1][0], seen = end - points[0][0], span = Math.max(60000, seen);
    const most = Math.max(...points.map(one => one[1]), 1e-9), x = time => (100 - (end - time) / span * 100).toFixed(2);
    const path = points.map(([time, y]) => `${x(time)},${(25 - y / most * 22).toFixed(1)}`).join(' ');
    attribute(line, 'points', path);
    attribute(area, 'points', `${x(points[0][0])},26 ${path} 100,26`);
    attribute(svg, 'aria-label', `${tile.title} in the last ${duration(seen / 1000)}: at most ${tile.unit(most)}`);
  }];
}

// Routes, upstreams, providers

const lastColumns = errors => [
  {title: 'Rate', number: true, text: row => rate(last(row).rate), sort: row => last(row).rate ?? 0},
  {title: errors, number: true, text: row => number(last(row).errors), sort: row => last(row).errors ?? 0,
    kind: row => (last(row).errors ? 'critical' : '')},
  {title: 'p50', number: true, text: row => milliseconds(last(row).p50_ms ?? NaN), sort: row => last(row).p50_ms ?? 0},
  {title: 'p99', number: true, text: row => milliseconds(last(row).p99_ms ?? NaN), sort: row => last(row).p99_ms ?? 0},
];

views.routes = () => {
  const {routes} = known.docs;
  const statuses = row => Object.entries(row.requests ?? {}).map(one => `${one[0]} × ${number(one[1])}`).join(', ');
  const table = tableOf('routes', 'Routes', [
    {title: 'Route', text: row => row.name, sort: row => row.name, build: (cell, {name}) => {
      cell.append(link('tail', {route: name}, name, {title: 'Its requests, in Tail'}));
    }},
    {title: 'Matches', of: row => [row.path ?? 'its own endpoints',
      words((row.hosts ?? []).join(', '), (row.methods ?? []).join(' '),
        ...(row.headers ?? []).map(one => `header ${one}`), ...(row.query ?? []).map(one => `query ${one}`))]},
    {title: 'Who', of: row => [row.auth ?? '–', row.conditions ? plural(row.conditions, 'condition') : '']},
    {title: 'Goes to', text: row => row.target, sort: row => row.target, kind: () => 'any'},
    ...lastColumns('5xx'),
    {title: 'Since the start', text: statuses, kind: () => 'any'},
  ], row => `${row.isOwn} ${row.name}`, '');
  table.noRows = routes ? 'No route.' : missing('routes');
  table.show(routes ? [...routes.routes, ...(routes.own ?? []).map(one => ({...one, isOwn: true}))] : []);
};

const LEVELS = {healthy: 'ok', slow_start: 'info', ejected: 'critical', unhealthy: 'critical', draining: 'warning'};
let upstreamFilter = '';

/** State, note and level of an endpoint. */
function endpointState(row) {
  const isFailing = row.state === 'healthy' && row.failures_in_row > 0, isPart = isPartlyOut(row);
  const note = [row.reason, isPart && `by ${row.ejecting_loops} of ${row.loops} loops`,
    row.since && sinceText(steady(`${row.endpoint} ${row.address} ${row.state}`, row.since * 1000))]
    .filter(Boolean).join(', ');
  return [isFailing ? 'failing' : row.state.replace(/_/g, ' '), note,
    isFailing || isPart ? 'warning' : LEVELS[row.state] ?? 'warning'];
}

views.upstreams = () => {
  const {upstreams} = known.docs, all = upstreams?.upstreams ?? [];
  const texts = end => [end.endpoint, end.address, end.state, end.reason];
  const text = one => [one.name, ...one.endpoints.flatMap(texts)].join(' ');
  const shown = all.filter(one => matches(upstreamFilter, text(one)));
  const empty = !upstreams ? missing('upstreams')
    : all.length ? 'Nothing matches the filter.' : 'No upstream is configured.';
  keep($('upstreams'), shown.length ? shown : [{empty}], one => `${one.empty} ${one.name}`, ({empty: none, name}) => {
    if (none) return [h('p', {class: 'card empty'}, none)];
    const numbers = h('span', {class: 'dim'}), routes = h('p', {class: 'dim'});
    const panic = h('span', {class: 'badge critical'}, 'panic: all endpoints get requests');
    const bar = h('div', {class: 'bar'}, h('h3', {}, name), panic, numbers);
    const card = h('div', {class: 'card upstream'}, bar, routes);
    const table = new Table(card, `Endpoints of ${name}`, [
      {title: 'Endpoint', of: row => [row.endpoint,
        words(row.address, row.backup && 'backup', row.weight !== 1 && `weight ${row.weight}`)]},
      {title: 'State', of: endpointState},
      {title: 'Active', number: true, text: row => number(row.requests_active)},
      {title: 'Idle', number: true, text: row => number(row.connections_idle)},
      {title: 'Failures in a row', number: true, text: row => number(row.failures_in_row),
        kind: row => (row.failures_in_row ? 'critical' : '')},
      actionColumn(row => (row.state === 'draining' ? ['Restore', drain(name, row, false)]
        : ['Drain', drain(name, row, true)])),
    ], row => `${row.endpoint} ${row.address ?? ''}`, 'No endpoint.');
    return [card, upstream => {
      const one = last(upstream);
      put(numbers, words(rate(one.rate), `${plural(one.errors, 'error')} in ${windowText()}`,
        `p50 ${milliseconds(one.p50_ms ?? NaN)}`, `p99 ${milliseconds(one.p99_ms ?? NaN)}`));
      put(routes, routesWhere(goesTo(name)) || 'No route goes here.');
      panic.hidden = !upstream.panic;
      table.show(upstream.endpoints);
    }];
  });
};

const drain = (upstream, {endpoint}, isDrained) => ({
  title: `${isDrained ? 'Drain' : 'Restore'} ${endpoint}?`, yes: isDrained ? 'Drain' : 'Restore', isSafe: !isDrained,
  text: isDrained ? `It gets no more requests of upstream ${upstream}; those that it has are finished. This lasts over `
    + 'reloads, until it is restored or the process ends.' : `It gets requests of upstream ${upstream} again.`,
  done: `${endpoint} is ${isDrained ? 'drained' : 'restored'}.`,
  run: () => call('POST', `/upstreams/${segment(upstream)}/${isDrained ? 'drain' : 'restore'}`, {body: {endpoint}}),
});

views.providers = () => {
  const {providers} = known.docs, shown = ['name', 'kind', 'state', 'detail', 'logins', 'last'];
  const table = tableOf('providers', 'Providers', [
    {title: 'Provider', of: row => [row.name, row.kind], sort: row => row.name},
    {title: 'State', of: row => [row.state, row.detail, {ready: 'ok', degraded: 'warning'}[row.state] ?? 'critical']},
    ...lastColumns('Rejected'),
    {title: 'Cached', number: true, text: row => number(last(row).hits ?? NaN)},
    {title: 'Logins since the start', of: row => [number(row.logins?.total),
      row.logins?.rejected ? `${number(row.logins.rejected)} rejected` : '']},
    {title: 'More', kind: () => 'any', text: row => members(row, shown).map(one => one.join(' ')).join(' · ')},
    // Only some have keys of an issuer.
    actionColumn(({name, ...row}) => Object.keys(row).some(one => one.includes('key')) && ['Refresh', {
      title: `Refresh ${name}?`, yes: 'Refresh', isSafe: true, done: `${name} is refreshed.`,
      text: 'Its keys and metadata are fetched from the issuer again.',
      run: () => call('POST', `/providers/${segment(name)}/refresh`),
    }]),
  ], row => row.name, '');
  table.noRows = providers ? 'No provider is configured.' : missing('providers');
  table.show(providers?.providers ?? []);
};

/** The members of a document as [name, text], without some of them and those without a value. */
function members(value, without) {
  return Object.entries(value).filter(one => !without.includes(one[0]) && one[1] !== null && one[1] !== '')
    .map(([name, one]) => (/_seconds$/.test(name) && typeof one === 'number'
      ? [name.slice(0, -8), duration(one)] : [name.replace(/_total$/, ''), memberText(one)]))
    // Codes stay as the log has them, to be searched for.
    .map(([name, text]) => [name.includes('.') ? name : name.replace(/_/g, ' ').replace(/^jwks\b/, 'keys:'), text])
    .filter(one => one[1] !== '');
}
const memberText = one => (Array.isArray(one) ? one.join(', ') : one && typeof one === 'object'
  ? members(one, []).map(pair => pair.join(' ')).join(', ') : typeof one === 'number' ? number(one)
    : typeof one === 'string' && /^\d{4}-\d\d-\d\dT/.test(one) ? date(one) : String(one));

// Users

const user = {subject: ''};

async function loadUser(subject) {
  Object.assign(user, {subject, account: null, claims: null, sessions: null, accountError: null, error: null});
  const path = `/subjects/${segment(subject)}`;
  const [account, claims, sessions] = await Promise.allSettled([
    call('GET', path), call('GET', `${path}/claims`), call('GET', `/sessions?${query({subject})}`),
  ]);
  if (user.subject !== subject) return;
  Object.assign(user, {account: account.value, claims: claims.value?.claims, accountError: account.reason});
  Object.assign(user, {sessions: sessions.value, error: sessions.reason});
  drawUser();
}

/** What is known of a user. It is drawn when it was loaded, and not with every poll. */
function drawUser() {
  const {subject, account, sessions, accountError, error} = user;
  const first = h('div', {class: 'card'}, h('h3', {}, `Account of ${subject}`));
  const second = h('div', {class: 'card'}, h('h3', {}, 'Sessions'));
  $('user').replaceChildren(...(subject ? [first, second] : []));
  if (account) drawAccount(first, account);
  else {
    first.append(h('p', {class: 'dim'}, !accountError ? 'Loading …' : accountError.isMissing
      ? 'No account: the subject is unknown, or the gateway has no accounts. Sessions do not need one.'
      : errorText(accountError)));
  }
  if (sessions) drawSessions(second, Array.isArray(sessions) ? sessions : sessions.sessions ?? []);
  else {
    second.append(h('p', {class: error ? 'wrong' : 'dim'}, !error ? 'Loading …'
      : error.isMissing ? 'This gateway does not list sessions.' : errorText(error)));
  }
  renderAccess();
}

const again = () => loadUser(user.subject);
const changeButton = (text, action, kind) =>
  button(text, () => change({then: again, ...action}), {'data-change': '', class: kind});

function drawAccount(card, {subject, state, disabled, deletion, identities, ...account}) {
  const dl = h('dl', {class: 'facts'}), path = `/subjects/${segment(subject)}`;
  const end = deletion && (deletion.deleted_at ? `done ${at(deletion.deleted_at)}` : `due ${at(deletion.due_at)}`);
  facts(dl, [['State', state.replace(/_/g, ' ')], ['Created', at(account.created_at)],
    ['Disabled', disabled && at(account.disabled_at)], ['Deletion', end && `${end} (${deletion.reason})`],
    ['Claims', members(user.claims ?? {}, []).map(one => one.join(': ')).join(', ') || 'none']]
    .filter(one => one[1]));
  card.append(dl);
  const lock = ({lock: one}) => (one === undefined ? '–' : !one ? 'open'
    : `attempts are rejected${one.seconds ? ` for ${duration(one.seconds)}` : ''}`);
  new Table(card, 'Identities', [
    {title: 'Identity', of: row => [row.provider, [row.subject, ...(row.aliases ?? [])].filter(Boolean).join(', ')]},
    // Only some issuers say anything about a credential later.
    {title: 'Credential', of: row => (row.checked_at ? [row.credential_state, `checked ${at(row.checked_at)}`,
      ['revoked', 'invalid', 'transferred'].includes(row.credential_state) ? 'warning' : 'info'] : ['–'])},
    {title: 'Lock', text: lock, kind: row => (row.lock ? 'warning' : '')},
    {title: 'Linked', text: row => at(row.linked_at)}, {title: 'Last login', text: row => at(row.last_login_at)},
  ], row => `${row.provider} ${row.subject}`, 'No identity.').show(identities ?? []);
  card.append(h('p', {class: 'buttons'}, changeButton(disabled ? 'Enable' : 'Disable', {
    title: `${disabled ? 'Enable' : 'Disable'} ${subject}?`, yes: disabled ? 'Enable' : 'Disable', isSafe: disabled,
    text: disabled ? 'Logins and requests are allowed again.' : 'Within a second, logins and refreshes are rejected, '
      + 'and requests get 403. Sessions do not end: they work again when it is enabled.',
    done: `${subject} is ${disabled ? 'enabled' : 'disabled'}.`,
    run: () => call('POST', `${path}/${disabled ? 'enable' : 'disable'}`),
  }), changeButton('Delete the account …', {
    title: `Delete the account of ${subject}?`, yes: 'Delete for good', typed: subject,
    text: 'Its sessions end now, its grants are revoked at the issuers, and the account is deleted. '
      + 'This cannot be undone here.',
    done: `The deletion of ${subject} has begun.`, run: () => call('DELETE', path),
  }, 'danger')));
}

function drawSessions(card, sessions) {
  const {subject} = user, idOf = row => row.session_id ?? row.id, nameOf = row => row.device_name ?? row.user_agent;
  const from = row => [row.last_address ?? row.address ?? '–',
    row.address && row.last_address && row.last_address !== row.address ? `login from ${row.address}` : ''];
  new Table(card, `Sessions of ${subject}`, [
    {title: 'Device', of: row => [nameOf(row) ?? 'no name',
      words(row.device_name && row.user_agent, row.bound && 'bound to a key')]},
    {title: 'Provider', text: row => row.provider, kind: () => 'any'},
    {title: 'Last use', text: row => at(row.last_seen_at), kind: () => 't'}, {title: 'From', of: from},
    {title: 'Login', text: row => at(row.created_at), kind: () => 't'},
    {title: 'Expires', text: row => at(row.expires_at), kind: () => 't'},
    {title: 'Session', kind: () => 't mono', build: (cell, row) => {
      cell.append(h('span', {title: idOf(row)}, `${idOf(row).slice(0, 12)}…`));
    }},
    actionColumn(row => ['End', {
      title: 'End this session?', yes: 'End the session', done: 'The session has ended.', then: again,
      text: `${nameOf(row) ?? 'Session'} (${idOf(row)}) of ${subject}: its next request gets 401 everywhere, `
        + 'within a second.',
      run: () => call('DELETE', `/sessions/${segment(idOf(row))}?${query({subject})}`),
    }]),
  ], idOf, 'No session.').show([...sessions].sort((a, b) => (b.last_seen_at ?? 0) - (a.last_seen_at ?? 0)));
  if (!sessions.length) return;
  card.append(h('p', {class: 'buttons'}, changeButton(`End all ${number(sessions.length)} …`, {
    title: `End all sessions of ${subject}?`, yes: 'End all sessions', done: 'All sessions have ended.',
    text: `${plural(sessions.length, 'session')} and logins in progress end everywhere, within a second.`,
    run: () => call('DELETE', `/subjects/${segment(subject)}/sessions`),
  }, 'danger')));
}

views.users = () => {
  const names = [...new Set(stream.lines.map(one => one.subject).filter(Boolean).map(unescaped))].slice(0, 20);
  keep($('subjects'), names, one => one, one => [h('option', {value: one})]);
};

// Tail

const isFailed = one => one.status >= 400 || one.status === 0;
const timeOf = one => new Date(typeof one.time === 'number' ? one.time * 1000 : one.time ?? Date.now());
const colorOf = one => (isFailed(one) ? `s${Math.floor(one.status / 100)}` : '');

/** One request; a click shows all that is known of it. */
function lineOf(one, isShort) {
  const date = timeOf(one), time = h('time', {}, clock(date.getTime()));
  const what = h('span', {}, `${one.method ?? ''} ${one.path ?? ''}`);
  const status = h('b', {class: colorOf(one)}, one.status ?? '–');
  const item = h('li'), line = button('', () => {
    const opens = item.lastElementChild === line;
    attribute(line, 'aria-expanded', opens);
    if (opens) item.append(detailOf(one)); else item.lastElementChild.remove();
  }, {class: 'line', 'aria-expanded': 'false'});
  if (isShort) {
    line.append(time, status, h('span', {class: colorOf(one)}, one.reason ?? ''), what);
  } else {
    time.append(h('span', {class: 'ms'}, `.${String(date.getMilliseconds()).padStart(3, '0')}`));
    line.append(time, status, what,
      h('span', {class: 'w'}, words(one.reason !== 'ok' && one.reason, one.route !== '-' && one.route)),
      h('span', {class: 'r'}, one.subject ? unescaped(one.subject) : one.client ?? ''),
      h('span', {class: 'n'}, milliseconds(one.duration_us / 1000)));
  }
  item.append(line);
  return [item];
}

function detailOf(one) {
  const dl = h('dl', {class: 'facts'}), {subject, route: name, reason} = one, hasReason = reason && reason !== 'ok';
  const textOf = (key, value) => (key === 'time' ? timeOf(one).toISOString()
    : value && typeof value === 'object' ? JSON.stringify(value) : value);
  facts(dl, Object.entries(one).filter(([key]) => key !== 'serial' && key !== 'event')
    .map(([key, value]) => [key, textOf(key, value)]));
  return h('div', {class: 'detail'}, dl, hasReason ? h('p', {class: 'dim'}, `${reason}: ${reasonText(reason)}.`) : null,
    h('div', {class: 'buttons'}, button('Explain this path', () => explain(one)),
      subject ? link('users', {subject: unescaped(subject)}, 'Its subject and sessions', {class: 'button'}) : null,
      subject ? link('tail', {subject}, 'Only this subject', {class: 'button'}) : null,
      name && name !== '-' ? link('tail', {route: name}, 'Only this route', {class: 'button'}) : null,
      hasReason ? link('tail', {reason}, 'Only this reason', {class: 'button'}) : null));
}

/** Shows the lines that wait, unless the reader has paused, opened a line or scrolled down. */
function showLines(isForced) {
  clearTimeout(stream.draw);
  stream.draw = 0;
  const lines = $('lines'), isScrolled = lines.getBoundingClientRect().top < -40;
  const isReading = route.section === 'tail' && (isScrolled || lines.querySelector('.detail'));
  const isHeld = isForced !== true && (stream.isPaused || isReading);
  if (!isHeld) {
    stream.lines = [...stream.waiting, ...stream.lines].slice(0, LINES);
    stream.waiting = [];
  }
  $('tail-new').hidden = !stream.waiting.length;
  put($('tail-new'), `Show ${plural(stream.waiting.length, 'new line')}`);
  if (route.section === 'tail' && !isHeld) drawTail();
  if (route.section === 'overview') renderRejections();
}

function drawTail() {
  const {text, failed} = $('tail-form').elements;
  const fits = one => (!failed.checked || isFailed(one)) 
    && (!text.value || matches(text.value, JSON.stringify(one)));
  const shown = stream.lines.filter(fits);
  keep($('lines'), shown.length ? shown : [{}], one => one.serial ?? 'none',
    one => (one.serial ? lineOf(one, false) : [h('li', {class: 'empty'}, 'No request yet.')]));
}

function renderRejections() {
  const shown = stream.lines.filter(isFailed).slice(0, 12), parent = $('rejections');
  const empty = stream.state === 'Live' ? 'None since this page was opened.' : stream.state;
  if (parent.querySelector('.detail')) return;
  keep(parent, shown.length ? shown : [{empty}], one => one.serial ?? one.empty,
    one => (one.serial ? lineOf(one, true) : [h('li', {class: 'dim'}, one.empty)]));
}

function setStreamState(state) {
  stream.state = state;
  put($('tail-state'), words(stream.isPaused ? 'Paused' : state,
    stream.dropped && `${number(stream.dropped)} more than can be sent: a filter helps`));
  if (route.section === 'overview') renderRejections();
}

function clearLines() {
  Object.assign(stream, {lines: [], waiting: [], dropped: 0});
  setStreamState(stream.state);
}

views.tail = () => {
  const choices = (id, names) => keep($(id), names.slice(0, 500), one => one, one => [h('option', {value: one})]);
  choices('route-names', (known.docs.routes?.routes ?? []).map(one => one.name));
  choices('reason-names', Object.keys(latest()?.reasons ?? {}));
};

// System

views.system = () => {
  const {status, store, accounts} = known.docs;
  if (!status) return;
  const {open, accepted, refused} = status.connections ?? {}, configuration = status.configuration ?? {};
  facts($('process'), [['State', status.state], ['Instance', status.instance], ['Version', status.version],
    ['Up for', duration(status.uptime_seconds)],
    ['Event loops', `${status.loops_responding} of ${status.loops} respond`],
    ['Requests', `${number(status.requests_open)} in progress`], ['Tunnels', `${number(status.tunnels_open)} open`],
    ['Connections', `${number(open)} open, ${number(accepted)} accepted, ${number(refused)} refused`],
    ['Overload', (status.overloaded ?? []).join(', ') || 'none'], ['Memory', bytes(status.memory_bytes)],
    ['Open files', `${number(status.open_files)} of ${number(status.open_files_limit)}`]]);
  facts($('configuration'), [
    ['State', configuration.current === false ? 'the last reload failed; this one stays in effect' : 'current'],
    ['Loaded', date(configuration.loaded_at)], ['Digest', configuration.digest && `${configuration.digest.slice(0, 16)}…`],
    ['Reloads', `${number(configuration.reloads)} succeeded, ${number(configuration.failed_reloads)} failed`]]);
  tableOf('listeners', 'Listeners', [
    {title: 'Address', text: row => row.address}, {title: 'For', text: row => row.role},
    {title: 'TLS', text: row => (row.tls ? 'yes' : 'no')},
  ], row => `${row.role} ${row.address}`, 'No listener.').show(status.listeners ?? []);
  tableOf('certificates', 'Certificates', [
    {title: 'Certificate', of: row => [row.place, row.file]}, {title: 'Side', text: row => row.side},
    {title: 'State', of: row => (!row.valid ? ['not valid', '', 'critical'] : row.days_left < 14
      ? ['expires soon', '', 'warning'] : ['valid', '', 'ok'])},
    {title: 'Days left', number: true, text: row => number(row.days_left)},
    {title: 'Until', text: row => date(row.not_after)},
  ], row => `${row.side} ${row.place} ${row.file}`, 'No certificate is used.').show(status.certificates ?? []);
  documentFacts($('store'), store, missing('store'));
  documentFacts($('accounts'), accounts, known.missing.has('accounts') ? 'No accounts are configured.' : 'Loading …');
};

/** The members of a document, or why there is none. */
function documentFacts(dl, value, otherwise) {
  if (!value) return facts(dl, [['State', otherwise]]);
  const {rate: one, errors, p50_ms: p50, p99_ms: p99} = last(value);
  const text = value.last && words(rate(one), plural(errors, 'error'), `p50 ${milliseconds(p50 ?? NaN)}`,
    `p99 ${milliseconds(p99 ?? NaN)}`);
  return facts(dl, [...members(value, ['last']), [`last ${windowText()}`, text]]);
}

// ---------------------------------------------------------------- What it does

function toast(text, level = 'ok') {
  const element = h('div', {class: `toast ${level}`}, h('span', {}, text), button('Close', () => element.remove()));
  $('toasts').append(element);
  if ($('toasts').children.length > 4) $('toasts').firstElementChild.remove();
  if (level === 'ok') setTimeout(() => element.remove(), 8000);
}

let pending = null;

/** Asks for confirmation, then changes something: title, text, yes, run() and done; maybe isSafe, typed (what has to be
 * typed), then(), and result(value, error) instead of a message. */
function change(action) {
  if (!access().change) {
    if (access().token) askToken(NEEDS_TOKEN, action); else toast(NO_TOKEN, 'critical');
    return;
  }
  pending = action;
  put($('confirm-title'), action.title);
  put($('confirm-text'), action.text);
  $('confirm-typed').hidden = !action.typed;
  put($('confirm-label'), `To confirm, type ${action.typed}`);
  $('confirm-input').value = '';
  put($('confirm-yes'), action.yes);
  $('confirm-yes').className = action.isSafe ? 'primary' : 'danger';
  $('confirm-dialog').showModal();
}

async function perform({title, run, done, result, then}) {
  try {
    const value = await run();
    if (result) result(value); else toast(done);
  } catch (error) {
    if (isStatus(error, 401)) askToken(NOT_ACCEPTED);
    else if (result) result(null, error);
    else toast(`${title.replace(/\?$/, '')}: ${errorText(error)}`, 'critical');
  }
  if (then) then();
  poll();
}

on('confirm-form', 'submit', event => {
  event.preventDefault();
  const action = pending;
  if (action.typed && $('confirm-input').value !== action.typed) { $('confirm-input').focus(); return; }
  $('confirm-dialog').close();
  perform(action);
});
for (const one of document.querySelectorAll('[data-close]')) {
  one.addEventListener('click', () => one.closest('dialog').close());
}

/** Asks for the token; an action goes on when it is accepted. */
function askToken(why, action = null) {
  if ($('token-dialog').open) return;
  pending = action;
  put($('token-why'), why);
  put($('token-error'), '');
  $('token-dialog').showModal();
}

function useToken(token) {
  known.token = token;
  openStream(null);
  enter();
}

on('token-form', 'submit', async event => {
  event.preventDefault();
  const token = $('token').value.trim(), say = text => put($('token-error'), text);
  // Other characters cannot stand in a field, and fetch would throw.
  if (!/^[\x21-\x7e]+$/.test(token)) { say('A token has visible ASCII characters only.'); return; }
  try {
    const status = await call('GET', '/status', {token});
    if (!status.access?.change) { say(NOT_ACCEPTED); return; }
    known.docs.status = status;
    const action = pending;
    $('token-dialog').close();
    useToken(token);
    if (action) change(action); else toast('The token is accepted: changes are possible.');
  } catch (error) {
    say(isStatus(error, 401) ? NOT_ACCEPTED : errorText(error));
  }
});
on('token-dialog', 'close', () => { $('token').value = ''; });
on('lock', 'click', () => {
  if (!known.token) { askToken(NEEDS_TOKEN); return; }
  known.docs = {};
  useToken('');
  toast('The token is forgotten.');
});

on('reload', 'click', () => change({
  title: 'Reload the configuration?', yes: 'Reload', isSafe: true,
  text: 'The file is read and checked. If it has errors, the running configuration stays in effect.',
  run: () => call('POST', '/reload'),
  result: (value, error) => {
    const diagnostics = (error ? error.document : value)?.diagnostics ?? [];
    const warned = diagnostics.length ? ', with warnings' : '';
    const text = !error ? `Reloaded at ${clock(Date.now())}: ${plural(value.routes, 'route')}${warned}.`
      : `Not reloaded: ${error.status === 422 ? 'the running configuration stays in effect' : errorText(error)}.`;
    $('reload-result').replaceChildren(h('p', {class: error && 'wrong', role: 'status'}, text),
      diagnostics.length ? h('pre', {tabindex: 0}, diagnostics.join('\n')) : '');
  },
}));
on('level-form', 'submit', event => {
  event.preventDefault();
  const {level: {value: level}, for: {value: span, selectedOptions: [option]}} = event.target.elements;
  change({
    title: `Set the log level to ${level}?`, yes: 'Set', isSafe: true, text: level === 'debug'
      ? 'There will be several lines a request: watch the space that the log has.'
      : 'Access lines are written as before.',
    run: () => call('POST', '/log/level', {body: span ? {level, for: span} : {level}}),
    result: (_, error) => put($('level-result'), error ? `Not set: ${errorText(error)}`
      : `${level} since ${clock(Date.now())}, ${span && 'for '}${option.text.trim()}.`),
  });
});

// Explain

function explain({method = 'GET', host = '', path = '/'}) {
  const form = $('explain-form').elements;
  [form.method.value, form.host.value, form.path.value, form.authorization.value] = [method, host, path, ''];
  $('explain-dialog').showModal();
  runExplain();
}

async function runExplain() {
  const {method, host, path, authorization} = $('explain-form').elements;
  const show = (...all) => $('explanation').replaceChildren(...all);
  const headers = authorization.value ? {'X-Explain-Authorization': authorization.value} : {};
  const target = query({method: method.value, host: host.value, path: path.value});
  try {
    const value = await call('GET', `/explain?${target}`, {headers});
    const {outcome, status, code, reason} = value.decision ?? {};
    const level = ['refused', 'undecidable'].includes(outcome) ? 'critical' : 'ok';
    const badge = outcome && h('span', {class: `badge ${level}`}, outcome.replace(/_/g, ' '));
    show(badge ? h('p', {}, badge, ` ${words(status, code, reason)}`) : '',
      typeof value === 'string' ? h('pre', {}, value) : treeOf(value));
  } catch (error) {
    show(h('p', {class: 'wrong'}, error.isMissing
      ? 'This gateway does not explain requests; martlet explain does.' : errorText(error)));
  }
}

/** Any JSON value, as nested lists. */
function treeOf(value) {
  if (Array.isArray(value)) {
    const items = value.map(one => h('li', {}, treeOf(one)));
    return items.length ? h('ul', {class: 'tree'}, ...items) : h('span', {}, 'none');
  }
  if (!value || typeof value !== 'object') return h('span', {}, String(value ?? '–'));
  return h('dl', {class: 'tree'}, ...Object.entries(value).filter(one => one[1] !== null)
    .flatMap(([name, one]) => [h('dt', {}, name.replace(/_/g, ' ')), h('dd', {}, treeOf(one))]));
}
on('explain-form', 'submit', event => { event.preventDefault(); runExplain(); });
on('explain-dialog', 'close', () => { $('explain-form').reset(); $('explanation').replaceChildren(); });

// ---------------------------------------------------------------- Ways through the page

/** Shows the section that the address names. */
function enter() {
  const hash = location.hash || (location.pathname === '/upstreams' ? '#upstreams' : '');
  const [section, values] = hash.slice(1).split('?');
  if (Object.hasOwn(views, section)) Object.assign(route, {section, values: new URLSearchParams(values ?? '')});
  for (const one of document.querySelectorAll('main > section')) one.hidden = one.id !== `s-${route.section}`;
  const value = name => route.values.get(name) ?? '', form = $('tail-form').elements, filter = {};
  if (route.section === 'tail') {
    for (const name of ['route', 'subject', 'reason']) form[name].value = filter[name] = value(name);
  }
  if (stream.filter !== null && stream.filter !== query(filter)) clearLines();
  openStream(filter);
  if (route.section === 'tail') drawTail();
  const subject = route.section === 'users' && value('subject');
  if (subject && subject !== user.subject) {
    $('subject').value = subject;
    loadUser(subject);
    drawUser();
  }
  render();
  poll();
}

window.addEventListener('hashchange', () => { enter(); window.scrollTo(0, 0); });
on('skip', 'click', event => { event.preventDefault(); $('main').focus(); });
on('window', 'change', event => { known.window = event.target.value; render(); });
on('lost-retry', 'click', poll);
for (const input of document.querySelectorAll('[data-filter]')) {
  input.addEventListener('input', () => {
    if (tables[input.dataset.filter]) tables[input.dataset.filter].filter = input.value;
    else upstreamFilter = input.value;
    render();
  });
}
on('user-form', 'submit', event => {
  event.preventDefault();
  const target = href('users', {subject: $('subject').value.trim()});
  if (location.hash === target) again(); else location.hash = target;
});
on('tail-form', 'submit', event => {
  event.preventDefault();
  const {route: one, subject, reason} = event.target.elements;
  location.hash = href('tail', {route: one.value.trim(), subject: subject.value.trim(), reason: reason.value.trim()});
});
on('tail-form', 'input', event => { if (['text', 'failed'].includes(event.target.name)) drawTail(); });
on('tail-pause', 'click', event => {
  stream.isPaused = !stream.isPaused;
  put(event.target, stream.isPaused ? 'Resume' : 'Pause');
  setStreamState(stream.state);
  showLines();
});
on('tail-clear', 'click', () => { clearLines(); showLines(true); });
on('tail-new', 'click', () => { showLines(true); $('s-tail').scrollIntoView(); });

// A page that is hidden polls nothing, and its stream ends after a minute.
let hiding = 0;
document.addEventListener('visibilitychange', () => {
  clearTimeout(hiding);
  if (!document.hidden) { enter(); return; }
  clearTimeout(timer);
  hiding = setTimeout(() => openStream(null), 60000);
});
setInterval(() => { if (known.lost && !document.hidden) renderTop(); }, 1000);
enter();
