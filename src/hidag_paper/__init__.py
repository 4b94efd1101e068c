"""The paper's studies, baselines, applications and the seesaw; hidag never imports them."""
