"""How the site's search divides text into words: English by its stems, Chinese by every character and every pair of them.

Pairs need no dictionary, and a word of Chinese is found wherever its characters stand together. The page that searches
divides the query with the same rules, written in JavaScript below."""

import re

from sphinx.search.en import SearchEnglish

HAN = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
RUN = re.compile(rf"[{HAN}]+|[^\W{HAN}]+")
# Sphinx looks for no numbers; those of statuses are words with this sign before them.
NUMBER = "_"

SPLITTER = r"""
function splitQuery(query) {
  const words = [];
  for (const run of query.match(/[HAN]+|(?:(?![HAN])[\p{Letter}\p{Number}_])+/gu) || []) {
    if (/^\d+$/.test(run)) words.push("NUMBER" + run);
    else if (!/[HAN]/.test(run) || run.length === 1) words.push(run);
    else for (let index = 0; index + 2 <= run.length; index++) words.push(run.slice(index, index + 2));
  }
  return words;
}
""".replace("HAN", HAN).replace("NUMBER", NUMBER)


def words_of(text):
    """The words of a text: of Chinese every character and every pair that stands together."""
    for run in RUN.findall(text):
        if not re.match(f"[{HAN}]", run):
            yield NUMBER + run if run.isdecimal() and run.isascii() else run
            continue
        yield from run
        yield from (run[index:index + 2] for index in range(len(run) - 1))


class SearchWords(SearchEnglish):
    """English and Chinese in one index."""

    lang = "martlet"
    language_name = "English and Chinese"
    js_splitter_code = SPLITTER

    def split(self, input):
        return list(words_of(input))
