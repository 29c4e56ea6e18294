# Data sets are fetched; problems are dealt to clients or drawn, with the answer to compare with.


rule fetch:
    output:
        f"{RAW}/{{dataset}}/fetched.json",
    log:
        f"{RESULTS}/logs/fetch/{{dataset}}.log",
    localrule: True
    conda:
        "../envs/fedcore.yaml"
    params:
        raw=subpath(output[0], ancestor=2),
        sums=lambda wildcards: registry.sums_of(wildcards.dataset),
    shell:
        "python -m fedcore fetch {wildcards.dataset} --raw {params.raw:q} 2> {log:q}"


# The start of a run has written `made`; this rule copies it, so that it has a time and a log.
rule plan:
    output:
        f"{RESULTS}/plans/{{paper}}.json",
    log:
        f"{RESULTS}/logs/plan/{{paper}}.log",
    localrule: True
    conda:
        "../envs/fedcore.yaml"
    params:
        made=lambda wildcards: PLAN.made(wildcards.paper)[0],
    shell:
        "python -m fedcore job plan {params.made} {output:q} 2> {log:q}"


rule problem:
    input:
        lambda wildcards: PLAN.raw_files(problem_of(wildcards)),
    output:
        f"{CLIENTS}/{{paper}}/{{problem}}.h5",
    log:
        f"{RESULTS}/logs/problem/{{paper}}-{{problem}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/problems/{{paper}}/{{problem}}.tsv"
    priority: 1_000_000  # runs wait for it, perhaps the longest
    conda:
        "../envs/fedcore.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: attempt * PLAN.problems[problem_of(wildcards)]["mem_mb"],
    params:
        *digests(*build.COMMON_MODULES),
        settings=lambda wildcards: json.dumps(build.data_of(PLAN.problems[problem_of(wildcards)])),
        entry=lambda wildcards: PLAN.problem_entry(problem_of(wildcards)),
        made_by=made_by,
        raw=lambda wildcards, input: subpath(input[0], ancestor=2) if input else RAW,
        seed=PLAN.config["seed"],
        surrogate="--surrogate" if PLAN.config["surrogates"] else "",
        code=lambda wildcards: PLAN.problem_code(problem_of(wildcards)),
    shell:
        "python -m fedcore job problem {wildcards.problem} {params.settings:q} {output:q}"
        " --seed {params.seed} {params.surrogate} --raw {params.raw:q} --code {params.code} 2> {log:q}"
