"""Helm, for tests/deploy/chart.rs: reads jobs as JSON on standard input, writes what came of them.

A job has `chart` (a folder), `values`, `name` and `namespace`; it becomes what `helm template`, `helm
lint --strict` and `helm package` would say.
"""

import json
import os
import sys
import tempfile

import helm_python as helm


def done(job):
    place = {"name": job["name"], "namespace": job["namespace"]}
    values = job["values"]
    with helm.Chart.load(job["chart"]) as chart:
        try:
            chart.validate_schema(values)
            files = chart.render(values, **place)
        except helm.HelmError as error:
            return {"error": str(error)}
        with tempfile.TemporaryDirectory() as folder:
            archive = chart.save(folder)
            size = os.path.getsize(archive)
            with helm.Chart.load(archive) as packed:
                same = packed.render(values, **place) == files
    lint = helm.lint(job["chart"], values, strict=True, namespace=job["namespace"])
    return {"files": files, "lint": lint["messages"], "packed": size, "packed_is_the_same": same}


json.dump([done(job) for job in json.load(sys.stdin)], sys.stdout)
