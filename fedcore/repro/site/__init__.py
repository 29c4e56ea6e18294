"""Write the HTML pages that show the results of a workflow run."""
