"""Reports of studies: one HTML file that needs no network, and a summary in Markdown."""

from marginbayes.report.markdown import summary
from marginbayes.report.page import write_report

__all__ = ["summary", "write_report"]
