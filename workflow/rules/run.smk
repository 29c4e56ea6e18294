# One rule per algorithm, so that each can have its own resources; one job per cell with all repeats.
# `code` makes a job run again when the code that its result depends on has changed.


include: "ranks.smk"  # cells that run over MPI


for algorithm in sorted({cell.algorithm for cell in CELLS.values()}):

    rule:
        name:
            f"run_{algorithm}"
        input:
            problem_of,
        output:
            history=f"{RESULTS}/histories/{{paper}}/{{experiment}}/{{algorithm}}/{{cell}}.h5",
            seconds=f"{RESULTS}/seconds/{{paper}}/{{experiment}}/{{algorithm}}/{{cell}}.tsv",
        log:
            f"{RESULTS}/logs/run/{{paper}}/{{experiment}}/{{algorithm}}/{{cell}}.log",
        wildcard_constraints:
            algorithm=algorithm,
            paper=IN_ONE_PROCESS,
        # In a job of a cluster it is forked, as in a local run; there, a group would forbid that.
        group:
            None if workflow.remote_exec else group_of
        localrule: workflow.remote_exec
        resources:
            **asked_by(algorithm),
        params:
            cell=lambda wildcards: cell_of(wildcards).spec(),
            code=lambda wildcards: cell_of(wildcards).code,
        run:
            forking.run(
                run_cell,
                params.cell,
                input[0],
                *output,
                code=params.code,
                progress=tqdm,
                log=log[0],
                threads=threads,
                **beside(wildcards),
            )
