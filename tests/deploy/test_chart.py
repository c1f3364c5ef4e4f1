"""The Helm chart, rendered by Helm: Kubernetes accepts it, the server its options, and its pods have few privileges."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import bot
from bot.organisation import lance
from bot.server.options import REQUIRED, WORKER_REQUIRED, ServerOptions, is_secret, read_options, variable
from bot.server.processes import KILL_AFTER
from bot.server.web import create_app
from bot.settings.schema import rules
from tests.docs.pages import ROOT
from tests.github.keys import key_pair
from tests.server.sample_inbox import OPTIONS, empty_inbox
from tests.server.web_process import make_web_context
from tools.snippets import blocks

CHART = ROOT / "deploy/chart"
CHECKS = ROOT / ".venv-checks" / "bin"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHECKS / "kubernetes-validate").exists(), reason="the checks are not here: make lint"),
]

Manifest = dict[str, Any]
VERSIONS = ("1.30", "1.37")
"""Kubernetes versions: the oldest that the chart allows, and the newest whose schemas we have."""

FOREIGN_KINDS = {"ScaledObject"}
"""Kinds that are not part of Kubernetes, so without a schema here: compared whole below."""

MINIMAL: Manifest = yaml.safe_load((ROOT / "tests/deploy/values.yml").read_text(encoding="utf-8"))
PEER = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}
FULL: Manifest = {
    "image": {
        "repository": "registry.example.com:5000/bots/precedent",
        "tag": f"1.2.3@sha256:{'0' * 64}",
        "pullPolicy": "Always",
        "pullSecrets": ["registry"],
    },
    "appId": 2**53,
    "secrets": {
        "privateKey": {"name": "app", "key": "PRIVATE.pem"},
        "databaseUrl": {"name": "postgres-app", "key": "uri"},
        "webhookSecret": {"name": "app", "key": "secret"},
        "webhookSecretOld": {"name": "app", "key": "secret-old"},
        "statusPassword": {"name": "status", "key": "password"},
        "operatorPassword": {"name": "status", "key": "operator"},
    },
    "env": {"PRECEDENT_SWEEP_MINUTES": "30", "HTTPS_PROXY": "http://proxy.example.com:3128"},
    "index": {"place": "s3://bucket/precedent", "credentials": "object-store"},
    "worker": {"jobs": 8, "clonesMB": 10_000_000},
    "autoscaling": {"enabled": True, "prometheus": "http://prometheus.example.com:9090", "seconds": 90},
    "service": {"port": 8000},
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "host": "precedent.example.com",
        "tlsSecret": "precedent-tls",
        "annotations": {"nginx.ingress.kubernetes.io/proxy-body-size": "26m"},
    },
    "networkPolicy": {
        "from": [PEER],
        "database": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
        "databasePort": 6432,
        "egress": [{"to": [PEER], "ports": [{"port": 3128}]}],
    },
    "podAnnotations": {"example.com/team": "bots"},
    "nodeSelector": {"kubernetes.io/arch": "amd64"},
    "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
}
SECRETS = {
    "private-key": key_pair()[0],
    "database-url": "postgresql://precedent:open%20sesame@db.example.com/precedent",
    "webhook-secret": "0123456789abcdef",
    "webhook-secret-old": "fedcba9876543210",
    "status-password": "open sesame, please",
    "operator-password": "open sesame, at once",
}
"""File name → what an operator has put into the Secret."""

BOTH_VALUE_SETS = pytest.mark.parametrize("values", [MINIMAL, FULL], ids=["least", "most"])


def helm(*words: str, values: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
    command = [str(CHECKS / "python"), "-m", "tools.helm", *words, "--values", "-"]
    result = subprocess.run(command, cwd=ROOT, input=json.dumps(values), capture_output=True, text=True, check=False)
    if result.stderr.startswith("helm was left out"):
        pytest.skip(result.stderr.strip())
    return result


def render(values: Mapping[str, Any], release: str = "precedent") -> list[Manifest]:
    return [each for each in yaml.safe_load_all(rendered(json.dumps(values), release)) if each]


@cache
def rendered(values: str, release: str) -> str:
    result = helm("template", release, str(CHART), "--namespace", "bots", values=json.loads(values))
    assert result.returncode == 0, result.stderr
    return result.stdout


def manifests_of_kind(manifests: list[Manifest], kind: str) -> dict[str, Manifest]:
    """Name → manifest."""
    return {each["metadata"]["name"]: each for each in manifests if each["kind"] == kind}


def pod_templates(manifests: list[Manifest]) -> dict[str, Manifest]:
    """Name of the only container → the template of its pod."""
    templates = [each["spec"]["template"] for each in manifests_of_kind(manifests, "Deployment").values()]
    by_container = {container["name"]: pod for pod in templates for container in pod["spec"]["containers"]}
    assert len(by_container) == len(templates) == 2
    return by_container


def container(pod: Manifest) -> Manifest:
    (only_container,) = pod["spec"]["containers"]
    return dict(only_container)


# -- what is rendered ----------------------------------------------------------------------------------------------


@BOTH_VALUE_SETS
def test_kubernetes_accepts_every_manifest(values: Manifest, tmp_path: Path) -> None:
    manifests, file = render(values), tmp_path / "rendered.yml"
    file.write_text(yaml.safe_dump_all(manifests), encoding="utf-8")
    versions = [word for version in VERSIONS for word in ("--kubernetes-version", version)]
    command = [str(CHECKS / "kubernetes-validate"), "--strict", *versions, str(file)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    passed = re.findall(r"^INFO .* passed for resource", result.stdout, re.MULTILINE)
    assert len(passed) == len([each for each in manifests if each["kind"] not in FOREIGN_KINDS]) * len(VERSIONS)


def test_the_values_in_the_documentation_render() -> None:
    page = (ROOT / "docs/self-hosting.md").read_text(encoding="utf-8")
    (shown,) = (block.body for block in blocks(page) if block.language == "yaml" and "appId:" in block.body)
    always = ["Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceAccount"]
    assert {each["kind"] for each in render(yaml.safe_load(shown))} == {*always, "Ingress"}
    assert {each["kind"] for each in render(MINIMAL)} == set(always)
    switched_off = MINIMAL | {"networkPolicy": {"enabled": False}, "podDisruptionBudget": {"enabled": False}}
    kinds = sorted(each["kind"] for each in render(switched_off))
    assert kinds == ["Deployment", "Deployment", "Service", "ServiceAccount"]


@pytest.mark.parametrize("release", ["precedent", "bots", "x" * 53, f"{'x' * 49}-aa", f"precedent-{'x' * 43}"])
def test_every_name_fits_and_all_are_different(release: str) -> None:
    manifests = render(FULL, release)
    names = [(each["kind"], each["metadata"]["name"]) for each in manifests]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name) for _, name in names), names


@BOTH_VALUE_SETS
def test_every_selector_selects_the_right_pods(values: Manifest) -> None:
    manifests, selected = render(values), {}
    labels = {name: pod["metadata"]["labels"] for name, pod in pod_templates(manifests).items()}
    for each in manifests:
        spec = each.get("spec", {})
        selector = spec.get("podSelector", spec.get("selector"))
        if selector is not None:
            selected_labels = selector.get("matchLabels", selector).items()
            parts = [name for name, pod_labels in labels.items() if selected_labels <= pod_labels.items()]
            selected[each["kind"], each["metadata"]["name"]] = parts
    expected_keys = [(kind, part) for kind in ("Deployment", "NetworkPolicy", "PodDisruptionBudget")
            for part in ("serve", "worker")]  # fmt: skip
    assert selected == {(kind, f"precedent-{part}"): [part] for kind, part in expected_keys} | {
        ("Service", "precedent"): ["serve"]
    }


def test_a_second_release_in_the_namespace_is_not_selected() -> None:
    first, second = render(MINIMAL, "precedent-a"), render(MINIMAL, "precedent-b")
    selector = manifests_of_kind(first, "Service")["precedent-a"]["spec"]["selector"].items()
    assert not selector <= pod_templates(second)["serve"]["metadata"]["labels"].items()


def test_the_ingress_leads_to_the_webhook_and_nowhere_else() -> None:
    manifests = render(FULL)
    spec = manifests_of_kind(manifests, "Ingress")["precedent"]["spec"]
    assert spec["tls"] == [{"hosts": ["precedent.example.com"], "secretName": "precedent-tls"}]
    ((path,),) = (rule["http"]["paths"] for rule in spec["rules"])
    assert (path["path"], path["pathType"]) == ("/webhook", "Exact")
    backend, (service,) = path["backend"]["service"], manifests_of_kind(manifests, "Service").values()
    assert (backend["name"], backend["port"]["name"]) == (
        service["metadata"]["name"],
        service["spec"]["ports"][0]["name"],
    )


def test_the_autoscaler_adds_workers_while_deliveries_wait() -> None:
    manifests = render(FULL)
    (scaler,) = manifests_of_kind(manifests, "ScaledObject").values()
    assert scaler["spec"] == {
        "scaleTargetRef": {"name": "precedent-worker"},
        "minReplicaCount": 1,
        "maxReplicaCount": 8,
        "triggers": [
            {
                "type": "prometheus",
                "metricType": "Value",
                "metadata": {
                    "serverAddress": "http://prometheus.example.com:9090",
                    "query": "max(precedent_oldest_waiting_seconds)",
                    "threshold": "90",
                    "ignoreNullValues": "false",
                },
            }
        ],
    }
    assert "replicas" not in manifests_of_kind(manifests, "Deployment")["precedent-worker"]["spec"], (
        "an upgrade would reset it"
    )
    assert manifests_of_kind(render(MINIMAL), "Deployment")["precedent-worker"]["spec"]["replicas"] == 2


# -- what runs in the pods -----------------------------------------------------------------------------------------


@BOTH_VALUE_SETS
def test_the_pods_have_few_privileges(values: Manifest) -> None:
    manifests = render(values)
    (account,) = manifests_of_kind(manifests, "ServiceAccount").values()
    (owner,) = re.findall(r"--chown=(\d+):\1 /data", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert account["automountServiceAccountToken"] is False
    for pod in pod_templates(manifests).values():
        spec, security = pod["spec"], container(pod)["securityContext"]
        assert spec["serviceAccountName"] == account["metadata"]["name"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        assert set(container(pod)["resources"]["limits"]) == {"memory"}
        users = {spec["securityContext"][name] for name in ("runAsUser", "runAsGroup", "fsGroup")}
        assert users == {int(owner)}, "the owner of the data folder in the image"
        # As `init` does in the compose file: a process of the pod reaps what killed programs leave behind. `container`
        # checks that no other one sees the processes of ours.
        assert spec["shareProcessNamespace"] is True
        # Kubernetes would set PRECEDENT_PORT to an address, because of the name of the service.
        assert spec["enableServiceLinks"] is False


def mounted_secrets(pod: Manifest) -> dict[str, tuple[str, str]]:
    """Path in the container → the Secret and the key mounted there."""
    (volume,) = (each["projected"] for each in pod["spec"]["volumes"] if each["name"] == "secrets")
    (mount,) = (each for each in container(pod)["volumeMounts"] if each["name"] == "secrets")
    assert (volume["defaultMode"], mount["readOnly"]) == (0o440, True)
    return {
        f"{mount['mountPath']}/{item['path']}": (source["secret"]["name"], item["key"])
        for source in volume["sources"]
        for item in source["secret"]["items"]
    }


def options(pod: Manifest, folder: Path) -> ServerOptions:
    """What the server reads from the pod's variables, with the mounted files in ``folder``."""
    for path in mounted_secrets(pod):
        file = folder / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(SECRETS[file.name], encoding="utf-8")
    variables = container(pod)["env"]
    environ = {each["name"]: each["value"] for each in variables}
    assert len(environ) == len(variables), "the same variable twice"
    environ = {name: f"{folder}{value}" if name.endswith("_FILE") else value for name, value in environ.items()}
    known_variables = {f"{variable(name)}{end}" for name in rules(ServerOptions) for end in ("", "_FILE")}
    assert {name for name in environ if name.startswith("PRECEDENT_")} <= known_variables
    assert not {name for name in rules(ServerOptions) if is_secret(name) and variable(name) in environ}
    return read_options(environ, {}, REQUIRED if container(pod)["args"] == ["serve"] else WORKER_REQUIRED)


@BOTH_VALUE_SETS
def test_a_receiver_gets_its_options_and_secrets(values: Manifest, tmp_path: Path) -> None:
    pod = pod_templates(render(values))["serve"]
    server_options = options(pod, tmp_path)
    assert container(pod)["args"] == ["serve"]
    assert (server_options.app_id, server_options.workers, server_options.host) == (values["appId"], 0, "0.0.0.0")
    assert [each["containerPort"] for each in container(pod)["ports"]] == [server_options.port]
    assert server_options.database_url == SECRETS["database-url"]
    assert server_options.private_key == SECRETS["private-key"].strip()
    assert server_options.status_password == SECRETS["status-password"]
    old = [SECRETS["webhook-secret-old"].encode()] if values is FULL else []
    assert server_options.secrets == (SECRETS["webhook-secret"].encode(), *old)


@BOTH_VALUE_SETS
def test_a_worker_gets_its_options_and_no_secret_of_the_receiver(values: Manifest, tmp_path: Path) -> None:
    pod = pod_templates(render(values))["worker"]
    server_options = options(pod, tmp_path)
    assert container(pod)["args"] == ["worker", "--alive", "/tmp/alive"]
    assert (server_options.app_id, server_options.database_url) == (values["appId"], SECRETS["database-url"])
    assert {path.rpartition("/")[2] for path in mounted_secrets(pod)} == {"private-key", "database-url"}
    assert (server_options.secrets, server_options.status_password) == ((), "")
    worker_values = values.get("worker", {"jobs": 4, "clonesMB": 5000})
    assert (server_options.jobs, server_options.clones_mb) == (worker_values["jobs"], worker_values["clonesMB"])
    (size,) = (each["emptyDir"]["sizeLimit"] for each in pod["spec"]["volumes"] if each["name"] == "data")
    assert size == f"{server_options.clones_mb * 6 // 5}M"
    assert str(server_options.data) in {each["mountPath"] for each in container(pod)["volumeMounts"]}


def test_the_mounted_secrets_are_those_that_the_values_name() -> None:
    files = {re.sub("([A-Z])", r"-\1", name).lower(): each for name, each in FULL["secrets"].items()}
    assert files.keys() == SECRETS.keys()
    expected = {f"/run/secrets/precedent/{name}": (each["name"], each["key"]) for name, each in files.items()}
    assert mounted_secrets(pod_templates(render(FULL))["serve"]) == expected


def test_variables_of_the_operator_reach_all_pods_and_the_index_of_all_repositories_is_for_workers(
    tmp_path: Path,
) -> None:
    templates = pod_templates(render(FULL))
    for name, pod in templates.items():
        assert options(pod, tmp_path / name).sweep_minutes == 30
        assert {"name": "HTTPS_PROXY", "value": "http://proxy.example.com:3128"} in container(pod)["env"]
    assert options(templates["worker"], tmp_path / "worker").organisation == "s3://bucket/precedent"
    assert container(templates["worker"])["envFrom"] == [{"secretRef": {"name": "object-store"}}]
    for pod in (templates["serve"], *pod_templates(render(MINIMAL)).values()):
        assert "envFrom" not in container(pod)
        assert "PRECEDENT_ORGANISATION" not in {each["name"] for each in container(pod)["env"]}


def test_the_caches_of_the_index_engine_leave_a_worker_enough_memory() -> None:
    limit = container(pod_templates(render(FULL))["worker"])["resources"]["limits"]["memory"]
    engine = lance.INDEX_CACHE_BYTES + lance.METADATA_CACHE_BYTES + (lance.INDEX_MEGABYTES << 20)
    assert int(limit.removesuffix("Gi")) << 30 >= engine + (1 << 30)


def test_the_probes_ask_for_pages_that_the_server_has() -> None:
    serve = container(pod_templates(render(MINIMAL))["serve"])
    probes = {name: serve[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }
    paths = {route.path for route in create_app(make_web_context(empty_inbox(), OPTIONS)).routes}  # type: ignore[attr-defined]
    assert {probe["path"] for probe in probes.values()} <= paths
    ports_of = {each["name"] for each in serve["ports"]}
    assert {probe["port"] for probe in probes.values()} <= ports_of


def test_the_probes_of_a_worker_check_the_age_of_its_file(tmp_path: Path) -> None:
    worker = container(pod_templates(render(MINIMAL))["worker"])
    file = worker["args"][worker["args"].index("--alive") + 1]
    assert any(file.startswith(f"{each['mountPath']}/") for each in worker["volumeMounts"] if not each.get("readOnly"))
    for name in ("startupProbe", "livenessProbe"):
        _, *words = worker[name]["exec"]["command"]
        command = [sys.executable, *(word.replace(file, str(tmp_path / "alive")) for word in words)]
        assert command[1:] != words, "it looks at the worker's file"
        codes = []
        for age in (None, 300, 0):
            if age is not None:
                (tmp_path / "alive").touch()
                os.utime(tmp_path / "alive", (time.time() - age,) * 2)
            codes.append(subprocess.run(command, check=False, capture_output=True).returncode)
        assert codes == [1, 1, 0]
        (tmp_path / "alive").unlink()


def test_a_pod_has_enough_time_to_stop() -> None:
    templates = pod_templates(render(MINIMAL))
    pause = container(templates["serve"])["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert templates["serve"]["spec"]["terminationGracePeriodSeconds"] >= pause + KILL_AFTER + 5
    assert templates["worker"]["spec"]["terminationGracePeriodSeconds"] >= KILL_AFTER + 5


# -- the network ---------------------------------------------------------------------------------------------------


def test_nothing_can_connect_to_a_worker_and_outgoing_ports_are_few() -> None:
    policies = manifests_of_kind(render(MINIMAL), "NetworkPolicy")
    assert policies["precedent-worker"]["spec"]["ingress"] == []
    assert policies["precedent-serve"]["spec"]["ingress"] == [{"ports": [{"port": "http"}]}]
    for each in policies.values():
        assert each["spec"]["policyTypes"] == ["Ingress", "Egress"]
        ports = [port for rule in each["spec"]["egress"] for port in rule["ports"]]
        outgoing = [(port["port"], port.get("protocol", "TCP")) for port in ports]
        assert outgoing == [(53, "UDP"), (53, "TCP"), (443, "TCP"), (5432, "TCP")]


def test_the_network_policy_can_be_narrowed_and_widened() -> None:
    policies, network_values = manifests_of_kind(render(FULL), "NetworkPolicy"), FULL["networkPolicy"]
    ingress = {name: each["spec"]["ingress"] for name, each in policies.items()}
    allowed = [{"ports": [{"port": "http"}], "from": network_values["from"]}]
    assert ingress == {"precedent-serve": allowed, "precedent-worker": []}
    for each in policies.values():
        database, *more = each["spec"]["egress"][2:]
        assert database == {"ports": [{"port": 6432}], "to": network_values["database"]}
        assert more == network_values["egress"]


# -- values --------------------------------------------------------------------------------------------------------

WRONG_VALUES: dict[str, tuple[Manifest, str]] = {
    "no image": ({"image": {}}, "/image/repository"),
    "no App": ({"appId": 0}, "/appId"),
    "an App by its name": ({"appId": "precedent"}, "/appId"),
    "a key of its own": ({"apId": 1}, "'apId' not allowed"),
    "a secret in the values": ({"secrets": {"webhookSecret": {"value": "0123"}}}, "/secrets/webhookSecret"),
    "a secret without a name": ({"secrets": {"privateKey": {"name": ""}}}, "/secrets/privateKey/name"),
    "a secret as a variable": ({"env": {"PRECEDENT_DATABASE_URL": "postgresql://x/y"}}, "PRECEDENT_DATABASE_URL"),
    "a password as a variable": (
        {"env": {"PRECEDENT_OPERATOR_PASSWORD": "correct horse"}},
        "PRECEDENT_OPERATOR_PASSWORD",
    ),
    "a place in each worker alone": ({"env": {"PRECEDENT_ORGANISATION": "/data/index"}}, "PRECEDENT_ORGANISATION"),
    "a variable that the chart sets": ({"env": {"PRECEDENT_WORKERS": "4"}}, "PRECEDENT_WORKERS"),
    "a number as a variable": ({"env": {"PRECEDENT_ATTEMPTS": 4}}, "/env/PRECEDENT_ATTEMPTS"),
    "no receiver": ({"serve": {"replicas": 0}}, "/serve/replicas"),
    "no worker": ({"autoscaling": {"minReplicas": 0}}, "/autoscaling/minReplicas"),
    "too many jobs": ({"worker": {"jobs": 65}}, "/worker/jobs"),
    "scaling by nothing": ({"autoscaling": {"enabled": True}}, "/autoscaling/prometheus"),
    "an ingress without a host": ({"ingress": {"enabled": True}}, "/ingress/host"),
    "memory by feeling": ({"worker": {"resources": {"limits": {"memory": "2 GB"}}}}, "/worker/resources/limits/memory"),
}


@pytest.mark.parametrize("fault", WRONG_VALUES)
def test_a_wrong_value_is_refused_with_its_path(fault: str) -> None:
    values, message = WRONG_VALUES[fault]
    result = helm("template", "precedent", str(CHART), values={**MINIMAL, **values})
    assert result.returncode != 0
    assert message in result.stderr


def value_paths(schema: Mapping[str, Any], root: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The paths of all values in a schema."""
    if "$ref" in schema:
        schema = root["definitions"][schema["$ref"].rpartition("/")[2]]
    if not schema.get("properties"):
        yield path
    for name, part in schema.get("properties", {}).items():
        yield from value_paths(part, root, f"{path}/{name}")


def test_every_value_in_the_schema_has_a_default_and_the_limits_of_the_options() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    for path in set(value_paths(schema, schema)) - {"/global"}:
        value: Any = values
        for name in path.split("/")[1:]:
            assert name in value, path
            value = value[name]
    for name, option in (("jobs", "jobs"), ("clonesMB", "clones_mb")):
        rule, default = rules(ServerOptions)[option]
        limits = schema["properties"]["worker"]["properties"][name]
        assert (limits["minimum"], limits["maximum"], values["worker"][name]) == (rule.low, rule.high, default)


def test_the_chart_has_the_version_of_the_bot() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == bot.__version__
    assert chart["kubeVersion"] == f">={VERSIONS[0]}.0-0"


def test_the_notes_describe_what_was_installed() -> None:
    result = helm("install", "--dry-run=client", "precedent", str(CHART), "--namespace", "bots", values=FULL)
    notes = result.stdout.partition("NOTES:\n")[2]
    assert "2 receivers and 1 to 8 workers." in notes
    assert "https://precedent.example.com/webhook" in notes
    assert "--namespace bots port-forward service/precedent 8080:8000\n" in notes
    assert "selector app.kubernetes.io/instance=precedent" in notes
