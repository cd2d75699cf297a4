#!/usr/bin/env python3
"""Tests of the checks: each has to find what it is for."""

import copy
import sys
import unittest

sys.dont_write_bytecode = True

import findings

PAGE = """## Metrics

| Name | Labels | Meaning |
|---|---|---|
| `martlet_requests_total` | `route` `status` | Requests. |
| `martlet_duration_seconds` | `route` | Histogram. |

## Alerts

| Alert | Severity | Means |
|---|---|---|
| `MartletSlow` | ticket | slow |

## The log
"""
RULES = """groups:
  - name: all
    rules:
      - alert: MartletSlow
        expr: |-
          martlet_requests_total
            > 3
        for: 1m
        annotations:
          description: Guide: Page.md#here.
"""
METRICS = findings.metrics_of(PAGE)
PANEL = {
    "id": 1, "title": "one", "type": "stat", "gridPos": {"x": 0, "y": 0, "w": 12, "h": 8},
    "datasource": {"uid": "${datasource}"}, "targets": [{"expr": 'rate(up{instance="$instance"}[$__rate_interval])'}],
}


def dashboard(*panels):
    return {"templating": {"list": [{"name": "datasource"}, {"name": "instance"}]}, "panels": list(panels)}


class Checks(unittest.TestCase):
    def metrics(self, expression):
        return list(findings.check_metrics(expression, METRICS))

    def test_metrics_and_labels(self):
        self.assertEqual(METRICS, {"martlet_requests_total": {"route", "status"}, "martlet_duration_seconds": {"route"}})
        self.assertEqual(self.metrics('sum by (job, route) (rate(martlet_requests_total{status=~"by (x)", job="a"}[5m]))'), [])
        self.assertEqual(self.metrics('sum by (route, le) (martlet_duration_seconds_bucket{le="1"})'), [])
        self.assertEqual(self.metrics("martlet_requests"), ["'martlet_requests' is not in the metrics reference"])
        self.assertEqual(self.metrics("martlet_requests_total_bucket{x=\"1\"}"), ["'martlet_requests_total_bucket' has no label 'x'"])
        self.assertEqual(self.metrics('martlet_requests_total{code="200"}'), ["'martlet_requests_total' has no label 'code'"])
        self.assertEqual(self.metrics('martlet_duration_seconds_count{le="1"}'), ["'martlet_duration_seconds_count' has no label 'le'"])
        self.assertEqual(
            self.metrics("sum by (code) (martlet_requests_total)"), ["no metric of this expression has the label 'code'"])

    def test_expressions(self):
        self.assertEqual([text.split() for text in findings.expressions_of(RULES)], [["martlet_requests_total", ">", "3"]])
        self.assertEqual(findings.expressions_of("    expr: up == 0\n"), ["up == 0"])
        self.assertEqual(list(findings.queries_of(dashboard(PANEL))), [("one", 'rate(up{instance="$instance"}[5m])')])

    def test_table(self):
        self.assertEqual(list(findings.check_table(RULES, PAGE)), [])
        self.assertEqual(
            list(findings.check_table(RULES.replace("Slow", "Fast"), PAGE)),
            ["MartletFast is not in the guide's table", "the guide's table has MartletSlow, which is no alert"])
        self.assertEqual(list(findings.check_table(RULES + RULES, PAGE)), ["MartletSlow is there twice"])

    def test_tests(self):
        self.assertEqual(list(findings.check_tested(RULES, "- expr: ALERTS{alertname=\"MartletSlow\"}")), ["MartletSlow fires in no test"])
        self.assertEqual(list(findings.check_tested(RULES, "  - labels: 'ALERTS{alertname=\"MartletSlow\"}'")), [])

    def test_guide(self):
        self.assertEqual(list(findings.check_guide(RULES, lambda page: {"here"})), [])
        self.assertEqual(list(findings.check_guide(RULES, lambda page: {"there"})), ["there is no Page.md#here"])
        self.assertEqual(list(findings.check_guide(RULES, lambda page: None)), ["there is no Page.md#here"])

    def test_scraping(self):
        job = "```yaml\nscrape_configs:\n  - job_name: a\n{}    static_configs: [{{ targets: [{}] }}]\n```\n"
        for credential, target, errors in [
            ("", '"10.0.0.11:9901"', 1), ("", "gateway-1:9901", 1), ("", '"127.0.0.1:9901"', 0),
            ("    authorization: { credentials_file: a }\n", '"10.0.0.11:9901"', 0),
        ]:
            self.assertEqual(len(list(findings.check_scraping(job.format(credential, target)))), errors, target)
        self.assertEqual(list(findings.check_scraping(job.format("", "a:1") + "```yaml\n  metrics: open\n```\n")), [])

    def test_dashboard(self):
        self.assertEqual(list(findings.check_dashboard(dashboard(PANEL))), [])
        self.assertEqual(
            list(findings.check_dashboard(dashboard(PANEL, PANEL))),
            ["one: another panel has the id 1", "one: it overlaps another panel, or is outside"])
        other = copy.deepcopy(PANEL)
        other["type"], other["datasource"]["uid"], other["targets"][0]["expr"] = "pie", "mine", "$unknown"
        self.assertEqual(list(findings.check_dashboard(dashboard(other))), [
            "one: it has no query of ${datasource}", "one: the panel pie is not one that every Grafana has",
            "one: there is no variable unknown"])


if __name__ == "__main__":
    quiet = "--quiet" in sys.argv
    unittest.main(argv=sys.argv[:1], verbosity=0 if quiet else 1)
