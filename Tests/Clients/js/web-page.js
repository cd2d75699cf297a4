// Runs the guide's script with a browser's `fetch`, `location` and cookie.
const fs = require('node:fs')
const [page, gateway, cookie] = process.argv.slice(2)
const script = fs.readFileSync(page, 'utf8')
const AsyncFunction = Object.getPrototypeOf(async function () {}).constructor

async function run(cookies) {
  const assigned = []
  const location = { pathname: '/orders', assign: url => assigned.push(url) }
  const asked = (path, options) => fetch(new URL(path, gateway), { ...options, headers: { ...cookies, 'Sec-Fetch-Site': 'same-origin' } })
  const response = await new AsyncFunction('fetch', 'location', `${script}\nreturn response`)(asked, location)
  return `${response.status} ${assigned.join(' ')} ${(await response.text()).replaceAll('\n', ' ')}`
}

(async () => {
  console.log(`anonymous: ${await run({})}`)
  console.log(`api: ${await run({ Cookie: cookie })}`)
})().catch(error => { console.error(error); process.exit(1) })
