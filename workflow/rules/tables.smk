# A paper's tables are made from its histories; verdicts are made from the tables.


rule plan:
    output:
        f"{RESULTS}/plans/{{paper}}.json",
    log:
        f"{RESULTS}/logs/plan/{{paper}}.log",
    localrule: True
    params:
        plan=lambda wildcards: PLAN.describe(wildcards.paper),
        code=code_of("plan"),
    run:
        forking.run(f"{STEPS}:plan", params.plan, output[0], log=log[0])


for paper in DRAWN:

    rule:
        name:
            f"tables_{paper}"
        input:
            plan=f"{RESULTS}/plans/{{paper}}.json",
            histories=histories_of,
        output:
            tables=drawn("{paper}", PLAN.papers[paper])["tables"],
            markdown=drawn("{paper}", PLAN.papers[paper])["markdown"],
        log:
            f"{RESULTS}/logs/tables/{{paper}}.log",
        wildcard_constraints:
            paper=paper,
        localrule: workflow.remote_exec  # in a job of a cluster it is forked, as in a local run
        resources:
            mem_mb=memory_as_measured("tables"),
        params:
            # Lazy, because every job on a cluster reads these rules again.
            code=lambda wildcards: code_of_report(wildcards.paper),
        run:
            forking.run(
                f"{STEPS}:tables",
                input.plan,
                log=log[0],
                benchmark=benchmark_of(wildcards, "tables"),
            )
