# Reproduces the experiments of the papers named in config/config.yaml:
#   snakemake --cores 16                  everything, at paper scale
#   snakemake factorization --cores 16    one paper
#   snakemake --cores 2 --configfile config/quick.yaml    small sizes, stand-in data
#   snakemake --cores 2 --set-resources run_ssi:mem_mb=8000 -- results/histories/<cell>.h5
#
# Each job is a command that `snakemake -p` prints. It runs again when its `params` change: its `settings`,
# or the modules that it imports. docs/workflow.md has more.

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

min_version("9.20")

if "://" in workflow.current_basedir.get_path_or_uri(True):  # Snakemake fetches rules alone
    raise WorkflowError(
        "fedcore's rules run the code of their checkout, and there is none here: clone the "
        "repository, and give `snakefile:` the path of the clone's Snakefile"
    )


report: "workflow/report/workflow.rst"


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


onstart:
    begin()
    print(*left_out.sentences(PLAN.not_run), sep="\n", file=sys.stderr)


onsuccess:
    if Path(RESULTS, "report", "index.html").is_file():
        print(
            verdict_pages.overview(
                verdict_pages.read_papers(f"{RESULTS}/verdicts", PLAN.judged)
            )
        )
        print(f"To look at: {Path(RESULTS, 'report', 'index.html').absolute()}")
