"""Checks of the files that no test here can run: the Kubernetes manifest, the compose file, the
systemd unit, the dashboard. kubeconform checks the manifest if it is installed; otherwise a
structural check of our own does, which knows less than the schemas."""
import json
import os
import re
import shutil
import subprocess
import tempfile


def _load(path):
    import yaml
    with open(path, encoding="utf-8") as file:
        return [document for document in yaml.safe_load_all(file) if document]


def _kubernetes_problems(documents):
    problems = []
    kinds = {"Deployment": "apps/v1", "Service": "v1", "PodDisruptionBudget": "policy/v1"}
    pods = []  # labels and container ports by name
    for document in documents:
        kind, name = document.get("kind"), document.get("metadata", {}).get("name")
        if kinds.get(kind) != document.get("apiVersion"):
            problems.append(f"{kind} {name}: apiVersion is {document.get('apiVersion')}")
        if not name or not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name):
            problems.append(f"{kind}: no valid name")
        if kind != "Deployment":
            continue
        spec = document["spec"]
        labels = spec["template"]["metadata"]["labels"]
        if not spec["selector"]["matchLabels"].items() <= labels.items():
            problems.append(f"{name}: the selector does not match the pods")
        pod = spec["template"]["spec"]
        volumes = {volume["name"] for volume in pod.get("volumes", [])}
        ports = {}
        for container in pod["containers"]:
            if "image" not in container:
                problems.append(f"{name}: a container without an image")
            mine = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
            ports.update(mine)
            for mount in container.get("volumeMounts", []):
                if mount["name"] not in volumes:
                    problems.append(f"{name}: no volume {mount['name']}")
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                for action in ("httpGet", "tcpSocket"):
                    port = container.get(probe, {}).get(action, {}).get("port")
                    if port is not None and port not in mine:
                        problems.append(f"{name}: {probe} asks port {port}")
            unknown = set(container) - {"name", "image", "args", "command", "ports", "env",
                                        "startupProbe", "readinessProbe", "livenessProbe",
                                        "lifecycle", "resources", "volumeMounts"}
            if unknown:
                problems.append(f"{name}: unknown fields {unknown}")
        pods.append((labels, ports))
    for document in documents:
        if document["kind"] != "Service":
            continue
        spec, name = document["spec"], document["metadata"]["name"]
        chosen = [ports for labels, ports in pods if spec["selector"].items() <= labels.items()]
        if len(chosen) != 1:
            problems.append(f"Service {name} selects {len(chosen)} deployments")
            continue
        for port in spec["ports"]:
            if port["targetPort"] not in chosen[0]:
                problems.append(f"Service {name}: no port {port['targetPort']}")
    return problems


def _drain_problems(folder, documents):
    """Whoever stops a replica must wait longer than the replica may take to drain."""
    problems = []
    with open(os.path.join(folder, "Containerfile"), encoding="utf-8") as file:
        drain = int(re.search(r'"--drain-time", "(\d+)"', file.read()).group(1))
    for document in documents:
        if document["kind"] == "Deployment" and document["metadata"]["name"] == "hearth":
            pod = document["spec"]["template"]["spec"]
            pause = int(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
            if pod["terminationGracePeriodSeconds"] <= drain + pause:
                problems.append("Kubernetes kills a replica before it has drained")
    with open(os.path.join(folder, "hearth@.service"), encoding="utf-8") as file:
        unit = file.read()
    if int(re.search(r"TimeoutStopSec=(\d+)", unit).group(1)) <= int(
            re.search(r"--drain-time (\d+)", unit).group(1)):
        problems.append("systemd kills a replica before it has drained")
    return problems


def _container_problems(folder, documents):
    """What a build or a run of the image would trip over."""
    problems = []
    with open(os.path.join(folder, "Containerfile"), encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(folder, "..", ".dockerignore"), encoding="utf-8") as file:
        if "build/" not in file.read().split():
            problems.append("COPY takes build/ along, whose CMake cache is another folder's")
    user = re.search(r"^USER (\d+):(\d+)$", text, re.M)
    if not user or f"--uid {user.group(1)} " not in text:
        problems.append("USER is not the number of the user that was added")
    for volume in re.findall(r"^VOLUME (\S+)$", text, re.M):
        if not re.search(rf"install -d -o hearth -g hearth {re.escape(volume)}\s", text):
            problems.append(f"{volume} would belong to root")
    for document in documents:
        if document["kind"] == "Deployment" and document["metadata"]["name"] == "hearth":
            context = document["spec"]["template"]["spec"].get("securityContext", {})
            if user and {context.get("runAsUser"), context.get("fsGroup")} != {int(user.group(1))}:
                problems.append("Kubernetes runs it as another user than the Containerfile")
    # The build stage runs these as they are.
    for tool in re.findall(r"\b(tools/\w+)", text):
        path = os.path.join(folder, "..", tool)
        if not os.path.exists(path) and tool != "tools/hearth":
            problems.append(f"there is no {tool}")
    return problems


def _compose_problems(folder, compose):
    problems = []
    services = compose["services"]
    for name, service in services.items():
        for other in service.get("depends_on", []):
            if other not in services:
                problems.append(f"{name} depends on {other}")
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                if not os.path.exists(os.path.join(folder, source)):
                    problems.append(f"{name} mounts {source}, which is not there")
            elif source not in compose["volumes"]:
                problems.append(f"{name} mounts the unknown volume {source}")
    # The names in other configurations are those of services.
    for file in ("haproxy.cfg", "nginx.conf", "prometheus.yml"):
        with open(os.path.join(folder, file), encoding="utf-8") as text:
            for name in re.findall(r"\b((?:replica-\d|proxy)):\d+", text.read()):
                if name not in services:
                    problems.append(f"{file} names {name}, which is no service")
    return problems


def check(folder):
    """Yields the name of each check, whether it passed, and what was found."""
    try:
        documents = _load(os.path.join(folder, "kubernetes.yaml"))
        compose = _load(os.path.join(folder, "compose.yaml"))[0]
    except ImportError:
        print("skipped: the manifests, because python3-yaml is not installed", flush=True)
        documents = None
    if documents is not None:
        if shutil.which("kubeconform"):
            run = subprocess.run(["kubeconform", "-strict", os.path.join(folder, "kubernetes.yaml")],
                                 capture_output=True, text=True)
            yield "kubernetes.yaml", run.returncode == 0, run.stdout + run.stderr or "kubeconform agrees"
        problems = _kubernetes_problems(documents) + _drain_problems(folder, documents)
        yield "kubernetes.yaml", not problems, "; ".join(problems) or \
            f"{len(documents)} objects fit together (our own check, not the schemas)"
        problems = _container_problems(folder, documents)
        yield "Containerfile", not problems, "; ".join(problems) or \
            "what it copies and whom it runs as fit together (it was not built)"
        problems = _compose_problems(folder, compose)
        yield "compose.yaml", not problems, "; ".join(problems) or \
            f"{len(compose['services'])} services"
    with open(os.path.join(folder, "grafana", "replicas.json"), encoding="utf-8") as file:
        panels = json.load(file)["panels"]
    yield "grafana/replicas.json", len(panels) > 5, f"{len(panels)} panels"
    if shutil.which("systemd-analyze"):
        with tempfile.TemporaryDirectory() as place:
            with open(os.path.join(folder, "hearth@.service"), encoding="utf-8") as file:
                # The program need not be installed.
                unit = file.read().replace("/usr/local/bin/hearth", "/bin/true")
            path = os.path.join(place, "hearth@8081.service")
            with open(path, "w", encoding="utf-8") as file:
                file.write(unit)
            run = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True)
        yield "hearth@.service", run.returncode == 0, run.stderr.strip() or "systemd-analyze agrees"
