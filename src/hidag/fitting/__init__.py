"""From settings to a result: reading the task, running the stages, warnings about the fit."""
