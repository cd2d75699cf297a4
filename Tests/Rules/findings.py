"""What can be wrong in the alert rules and the dashboard, besides what promtool finds. Every function yields texts."""

import json
import re

ALERT = re.compile(r"^ *- alert: (\w+)$", re.MULTILINE)
EXPRESSION = re.compile(r"^( *)expr: (?:\|-\n((?:\1 +.*\n)+)|(.*)\n)", re.MULTILINE)
TESTED = re.compile(r'''^ *- labels: 'ALERTS\{alertname="(\w+)"''', re.MULTILINE)
ROW = re.compile(r"^\| `(\w+)`(?:, `\w+`)* \|([^|]*)\|", re.MULTILINE)
GUIDE = re.compile(r"\b([A-Z]\w*\.md)(?:#([\w-]+))?")
METRIC = re.compile(r"\b(martlet_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r"""(\w+)\s*(?:=~|!~|!=|=)\s*"(?:[^"\\]|\\.)*\"""")
GROUPING = re.compile(r"\b(?:by|on|without|ignoring|group_left|group_right) \(([^)]*)\)")
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
# What Prometheus adds, and `up`, which it makes for each target.
OF_PROMETHEUS = {"job", "instance"}
SCRAPED = re.compile(r"""targets: *\[(?!["']?(?:127\.|localhost|\[::1\]))""")
VARIABLES = {"$__rate_interval": "5m", "$__range": "3h"}


def alerts_of(rules):
    return ALERT.findall(rules)


def expressions_of(rules):
    """Of rules as they are written here: in one line, or as a literal block."""
    return [block or line for _, block, line in EXPRESSION.findall(rules)]


def panels_of(dashboard):
    """Every panel, those of collapsed rows too."""
    for panel in dashboard.get("panels", []):
        yield panel
        yield from panels_of(panel)


def queries_of(dashboard):
    """The expressions of a dashboard as (title of the panel, expression), with Grafana's own variables replaced."""
    for panel in panels_of(dashboard):
        for target in panel.get("targets", []):
            expression = target["expr"]
            for name, value in VARIABLES.items():
                expression = expression.replace(name, value)
            yield panel["title"], expression


def as_rules(queries):
    """The expressions as a file of recording rules; what JSON says, YAML says too."""
    rules = [{"record": f"panel:{number}", "expr": expression} for number, (_, expression) in enumerate(queries)]
    return json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}, indent=1)


def check_scraping(page):
    """Targets on other machines without a credential, where the admin listener demands one."""
    for block in re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if SCRAPED.search(block) and "authorization:" not in block and not re.search("^ *metrics: open", page, re.MULTILINE):
            yield "the targets are on other machines, from which /metrics needs authorization"


def section(page, title):
    """The text below a heading of the second level."""
    found = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return found.group(1) if found else ""


def metrics_of(page):
    """The metrics reference: the labels of each metric by its name."""
    metrics = {}
    for name, labels in ROW.findall(section(page, "Metrics")):
        if name.startswith("martlet_"):
            metrics[name] = set(re.findall(r"`(\w+)`", labels))
    return metrics


def check_metrics(expression, metrics):
    """Names that are not in the reference, and labels that no metric of the expression has."""
    grouping = OF_PROMETHEUS | {"le"}
    for name, matchers in METRIC.findall(expression):
        labels = metrics.get(name)
        extra = set(OF_PROMETHEUS)
        histogram = re.fullmatch(r"(\w+)_(bucket|sum|count)", name)
        if labels is None and histogram:
            labels = metrics.get(histogram.group(1))
            extra |= {"le"} if histogram.group(2) == "bucket" else set()
        if labels is None:
            yield f"'{name}' is not in the metrics reference"
            continue
        grouping |= labels
        for label in re.findall(r"\w+", " ".join(MATCHER.findall(matchers))):
            if label not in labels | extra:
                yield f"'{name}' has no label '{label}'"
    for labels in GROUPING.findall(QUOTED.sub('""', expression)):
        for label in re.findall(r"\w+", labels):
            if label not in grouping:
                yield f"no metric of this expression has the label '{label}'"


def check_table(rules, page):
    """Alerts that the guide does not name, and the other way round."""
    alerts, told = alerts_of(rules), [name for name, _ in ROW.findall(section(page, "Alerts"))]
    for name in sorted({name for name in alerts if alerts.count(name) > 1}):
        yield f"{name} is there twice"
    for name in sorted(set(alerts) - set(told)):
        yield f"{name} is not in the guide's table"
    for name in sorted(set(told) - set(alerts)):
        yield f"the guide's table has {name}, which is no alert"


def check_tested(rules, tests):
    """Alerts that fire in no test. Each test lists all instances that fire, so it says of the others that they do not."""
    for name in sorted(set(alerts_of(rules)) - set(TESTED.findall(tests))):
        yield f"{name} fires in no test"


def check_guide(rules, anchors_of):
    """Sections that descriptions name and that do not exist. `anchors_of` gives those of a page, `None` without one."""
    for page, fragment in sorted(set(GUIDE.findall(re.sub(r"^ *#.*", "", rules, flags=re.MULTILINE)))):
        anchors = anchors_of(page)
        if anchors is None or (fragment and fragment not in anchors):
            yield f"there is no {page}#{fragment}"


def check_dashboard(dashboard):
    """What Grafana needs to show a dashboard anywhere: its variables, ids, and panels that do not overlap."""
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    if missing := {"datasource", "instance"} - variables:
        yield f"the variable {sorted(missing)[0]} is missing"
    ids, cells = set(), set()
    for panel in panels_of(dashboard):
        title, grid = panel["title"], panel["gridPos"]
        if panel["id"] in ids:
            yield f"{title}: another panel has the id {panel['id']}"
        ids.add(panel["id"])
        own = {(x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])}
        if own & cells or grid["x"] + grid["w"] > 24:
            yield f"{title}: it overlaps another panel, or is outside"
        cells |= own
        if panel["type"] == "row":
            continue
        if panel.get("datasource", {}).get("uid") != "${datasource}" or not panel.get("targets"):
            yield f"{title}: it has no query of ${{datasource}}"
        if panel["type"] not in ("timeseries", "stat"):
            yield f"{title}: the panel {panel['type']} is not one that every Grafana has"
        for name in re.findall(r"\$(\w+)", json.dumps(panel.get("targets", []))):
            if name not in variables and f"${name}" not in VARIABLES:
                yield f"{title}: there is no variable {name}"
