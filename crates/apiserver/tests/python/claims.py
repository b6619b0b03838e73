"""An operator as kopf's users write them: for each volume claim of its own kind it makes a config map,
keeps it up to date, and says in the status what it made.

`kopf run` starts it. It knows nothing of the server that it talks to.
"""

import kopf
import kubernetes


@kopf.on.create("claims.kopf.example.com")
def create(spec, name, namespace, logger, **_):
    size = spec.get("size")
    if not size:
        raise kopf.PermanentError(f"no size: {size!r}")
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"size": size},
    }
    kopf.adopt(body)
    kubernetes.config.load_kube_config()
    made = kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, body)
    logger.info("made %s", made.metadata.name)
    return {"map": made.metadata.name}


@kopf.on.field("claims.kopf.example.com", field="spec.size")
def resize(old, new, name, namespace, **_):
    if old is None:
        return
    kubernetes.config.load_kube_config()
    kubernetes.client.CoreV1Api().patch_namespaced_config_map(name, namespace, {"data": {"size": new}})


@kopf.on.delete("claims.kopf.example.com")
def delete(name, logger, **_):
    logger.info("%s goes", name)
