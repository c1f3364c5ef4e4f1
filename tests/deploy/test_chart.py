"""The Helm chart, rendered by Helm: Kubernetes takes it, the server takes its variables, and its pods can do little."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import bot
from bot.organisation import lance
from bot.server.options import REQUIRED, WORKING, ServerOptions, is_secret, read_options, variable
from bot.server.processes import KILL_AFTER
from bot.server.web import create_app
from bot.settings.schema import rules
from tests.docs.pages import ROOT
from tests.github.keys import key_pair
from tests.server.doorway import door
from tests.server.gallery import OPTIONS, empty
from tools.snippets import blocks

CHART = ROOT / "deploy/chart"
CHECKS = ROOT / ".venv-checks" / "bin"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHECKS / "kubernetes-validate").exists(), reason="the checks are not here: make lint"),
]

Manifest = dict[str, Any]
VERSIONS = ("1.30", "1.37")
"""Of Kubernetes: the oldest that the chart allows, and the newest of which we have the schemas."""

OWN_KINDS = {"ScaledObject"}
"""Kinds that are not of Kubernetes, of which we have no schema: compared whole below."""

LEAST: Manifest = yaml.safe_load((ROOT / "tests/deploy/values.yml").read_text(encoding="utf-8"))
PEER = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}
MOST: Manifest = {
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
"""Name of the file → what an operator has put into the Secret."""

BOTH = pytest.mark.parametrize("values", [LEAST, MOST], ids=["least", "most"])


def helm(*words: str, values: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
    command = [str(CHECKS / "python"), "-m", "tools.helm", *words, "--values", "-"]
    done = subprocess.run(command, cwd=ROOT, input=json.dumps(values), capture_output=True, text=True, check=False)
    if done.stderr.startswith("helm was left out"):
        pytest.skip(done.stderr.strip())
    return done


def rendered(values: Mapping[str, Any], release: str = "precedent") -> list[Manifest]:
    done = helm("template", release, str(CHART), "--namespace", "bots", values=values)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def of_kind(found: list[Manifest], kind: str) -> dict[str, Manifest]:
    """Name → manifest."""
    return {each["metadata"]["name"]: each for each in found if each["kind"] == kind}


def pods(found: list[Manifest]) -> dict[str, Manifest]:
    """Name of the one container → the template of its pod."""
    templates = [each["spec"]["template"] for each in of_kind(found, "Deployment").values()]
    made = {container["name"]: pod for pod in templates for container in pod["spec"]["containers"]}
    assert len(made) == len(templates) == 2
    return made


def container(pod: Manifest) -> Manifest:
    (found,) = pod["spec"]["containers"]
    return dict(found)


def validated(found: list[Manifest], folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "rendered.yml"
    file.write_text(yaml.safe_dump_all(found), encoding="utf-8")
    versions = [word for version in VERSIONS for word in ("--kubernetes-version", version)]
    command = [str(CHECKS / "kubernetes-validate"), "--strict", *versions, str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


# -- what is rendered ----------------------------------------------------------------------------------------------


@BOTH
def test_kubernetes_takes_everything(values: Manifest, tmp_path: Path) -> None:
    found = rendered(values)
    done = validated(found, tmp_path)
    assert done.returncode == 0, done.stdout
    known = [each for each in found if each["kind"] not in OWN_KINDS]
    assert len(re.findall(r"^INFO .* passed for resource", done.stdout, re.MULTILINE)) == len(known) * len(VERSIONS)


@pytest.mark.parametrize(("path", "value"), [("replicas", "two"), ("replica", 2), ("strategy", "Recreate")])
def test_kubernetes_does_not_take_a_fault(path: str, value: object, tmp_path: Path) -> None:
    found = rendered(LEAST)
    of_kind(found, "Deployment")["precedent-serve"]["spec"][path] = value
    assert validated(found, tmp_path).returncode != 0


@BOTH
def test_helm_finds_nothing_to_complain_about(values: Manifest) -> None:
    done = helm("lint", "--strict", str(CHART), values=values)
    assert (done.returncode, re.findall(r"\[(?:WARNING|ERROR)\].*", done.stdout)) == (0, []), done.stdout


def test_the_values_of_the_page_are_good_ones() -> None:
    page = (ROOT / "docs/self-hosting.md").read_text(encoding="utf-8")
    (shown,) = (block.body for block in blocks(page) if block.language == "yaml" and "appId:" in block.body)
    kinds = {each["kind"] for each in rendered(yaml.safe_load(shown))}
    assert kinds == {"Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceAccount", "Ingress"}


def test_by_default_there_is_neither_an_ingress_nor_an_autoscaler() -> None:
    kinds = sorted(each["kind"] for each in rendered(LEAST))
    assert kinds == [*["Deployment"] * 2, *["NetworkPolicy"] * 2, *["PodDisruptionBudget"] * 2,
                     "Service", "ServiceAccount"]  # fmt: skip
    switched_off = LEAST | {"networkPolicy": {"enabled": False}, "podDisruptionBudget": {"enabled": False}}
    kinds = sorted(each["kind"] for each in rendered(switched_off))
    assert kinds == ["Deployment", "Deployment", "Service", "ServiceAccount"]


@pytest.mark.parametrize("release", ["precedent", "bots", "x" * 53, f"{'x' * 49}-aa", f"precedent-{'x' * 43}"])
def test_every_name_fits_and_all_are_different(release: str) -> None:
    found = rendered(MOST, release)
    names = [(each["kind"], each["metadata"]["name"]) for each in found]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name) for _, name in names), names


@BOTH
def test_whatever_selects_pods_selects_the_right_ones(values: Manifest) -> None:
    found, selected = rendered(values), {}
    labels = {name: pod["metadata"]["labels"] for name, pod in pods(found).items()}
    for each in found:
        spec = each.get("spec", {})
        selector = spec.get("podSelector", spec.get("selector"))
        if selector is not None:
            wanted = selector.get("matchLabels", selector).items()
            chosen = [name for name, has in labels.items() if wanted <= has.items()]
            selected[each["kind"], each["metadata"]["name"]] = chosen
    both = [(kind, part) for kind in ("Deployment", "NetworkPolicy", "PodDisruptionBudget")
            for part in ("serve", "worker")]  # fmt: skip
    assert selected == {(kind, f"precedent-{part}"): [part] for kind, part in both} | {
        ("Service", "precedent"): ["serve"]
    }


def test_a_second_release_in_the_namespace_is_left_alone() -> None:
    one, other = rendered(LEAST, "precedent-a"), rendered(LEAST, "precedent-b")
    wanted = of_kind(one, "Service")["precedent-a"]["spec"]["selector"].items()
    assert not wanted <= pods(other)["serve"]["metadata"]["labels"].items()


def test_the_ingress_leads_to_the_webhook_and_nowhere_else() -> None:
    found = rendered(MOST)
    spec = of_kind(found, "Ingress")["precedent"]["spec"]
    assert spec["tls"] == [{"hosts": ["precedent.example.com"], "secretName": "precedent-tls"}]
    ((path,),) = (rule["http"]["paths"] for rule in spec["rules"])
    assert (path["path"], path["pathType"]) == ("/webhook", "Exact")
    backend, (service,) = path["backend"]["service"], of_kind(found, "Service").values()
    assert (backend["name"], backend["port"]["name"]) == (
        service["metadata"]["name"],
        service["spec"]["ports"][0]["name"],
    )


def test_workers_are_added_while_deliveries_wait() -> None:
    found = rendered(MOST)
    (scaler,) = of_kind(found, "ScaledObject").values()
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
    assert "replicas" not in of_kind(found, "Deployment")["precedent-worker"]["spec"], "an upgrade would reset it"
    assert of_kind(rendered(LEAST), "Deployment")["precedent-worker"]["spec"]["replicas"] == 2


# -- what runs in the pods -----------------------------------------------------------------------------------------


@BOTH
def test_the_pods_can_do_little(values: Manifest) -> None:
    found = rendered(values)
    (account,) = of_kind(found, "ServiceAccount").values()
    assert account["automountServiceAccountToken"] is False
    for pod in pods(found).values():
        spec, inside = pod["spec"], container(pod)["securityContext"]
        assert spec["serviceAccountName"] == account["metadata"]["name"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert inside["readOnlyRootFilesystem"] is True
        assert inside["allowPrivilegeEscalation"] is False
        assert inside["capabilities"] == {"drop": ["ALL"]}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        assert set(container(pod)["resources"]["limits"]) == {"memory"}


def test_they_run_as_the_owner_of_the_images_data() -> None:
    (owner,) = re.findall(r"--chown=(\d+):\1 /data", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    for pod in pods(rendered(LEAST)).values():
        context = pod["spec"]["securityContext"]
        assert {context["runAsUser"], context["runAsGroup"], context["fsGroup"]} == {int(owner)}


def files(pod: Manifest) -> dict[str, tuple[str, str]]:
    """Path in the container → the Secret and the key that is mounted there."""
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
    for path in files(pod):
        place = folder / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(SECRETS[place.name], encoding="utf-8")
    variables = container(pod)["env"]
    environ = {each["name"]: each["value"] for each in variables}
    assert len(environ) == len(variables), "the same variable twice"
    environ = {name: f"{folder}{value}" if name.endswith("_FILE") else value for name, value in environ.items()}
    known = {f"{variable(name)}{end}" for name in rules(ServerOptions) for end in ("", "_FILE")}
    assert {name for name in environ if name.startswith("PRECEDENT_")} <= known
    assert not {name for name in rules(ServerOptions) if is_secret(name) and variable(name) in environ}
    return read_options(environ, {}, REQUIRED if container(pod)["args"] == ["serve"] else WORKING)


@BOTH
def test_a_receiver_gets_its_options_and_secrets(values: Manifest, tmp_path: Path) -> None:
    pod = pods(rendered(values))["serve"]
    found = options(pod, tmp_path)
    assert container(pod)["args"] == ["serve"]
    assert (found.app_id, found.workers, found.host) == (values["appId"], 0, "0.0.0.0")
    assert [each["containerPort"] for each in container(pod)["ports"]] == [found.port]
    assert found.database_url == SECRETS["database-url"]
    assert found.private_key == SECRETS["private-key"].strip()
    assert found.status_password == SECRETS["status-password"]
    old = [SECRETS["webhook-secret-old"].encode()] if values is MOST else []
    assert found.secrets == (SECRETS["webhook-secret"].encode(), *old)


@BOTH
def test_a_worker_gets_its_options_and_no_secret_of_the_receiver(values: Manifest, tmp_path: Path) -> None:
    pod = pods(rendered(values))["worker"]
    found = options(pod, tmp_path)
    assert container(pod)["args"] == ["worker", "--alive", "/tmp/alive"]
    assert (found.app_id, found.database_url) == (values["appId"], SECRETS["database-url"])
    assert {path.rpartition("/")[2] for path in files(pod)} == {"private-key", "database-url"}
    assert (found.secrets, found.status_password) == ((), "")
    asked = values.get("worker", {"jobs": 4, "clonesMB": 5000})
    assert (found.jobs, found.clones_mb) == (asked["jobs"], asked["clonesMB"])
    (size,) = (each["emptyDir"]["sizeLimit"] for each in pod["spec"]["volumes"] if each["name"] == "data")
    assert size == f"{found.clones_mb * 6 // 5}M"
    assert str(found.data) in {each["mountPath"] for each in container(pod)["volumeMounts"]}


def test_the_secrets_are_those_that_the_values_name() -> None:
    named = {name: (each["name"], each["key"]) for name, each in MOST["secrets"].items()}
    folder = "/run/secrets/precedent"
    assert files(pods(rendered(MOST))["serve"]) == {
        f"{folder}/private-key": named["privateKey"],
        f"{folder}/database-url": named["databaseUrl"],
        f"{folder}/webhook-secret": named["webhookSecret"],
        f"{folder}/webhook-secret-old": named["webhookSecretOld"],
        f"{folder}/status-password": named["statusPassword"],
        f"{folder}/operator-password": named["operatorPassword"],
    }


def test_variables_of_the_operator_reach_receivers_and_workers(tmp_path: Path) -> None:
    for name, pod in pods(rendered(MOST)).items():
        assert options(pod, tmp_path / name).sweep_minutes == 30
        assert {"name": "HTTPS_PROXY", "value": "http://proxy.example.com:3128"} in container(pod)["env"]


def test_the_index_of_all_repositories_is_for_workers(tmp_path: Path) -> None:
    made = pods(rendered(MOST))
    assert options(made["worker"], tmp_path / "worker").organisation == "s3://bucket/precedent"
    assert container(made["worker"])["envFrom"] == [{"secretRef": {"name": "object-store"}}]
    for pod in (made["serve"], *pods(rendered(LEAST)).values()):
        assert "envFrom" not in container(pod)
        assert "PRECEDENT_ORGANISATION" not in {each["name"] for each in container(pod)["env"]}


def test_what_the_engine_of_the_index_may_keep_leaves_a_worker_its_memory() -> None:
    limit = container(pods(rendered(MOST))["worker"])["resources"]["limits"]["memory"]
    engine = lance.INDEX_CACHE + lance.METADATA_CACHE + (lance.INDEX_MEGABYTES << 20)
    assert int(limit.removesuffix("Gi")) << 30 >= engine + (1 << 30)


def test_a_process_of_the_pod_collects_what_killed_programs_leave_behind() -> None:
    """As `init` does in the compose file."""
    for pod in pods(rendered(LEAST)).values():
        assert pod["spec"]["shareProcessNamespace"] is True
        assert len(pod["spec"]["containers"]) == 1, "another container would see the processes of ours"


def test_variables_of_services_do_not_reach_them() -> None:
    """Kubernetes would set PRECEDENT_PORT to an address, as the service is named so."""
    for pod in pods(rendered(LEAST)).values():
        assert pod["spec"]["enableServiceLinks"] is False


def test_probes_ask_what_the_server_answers() -> None:
    inside = container(pods(rendered(LEAST))["serve"])
    asked = {name: inside[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {name: probe["path"] for name, probe in asked.items()} == {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }
    has = {route.path for route in create_app(door(empty(), OPTIONS)).routes}  # type: ignore[attr-defined]
    assert {probe["path"] for probe in asked.values()} <= has
    ports = {each["name"] for each in inside["ports"]}
    assert {probe["port"] for probe in asked.values()} <= ports


def test_the_probes_of_a_worker_look_at_the_age_of_its_file(tmp_path: Path) -> None:
    inside = container(pods(rendered(LEAST))["worker"])
    file = inside["args"][inside["args"].index("--alive") + 1]
    assert any(file.startswith(f"{each['mountPath']}/") for each in inside["volumeMounts"] if not each.get("readOnly"))
    for name in ("startupProbe", "livenessProbe"):
        _, *words = inside[name]["exec"]["command"]
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


def test_a_pod_has_the_time_to_end() -> None:
    found = pods(rendered(LEAST))
    pause = container(found["serve"])["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert found["serve"]["spec"]["terminationGracePeriodSeconds"] >= pause + KILL_AFTER + 5
    assert found["worker"]["spec"]["terminationGracePeriodSeconds"] >= KILL_AFTER + 5


# -- the network ---------------------------------------------------------------------------------------------------


def ports(policies: list[Manifest]) -> list[list[tuple[int | str, str]]]:
    return [[(each["port"], each.get("protocol", "TCP")) for each in rule["ports"]] for rule in policies]


def test_nobody_reaches_a_worker_and_all_reach_out_to_little() -> None:
    found = of_kind(rendered(LEAST), "NetworkPolicy")
    assert all(each["spec"]["policyTypes"] == ["Ingress", "Egress"] for each in found.values())
    assert found["precedent-worker"]["spec"]["ingress"] == []
    assert found["precedent-serve"]["spec"]["ingress"] == [{"ports": [{"port": "http"}]}]
    for each in found.values():
        out = ports(each["spec"]["egress"])
        assert out == [[(53, "UDP"), (53, "TCP")], [(443, "TCP")], [(5432, "TCP")]]


def test_the_network_can_be_narrowed_and_widened() -> None:
    found, given = of_kind(rendered(MOST), "NetworkPolicy"), MOST["networkPolicy"]
    assert found["precedent-serve"]["spec"]["ingress"] == [{"ports": [{"port": "http"}], "from": given["from"]}]
    assert found["precedent-worker"]["spec"]["ingress"] == []
    for each in found.values():
        database, *more = each["spec"]["egress"][2:]
        assert database == {"ports": [{"port": 6432}], "to": given["database"]}
        assert more == given["egress"]


# -- values --------------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[Manifest, str]] = {
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


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_value_is_refused_with_its_place(fault: str) -> None:
    values, told = WRONG[fault]
    done = helm("template", "precedent", str(CHART), values={**LEAST, **values})
    assert done.returncode != 0
    assert told in done.stderr


def leaves(schema: Mapping[str, Any], whole: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The paths of all values that a schema knows."""
    if "$ref" in schema:
        schema = whole["definitions"][schema["$ref"].rpartition("/")[2]]
    if not schema.get("properties"):
        yield path
    for name, part in schema.get("properties", {}).items():
        yield from leaves(part, whole, f"{path}/{name}")


def test_every_value_stands_with_its_default_in_the_file_of_values() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    for path in set(leaves(schema, schema)) - {"/global"}:
        found: Any = values
        for name in path.split("/")[1:]:
            assert name in found, path
            found = found[name]


def test_the_limits_of_values_are_those_of_the_options() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))["properties"]
    for name, option in (("jobs", "jobs"), ("clonesMB", "clones_mb")):
        rule, default = rules(ServerOptions)[option]
        asked = schema["worker"]["properties"][name]
        assert (asked["minimum"], asked["maximum"]) == (rule.low, rule.high)
        assert yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))["worker"][name] == default


def test_the_chart_has_the_version_of_the_bot() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert about["version"] == about["appVersion"] == bot.__version__
    assert about["kubeVersion"] == f">={VERSIONS[0]}.0-0"


def test_the_notes_name_what_was_made() -> None:
    done = helm("install", "--dry-run=client", "precedent", str(CHART), "--namespace", "bots", values=MOST)
    notes = done.stdout.partition("NOTES:\n")[2]
    assert "2 receivers and 1 to 8 workers." in notes
    assert "https://precedent.example.com/webhook" in notes
    assert "--namespace bots port-forward service/precedent 8080:8000\n" in notes
    assert "selector app.kubernetes.io/instance=precedent" in notes
