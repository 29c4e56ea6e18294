# A site of static pages shows the verdicts, tables, figures and notebooks of all papers.


rule report:
    input:
        of_all_papers,
    output:
        f"{RESULTS}/report/index.html",
    log:
        f"{RESULTS}/logs/report.log",
    localrule: workflow.remote_exec
    # Papers are written side by side, as nothing else runs at the end of a run; the queue of a
    # cluster may have no node of so many cores.
    threads: 1 if on_a_cluster() else 4
    params:
        surrogates=PLAN.config["surrogates"],
        command="snakemake --cores 1" + " --configfile config/quick.yaml" * PLAN.config["quick"],
        code=code_of_site(),
    run:
        forking.run(
            f"{STEPS}:site",
            output[0],
            command=params.command,
            surrogates=params.surrogates,
            processes=threads,
            log=log[0],
        )
