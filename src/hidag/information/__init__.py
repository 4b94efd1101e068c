"""Information matrices: scores, expected and observed information, covariances."""
