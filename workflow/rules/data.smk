# From the registry to problems. `fetch` puts a data set's files into data/raw. `problem` splits a data
# set over its clients, or draws a synthetic one, and adds the answer that methods are compared with.


rule fetch:
    output:
        f"{RAW}/{{dataset}}/fetched.json",
    log:
        f"{RESULTS}/logs/fetch/{{dataset}}.log",
    retries: 1
    localrule: True
    params:
        # No code fingerprint is needed, because `problem` checks the files against these sums, too.
        sums=lambda wildcards: checksums_of(wildcards.dataset),
    script:
        "../scripts/fetch.py"


rule problem:
    input:
        raw_files,
    output:
        f"{CLIENTS}/{{paper}}/{{problem}}.h5",
    log:
        f"{RESULTS}/logs/problem/{{paper}}-{{problem}}.log",
    localrule: workflow.remote_exec  # in a job of a cluster it is forked, as in a local run
    resources:
        mem_mb=lambda wildcards, attempt: memory(
            expectation.measured(Path(benchmark_of_problem(wildcards))),
            PLAN.problems["{paper}/{problem}".format(**wildcards)]["mem_mb"],
            attempt,
        ),
    params:
        spec=lambda wildcards: PLAN.problem_data("{paper}/{problem}".format(**wildcards)),
        raw=RAW,
        seed=PLAN.config["seed"],
        surrogate=PLAN.config["surrogates"],
        registry=lambda wildcards: PLAN.problem_source("{paper}/{problem}".format(**wildcards)),
        code=lambda wildcards: PLAN.problem_code("{paper}/{problem}".format(**wildcards)),
    run:
        forking.run(
            build.make,
            output[0],
            wildcards.problem,
            params.spec,
            raw=params.raw,
            seed=params.seed,
            surrogate=params.surrogate,
            log=log[0],
            benchmark=benchmark_of_problem(wildcards),
            threads=threads,
        )
