# From the registry to problems: `fetch` brings a data set's files into data/raw, `problem` splits one over
# its clients (or draws a synthetic one) and adds the answer that methods are compared with.


rule fetch:
    localrule: True
    output:
        f"{RAW}/{{dataset}}/fetched.json",
    log:
        "logs/fetch/{dataset}.log",
    retries: 1
    params:
        code=fingerprint("fedcore.datasets"),
    script:
        "../scripts/fetch.py"


def raw_files(wildcards):
    dataset = PLAN.problems["{paper}/{problem}".format(**wildcards)].get("dataset")
    needed = dataset and not PLAN.config["surrogates"]
    return f"{RAW}/{dataset}/fetched.json" if needed else []


rule problem:
    input:
        raw_files,
    output:
        f"{CLIENTS}/{{paper}}/{{problem}}.h5",
    log:
        "logs/problem/{paper}-{problem}.log",
    params:
        spec=lambda wildcards: PLAN.problems["{paper}/{problem}".format(**wildcards)],
        raw=RAW,
        seed=PLAN.config["seed"],
        surrogate=PLAN.config["surrogates"],
        code=lambda wildcards: PLAN.problem_code("{paper}/{problem}".format(**wildcards)),
    resources:
        mem_mb=2000,
    script:
        "../scripts/problem.py"
