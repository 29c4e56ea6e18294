# Reproduces the experiments of the papers named in config/config.yaml:
#   snakemake --cores 16                  everything, at paper scale
#   snakemake factorization --cores 16    one paper
#   snakemake arena --cores 2             all methods on the same data
#   snakemake --cores 2 --configfile config/quick.yaml    small sizes, stand-in data
#
#   snakemake --cores 2 --set-resources run_ssi:mem_mb=8000 -- results/histories/<cell>.h5
#
# Each job is a command that `snakemake -p` prints. A person can run it by hand, in the environment,
# once the folder of its log is there. It runs again when its `params` change: its settings (`spec`)
# or the fingerprint of its code (`code`).

from snakemake.utils import min_version

min_version("9.20")


container: "fedcore.sif"  # from fedcore.def; used with --sdm apptainer alone


include: "workflow/rules/common.smk"


rule all:
    input:
        [products(paper) for paper in PLAN.papers],
        [f"{RESULTS}/verdicts.tsv"] if PLAN.judged else [],
        f"{RESULTS}/report/index.html",


include: "workflow/rules/data.smk"
include: "workflow/rules/run.smk"
include: "workflow/rules/results.smk"


for paper in PLAN.papers:

    rule:
        name:
            paper
        input:
            products(paper),


onsuccess:
    if PLAN.config["quick"]:
        print("Small sizes, and stand-ins for data sets: no check of the papers.")
    if Path(RESULTS, "report", "index.html").is_file():
        print(
            verdict_pages.summary(verdict_pages.found(Path(RESULTS, "verdicts"), PLAN.judged))
        )
        print(f"To look at: {Path(RESULTS, 'report', 'index.html').absolute()}")
