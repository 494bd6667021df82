"""Any detection set as a dataset of questions, under a name of the user's."""
