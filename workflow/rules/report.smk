# A site of static pages shows the verdicts, tables, figures and notebooks of all papers.


rule report:
    input:
        [f"{RESULTS}/verdicts.tsv"] if PLAN.judged else [],
        *[products(paper) for paper in PLAN.papers],
    output:
        f"{RESULTS}/report/index.html",
    log:
        f"{RESULTS}/logs/report.log",
    params:
        claims="config/claims",
        surrogates=PLAN.config["surrogates"],
        command="snakemake --cores 1" + " --configfile config/quick.yaml" * PLAN.config["quick"],
        code=code_of_site(),
    script:
        "../scripts/report.py"
