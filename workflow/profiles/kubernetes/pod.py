#!/usr/bin/env python3
"""Submit a job script of Snakemake to Kubernetes, as a Job that mounts the volume of the checkout.

The Job ends well whenever the script has ended, because the script itself leaves a file that says
how; Kubernetes starts it again if its node fails. No number is printed: by it, a resumed run would
take over a job of the killed one, whatever has been edited in between.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
from pathlib import Path


def manifest(asked: argparse.Namespace, folder: str, run: str) -> dict[str, object]:
    """Return the Job of a script; its name begins with that of the run."""
    container = {
        "name": "job",
        "image": asked.image,
        "command": ["sh", "-c", 'sh "$0"; exit 0', asked.script],
        "workingDir": folder,
        "env": [{"name": "FEDCORE_RUN", "value": run}, {"name": "PYTHONPATH", "value": folder}],
        "resources": {"requests": {"cpu": str(asked.cores), "memory": f"{asked.memory}M"}},
        "volumeMounts": [{"name": "checkout", "mountPath": asked.mount}],
    }
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "checkout", "persistentVolumeClaim": {"claimName": asked.claim}}],
    }
    name = Path(run).name or "fedcore"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{name}-{secrets.token_hex(4)}", "labels": {"run": name}},
        "spec": {
            "backoffLimit": 3,
            "activeDeadlineSeconds": 60 * asked.minutes,
            "ttlSecondsAfterFinished": 3600,
            "template": {"spec": pod},
        },
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("--image", "--claim", "--mount"):
        parser.add_argument(option, required=True)
    for option in ("--cores", "--memory", "--minutes"):
        parser.add_argument(option, required=True, type=int)
    parser.add_argument("script")
    job = manifest(parser.parse_args(), os.getcwd(), os.environ.get("FEDCORE_RUN", ""))
    text = json.dumps(job).encode()
    # To standard error: what is printed would be taken for the job's number.
    sys.exit(subprocess.run(["kubectl", "create", "-f", "-"], input=text, stdout=2).returncode)
