# Reproduces the experiments of the papers named in config/config.yaml.
#
#   snakemake --cores 16                  everything, at paper scale
#   snakemake factorization --cores 16    one paper
#   snakemake arena --cores 2             all methods on the same data
#   snakemake --cores 2 --configfile config/quick.yaml    small sizes, stand-in data

from snakemake.utils import min_version

min_version("9.20")


container: "fedcore.sif"  # from fedcore.def; used with --sdm apptainer alone


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/run.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/verdicts.smk"
include: "workflow/rules/report.smk"


rule all:
    default_target: True
    input:
        [products(paper) for paper in PLAN.papers],
        [f"{RESULTS}/verdicts.tsv"] if PLAN.judged else [],
        f"{RESULTS}/report/index.html",
    localrule: True


# One target per paper: `snakemake factorization`.
for paper in PLAN.papers:

    rule:
        name:
            paper
        input:
            products(paper),
        localrule: True


onstart:
    prepare(workflow.dag)
    show_progress(workflow.dag)
    follow_killed_run()
    remove_left_overs(Path(".snakemake"), [Path(RESULTS), Path(CLIENTS)], [Path(RAW)])


onsuccess:
    controller.end()
    end_progress()
    summarise_verdicts()


onerror:
    end_progress(workflow.dag)
    summarise_verdicts()
