# Every published number and claim of a paper against what came out.


rule verdicts:
    input:
        # Written last by its job: while it is missing, none of the job's tables can be trusted.
        notebook=f"{RESULTS}/notebooks/{{paper}}.ipynb",
        tables=lambda wildcards: [
            f"{RESULTS}/tables/{wildcards.paper}/{table}.tsv"
            for table in PLAN.papers[wildcards.paper]["tables"]
        ],
    output:
        tsv=f"{RESULTS}/verdicts/{{paper}}.tsv",
        markdown=report(
            f"{RESULTS}/verdicts/{{paper}}.md",
            category=lambda wildcards: wildcards.paper,
            labels={"what": "verdicts"},
        ),
    log:
        f"{RESULTS}/logs/verdicts/{{paper}}.log",
    params:
        published=lambda wildcards: PLAN.papers[wildcards.paper]["published"],
        unavailable=PLAN.unavailable,
        surrogate=PLAN.config["surrogates"],
        tables=f"{RESULTS}/tables",
        code=fingerprint("fedcore.verdicts"),
    script:
        "../scripts/verdicts.py"
