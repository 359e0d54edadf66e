"""What `manikin collect` does: record episodes, in this process or spread over workers."""
