// Returns what is wrong with the document, each as one line. Called with the wanted checks as its argument.
const wrong = [];
const all = selector => [...document.querySelectorAll(selector)];
const describe = element => {
  const id = element.id ? '#' + element.id : '';
  return element.tagName.toLowerCase() + id + ' "' + (element.textContent || '').trim().slice(0, 30) + '"';
};
const isShown = element => element.getClientRects().length > 0 && getComputedStyle(element).visibility === 'visible';

if (!/^(en|zh-Hans|zh-Hant)$/.test(document.documentElement.lang)) wrong.push('html has no lang');
if (!document.title.trim()) wrong.push('no title');
for (const [tag, role] of [['h1', null], ['main', 'main']]) {
  const count = all(tag).length + (role ? all(`[role=${role}]`).length : 0);
  if (count !== 1) wrong.push(`${count} elements ${tag}`);
}
let level = 0;
for (const heading of all('h1,h2,h3,h4,h5,h6')) {
  const next = Number(heading.tagName[1]);
  if (next > level + 1) wrong.push(`heading skips a level: ${describe(heading)}`);
  level = next;
}

// Names.
const named = element => {
  const ids = (element.getAttribute('aria-labelledby') || '').split(/\s+/).filter(Boolean);
  const other = ids.map(id => document.getElementById(id)?.textContent.trim() || '').join('');
  return (element.getAttribute('aria-label') || '').trim() || other || element.textContent.trim() ||
    [...element.querySelectorAll('img[alt]')].map(image => image.alt.trim()).join('');
};
for (const input of all('input:not([type=hidden]),select,textarea')) {
  const label = [...(input.labels || [])].map(one => one.textContent.trim()).join('');
  if (!label && !(input.getAttribute('aria-label') || '').trim() && !input.getAttribute('aria-labelledby'))
    wrong.push(`no label: ${describe(input)}`);
}
for (const control of all('a[href],button')) if (!named(control)) wrong.push(`no name: ${describe(control)}`);
for (const button of all('button[aria-label]')) {
  // Voice control uses what is seen (WCAG 2.5.3).
  const seen = button.textContent.trim().toLowerCase();
  if (!button.getAttribute('aria-label').toLowerCase().includes(seen)) wrong.push(`name without its text: ${describe(button)}`);
}
for (const image of all('img')) if (!image.hasAttribute('alt')) wrong.push(`no alt: ${describe(image)}`);
for (const icon of all('svg')) if (icon.getAttribute('aria-hidden') !== 'true' && !named(icon)) wrong.push('svg without a name');
for (const nav of all('nav')) if (all('nav').length > 1 && !named(nav)) wrong.push('nav without a name');

// References.
const ids = all('[id]').map(element => element.id);
for (const id of new Set(ids.filter((id, index) => ids.indexOf(id) !== index))) wrong.push(`duplicate id ${id}`);
for (const attribute of ['aria-describedby', 'aria-labelledby', 'aria-controls', 'for'])
  for (const element of all(`[${attribute}]`))
    for (const id of element.getAttribute(attribute).split(/\s+/))
      if (!document.getElementById(id)) wrong.push(`${attribute} of ${describe(element)} has no target ${id}`);
for (const error of all('.error')) {
  const isReferenced = error.id && document.querySelector(`[aria-describedby~="${error.id}"]`);
  if (!error.closest('[role=alert]') && !isReferenced) wrong.push(`error that is not announced: ${describe(error)}`);
}
for (const input of all('[aria-invalid=true]'))
  if (!input.getAttribute('aria-describedby')) wrong.push(`invalid without a reason: ${describe(input)}`);
for (const element of all('[tabindex]'))
  if (Number(element.getAttribute('tabindex')) > 0) wrong.push(`positive tabindex: ${describe(element)}`);
for (const list of all('ul,ol'))
  if ([...list.children].some(child => child.tagName !== 'LI')) wrong.push('list with something else than items');
if (document.querySelector('meta[name=viewport]')?.content.match(/user-scalable\s*=\s*no|maximum-scale/))
  wrong.push('zoom is disabled');

// Contrast (WCAG 1.4.3), from computed styles.
const channels = text => {
  const numbers = (text.match(/-?[\d.]+(e-?\d+)?/g) || []).map(Number);
  if (text.startsWith('color(srgb')) return [...numbers.slice(0, 3).map(one => one * 255), numbers[3] ?? 1];
  return [...numbers.slice(0, 3), numbers[3] ?? 1];
};
const over = (top, below) => [0, 1, 2].map(index => top[index] * top[3] + below[index] * (1 - top[3])).concat(1);
const luminance = color => {
  const [red, green, blue] = color.slice(0, 3).map(one => one / 255).map(
    one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const ratio = (one, other) => {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
};
const isDark = matchMedia('(prefers-color-scheme: dark)').matches;
const canvas = isDark && getComputedStyle(document.documentElement).colorScheme.includes('dark') ? [18, 18, 18, 1] : [255, 255, 255, 1];
const background = element => {
  const layers = [];
  for (let one = element; one; one = one.parentElement) layers.push(channels(getComputedStyle(one).backgroundColor));
  return layers.reverse().reduce((below, top) => over(top, below), canvas);
};
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = texts.nextNode(); node; node = texts.nextNode()) {
  const element = node.parentElement;
  if (!node.data.trim() || !isShown(element) || ['STYLE', 'SCRIPT'].includes(element.tagName)) continue;
  const style = getComputedStyle(element), size = parseFloat(style.fontSize);
  const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  const below = background(element), found = ratio(over(channels(style.color), below), below);
  if (found < (isLarge ? 3 : 4.5)) wrong.push(`contrast ${found.toFixed(2)} of ${describe(element)}`);
}
// The edges of fields (WCAG 1.4.11).
for (const input of all('input:not([type=hidden]):not([type=checkbox])')) {
  if (!isShown(input) || getComputedStyle(input).opacity === '0') continue;
  const found = ratio(channels(getComputedStyle(input).borderTopColor), background(input.parentElement));
  if (found < 3) wrong.push(`contrast ${found.toFixed(2)} of the edge of ${describe(input)}`);
}

// Width and targets.
const root = document.documentElement;
if (root.scrollWidth > root.clientWidth) wrong.push(`scrolls sideways: ${root.scrollWidth} px of ${root.clientWidth}`);
for (const control of all('a[href],button,input:not([type=hidden])')) {
  const box = control.getBoundingClientRect(), isInText = control.closest('p') && !control.classList.contains('button');
  // The checkbox has its label, which is a part of the target.
  if (!isShown(control) || isInText || control.type === 'checkbox' || control.tabIndex < 0) continue;
  if (box.width < 24 || box.height < 24) wrong.push(`target of ${Math.round(box.width)}×${Math.round(box.height)} px: ${describe(control)}`);
}
return wrong;
