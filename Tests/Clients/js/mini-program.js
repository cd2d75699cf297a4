// Runs the guide's mini-program with the part of WeChat's API that it uses.
const fs = require('node:fs')
const vm = require('node:vm')
const [page, gateway, simulator] = process.argv.slice(2)
const storage = {}
let [logins, refreshes, trouble, rejected] = [0, 0, undefined, 0]
let renewed
const renewal = new Promise(resolve => { renewed = resolve })

const wx = {
  login({ success, fail }) {
    logins += 1
    const body = JSON.stringify({ app_id: 'wx0000000000000004', person: 'Ada' })
    fetch(`${simulator}/simulator/code`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })
      .then(response => response.json()).then(({ code }) => success({ code }), fail)
  },
  // As WeChat's: data is sent as JSON, a response with JSON is parsed, every status is a success.
  request({ url, method = 'GET', data, header = {}, success, fail }) {
    if (trouble) return success(trouble)
    if (url.endsWith('/auth/refresh')) refreshes += 1
    const headers = { 'content-type': 'application/json', ...header }
    fetch(url, { method, headers, body: data === undefined ? undefined : JSON.stringify(data) })
      .then(async response => ({
        statusCode: response.status, header: Object.fromEntries(response.headers), data: parsed(await response.text())
      })).then(async response => {
        // The second of two requests with an old token hears of it when the first one has new tokens already.
        if (response.statusCode === 401 && ++rejected === 2) await renewal
        success(response)
      }, fail)
  },
  setStorageSync(key, value) { if (storage[key]) renewed(); storage[key] = value },
  getStorageSync(key) { return storage[key] ?? '' }
}

function parsed(text) { try { return JSON.parse(text) } catch { return text } }

function show(what, value) { console.log(`${what}: ${typeof value === 'string' ? value.replaceAll('\n', ' ') : JSON.stringify(value)}`) }

const context = vm.createContext({ wx, Promise })
vm.runInContext(fs.readFileSync(page, 'utf8'), context, page)
const run = source => vm.runInContext(source, context)
;(async () => {
  show('signed in', (await run('login()')).subject)
  show('api', await run("request('/orders')"))
  storage.tokens.access_token = `mat_${'A'.repeat(43)}`
  show('refreshed', (await Promise.all([run("request('/orders')"), run("request('/orders')")]))[1])
  show('refreshes', `${refreshes} ${logins}`)
  const token = storage.tokens.access_token
  await fetch(`${gateway}/auth/logout`, { method: 'POST', headers: { Authorization: `Bearer ${token}` } })
  show('again', await run("request('/orders')"))
  show('logins', String(logins))
  const rejected = error => `${error.status} ${error.code} ${error.retryAfter ?? ''}`
  show('missing', await run("send('/auth/nothing', {})").then(String, rejected))
  const kept = storage.tokens
  trouble = { statusCode: 503, header: { 'Retry-After': '7' }, data: { code: 'overloaded' } }
  show('outage', await run("request('/orders')").then(String, rejected))
  show('kept', storage.tokens === kept)
})().catch(error => { console.error(error); process.exit(1) })
