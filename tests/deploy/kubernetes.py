"""The schemas of Kubernetes' own objects, for tests/deploy/schemas.rs: reads `versions` and `objects` as
JSON on standard input, writes a list of what is wrong."""

import json
import sys

import kubernetes_validate

asked = json.load(sys.stdin)
versions = [kubernetes_validate.latest_version() if it == "latest" else it for it in asked["versions"]]
problems = []
for it in asked["objects"]:
    for version in versions:
        try:
            kubernetes_validate.validate(it, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            place = "/".join(str(step) for step in error.path)
            name = f"{it['kind']} {it['metadata']['name']}"
            problems.append(f"{name} in {version}: {place}: {error.message}")
        except (kubernetes_validate.SchemaNotFoundError, kubernetes_validate.InvalidSchemaError) as error:
            problems.append(f"{it['kind']} in {version}: {error}")
json.dump(problems, sys.stdout)
