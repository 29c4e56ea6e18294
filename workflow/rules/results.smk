# From histories to a paper's tables, figures and verdicts, and to the pages of all papers.
for paper in DRAWN:

    rule:
        name:
            f"tables_{paper}"
        input:
            plan=f"{RESULTS}/plans/{paper}.json",
            histories=histories_of(paper),
        output:
            drawn(paper, "tables", *TABLE),
        log:
            f"{RESULTS}/logs/tables/{paper}.log",
        conda:
            "../envs/fedcore.yaml"
        params:
            *digests("fedcore.repro.tables.report", PLAN.files[paper].tables, *PRINTED),
        shell:
            "python -m fedcore job tables {input.plan:q} 2> {log:q}"


for paper in WITH_NOTEBOOK:

    rule:
        name:
            f"notebook_{paper}"
        input:
            notebook=PLAN.files[paper].notebook,
            plan=f"{RESULTS}/plans/{paper}.json",
            histories=histories_of(paper),
            tables=drawn(paper, "tables", *TABLE),
            verdicts=[f"{RESULTS}/verdicts/{paper}.tsv"] if paper in PLAN.judged else [],
        output:
            notebook=f"{RESULTS}/notebooks/{paper}.ipynb",
            vector=drawn(paper, "figures", *VECTOR),
            figures=[
                report(
                    figure,
                    caption="../report/figure.rst",
                    category=paper,
                    labels={"what": text},
                )
                for figure, text in zip(
                    drawn(paper, "figures", "png"), PLAN.papers[paper]["figures"].values()
                )
            ],
        log:
            f"{RESULTS}/logs/notebook/{paper}.log",
        conda:
            "../envs/fedcore.yaml"
        params:
            *digests(*imported_by(PLAN.files[paper].notebook, paper), *PRINTED),
            beside=PLAN.files[paper].beside,
            drawn="FEDCORE_FIGURES=png " if QUICK else "",
            looks=looks_in(paper),
            style=data_files("fedcore.reports"),
        shell:
            "{params.beside}{params.drawn}JUPYTER_PREFER_ENV_PATH=1 IPYTHONDIR=.snakemake/ipython papermill"
            " {input.notebook:q} {output.notebook:q} -p plan {input.plan:q} --no-progress-bar 2> {log:q}"


rule verdicts:
    input:
        claims=lambda wildcards: PLAN.files[wildcards.paper].claims,
        beside=lambda wildcards: PLAN.files[wildcards.paper].beside_claims,
        plan=f"{RESULTS}/plans/{{paper}}.json",
        tables=lambda wildcards: drawn(wildcards.paper, "tables", "tsv"),
    output:
        tsv=f"{RESULTS}/verdicts/{{paper}}.tsv",
        markdown=report(
            f"{RESULTS}/verdicts/{{paper}}.md",
            caption="../report/verdicts.rst",
            category="verdicts",
        ),
    log:
        f"{RESULTS}/logs/verdicts/{{paper}}.log",
    conda:
        "../envs/fedcore.yaml"
    params:
        *digests(
            "fedcore.repro.verdicts.verdicts",
            "fedcore.repro.verdicts.verdict_pages",
            "fedcore.repro.verdicts.records",
            *PRINTED,
        ),
    shell:
        "python -m fedcore job verdicts {input.plan:q} {input.claims:q} {output.tsv:q} 2> {log:q}"


rule summary:
    input:
        [f"{RESULTS}/verdicts/{paper}.tsv" for paper in PLAN.judged],
    output:
        tsv=f"{RESULTS}/verdicts.tsv",
        markdown=f"{RESULTS}/verdicts.md",
    log:
        f"{RESULTS}/logs/summary.log",
    localrule: True
    conda:
        "../envs/fedcore.yaml"
    params:
        *digests("fedcore.repro.verdicts.verdict_pages", *PRINTED),
        papers=PLAN.judged,
    shell:
        "python -m fedcore job summary {output.tsv:q} {params.papers} 2> {log:q}"


rule report:
    input:
        [f"{RESULTS}/verdicts.tsv"] if PLAN.judged else [],
        [last_of(paper) for paper in PLAN.papers],
    output:
        f"{RESULTS}/report/index.html",
    log:
        f"{RESULTS}/logs/report.log",
    conda:
        "../envs/fedcore.yaml"
    params:
        *digests("fedcore.repro.site.build", *PRINTED),
        results=subpath(output[0], ancestor=2),
        papers=[*PLAN.papers],
        looks=[looks_in(paper) for paper in PLAN.papers],
        files=data_files("fedcore.repro.site.build"),
    shell:
        "python -m fedcore job report {params.results:q} {params.papers} 2> {log:q}"
