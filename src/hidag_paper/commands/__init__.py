"""The commands `hidag study`, `hidag app` and the seesaw demo."""
