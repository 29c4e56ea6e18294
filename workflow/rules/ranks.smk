# One rule per algorithm for cells that run over MPI: their job starts the ranks. Of the paths of
# cells, those that `OVER_RANKS` matches are theirs, and the others those of run.smk.

for algorithm in sorted({cell.algorithm for cell in CELLS.values() if cell.ranks.number}):

    rule:
        name:
            f"ranks_{algorithm}"
        input:
            problem_of,
        output:
            history=f"{RESULTS}/histories/{{paper}}/{{experiment}}/{{algorithm}}/{{cell}}.h5",
            seconds=f"{RESULTS}/seconds/{{paper}}/{{experiment}}/{{algorithm}}/{{cell}}.tsv",
        log:
            f"{RESULTS}/logs/run/{{paper}}/{{experiment}}/{{algorithm}}/{{cell}}.log",
        wildcard_constraints:
            algorithm=algorithm,
            paper=OVER_RANKS,
        localrule: workflow.remote_exec
        threads: cores_of
        resources:
            **asked_by(algorithm),
            tasks=lambda wildcards: cell_of(wildcards).ranks.number,
            mpi="mpiexec",
        params:
            cell=lambda wildcards: cell_of(wildcards).spec(),
            code=lambda wildcards: cell_of(wildcards).code,
            # With sums in a chain, no bit depends on the number of ranks.
            order=lambda wildcards: order_of(wildcards),
        run:
            forking.run(
                "fedcore.experiments.ranks:launch",
                params.cell,
                input[0],
                *output,
                ranks=tuple(cell_of(wildcards).ranks),
                code=params.code,
                used=beside(wildcards)["benchmark"],
                log=log[0],
            )
