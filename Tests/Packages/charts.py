"""The Helm chart: helm's own lint and rendering, Kubernetes' schemas, and what the manifests have to say."""

import itertools
import re

from roots import ROOT, Failure, Unavailable, sh

CHART = ROOT / "Examples/kubernetes/martlet"
TOOLS = ROOT / ".packages/tools"
# What a cluster with everything switched on would set.
EVERYTHING = [
    "replicas=3", "autoscaling.enabled=true", "serviceMonitor.enabled=true", "secret.name=martlet", "podLabels.team=edge",
    "imagePullSecrets[0].name=registry", "service.annotations.a=b", "nodeSelector.disk=ssd",
    "networkPolicy.from[0].podSelector.matchLabels.x=y",
]
DEFAULT = {"ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceAccount"}
# Values that have to be rejected by the schema of values.
WRONG = ["replicas=0", "replica=2", "image.pullPolicy=Sometimes", "config.version=2", "serviceMonitor.interval=often"]


def check(folder):
    sh(ROOT / ".tools/helm", quiet=False)
    helm = TOOLS / "helm"
    if not helm.exists():
        raise Unavailable("helm cannot be had")
    sh(helm, "lint", "--strict", CHART)
    settings = list(itertools.chain.from_iterable(("--set", one) for one in EVERYTHING))
    rendered = {"default": render(helm), "everything": render(helm, *settings)}
    validator = TOOLS / "kubernetes/bin/kubernetes-validate"
    count = 0
    for name, text in rendered.items():
        file = folder / f"{name}.yaml"
        # The operator's own kind is in no schema of Kubernetes.
        parts = [one for one in re.split(r"^---$", text, flags=re.M) if one.strip() and "kind: ServiceMonitor" not in one]
        file.write_text("---".join(["", *parts]), encoding="utf-8")
        count += len(parts)
        if validator.exists():
            sh(validator, "--strict", file)
    kinds = set(re.findall(r"^kind: (\w+)", rendered["default"], re.M))
    if kinds != DEFAULT:
        raise Failure(f"the chart makes {sorted(kinds)} by default")
    more = set(re.findall(r"^kind: (\w+)", rendered["everything"], re.M)) - DEFAULT
    if more != {"HorizontalPodAutoscaler", "ServiceMonitor"}:
        raise Failure(f"everything adds {sorted(more)}")
    check_pod(rendered["everything"])
    for value in WRONG:
        if sh(helm, "template", "x", CHART, "--set", value, check=False).returncode == 0:
            raise Failure(f"{value} is no error")
    said = check_configuration(rendered["default"], folder)
    with_schemas = "valid by Kubernetes' schemas" if validator.exists() else "SKIPPED: Kubernetes' schemas"
    return f"helm lint; {count} manifests, {with_schemas}; {len(WRONG)} wrong values rejected; {said}; untested: a cluster"


def render(helm, *arguments):
    return sh(helm, "template", "release", CHART, *arguments).stdout


def check_pod(text):
    wanted = [
        "readOnlyRootFilesystem: true", "runAsNonRoot: true", "allowPrivilegeEscalation: false", "drop: [ALL]",
        "automountServiceAccountToken: false", "path: /livez", "path: /readyz", "secretName: martlet", "seccompProfile",
    ]
    missing = [one for one in wanted if one not in text]
    if missing:
        raise Failure(f"the pod lacks {', '.join(missing)}")


def check_configuration(text, folder):
    """The configuration of the chart has to be one, for whichever executable is built."""
    names = (".build-release/release/martlet", ".build/debug/martlet")
    martlet = next((ROOT / name for name in names if (ROOT / name).is_file()), None)
    if martlet is None:
        return "SKIPPED: martlet check, for lack of an executable"
    block = re.search(r"^  config\.yaml: \|\n((?:    .*\n|\n)+)", text, re.M)[1]
    file = folder / "chart-config.yaml"
    file.write_text(re.sub(r"^    ", "", block, flags=re.M), encoding="utf-8")
    sh(martlet, "check", "--config", file)
    return "its configuration passes martlet check"
