#!/bin/sh
# Submits a job script of Snakemake to Kubernetes, as a Job that mounts the volume of the checkout.
# The script leaves a file that says how it ended, so the Job ends well whenever the script has ended.
# Nothing is printed to standard output: Snakemake would take it for the number of a job to go on with.
set -eu
image=$1 claim=$2 mount=$3 cores=$4 memory=$5 minutes=$6 script=$7
kubectl create -f - >&2 <<JOB
apiVersion: batch/v1
kind: Job
metadata: {generateName: fedcore-}
spec:
  backoffLimit: 3
  activeDeadlineSeconds: $((60 * minutes))
  ttlSecondsAfterFinished: 3600
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: job
          image: "$image"
          command: ["sh", "-c", 'sh "\$0"; exit 0', "$script"]
          workingDir: "$PWD"
          resources: {requests: {cpu: "$cores", memory: ${memory}M}}
          volumeMounts: [{name: checkout, mountPath: "$mount"}]
      volumes:
        - {name: checkout, persistentVolumeClaim: {claimName: "$claim"}}
JOB
