# One notebook per paper turns its histories into tables and figures. The executed copy is an output like
# these, and the notebook can be opened by itself: its parameters have defaults.


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


for paper, settings in PLAN.papers.items():

    rule:
        name:
            f"notebook_{paper}"
        input:
            notebook="notebooks/{paper}.ipynb",
            plan=f"{RESULTS}/plans/{{paper}}.json",
            histories=histories_of,
        output:
            notebook=f"{RESULTS}/notebooks/{{paper}}.ipynb",
            figures=[
                report(
                    f"{RESULTS}/figures/{{paper}}/{figure}.png",
                    category=paper,
                    labels={"what": text},
                )
                for figure, text in settings["figures"].items()
            ],
            vector=[f"{RESULTS}/figures/{{paper}}/{figure}.pdf" for figure in settings["figures"]],
            tables=[f"{RESULTS}/tables/{{paper}}/{table}.tsv" for table in settings["tables"]],
            markdown=[f"{RESULTS}/tables/{{paper}}/{table}.md" for table in settings["tables"]],
        log:
            f"{RESULTS}/logs/notebook/{{paper}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/{{paper}}/notebook.tsv"
        wildcard_constraints:
            paper=paper,
        resources:
            mem_mb=2000,
        params:
            code=fingerprint(f"fedcore.reports.{paper}", "fedcore.plotting"),
        script:
            "../scripts/notebook.py"
