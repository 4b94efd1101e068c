"""Reports of the studies: tables, figures and pages."""
