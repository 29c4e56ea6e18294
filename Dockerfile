# The environment of requirements.lock, with this checkout in it; fedcore.def is the same for Apptainer.
#
#   docker build -t fedcore .
#   docker run --rm -v "$PWD":/fedcore fedcore                    the quick run; results in ./results
#   docker run --rm -v "$PWD":/fedcore fedcore snakemake --cores 4
#
# The code that runs is that of the folder in which a command starts, by default of /fedcore. To build on
# the same base image again, write its digest behind its name, python:3.12-slim@sha256:…, here and in
# fedcore.def: `docker buildx imagetools inspect python:3.12-slim` prints it.

FROM python:3.12-slim
RUN apt-get update && apt-get install -y --no-install-recommends make && rm -rf /var/lib/apt/lists/*
WORKDIR /fedcore
COPY . .
RUN make env VENV=/opt/fedcore
ENV PATH=/opt/fedcore/bin:$PATH PYTHONPATH=. HOME=/tmp OMP_NUM_THREADS=1
CMD ["snakemake", "--cores", "2", "--configfile", "config/quick.yaml"]
