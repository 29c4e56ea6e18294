# From the registry to problems. `fetch` puts a data set's files into data/raw. `problem` splits a data
# set over its clients, or draws a synthetic one, and adds the answer that methods are compared with.


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
        raw=lambda wildcards, output: Path(output[0]).parents[1],
        # No code fingerprint is needed, because `problem` checks the files against these sums, too.
        sums=lambda wildcards: registry.sums_of(wildcards.dataset),
    shell:
        "python -m fedcore fetch {wildcards.dataset} --raw {params.raw} 2> {log}"


rule problem:
    input:
        lambda wildcards: PLAN.raw_files(planned(wildcards)),
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
