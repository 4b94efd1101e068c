"""The paper's simulation studies, baselines, applications and seesaw images."""
