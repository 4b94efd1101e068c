"""Applications of the paper: real tables and images, from the files to a report.

An application reads a folder (or simulates its data), fits, and returns an
:class:`ApplicationReport` with figures, tables and a page. The command line writes the files.
"""

from hidag_paper.applications.report import ApplicationReport, ReportFigure, ReportSection

__all__ = ["ApplicationReport", "ReportFigure", "ReportSection"]
