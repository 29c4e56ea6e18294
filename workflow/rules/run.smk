# One rule per algorithm, so that each can have its own resources; one job per cell with all repeats.

for algorithm in sorted({cell.algorithm for cell in CELLS.values()}):

    rule:
        name:
            f"run_{algorithm}"
        input:
            problems_of,
        output:
            history=f"{RESULTS}/histories/{{paper}}/{{experiment}}/{{algorithm}}/{{cell}}.h5",
            seconds=f"{RESULTS}/seconds/{{paper}}/{{experiment}}/{{algorithm}}/{{cell}}.tsv",
        log:
            f"{RESULTS}/logs/run/{{paper}}/{{experiment}}/{{algorithm}}/{{cell}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/{{paper}}/{{experiment}}/{{algorithm}}/{{cell}}.tsv"
        wildcard_constraints:
            algorithm=algorithm,
        conda:
            "../envs/networks.yaml"
            if algorithms.get(algorithm).task.packages
            else "../envs/fedcore.yaml"
        resources:
            mem_mb=memory_of,
            runtime=minutes_of,
        params:
            plan=f"{RESULTS}/plans/{{paper}}.json",
            name=f"{{experiment}}/{{algorithm}}/{{cell}}",
            checkpoints=f"{RESULTS}/checkpoints/{{paper}}/{{experiment}}/{{algorithm}}/{{cell}}",
            spec=lambda wildcards: cell_of(wildcards).spec(),
            code=lambda wildcards: cell_of(wildcards).code,
        shell:
            "python -m fedcore job cell {params.plan} {params.name} {input} {output}"
            " --checkpoints {params.checkpoints} 2> {log}"
