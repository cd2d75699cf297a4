// Runs the guide's script with a browser's `fetch`, `location` and cookie.
const fs = require('node:fs')
const [page, gateway, cookie] = process.argv.slice(2)
const script = fs.readFileSync(page, 'utf8')
const AsyncFunction = Object.getPrototypeOf(async function () {}).constructor

async function run(cookies, response) {
  const assigned = []
  const location = { pathname: '/orders', search: '?page=2', assign: url => assigned.push(url) }
  const asked = (path, options) => response
    || fetch(new URL(path, gateway), { ...options, headers: { ...cookies, 'Sec-Fetch-Site': 'same-origin' } })
  try {
    const done = await new AsyncFunction('fetch', 'location', `${script}\nreturn response`)(async (...all) => asked(...all), location)
    return `${done.status} ${(await done.text()).replaceAll('\n', ' ')}`
  } catch (error) {
    return `${error.status} ${error.code} ${error.retryAfter ?? ''}${assigned.join(' ')}`
  }
}

(async () => {
  console.log(`anonymous: ${await run({})}`)
  console.log(`api: ${await run({ Cookie: cookie })}`)
  const outage = new Response('{"code":"overloaded"}', { status: 503, headers: { 'Retry-After': '7' } })
  console.log(`outage: ${await run({}, outage)}`)
})().catch(error => { console.error(error); process.exit(1) })
