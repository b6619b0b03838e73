"""What users of the Python client do with a cluster, from the first look to the cleaning up.

Started with the path of a kubeconfig. Ends with status 0 when everything was as on a real server.
"""

import sys
import threading

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException

NAMESPACE = "python"


def refused(status, reason, call):
    """Calls something that the server has to refuse."""
    try:
        call()
    except ApiException as error:
        assert error.status == status, error
        assert f'"reason":"{reason}"' in error.body, error.body
    else:
        raise AssertionError(f"{status} {reason} was expected")


def deployment(image):
    labels = {"app": "web"}
    container = client.V1Container(name="web", image=image)
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels),
        spec=client.V1PodSpec(containers=[container]),
    )
    return client.V1Deployment(
        api_version="apps/v1",
        kind="Deployment",
        metadata=client.V1ObjectMeta(name="web"),
        spec=client.V1DeploymentSpec(
            selector=client.V1LabelSelector(match_labels=labels), template=template
        ),
    )


def built_in_kinds(core, apps):
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))
    made = apps.create_namespaced_deployment(NAMESPACE, deployment("nginx:1"))
    assert made.spec.replicas == 1, "the server's defaults"
    assert made.spec.strategy.type == "RollingUpdate"
    assert made.metadata.generation == 1
    refused(
        409,
        "AlreadyExists",
        lambda: apps.create_namespaced_deployment(NAMESPACE, deployment("nginx:1")),
    )
    # A strategic merge patch: the container is found by its name.
    container = {"name": "web", "image": "nginx:2"}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    patched = apps.patch_namespaced_deployment("web", NAMESPACE, patch)
    assert [one.image for one in patched.spec.template.spec.containers] == ["nginx:2"]
    assert patched.metadata.generation == 2
    scale = apps.read_namespaced_deployment_scale("web", NAMESPACE)
    scale.spec.replicas = 3
    apps.replace_namespaced_deployment_scale("web", NAMESPACE, scale)
    scaled = apps.read_namespaced_deployment("web", NAMESPACE)
    assert (scaled.spec.replicas, scaled.metadata.generation) == (3, 3)
    # The version from before is a conflict.
    refused(
        409,
        "Conflict",
        lambda: apps.replace_namespaced_deployment("web", NAMESPACE, patched),
    )
    apps.delete_namespaced_deployment("web", NAMESPACE)
    refused(404, "NotFound", lambda: apps.read_namespaced_deployment("web", NAMESPACE))


def secrets_and_selectors(core):
    for name, tier in [("a", "front"), ("b", "back"), ("c", "back")]:
        metadata = client.V1ObjectMeta(name=name, labels={"tier": tier})
        secret = client.V1Secret(metadata=metadata, string_data={"password": "x"})
        assert core.create_namespaced_secret(NAMESPACE, secret).data == {"password": "eA=="}
    found = core.list_namespaced_secret(NAMESPACE, label_selector="tier in (back)")
    assert [one.metadata.name for one in found.items] == ["b", "c"]
    found = core.list_namespaced_secret(NAMESPACE, field_selector="metadata.name=a")
    assert [one.metadata.name for one in found.items] == ["a"]
    first = core.list_namespaced_secret(NAMESPACE, limit=2)
    rest = core.list_namespaced_secret(NAMESPACE, limit=2, _continue=first.metadata._continue)
    assert [one.metadata.name for one in first.items + rest.items] == ["a", "b", "c"]


def a_custom_kind(api):
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "sites.python.example.com"},
        "spec": {
            "group": "python.example.com",
            "scope": "Namespaced",
            "names": {"kind": "Site", "plural": "sites", "singular": "site"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {
                                    "type": "object",
                                    "required": ["host"],
                                    "properties": {
                                        "host": {"type": "string"},
                                        "port": {"type": "integer", "default": 80},
                                    },
                                },
                                "status": {
                                    "type": "object",
                                    "properties": {"url": {"type": "string"}},
                                },
                            },
                        }
                    },
                }
            ],
        },
    }
    utils.create_from_dict(api, definition)
    sites = dynamic.DynamicClient(api).resources.get(
        api_version="python.example.com/v1", kind="Site"
    )
    body = {
        "apiVersion": "python.example.com/v1",
        "kind": "Site",
        "metadata": {"name": "one"},
        "spec": {"host": "example.com", "unknown": 1},
        "status": {"url": "not by this way"},
    }
    made = sites.create(body=body, namespace=NAMESPACE)
    assert made.spec.to_dict() == {"host": "example.com", "port": 80}, "pruned and defaulted"
    assert made.status is None
    custom = client.CustomObjectsApi(api)
    at = ("python.example.com", "v1", NAMESPACE, "sites")
    refused(422, "Invalid", lambda: custom.create_namespaced_custom_object(*at, {**body, "spec": {}}))
    status = {"status": {"url": "https://example.com"}}
    custom.patch_namespaced_custom_object_status(*at, "one", status)
    seen = sites.get(name="one", namespace=NAMESPACE)
    assert seen.status.url == "https://example.com"
    assert seen.metadata.generation == 1
    applied = sites.server_side_apply(
        body={**body, "spec": {"host": "example.org"}},
        namespace=NAMESPACE,
        field_manager="python",
        force_conflicts=True,
    )
    assert applied.spec.host == "example.org"


def a_watch(core):
    start = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    seen = []

    def follow():
        events = watch.Watch().stream(
            core.list_namespaced_config_map,
            NAMESPACE,
            resource_version=start,
            timeout_seconds=60,
        )
        for event in events:
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                break

    follower = threading.Thread(target=follow)
    follower.start()
    metadata = client.V1ObjectMeta(name="watched")
    core.create_namespaced_config_map(NAMESPACE, client.V1ConfigMap(metadata=metadata))
    core.patch_namespaced_config_map("watched", NAMESPACE, {"data": {"a": "b"}})
    core.delete_namespaced_config_map("watched", NAMESPACE)
    follower.join()
    assert seen == [("ADDED", "watched"), ("MODIFIED", "watched"), ("DELETED", "watched")], seen


def the_end(core):
    start = core.list_namespace().metadata.resource_version
    core.delete_namespace(NAMESPACE)
    events = watch.Watch().stream(
        core.list_namespace,
        field_selector=f"metadata.name={NAMESPACE}",
        resource_version=start,
        timeout_seconds=60,
    )
    assert any(event["type"] == "DELETED" for event in events), "the namespace goes"


def main():
    api = config.new_client_from_config(sys.argv[1])
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    built_in_kinds(core, apps)
    secrets_and_selectors(core)
    a_custom_kind(api)
    a_watch(core)
    the_end(core)


main()
