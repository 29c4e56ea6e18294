# Reproduces the experiments of the papers named in config/config.yaml:
#   snakemake --cores 16                  everything, at paper scale
#   snakemake factorization --cores 16    one paper
#   snakemake arena --cores 2             all methods on the same data
#   snakemake --cores 2 --configfile config/quick.yaml    small sizes, stand-in data
#
# Each job is a command that `snakemake -p` prints and that a person can run by hand. It runs again
# when its `params` change: its settings (`spec`) or the fingerprint of its code (`code`).

from snakemake.utils import min_version

min_version("9.20")


container: "fedcore.sif"  # from fedcore.def; used with --sdm apptainer alone


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/run.smk"
include: "workflow/rules/results.smk"


rule all:
    default_target: True
    input:
        rules.report.input,
        rules.report.output,


for paper in PLAN.papers:

    rule:
        name:
            paper
        input:
            products(paper),


onstart:
    print(*left_out.sentences(PLAN.not_run), sep="\n", file=sys.stderr)


onsuccess:
    if PLAN.config["quick"]:
        print("Small sizes, and stand-ins for data sets: no check of the papers.")
    print(verdict_pages.summary(verdict_pages.found(Path(RESULTS, "verdicts"), PLAN.judged)))
    print(f"To look at: {Path(RESULTS, 'report', 'index.html').absolute()}")
