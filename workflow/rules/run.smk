# One rule per algorithm, so that each can have its own resources; one job per cell with all repeats.
for algorithm in sorted({cell.algorithm for cell in PLAN.cells.values()}):

    rule:
        name:
            f"run_{algorithm}"
        input:
            lambda wildcards: data_of(cell_of(wildcards)),
        output:
            f"{RESULTS}/histories/{{paper}}/{{experiment}}/{{algorithm}}/{{cell}}.h5",
        log:
            errors=f"{RESULTS}/logs/run/{{paper}}/{{experiment}}/{{algorithm}}/{{cell}}.log",
            seconds=f"{RESULTS}/seconds/{{paper}}/{{experiment}}/{{algorithm}}/{{cell}}.tsv",  # no output: they differ
        benchmark:
            f"{RESULTS}/benchmarks/{{paper}}/{{experiment}}/{{algorithm}}/{{cell}}.tsv"
        wildcard_constraints:
            algorithm=algorithm,
        priority: longest_first
        conda:
            "../envs/networks.yaml"
            if algorithms.get(algorithm).task.packages
            else "../envs/fedcore.yaml"
        resources:
            mem_mb=memory_of,
            runtime=minutes_of,
        params:
            *digests(*modules_of(algorithm)),
            results=subpath(output[0], ancestor=5),  # also where a module puts a prefix before it
            settings=lambda wildcards: json.dumps(cell_of(wildcards).spec()),
            measured_by=measured_by,
            code=lambda wildcards: cell_of(wildcards).code,
            recipes=lambda wildcards: [
                f"--recipe={recipe}" for recipe in cell_of(wildcards).recipes
            ],
        shell:
            "python -m fedcore job cell {params.settings:q} {input:q} {output:q}"
            " --code {params.code} {params.recipes} --seconds {log.seconds:q} --checkpoints"
            " {params.results:q}/checkpoints/{wildcards.paper}/{wildcards.experiment}/{wildcards.algorithm}/{wildcards.cell}"
            " 2> {log.errors:q}"
