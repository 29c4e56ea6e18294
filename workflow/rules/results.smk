# From histories to a paper's tables, figures and verdicts, and to the pages of all papers.

for paper in DRAWN:

    rule:
        name:
            f"tables_{paper}"
        input:
            [f"{RESULTS}/histories/{cell.path}.h5" for cell in PLAN.cells_of(paper)],
        output:
            drawn(paper, "tables", "tsv", "md"),
        log:
            f"{RESULTS}/logs/tables/{paper}.log",
        conda:
            "../envs/fedcore.yaml"
        params:
            plan=f"{RESULTS}/plans/{paper}.json",
            spec=PLAN.digest(paper),
            code=fingerprint("fedcore.reports.report", PLAN.files[paper].tables),
        shell:
            "python -m fedcore job tables {params.plan} 2> {log}"


for paper in WITH_NOTEBOOK:

    rule:
        name:
            f"notebook_{paper}"
        input:
            notebook=PLAN.files[paper].notebook,
            histories=getattr(rules, f"tables_{paper}").input,
            tables=getattr(rules, f"tables_{paper}").output,
        output:
            notebook=f"{RESULTS}/notebooks/{paper}.ipynb",
            vector=drawn(paper, "figures", "pdf"),
            figures=[
                report(figure, category=paper, labels={"what": text})
                for figure, text in zip(
                    drawn(paper, "figures", "png"), PLAN.papers[paper]["figures"].values()
                )
            ],
        log:
            f"{RESULTS}/logs/notebook/{paper}.log",
        conda:
            "../envs/fedcore.yaml"
        params:
            plan=f"{RESULTS}/plans/{paper}.json",
            # Of a paper elsewhere: its notebook imports the module beside it.
            beside=PLAN.files[paper].report.parent.absolute(),
            spec=PLAN.digest(paper),
            code=fingerprint(*imported_by(PLAN.files[paper].notebook), words=looks_in(paper)),
        shell:
            'PYTHONPATH="$PYTHONPATH:{params.beside}" papermill {input.notebook} {output.notebook}'
            " -p plan {params.plan} --no-progress-bar 2> {log}"


rule verdicts:
    input:
        claims=lambda wildcards: PLAN.files[wildcards.paper].claims,
        tables=lambda wildcards: drawn(wildcards.paper, "tables", "tsv"),
    output:
        tsv=f"{RESULTS}/verdicts/{{paper}}.tsv",
        markdown=report(f"{RESULTS}/verdicts/{{paper}}.md", category="verdicts"),
    log:
        f"{RESULTS}/logs/verdicts/{{paper}}.log",
    conda:
        "../envs/fedcore.yaml"
    params:
        plan=f"{RESULTS}/plans/{{paper}}.json",
        not_run=PLAN.not_run,
        run=[PLAN.config["surrogates"], PLAN.config["quick"]],
        code=fingerprint("fedcore.reports.verdicts:judge", "fedcore.reports.verdict_pages:write"),
    shell:
        "python -m fedcore job verdicts {params.plan} {input.claims} {output.tsv} 2> {log}"


rule summary:
    input:
        [f"{RESULTS}/verdicts/{paper}.tsv" for paper in PLAN.judged],
    output:
        tsv=f"{RESULTS}/verdicts.tsv",
        markdown=f"{RESULTS}/verdicts.md",
    log:
        f"{RESULTS}/logs/summary.log",
    localrule: True
    params:
        papers=PLAN.judged,
        code=fingerprint("fedcore.reports.verdict_pages:combine"),
    shell:
        "python -m fedcore job summary {output.tsv} {params.papers} 2> {log}"


SITE = "fedcore.reports.site.build"


rule report:
    input:
        [f"{RESULTS}/verdicts.tsv"] if PLAN.judged else [],
        [products(paper) for paper in PLAN.papers],
    output:
        f"{RESULTS}/report/index.html",
    log:
        f"{RESULTS}/logs/report.log",
    conda:
        "../envs/fedcore.yaml"
    threads: 4
    params:
        results=lambda wildcards, output: Path(output[0]).parents[1],
        command="snakemake --cores 1" + " --configfile config/quick.yaml" * PLAN.config["quick"],
        surrogates="--surrogates" * PLAN.config["surrogates"],
        code=[fingerprint(SITE), *data_files(SITE), *map(looks_in, PLAN.papers)],
    shell:
        "python -m fedcore job report {params.results} --command {params.command:q}"
        " {params.surrogates} --processes {threads} 2> {log}"
