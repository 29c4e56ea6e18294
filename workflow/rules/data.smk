# From the registry to problems. `fetch` puts a data set's files into data/raw. `problem` splits a data
# set over its clients, or draws a synthetic one, and adds the answer that methods are compared with.


def planned(wildcards):
    return "{paper}/{problem}".format(**wildcards)


def raw_files(wildcards):
    dataset = PLAN.problems[planned(wildcards)].get("dataset")
    if not dataset or PLAN.config["surrogates"]:
        return []
    entry, _ = registry.find(dataset)  # none of another package's data set: then all files count
    others = [] if entry else [f for f in sorted(Path(RAW, dataset).rglob("[!.]*")) if f.is_file()]
    return [f"{RAW}/{dataset}/fetched.json", *(f for f in others if f.name != "fetched.json")]


def sums_of(wildcards):
    """Checksums against which `fetch` checks the files of a data set."""
    entry, _ = registry.find(wildcards.dataset)
    return [registry.sums(source) for source in (entry or {"sources": []})["sources"]]


rule fetch:
    output:
        f"{RAW}/{{dataset}}/fetched.json",
    log:
        f"{RESULTS}/logs/fetch/{{dataset}}.log",
    retries: 1
    localrule: True
    conda:
        "../envs/fedcore.yaml"
    params:
        raw=RAW,
        # No code fingerprint is needed, because `problem` checks the files against these sums, too.
        sums=sums_of,
    shell:
        "python -m fedcore fetch {wildcards.dataset} --raw {params.raw} 2> {log}"


rule problem:
    input:
        raw_files,
    output:
        f"{CLIENTS}/{{paper}}/{{problem}}.h5",
    log:
        f"{RESULTS}/logs/problem/{{paper}}-{{problem}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/problems/{{paper}}/{{problem}}.tsv"
    conda:
        "../envs/fedcore.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: attempt * PLAN.problems[planned(wildcards)]["mem_mb"],
    params:
        plan=f"{RESULTS}/plans/{{paper}}.json",
        spec=lambda wildcards: PLAN.problem_data(planned(wildcards)),
        run=[PLAN.config["seed"], PLAN.config["surrogates"]],
        registry=lambda wildcards: PLAN.problem_source(planned(wildcards)),
        code=lambda wildcards: PLAN.problem_code(planned(wildcards)),
    shell:
        "python -m fedcore job problem {params.plan} {wildcards.problem} {output} 2> {log}"
