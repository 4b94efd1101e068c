"""Tables and pages of the studies."""
