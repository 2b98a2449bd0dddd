#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manifests.py FILE COMMAND: reads what `cuflight env --k8s` prints.
validate: the schemas of Kubernetes 1.30 to the newest one known accept each manifest of Kubernetes itself, and refuse it with a
field that no version has; prints how many times one was accepted.
rules: prints the spec of the PrometheusRule, for promtool.
check: what no schema knows: mounts have volumes, a monitor's port and labels exist, our containers have limits and no rights.
words CONTAINER FROM=TO...: its command, one word a line, with paths of the container replaced.
env CONTAINER FROM=TO...: its variables as NAME=VALUE."""
import json
import sys

import yaml

OURS = "cuflight"


def documents(path):
    with open(path, encoding="utf-8") as file:
        return [document for document in yaml.safe_load_all(file) if document]


def pods(all_documents):
    return [document["spec"]["template"] for document in all_documents if document["kind"] in ("Deployment", "DaemonSet")]


def containers(pod):
    return pod["spec"].get("initContainers", []) + pod["spec"]["containers"]


def validate(all_documents):
    import kubernetes_validate
    from kubernetes_validate import utils

    versions = [version for version in utils.all_versions() if tuple(map(int, version.split(".")[:2])) >= (1, 30)]
    count = 0
    for version in sorted(set(versions)):
        for document in all_documents:
            if document["apiVersion"].startswith("monitoring."):
                continue
            kubernetes_validate.validate(document, version, strict=True)
            count += 1
            wrong = json.loads(json.dumps(document))
            wrong["spec"]["template"]["spec"]["containers"][0]["mounts"] = []
            try:
                kubernetes_validate.validate(wrong, version, strict=True)
            except kubernetes_validate.ValidationError:
                continue
            sys.exit(f"{version} accepts a field that does not exist")
    print(count, len(set(versions)))


def check_container(container, volumes):
    for mount in container["volumeMounts"]:
        assert mount["name"] in volumes, mount
    if not container["name"].startswith(OURS):
        return
    assert container["command"][0] == "/bin/cuflight"
    assert container["resources"]["limits"]["memory"] and container["resources"]["limits"]["cpu"]
    rights = container["securityContext"]
    assert rights["readOnlyRootFilesystem"] and not rights["allowPrivilegeEscalation"] and rights["capabilities"]["drop"] == ["ALL"]


def check(all_documents):
    for pod in pods(all_documents):
        volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
        used = {mount["name"] for container in containers(pod) for mount in container["volumeMounts"]}
        assert used == volumes, used ^ volumes
        for container in containers(pod):
            check_container(container, volumes)
    for monitor in (document for document in all_documents if document["kind"] == "PodMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"]
        served = [pod for pod in pods(all_documents) if wanted.items() <= pod["metadata"]["labels"].items()]
        ports = {port["name"] for pod in served for container in containers(pod) for port in container.get("ports", [])}
        assert {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]} == ports, ports


def named(all_documents, name):
    return next(container for pod in pods(all_documents) for container in containers(pod) if container["name"] == name)


def replaced(text, pairs):
    for pair in pairs:
        text = text.replace(*pair.split("=", 1))
    return text


def main():
    path, what, *rest = sys.argv[1:]
    found = documents(path)
    if what == "validate":
        validate(found)
    elif what == "rules":
        print(json.dumps(next(document for document in found if document["kind"] == "PrometheusRule")["spec"]))
    elif what == "check":
        check(found)
    elif what == "words":
        print("\n".join(replaced(word, rest[1:]) for word in named(found, rest[0])["command"]))
    else:
        for variable in named(found, rest[0])["env"]:
            if "value" in variable:
                print(f"{variable['name']}={replaced(variable['value'], rest[1:])}")


if __name__ == "__main__":
    main()
