# Every item that a paper prints is held against its tables; then all papers are combined.


rule verdicts:
    input:
        tables=tables_of,
    output:
        tsv=f"{RESULTS}/verdicts/{{paper}}.tsv",
        markdown=report(
            f"{RESULTS}/verdicts/{{paper}}.md",
            category=lambda wildcards: wildcards.paper,
            labels={"what": "verdicts"},
        ),
    log:
        f"{RESULTS}/logs/verdicts/{{paper}}.log",
    localrule: workflow.remote_exec
    params:
        claims=lambda wildcards: PLAN.claims_of(wildcards.paper),
        not_run=PLAN.not_run,
        surrogate=PLAN.config["surrogates"],
        small=PLAN.config["quick"],
        tables=f"{RESULTS}/tables",
        code=code_of("verdict"),
    run:
        forking.run(
            f"{STEPS}:verdict",
            wildcards.paper,
            params.claims,
            params.tables,
            output.tsv,
            not_run=params.not_run,
            surrogate=params.surrogate,
            small=params.small,
            log=log[0],
        )


rule summary:
    input:
        expand(f"{RESULTS}/verdicts/{{paper}}.tsv", paper=PLAN.judged),
    output:
        tsv=f"{RESULTS}/verdicts.tsv",
        markdown=f"{RESULTS}/verdicts.md",
    log:
        f"{RESULTS}/logs/summary.log",
    localrule: True
    params:
        papers=PLAN.judged,
        code=code_of("summary"),
    run:
        forking.run(f"{STEPS}:summary", output.tsv, params.papers, log=log[0])
