"""The configuration of Sphinx. `build` calls it with pages that it has prepared."""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))

import sphinx.search

import words

project = "Martlet"
html_title = "Martlet"
extensions = ["myst_parser"]
html_theme, html_theme_path = "theme", [str(HERE)]
html_copy_source = False
html_use_index = False
# Quotes and dashes stay as the pages have them; the Chinese ones would be wrong.
smartquotes = False
myst_heading_anchors = 6
# Blocks on pages have dots and placeholders, so a highlighter does not always understand them.
suppress_warnings = ["misc.highlighting_failure"]
sphinx.search.languages["martlet"] = words.SearchWords
html_search_language = "martlet"

CHINESE = "zh-Hans/"
WORDS = {
    "en": {
        "search": "Search", "skip": "To the text", "pages": "Pages", "sections": "On this page", "home": "index",
        "other": "简体中文", "other_tag": "zh-Hans",
    },
    "zh-Hans": {
        "search": "搜索", "skip": "跳到正文", "pages": "所有页面", "sections": "本页内容", "home": "zh-Hans/index",
        "other": "English", "other_tag": "en",
    },
}
GROUP = re.compile(r'<p class="caption".*?</ul>\n?', re.DOTALL)


def name_sections(app, document):
    """Gives headings the anchors that links to them have in the repository, also those without a Latin letter."""
    labels = app.env.get_domain("std")
    for section in document.findall(lambda node: "myst-anchor" in getattr(node, "attributes", {})):
        key = section["myst-anchor"]
        name = key.partition("#")[2]
        if not name or document.ids.get(name, section) is not section:
            continue
        document.ids[name] = section
        section["ids"] = [name, *(one for one in section["ids"] if one != name)]
        for table in (labels.labels, labels.anonlabels):
            if key in table:
                table[key] = (table[key][0], name, *table[key][2:])


def describe(app, page, template, context, document):
    """What the frame of a page says: its language, the same page in the other one, the pages and the sections."""
    language = "zh-Hans" if page.startswith(CHINESE) else "en"
    context["language"], context["words"] = language, WORDS[language]
    other = page.removeprefix(CHINESE) if language != "en" else CHINESE + page
    context["other"] = other if other in app.env.found_docs else None
    groups = GROUP.findall(context["toctree"](collapse=False, maxdepth=1, titles_only=True, includehidden=True))
    if language != "en":
        groups.sort(key=lambda group: CHINESE not in group and "简体中文" not in group)
    context["navigation"] = "".join(groups)
    # The list of sections begins with the page's own title, which is above it already.
    inner = re.search(r"</a>\s*(<ul>.*</ul>)\s*</li>\s*</ul>", context.get("toc", ""), re.DOTALL)
    context["sections"] = inner.group(1) if inner else ""


def setup(app):
    # Before the tables of contents are collected, which happens at priority 500.
    app.connect("doctree-read", name_sections, priority=100)
    app.connect("html-page-context", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
