# One notebook per paper draws its figures. The executed copy is an output, too. The notebook can also be
# opened by itself, because its parameters have defaults.


for paper in WITH_NOTEBOOK:
    settings = PLAN.papers[paper]
    made = drawn("{paper}", settings)

    rule:
        name:
            f"notebook_{paper}"
        input:
            notebook=str(PLAN.files[paper].notebook),
            plan=f"{RESULTS}/plans/{{paper}}.json",
            histories=histories_of,
            tables=made["tables"],
            markdown=made["markdown"],
        output:
            vector=made["vector"],
            notebook=f"{RESULTS}/notebooks/{{paper}}.ipynb",
            figures=[
                report(
                    figure,
                    category=paper,
                    labels={"what": text},
                )
                for figure, text in zip(made["figures"], settings["figures"].values())
            ],
        log:
            f"{RESULTS}/logs/notebook/{{paper}}.log",
        wildcard_constraints:
            paper=paper,
        localrule: workflow.remote_exec
        resources:
            mem_mb=memory_as_measured("notebook"),
        params:
            # Lazy, because every job on a cluster reads these rules again. The path is spelled out,
            # because Snakemake ignores a change of a parameter that is a function of `input`.
            code=lambda wildcards: code_of_notebook(wildcards.paper),
        run:
            forking.run(
                f"{STEPS}:notebook",
                input.notebook,
                output.notebook,
                plan=input.plan,
                figures=[*output.figures, *output.vector],
                log=log[0],
                benchmark=benchmark_of(wildcards, "notebook"),
            )
