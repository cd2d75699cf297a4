"""What every page has to fulfil, after the rules of WCAG 2.2 AA that a program can check."""

import pathlib

SCRIPT = pathlib.Path(__file__).with_name("accessibility.js").read_text(encoding="utf-8")
TAB = 9
FOCUSED = """
const element = document.activeElement;
if (!element || element === document.body) return null;
const style = getComputedStyle(element);
const focused = [style.outlineStyle, style.outlineWidth, style.outlineColor, style.boxShadow].join();
const index = [...document.querySelectorAll('*')].indexOf(element);
return {index, name: element.tagName + (element.id ? '#' + element.id : ''), outline: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0, focused};
"""
# What the focus has to reach, and how each looks without it.
CONTROLS = """
document.activeElement?.blur();
const every = [...document.querySelectorAll('*')];
return every.filter(one => one.matches('a[href],button,input:not([type=hidden]),select,textarea') && one.tabIndex >= 0 && !one.disabled)
  .map(one => { const style = getComputedStyle(one);
    return {index: every.indexOf(one), name: one.tagName + (one.id ? '#' + one.id : ''),
      plain: [style.outlineStyle, style.outlineWidth, style.outlineColor, style.boxShadow].join()}; });
"""


def rules(browser):
    """What is wrong with the page as it is shown now."""
    return browser.run(SCRIPT)


def focus(browser):
    """What is wrong with moving through the page by Tab."""
    controls = browser.run(CONTROLS)
    # From the beginning of the document, wherever the page has put the focus.
    browser.run(
        "const first = document.createElement('i'); first.tabIndex = -1; document.body.prepend(first); first.focus(); first.remove();")
    reached, wrong = [], []
    for _ in range(len(controls) + 3):
        browser.press("Tab", TAB)
        now = browser.run(FOCUSED)
        if now is None or (reached and now["index"] == reached[0]):
            break
        if now["index"] in reached:
            wrong.append(f"Tab does not leave {now['name']}")
            break
        reached.append(now["index"])
        plain = next((one["plain"] for one in controls if one["index"] == now["index"]), None)
        if plain == now["focused"]:
            wrong.append(f"focus is not visible: {now['name']}")
    wrong += [f"Tab does not reach {one['name']}" for one in controls if one["index"] not in reached]
    if reached != sorted(reached):
        wrong.append("Tab does not follow the order of the document")
    browser.run("document.activeElement?.blur();")
    return wrong


# A page with mistakes, and how each is reported: the list is of use only while it finds them.
MISTAKES = """<!doctype html><html><head><title>x</title></head><body style="background:#fff"><h1>One</h1><h1>Two</h1>
<h3>Skips</h3><main><input id="a"><input id="a" aria-describedby="missing" aria-label="b"><button></button><a href="/"></a>
<p style="color:#999">Pale</p><p class="error">Silent</p><img src="x"><div style="width:3000px">Wide</div><nav></nav><nav></nav>
<button aria-label="Other">Text</button><ul><p>No item</p></ul><input aria-label="c" aria-invalid="true" style="border-color:#eee">
<button style="width:9px;height:9px;padding:0;overflow:hidden">Small</button><a href="/" style="outline:none">Unseen</a><a href="/" tabindex="3">First</a>
</main></body></html>"""
FOUND = [
    "html has no lang", "2 elements h1", "heading skips a level", "no label: input#a", "no name: button", "no name: a", "no alt",
    "duplicate id a", "aria-describedby of input#a", "error that is not announced", "contrast 2.85", "scrolls sideways",
    "nav without a name", "name without its text", "list with something else", "invalid without a reason", "of the edge of",
    "target of 9×9", "positive tabindex", "focus is not visible", "Tab does not reach",
]


def undetected(browser):
    """The mistakes of a page full of them that are not found."""
    browser.go("about:blank")
    browser.run("document.open(); document.write(arguments[0]); document.close();", MISTAKES)
    reported = rules(browser) + focus(browser)
    return [one for one in FOUND if not any(one in line for line in reported)]
