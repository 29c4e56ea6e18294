# A paper's tables are made from its histories; verdicts are made from the tables.


rule plan:
    output:
        f"{RESULTS}/plans/{{paper}}.json",
    log:
        f"{RESULTS}/logs/plan/{{paper}}.log",
    localrule: True
    params:
        plan=lambda wildcards: PLAN.describe(wildcards.paper),
    script:
        "../scripts/plan.py"


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
        benchmark:
            f"{RESULTS}/benchmarks/{{paper}}/tables.tsv"
        wildcard_constraints:
            paper=paper,
        resources:
            mem_mb=memory_as_measured(f"{RESULTS}/benchmarks/{{paper}}/tables.tsv"),
        params:
            # Lazy, because every job on a cluster reads these rules again.
            code=lambda wildcards: code_of_report(wildcards.paper),
        script:
            "../scripts/tables.py"
